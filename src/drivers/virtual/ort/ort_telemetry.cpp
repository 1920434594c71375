#include "drivers/virtual/ort/ort_telemetry.h"

#include <unistd.h>

#include <atomic>
#include <utility>
#include <vector>

#include "base/leaked.h"
#include "base/sync.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

char variable[] = "ORT_DISABLE_TELEMETRY=1";

/// Keeps `list` forever: other threads may read it at any time.
char** keep(std::vector<char*> list) {
  static Mutex mutex(LockRank::kLeaf);
  static Leaked<std::vector<std::vector<char*>>> lists;
  const MutexLock lock(mutex);
  lists->push_back(std::move(list));
  return lists->back().data();
}

}  // namespace

/// Uses a list made here: setenv() could free the list that a getenv() of another thread reads.
/// Of several entries with one name the first counts.
TelemetryOff::TelemetryOff() {
  std::vector<char*> list = {variable};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    list.push_back(*entry);
  list.push_back(nullptr);
  list_ = keep(std::move(list));
  std::atomic_ref(environ).store(list_);
}

/// Restores the environment without our entry; changes that other threads made in the list stay. If
/// one of them has added a variable, the process has a new list by now, which keeps our entry.
TelemetryOff::~TelemetryOff() {
  char** expected = list_;
  std::atomic_ref(environ).compare_exchange_strong(expected, list_ + 1);
}

}  // namespace corelane::drivers::virtual_npu::ort
