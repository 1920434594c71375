#include "drivers/virtual/choice/chosen_engine.h"

#include <algorithm>
#include <utility>

#include "corelane/base/log.h"
#include "corelane/device/matmul_image.h"
#include "corelane/device/soonest_engine.h"
#include "drivers/virtual/choice/chosen_program.h"
#include "drivers/virtual/choice/second_engine.h"
#include "drivers/virtual/choice/yielding_program.h"
#include "drivers/virtual/common/graph_tensors.h"
#include "drivers/virtual/common/log_part.h"
#include "drivers/virtual/common/wide_integers.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// True where an engine says that it cannot compute this network, so that another one may.
bool is_refusal(const Status& status) {
  return status.code() == Code::kUnsupportedModel || status.code() == Code::kEngineFailed ||
         status.code() == Code::kInternal;
}

/// `refused` by the first engine; `other` is what the second one said.
Status refused_by_both(const Status& refused, const Status& other) {
  log::debug(kLogPart, "the second engine: {}", other.to_string());
  return error(refused.code(), "{}; the other engine does not take it either: {}",
               refused.message(), other.message())
      .with(Detail::kNode, std::string(refused.detail(Detail::kNode)))
      .with(Detail::kOperator, std::string(refused.detail(Detail::kOperator)));
}

/// Runs may bring integers beyond 32 bits, or inputs without elements.
bool may_yield(const device::LaneProgram& program) {
  return std::ranges::any_of(program.inputs(), [](const TensorDesc& desc) {
    return may_be_wide(desc.dtype) || !desc.shape.is_static();
  });
}

}  // namespace

Result<EngineWish> parse_engine_wish(std::string_view text) {
  if (text == "auto") return EngineWish::kAuto;
  if (text == "openvino") return EngineWish::kOpenVino;
  if (text == "onnxruntime") return EngineWish::kOnnxRuntime;
  return error(Code::kInvalidArgument,
               "option 'engine={}': auto, openvino or onnxruntime is allowed", text);
}

Result<ChosenEngine::OnSecond> ChosenEngine::prepare_on_second(
    const device::Image& image, const device::PrepareOptions& options) {
  CORELANE_ASSIGN(const device::OpenedEngine opened, second_->get());
  CORELANE_ASSIGN(auto program, opened.engine->prepare(image, options));
  return OnSecond{std::move(program), opened.info.engine};
}

ChosenEngine::Prepared ChosenEngine::chosen(OnSecond prepared, const std::string& network,
                                            std::string why) {
  log::debug(kLogPart, "network '{}' runs on {}: {}", network, prepared.engine, why);
  return std::make_shared<ChosenProgram>(
      std::move(prepared.program),
      device::EngineChoice{std::move(prepared.engine), std::move(why)});
}

ChosenEngine::Prepared ChosenEngine::prepare_second(const device::Image& image,
                                                    const device::PrepareOptions& options,
                                                    const std::string& why) {
  CORELANE_ASSIGN(OnSecond prepared, prepare_on_second(image, options));
  return chosen(std::move(prepared), image.name, why);
}

/// Nobody asked for this engine, so that it may begin as is soonest.
ChosenEngine::Prepared ChosenEngine::prepare_only_second(const device::Image& image,
                                                         device::PrepareOptions options,
                                                         const std::string& why) {
  if (options.engine.empty()) options.engine = device::kSoonestEngine;
  return prepare_second(image, options, why);
}

ChosenEngine::Prepared ChosenEngine::prepare_first(const device::Image& image,
                                                   const device::PrepareOptions& options,
                                                   bool alone) {
  CORELANE_ASSIGN(auto program, first_->prepare(image, options));
  if (alone || !may_yield(*program)) return program;
  return std::make_shared<YieldingProgram>(
      std::move(program), [image, options, second = second_]() -> Prepared {
        CORELANE_ASSIGN(const device::OpenedEngine opened, second->get());
        return opened.engine->prepare(image, options);
      });
}

Result<ChosenEngine::OnSecond> ChosenEngine::prepare_soonest(
    const device::Image& image, const device::PrepareOptions& options) {
  if (!image.precompiled.empty()) return OnSecond{};
  auto prepared = prepare_on_second(image, options);
  // kWrongState: in a forked child whose parent has opened this engine. The child does not get the
  // first engine instead: it could not open that either once the parent has timed both.
  if (prepared || prepared.error().code() == Code::kWrongState) return prepared;
  log::debug(kLogPart, "network '{}' does not begin on the second engine: {}", image.name,
             prepared.error().to_string());
  return OnSecond{};
}

ChosenEngine::Prepared ChosenEngine::prepare(const device::Image& image,
                                             const device::PrepareOptions& options) {
  if (image.kind != "onnx") return first_->prepare(image, options);
  EngineWish wish = wish_;
  // What the device's text asks for goes before what a program does.
  const bool soonest = wish == EngineWish::kAuto && options.engine == device::kSoonestEngine;
  if (wish == EngineWish::kAuto && !options.engine.empty() && !soonest) {
    // The macro is two statements.
    CORELANE_ASSIGN(wish, parse_engine_wish(device::engine_of_wish(options.engine)));
  }
  if (wish == EngineWish::kOnnxRuntime) {
    const bool timed = wish_ != wish && options.engine.starts_with(device::kFasterEngine);
    return prepare_second(image, options, timed ? "the engines are timed" : "it was asked for");
  }
  if (!image.unfit.empty()) {
    const Status refused = error(Code::kUnsupportedModel, "{}", image.unfit);
    if (wish == EngineWish::kOpenVino) return error(refused);
    auto program = prepare_only_second(image, options, image.unfit);
    if (program || program.error().code() == Code::kOutOfMemory) return program;
    return error(refused_by_both(refused, program.error()));
  }
  OnSecond sooner;
  if (soonest) {
    // The macro is two statements.
    CORELANE_ASSIGN(sooner, prepare_soonest(image, options));
  }
  if (sooner.program != nullptr &&
      knows_as_much(sooner.program->outputs(), image.outputs, sooner.program->inputs()))
    return chosen(std::move(sooner), image.name, "it is prepared sooner; not timed yet");
  const bool alone = wish == EngineWish::kOpenVino &&
                     (wish_ == wish || !options.engine.starts_with(device::kFasterEngine));
  auto program = prepare_first(image, options, alone);
  if (program || wish == EngineWish::kOpenVino || !is_refusal(program.error())) return program;
  if (sooner.program != nullptr)
    return chosen(std::move(sooner), image.name, program.error().message());
  auto other = prepare_only_second(image, options, program.error().message());
  if (other || other.error().code() == Code::kOutOfMemory) return other;
  return error(refused_by_both(program.error(), other.error()));
}

}  // namespace corelane::drivers::virtual_npu
