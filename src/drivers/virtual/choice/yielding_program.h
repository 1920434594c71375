/// A program of the first engine whose runs go to the second one where their inputs ask for it.
#pragma once

#include <functional>
#include <memory>
#include <variant>

#include "base/once_map.h"
#include "drivers/virtual/choice/chosen_program.h"

namespace corelane::drivers::virtual_npu {

/// A run that the first engine refuses with kOutOfRange, before it has computed anything, is the
/// second engine's: integers beyond 32 bits are for it, and inputs without elements. The second
/// engine's program is made at the first such run. Any thread.
class YieldingProgram final : public ChosenProgram,
                              public std::enable_shared_from_this<YieldingProgram> {
 public:
  using Other = std::function<Result<std::shared_ptr<device::LaneProgram>>()>;
  /// `make_other` prepares the same network on the second engine.
  YieldingProgram(std::shared_ptr<device::LaneProgram> program, Other make_other)
      : ChosenProgram(std::move(program), {}), make_other_(std::move(make_other)) {}

  device::MemoryFigures memory() const override;
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t width,
                                                           std::size_t core) override;
  /// The second engine's, made now where it is not there yet.
  Result<std::shared_ptr<device::LaneProgram>> other();

 private:
  const Other make_other_;
  OnceMap<std::monostate, std::shared_ptr<device::LaneProgram>> other_{LockRank::kLeaf};
};

}  // namespace corelane::drivers::virtual_npu
