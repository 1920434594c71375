/// A librknnrt.so, loaded at run time: its functions, and what its failures mean.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/sync.h"
#include "corelane/base/status.h"
#include "rknn_api.h"

namespace corelane::drivers::rknn {

/// The functions this device calls. Those of the first group are in every release and checked when
/// the library is loaded; the others are null where the library is older than they are.
struct Functions {
  decltype(&rknn_init) init = nullptr;
  decltype(&rknn_destroy) destroy = nullptr;
  decltype(&rknn_query) query = nullptr;
  decltype(&rknn_inputs_set) inputs_set = nullptr;
  decltype(&rknn_run) run = nullptr;
  decltype(&rknn_outputs_get) outputs_get = nullptr;
  decltype(&rknn_outputs_release) outputs_release = nullptr;

  decltype(&rknn_dup_context) dup_context = nullptr;
  decltype(&rknn_set_core_mask) set_core_mask = nullptr;
  decltype(&rknn_set_input_shapes) set_input_shapes = nullptr;
};

/// Any thread. Stays mapped until the process ends: such a library has threads and exit handlers of
/// its own, which outlive every context.
class Library {
 public:
  /// Opens `path` (a soname is looked for as the loader does), RTLD_LOCAL. kIo with the loader's
  /// reason, kUnsupported with the function that every release has and this library lacks.
  static Result<std::shared_ptr<const Library>> load(const std::string& path);

  const Functions& api() const noexcept { return api_; }
  /// Where it was found.
  const std::string& path() const noexcept { return path_; }
  /// "librknnrt 2.3.2 (429f97ae6b)", from its text or its first context; else without the number.
  std::string name() const;
  /// True for a Corelane library, which takes program files and ONNX bytes too.
  bool takes_programs() const noexcept { return takes_programs_; }
  /// What a living context answers to the version query, for name().
  void note_version(std::string version) const;

  /// kUnsupported: what for, the function, and the library's version.
  Status missing(std::string_view function, std::string_view purpose) const;
  /// The Status of a negative return value. RKNN_ERR_FAIL has no meaning of its own and becomes
  /// `general`; `subject` names what the call was about. Where the library reports no NPU it is
  /// kEngineFailed, caused by kDeviceLost.
  Status failed(std::string_view function, int code, Code general, std::string_view subject) const;

 private:
  Library() = default;

  std::string path_;
  Functions api_;
  bool takes_programs_ = false;
  mutable Mutex mutex_{LockRank::kLeaf};
  mutable std::string version_ CORELANE_GUARDED_BY(mutex_);
};

/// The version that a library carries as text, "2.3.2 (429f97ae6b@2025-04-09)"; empty when it does
/// not. `bytes` are those of its file.
std::string version_in_text(std::string_view bytes);

}  // namespace corelane::drivers::rknn
