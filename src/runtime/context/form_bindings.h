/// What a context of a program with static forms beside an open one keeps of those that it has left
/// for other shapes: it comes back to them without making bindings anew.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "corelane/device/executable.h"
#include "runtime/program/executable_set.h"

namespace corelane::runtime {

/// One caller at a time.
class FormBindings {
 public:
  struct Kept {
    ExecutableSet::Entry entry;
    std::shared_ptr<device::Bindings> bindings;
  };

  /// Those of an executable, kept no longer; null where there are none.
  std::shared_ptr<device::Bindings> take(const device::Executable* executable) {
    std::shared_ptr<device::Bindings> bindings;
    const auto at = std::ranges::find_if(
        kept_, [&](const Kept& kept) { return kept.entry.executable.get() == executable; });
    if (at == kept_.end()) return bindings;
    bindings = std::move(at->bindings);
    // Their order says nothing.
    if (&*at != &kept_.back()) *at = std::move(kept_.back());
    kept_.pop_back();
    return bindings;
  }
  /// Those of executables that were lost with their device go.
  void keep(ExecutableSet::Entry entry, std::shared_ptr<device::Bindings> bindings) {
    std::erase_if(kept_, [](const Kept& kept) { return kept.entry.executable->lost(); });
    if (entry.executable == nullptr || bindings == nullptr || entry.executable->lost()) return;
    kept_.push_back({std::move(entry), std::move(bindings)});
  }
  /// Those of executables that have left the set go, and with them the last hold on these.
  void follow(const ExecutableSet& set) {
    std::erase_if(kept_, [&](const Kept& kept) { return !set.holds(kept.entry.executable.get()); });
  }
  const std::vector<Kept>& all() const noexcept { return kept_; }

  /// Counts the runs of the context's shapes; null where it has not run since these changed.
  std::shared_ptr<FormUse> use;

 private:
  std::vector<Kept> kept_;
};

}  // namespace corelane::runtime
