/// A backend that is held by another one, or by an instance: made by its name, and called so that
/// what it throws and the promises that it breaks become failures with its name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/scheduler/backend.h"
#include "corelane/scheduler/statistics.h"
#include "scheduler/config/backend_text.h"

namespace corelane::scheduler {

/// Items of a batch together.
std::uint64_t items_of(std::span<const RequestPtr> batch) noexcept;

/// kOutOfRange with both numbers where a call of `items` items is outside `range`.
Status check_range(std::string_view backend, Range range, std::uint64_t items);

/// One backend and its promises, as init() found them: min() and max() are asked once. Used by one
/// thread at a time but for name(), range() and repeatable().
class InnerBackend {
 public:
  /// Makes it, without init(), with the settings that expand_stage() and config_for() make of
  /// `outer`, those of its holder. kNotFound for a name that `surroundings.names` does not
  /// have; kInvalidArgument for a filter, which only `S` has.
  static Result<InnerBackend> make(const BackendText& text, const Config& outer,
                                   const BackendSurroundings& surroundings);

  /// One that was made already, with the settings config_for() makes of `outer`.
  static InnerBackend adopt(const std::string& name, const Config& outer,
                            std::unique_ptr<Backend> backend);

  /// kEngineFailed when it throws or has no range with 1 <= min <= max; else its own failure.
  Status init(const SharedDict& shared);
  /// Runs a batch: kOutOfRange where it is outside range(), without a call; kEngineFailed when it
  /// throws. A failure of one request (Request::fail) is none of the call.
  Status forward(std::span<const RequestPtr> batch);

  const std::string& name() const noexcept { return name_; }
  /// Its settings, until init().
  const Config& config() const noexcept { return config_; }
  /// [1, 1] before init().
  Range range() const noexcept { return range_; }
  bool repeatable() const noexcept { return repeatable_; }

 private:
  InnerBackend(std::string name, Config config, std::unique_ptr<Backend> backend);

  std::string name_;
  std::string what_;  ///< "backend 'A'": for messages.
  Config config_;
  std::unique_ptr<Backend> backend_;
  Range range_;
  bool repeatable_ = false;
  bool ready_ = false;
};

/// The expressions in the brackets of backend `name`: what `<name>::backend` of `config` holds.
/// Empty where it is not set; kInvalidArgument where it cannot be read.
Result<std::vector<BackendText>> inner_texts(std::string_view name, const Config& config);

/// `config` as the backends in the brackets of `name` get it: without `<name>::backend`, so that a
/// name that stands in its own brackets ends.
Config handed_down(std::string_view name, const Config& config);

/// The only backend in the brackets of `name`, made and initialised; `fallback` if there is none;
/// kInvalidArgument where that is empty, and for more than one.
Result<std::unique_ptr<InnerBackend>> open_inner(std::string_view name, const Config& config,
                                                 const SharedDict& shared,
                                                 const BackendSurroundings& surroundings,
                                                 std::string_view fallback = {});

}  // namespace corelane::scheduler
