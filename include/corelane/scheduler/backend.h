/// What runs requests: a model, a step of pre-processing, or a scheduler of others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/scheduler/request.h"

namespace corelane::scheduler {

/// Settings by key, as text.
using Config = std::map<std::string, std::string, std::less<>>;

/// Where the backends of one node put what they share, such as a loaded program. Instances are
/// initialised one after another, so that init() may use it without a lock; forward() may not.
using SharedDict = std::shared_ptr<Dict>;

/// The key that each instance finds in its settings: its number in its group, from 0.
inline constexpr const char* kThreadIndex = "_independent_thread_index";

/// One instance of a backend. init() and every forward() are called in the same thread, one at a
/// time; the other functions in any thread, after init(). What a backend throws becomes a failure
/// with kEngineFailed.
class CORELANE_API Backend {
 public:
  virtual ~Backend() = default;
  /// Reads its settings and loads what it needs. A failure ends the whole node, and its text names
  /// this backend.
  virtual Status init(const Config& /*config*/, const SharedDict& /*shared*/) { return {}; }
  /// Runs a batch: sets "result" of each request, calls Request::fail() for those that failed, or
  /// returns a failure for all of them. The items of the batch are min() to max() together.
  virtual Status forward(std::span<const RequestPtr> batch) = 0;
  /// The fewest items of a call; at least 1.
  virtual std::uint32_t min() const noexcept { return 1; }
  /// The most items of a call; at least min().
  virtual std::uint32_t max() const noexcept { return 1; }
  /// True where a batch that failed may run again in parts, so that one bad request does not fail
  /// its neighbours.
  virtual bool repeatable() const noexcept { return false; }
};

/// What a backend is made with beside its settings.
struct BackendSurroundings {
  std::shared_ptr<Clock> clock;        ///< Never null.
  const class BackendRegistry* names;  ///< The names that `A[B]` may use; outlives the backend.
};

class Filter;

/// Backends by name, and filters (corelane/scheduler/filter.h). All functions from any thread.
class CORELANE_API BackendRegistry {
 public:
  using Maker = std::function<std::unique_ptr<Backend>(const BackendSurroundings&)>;
  using FilterMaker = std::function<std::unique_ptr<Filter>()>;

  /// Without a backend in it; the filters Run, Skip, Break, SerialSkip, SubGraphSkip, Error and
  /// swap are in every registry.
  BackendRegistry();
  ~BackendRegistry();
  BackendRegistry(const BackendRegistry&) = delete;
  BackendRegistry& operator=(const BackendRegistry&) = delete;

  /// `name`: letters, digits and `_`, not a number at first. kInvalidArgument for another one, or
  /// one that exists. `keys`: the settings that it reads, for the check of spelling; with "backend"
  /// among them it may have brackets, which it finds under `name::backend`.
  Status add(std::string_view name, Maker maker, std::vector<std::string> keys = {});
  /// kNotFound with the nearest name; kEngineFailed when the maker throws or gives null.
  Result<std::unique_ptr<Backend>> make(std::string_view name,
                                        const BackendSurroundings& surroundings) const;
  /// In the order of the alphabet.
  std::vector<std::string> names() const;
  /// The settings that it reads; kNotFound with the nearest name.
  Result<std::vector<std::string>> keys_of(std::string_view name) const;

  /// A filter for `S[a,(name)b]`; fails as add().
  Status add_filter(std::string_view name, FilterMaker maker);
  /// Fails as make().
  Result<std::unique_ptr<Filter>> make_filter(std::string_view name) const;
  /// In the order of the alphabet.
  std::vector<std::string> filter_names() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The registry of this process: the library's own backends, and what the program adds.
CORELANE_API BackendRegistry& backend_registry();

}  // namespace corelane::scheduler
