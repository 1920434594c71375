/// The library of ONNX Runtime in this process: opened at the first need, never closed. Any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "corelane/base/status.h"
#include "drivers/virtual/ort/ort_api.h"

namespace corelane::drivers::virtual_npu::ort {

/// The library once it is open, with what the whole process shares.
class OrtLibrary {
 public:
  /// Opens the library from the folder `engine` beside this module, as packages install it, or
  /// where the build found it. kIo where it cannot be opened, kVersionMismatch where it is too old;
  /// kWrongState in a process that was forked after its first use, since its threads stayed in the
  /// parent. A failure is not remembered.
  static Result<const OrtLibrary*> get();

  /// Calls the function `F` of the table, one that fails with a status: `what` names the call in
  /// the message, `code` is that of a failure the library gives no better code for.
  template <class F, class... Args>
  Status call(std::string_view what, Code code, Args... args) const {
    OrtStatus* const status = F::of(*api_)(args...);
    return status == nullptr ? Status() : failure(status, what, code);
  }
  /// A failure for the library, which releases it.
  OrtStatus* create_status(const char* text) const noexcept {
    return entry::CreateStatus::of(*api_)(ORT_FAIL, text);
  }
  /// Calls a function that cannot fail.
  template <class F, class... Args>
  void release(Args... args) const noexcept {
    F::of (*api_)(args...);
  }

  OrtEnv* environment() const noexcept { return environment_; }
  /// The memory of all tensors: the CPU's.
  const OrtMemoryInfo* cpu() const noexcept { return cpu_; }
  /// The allocator of what the library gives out: names, lists.
  OrtAllocator* allocator() const noexcept { return allocator_; }
  /// "1.31.1".
  const std::string& version() const noexcept { return version_; }

 private:
  friend struct OrtLibraryMaker;
  OrtLibrary() = default;
  /// Takes the status apart and releases it.
  Status failure(OrtStatus* status, std::string_view what, Code code) const;

  const OrtApi* api_ = nullptr;
  std::string version_;
  OrtEnv* environment_ = nullptr;
  OrtMemoryInfo* cpu_ = nullptr;
  OrtAllocator* allocator_ = nullptr;
};

/// Drops the library's log lines of the calling thread while it lives: for work that a callback of
/// the log must not end.
class OrtSilence {
 public:
  OrtSilence() noexcept;
  ~OrtSilence();
  OrtSilence(const OrtSilence&) = delete;
  OrtSilence& operator=(const OrtSilence&) = delete;
};

/// Owns an object of the library; `Release` is the entry that frees it.
template <class T, class Release>
struct OrtDeleter {
  const OrtLibrary* library = nullptr;
  void operator()(T* object) const noexcept { library->release<Release>(object); }
};
template <class T, class Release>
using OrtOwned = std::unique_ptr<T, OrtDeleter<T, Release>>;
using OwnedSession = OrtOwned<OrtSession, entry::ReleaseSession>;
using OwnedSessionOptions = OrtOwned<OrtSessionOptions, entry::ReleaseSessionOptions>;
using OwnedRunOptions = OrtOwned<OrtRunOptions, entry::ReleaseRunOptions>;
using OwnedValue = OrtOwned<OrtValue, entry::ReleaseValue>;
using OwnedTypeInfo = OrtOwned<OrtTypeInfo, entry::ReleaseTypeInfo>;
using OwnedTensorInfo = OrtOwned<OrtTensorTypeAndShapeInfo, entry::ReleaseTensorTypeAndShapeInfo>;
using OwnedPackedWeights =
    OrtOwned<OrtPrepackedWeightsContainer, entry::ReleasePrepackedWeightsContainer>;

/// An object that the entry `Create` makes from `args`; failures as OrtLibrary::call().
template <class Owned, class Create, class... Args>
Result<Owned> make_owned(const OrtLibrary& library, std::string_view what, Code code,
                         Args... args) {
  typename Owned::pointer made = nullptr;
  CORELANE_TRY(library.call<Create>(what, code, args..., &made));
  return Owned(made, typename Owned::deleter_type{&library});
}

/// What the library says when it fails, taken apart. For tests.
struct OrtComplaint {
  std::string op;    ///< Operator type; "" where it names none.
  std::string node;  ///< Node name; "" where it names none.
  std::string detail;
};
OrtComplaint read_ort_complaint(std::string_view message);

}  // namespace corelane::drivers::virtual_npu::ort
