#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "corelane/base/log.h"
#include "corelane/tensor/convert.h"
#include "drivers/rknn/vendor_layers.h"
#include "drivers/rknn/vendor_program.h"

namespace corelane::drivers::rknn {
namespace {

TensorView plain_view(const Port& port, const void* data) {
  return {data, port.bytes, port.desc.dtype, port.shape, {}, {}};
}

MutableTensorView wire_view(const Port& port, ByteVector& wire) {
  wire.resize(port.wire_bytes);
  return {wire.data(), wire.size(), port.wire_dtype, port.shape, port.wire_layout, {}};
}

/// One job at a time. Inputs are copied in and outputs out by the library (rknn_inputs_set,
/// rknn_outputs_get with the caller's memory): the API's zero copy takes memory of its own only.
class VendorRequest final : public device::LaneRequest {
 public:
  VendorRequest(std::shared_ptr<VendorProgram> program, std::unique_ptr<VendorContext> context)
      : program_(std::move(program)),
        context_(std::move(context)),
        input_ports_(program_->input_ports()),
        inputs_(input_ports_.size()),
        outputs_(program_->output_ports().size()) {}

  ~VendorRequest() override { program_->context_gone(*context_); }

  Status set_input(std::size_t index, const device::TensorRef& tensor) override {
    inputs_[index].bound = tensor;
    return {};
  }

  Status set_output(std::size_t index, const device::TensorRef& tensor) override {
    outputs_[index].bound = tensor;
    return {};
  }

  void set_cores(const device::CoreSet& asked) override { asked_ = asked; }

  Status run(std::uint64_t core_bits) override {
    try {
      CORELANE_TRY(choose_cores(core_bits));
      CORELANE_TRY(hand_over_inputs());
      const Library& library = context_->library();
      // Without a timeout of the library's: the device abandons the job at its deadline.
      const int result = library.api().run(context_->handle(), nullptr);
      if (result < 0)
        return library.failed("rknn_run", result, Code::kEngineFailed, "the job failed");
      return fetch_outputs();
    } catch (const std::bad_alloc&) {
      return error(Code::kOutOfMemory, "no memory for the tensors of a job");
    }
  }

  Result<device::TensorRef> output(std::size_t index) override {
    const Port& port = program_->output_ports()[index];
    Slot& slot = outputs_[index];
    if (slot.bound.data != nullptr)
      return device::TensorRef{slot.bound.data, port.bytes, port.desc.shape, slot.bound.keep_alive};
    slot.own.resize(port.bytes);
    return device::TensorRef{slot.own.data(), port.bytes, port.desc.shape, nullptr};
  }

  Result<std::vector<device::LayerTime>> layer_times() const override {
    if (!program_->profiled())
      return error(Code::kUnsupported,
                   "this image was prepared without profile_layers; prepare it again with it");
    CORELANE_ASSIGN(const std::string text, context_->layer_text());
    std::vector<device::LayerTime> layers = read_layers(text);
    if (layers.empty())
      return error(Code::kUnsupported, "{} gave no table of layer times",
                   context_->library().name());
    return layers;
  }

 private:
  struct Slot {
    device::TensorRef bound;
    ByteVector own;   ///< Stands in where nothing is bound.
    ByteVector wire;  ///< In the form of the library, where that is not the caller's.
  };

  /// What the library was told last, and for what.
  struct Choice {
    std::uint32_t mask = 0, granted = 0, sent = 0;
  };

  /// "Any" and "all" are the library's own choice, and said in its words.
  std::uint32_t mask_of(std::uint64_t core_bits) const {
    if (asked_.kind() == device::CoreSet::Kind::kPlatform) return RKNN_NPU_CORE_ALL;
    if (asked_ == device::CoreSet::any()) return RKNN_NPU_CORE_AUTO;
    return static_cast<std::uint32_t>(core_bits);
  }

  /// A library that refuses a choice of its own is told the granted cores. Several cores that the
  /// image or the chip does not run together: the first of them alone, as the library does by
  /// itself. The others stay granted, so nothing else runs there meanwhile.
  Status choose_cores(std::uint64_t core_bits) {
    if (!program_->chooses_cores()) return {};
    const std::uint32_t mask = mask_of(core_bits);
    const auto granted = static_cast<std::uint32_t>(core_bits);
    if (choice_ && choice_->mask == mask && (choice_->sent == mask || choice_->granted == granted))
      return {};
    choice_.reset();
    std::uint32_t sent = mask;
    Status status = context_->set_cores(sent);
    if (!status.ok() && sent != granted) status = context_->set_cores(sent = granted);
    if (!status.ok() && !std::has_single_bit(granted)) {
      if (program_->first_remark())
        log::info("rknn", "jobs on several cores run on the first of them: {}", status.message());
      status = context_->set_cores(sent = granted & (~granted + 1));
    }
    if (status.ok()) choice_ = {mask, granted, sent};
    if (status.code() != Code::kUnsupported) return status;
    // As chips with one core do, on which the default profile does not fit.
    return error(Code::kUnsupported, "{}; if this chip has one core, open rknn:rk3566",
                 status.message());
  }

  /// Once more as NHWC where the library refuses NCHW, which only the call shows.
  Status hand_over_inputs() {
    if (inputs_.empty()) return {};
    for (bool again = true;; again = false) {
      std::vector<rknn_input> list;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        CORELANE_ASSIGN(const rknn_input input, input_at(i, input_ports_[i]));
        list.push_back(input);
      }
      const Library& library = context_->library();
      const int result = library.api().inputs_set(
          context_->handle(), static_cast<std::uint32_t>(list.size()), list.data());
      if (result >= 0) return {};
      bool turned = false;
      if (again) {
        // The macro is two statements.
        CORELANE_ASSIGN(turned, turn_to_nhwc());
      }
      if (!turned)
        return library.failed("rknn_inputs_set", result, Code::kEngineFailed,
                              "the inputs are refused");
    }
  }

  /// Outputs are released also where reading them failed.
  Status fetch_outputs() {
    if (outputs_.empty()) return {};
    std::vector<rknn_output> list(outputs_.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Port& port = program_->output_ports()[i];
      Slot& slot = outputs_[i];
      if (slot.bound.data == nullptr) slot.own.resize(port.bytes);
      void* target = slot.bound.data == nullptr ? slot.own.data() : slot.bound.data;
      if (port.converts()) target = wire_view(port, slot.wire).data;
      list[i].want_float = port.as_float ? 1 : 0;
      list[i].is_prealloc = 1;
      list[i].index = static_cast<std::uint32_t>(i);
      list[i].buf = target;
      list[i].size = static_cast<std::uint32_t>(port.wire_bytes);
    }
    const Library& library = context_->library();
    const auto count = static_cast<std::uint32_t>(list.size());
    const std::vector<rknn_output> asked = list;
    const int result = library.api().outputs_get(context_->handle(), count, list.data(), nullptr);
    if (result < 0)
      return library.failed("rknn_outputs_get", result, Code::kEngineFailed, "no outputs");
    Status status = read_outputs(list, asked);
    const int released = library.api().outputs_release(context_->handle(), count, list.data());
    if (status.ok() && released < 0)
      return library.failed("rknn_outputs_release", released, Code::kEngineFailed, "the outputs");
    return status;
  }

  Status read_outputs(const std::vector<rknn_output>& outputs,
                      const std::vector<rknn_output>& asked) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Port& port = program_->output_ports()[i];
      if (outputs[i].buf == nullptr || outputs[i].size < port.wire_bytes)
        return error(Code::kBadResult, "output '{}' came back with {} bytes; it has {}",
                     port.desc.name, outputs[i].buf == nullptr ? 0 : outputs[i].size,
                     port.wire_bytes);
      // A library may answer in memory of its own, which it takes back when they are released.
      if (outputs[i].buf != asked[i].buf)
        std::memcpy(asked[i].buf, outputs[i].buf, port.wire_bytes);
      if (!port.converts()) continue;
      Slot& slot = outputs_[i];
      void* target = slot.bound.data == nullptr ? slot.own.data() : slot.bound.data;
      const TensorView source{slot.wire.data(), slot.wire.size(), port.wire_dtype,
                              port.shape,       port.wire_layout, {}};
      CORELANE_TRY(convert(source, {target, port.bytes, port.desc.dtype, port.shape, {}, {}}));
    }
    return {};
  }

  /// The pointer is valid until the slot changes; the library copies in rknn_inputs_set.
  Result<rknn_input> input_at(std::size_t index, const Port& port) {
    Slot& slot = inputs_[index];
    void* data = slot.bound.data;
    if (data == nullptr) {
      slot.own.resize(port.bytes);
      data = slot.own.data();
    }
    if (port.converts()) {
      CORELANE_TRY(convert(plain_view(port, data), wire_view(port, slot.wire)));
      data = slot.wire.data();
    }
    rknn_input input{};
    input.index = static_cast<std::uint32_t>(index);
    input.buf = data;
    input.size = static_cast<std::uint32_t>(port.wire_bytes);
    input.type = port.type;
    input.fmt = port.fmt;
    return input;
  }

  /// After the library refused inputs as NCHW: the 4-D ones as NHWC. False when there is none.
  Result<bool> turn_to_nhwc() {
    bool turned = false;
    for (Port& port : input_ports_) {
      if (port.fmt != RKNN_TENSOR_NCHW || number_in(port.attr.fmt) != RKNN_TENSOR_NHWC) continue;
      CORELANE_ASSIGN(port, as_nhwc(port));
      turned = true;
    }
    return turned;
  }

  const std::shared_ptr<VendorProgram> program_;
  const std::unique_ptr<VendorContext> context_;
  std::vector<Port> input_ports_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  device::CoreSet asked_;
  std::optional<Choice> choice_;  ///< Empty: never, or it failed.
};

}  // namespace

Result<std::unique_ptr<device::LaneRequest>> VendorProgram::new_request(std::size_t, std::size_t) {
  CORELANE_ASSIGN(auto context, new_context());
  return std::make_unique<VendorRequest>(shared_from_this(), std::move(context));
}

}  // namespace corelane::drivers::rknn
