/// Which of its two engines computes a network of the virtual NPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "corelane/driver/lane_engine.h"

namespace corelane::drivers::virtual_npu {

class SecondEngine;

/// What the device's text asks for: option "engine".
enum class EngineWish : std::uint8_t {
  kAuto,        ///< The first engine, but where the second is needed.
  kOpenVino,    ///< The first engine alone; a network that it gets wrong is refused.
  kOnnxRuntime  ///< The second engine alone.
};
/// kInvalidArgument for a word that is none of "auto", "openvino", "onnxruntime".
Result<EngineWish> parse_engine_wish(std::string_view text);

/// Prepares each network on the engine that computes it rightly. Any thread.
class ChosenEngine final : public device::LaneEngine {
 public:
  /// `first`: takes matrix products, too.
  ChosenEngine(EngineWish wish, std::shared_ptr<device::LaneEngine> first,
               std::shared_ptr<SecondEngine> second)
      : wish_(wish), first_(std::move(first)), second_(std::move(second)) {}

  /// Refused by both engines: the first engine's failure, with the second one's as its cause.
  Result<std::shared_ptr<device::LaneProgram>> prepare(
      const device::Image& image, const device::PrepareOptions& options) override;
  bool computes_in_caller() const noexcept override { return true; }

 private:
  using Prepared = Result<std::shared_ptr<device::LaneProgram>>;
  /// On the first engine. Runs that it would get wrong are the second one's, unless the
  /// first one was asked for `alone`.
  Prepared prepare_first(const device::Image& image, const device::PrepareOptions& options,
                         bool alone);
  /// A program of the second engine, and the engine's name.
  struct OnSecond {
    std::shared_ptr<device::LaneProgram> program;
    std::string engine;
  };
  Result<OnSecond> prepare_on_second(const device::Image& image,
                                     const device::PrepareOptions& options);
  /// On the second engine, which compiles little; no program where the first one is as soon, or
  /// where the second one does not take the network. kWrongState: the second one is the parent's.
  Result<OnSecond> prepare_soonest(const device::Image& image,
                                   const device::PrepareOptions& options);
  /// `why`: this engine and not the first one.
  Prepared prepare_second(const device::Image& image, const device::PrepareOptions& options,
                          const std::string& why);
  Prepared prepare_only_second(const device::Image& image, device::PrepareOptions options,
                               const std::string& why);
  static Prepared chosen(OnSecond prepared, const std::string& network, std::string why);

  const EngineWish wish_;
  const std::shared_ptr<device::LaneEngine> first_;
  const std::shared_ptr<SecondEngine> second_;
};

}  // namespace corelane::drivers::virtual_npu
