/// A session that times its nodes. The engine writes these times into a file, and only when the
/// session's profile ends, which it can do once: whoever reads the times of a run has a new session
/// made before the next one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/process/unique_fd.h"
#include "corelane/base/status.h"
#include "corelane/device/figures.h"
#include "drivers/virtual/ort/ort_library.h"

namespace corelane::drivers::virtual_npu::ort {

/// The nodes of the last run in the text of such a file, in the order in which they ran; those
/// within an If, Loop or Scan count as part of it. Durations are whole microseconds. kEngineFailed
/// where the text holds fewer than `runs`: the engine has dropped events, of the last run first.
Result<std::vector<device::LayerTime>> read_ort_profile(std::string_view text, std::size_t runs);

/// One thread at a time.
class OrtProfile {
 public:
  using MakeSession = std::function<Result<OwnedSession>(const OrtSessionOptions*)>;
  /// `options` gets the profile, and `make_session` makes the session with them. kIo where no file
  /// can be had.
  static Result<std::unique_ptr<OrtProfile>> make(const OrtLibrary& library,
                                                  OwnedSessionOptions options,
                                                  const MakeSession& make_session);

  OrtSession* session() const noexcept { return session_.get(); }
  /// A run of `nodes` nodes begins.
  void note_run(std::size_t nodes) noexcept {
    events_ += nodes + 2;
    ++runs_;
  }
  /// It failed, and may have left events or none.
  void note_failure() noexcept { failed_ = true; }
  /// True where no run may follow: the profile has ended, a run has failed, or the engine would
  /// drop events.
  bool is_over() const noexcept;
  /// The layer times of the last run. Ends the profile. kWrongState where that run failed,
  /// kEngineFailed where the engine had no room for its events, kIo.
  Result<std::vector<device::LayerTime>> times();

 private:
  OrtProfile(const OrtLibrary& library, UniqueFd file, OwnedSession session)
      : library_(library), file_(std::move(file)), session_(std::move(session)) {}
  Result<std::vector<device::LayerTime>> end();

  const OrtLibrary& library_;
  UniqueFd file_;
  OwnedSession session_;
  std::size_t events_ = 0;  ///< About as many as the engine holds; those of inner graphs beside.
  std::size_t runs_ = 0;
  bool failed_ = false;
  std::optional<Result<std::vector<device::LayerTime>>> times_;  ///< Once the profile has ended.
};

}  // namespace corelane::drivers::virtual_npu::ort
