/// What a context of a program with a batch range keeps of the forms that it has left for another
/// size: it comes back to them without making bindings anew.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
    std::erase_if(kept_, [&](Kept& kept) {
      if (kept.entry.executable.get() == executable) bindings = std::move(kept.bindings);
      return bindings != nullptr && kept.bindings == nullptr;
    });
    return bindings;
  }
  /// Those of executables that were lost with their device go.
  void keep(ExecutableSet::Entry entry, std::shared_ptr<device::Bindings> bindings) {
    std::erase_if(kept_, [](const Kept& kept) { return kept.entry.executable->lost(); });
    if (entry.executable == nullptr || bindings == nullptr || entry.executable->lost()) return;
    kept_.push_back({std::move(entry), std::move(bindings)});
  }
  const std::vector<Kept>& all() const noexcept { return kept_; }

  /// Of BatchForms, when a form was looked for last.
  std::uint64_t seen = 0;

 private:
  std::vector<Kept> kept_;
};

}  // namespace corelane::runtime
