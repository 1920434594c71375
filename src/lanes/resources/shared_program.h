/// An engine's program, and the executables that share it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/sync.h"
#include "corelane/driver/lane_engine.h"
#include "lanes/resources/memory_ledger.h"

namespace corelane::lanes {

/// Executables that are prepared of the same unchanging bytes with the same options share one: its
/// constants lie in memory once, and count once against the device's limit. Any thread.
class SharedProgram {
 public:
  /// `device` must outlive it; `source` is what the image's bytes lie in.
  SharedProgram(std::shared_ptr<device::LaneProgram> program, std::shared_ptr<const void> source,
                MemoryLedger& ledger);
  ~SharedProgram();
  SharedProgram(const SharedProgram&) = delete;
  SharedProgram& operator=(const SharedProgram&) = delete;

  device::LaneProgram& program() const noexcept { return *program_; }
  /// Counts what the driver holds by now, with copies and requests. kOutOfMemory when it has grown
  /// past the device's limit. Nothing where the device has no limit.
  Status recount();
  /// Refuses copies for `requests` jobs on `cores` cores at once before they are made.
  Status expect_copies(std::size_t requests, std::size_t cores);

  std::atomic<std::size_t> executables{0};    ///< Executables that share it.
  std::atomic<std::size_t> live_bindings{0};  ///< Of all of them: so many jobs may want to run.

 private:
  const std::shared_ptr<const void> source_;
  std::shared_ptr<device::LaneProgram> program_;  ///< Constant while this lives.
  MemoryLedger& ledger_;
  Mutex mutex_{LockRank::kLeaf};
  std::uint64_t counts_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::size_t counted_ CORELANE_GUARDED_BY(mutex_) = 0;      ///< Bytes in the ledger.
  std::size_t first_bytes_ CORELANE_GUARDED_BY(mutex_) = 0;  ///< With its first copy.
};

/// The programs of a device that others may share. The device's lock guards it; nothing ends while
/// that is held.
class SharedPrograms {
 public:
  /// The program of an image at the same place, immutable too, with the same options and from the
  /// same time between two losses of the device; null where there is none.
  std::shared_ptr<SharedProgram> find(const device::Image& image,
                                      const device::PrepareOptions& options,
                                      std::uint64_t generation) const;
  /// Lets others find it, where the image is immutable.
  void add(const device::Image& image, const device::PrepareOptions& options,
           std::uint64_t generation, const std::shared_ptr<SharedProgram>& program);

 private:
  struct Entry {
    device::Image image;  ///< Without its owner: the program has it.
    device::PrepareOptions options;
    std::uint64_t generation;
    std::weak_ptr<SharedProgram> program;
  };
  std::vector<Entry> entries_;
};

}  // namespace corelane::lanes
