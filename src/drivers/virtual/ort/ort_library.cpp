#include "drivers/virtual/ort/ort_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/fork.h"
#include "base/sync.h"
#include "corelane/base/log.h"
#include "drivers/virtual/common/log_part.h"
#include "drivers/virtual/ort/ort_telemetry.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

std::atomic<bool> library_used{false};
std::atomic<bool> library_left_behind{false};

thread_local bool silent = false;

/// From when the module is loaded, so that no fork is missed.
[[maybe_unused]] const bool kWatchesForks =
    (call_in_forked_child([] {
       library_left_behind.store(library_used.load(std::memory_order_relaxed),
                                 std::memory_order_relaxed);
     }),
     true);

/// The library warns of what its own optimiser does; its errors come as statuses too.
void write_log(void* /*param*/, OrtLoggingLevel severity, const char* category,
               const char* /*logid*/, const char* /*code_location*/, const char* message) {
  if (silent) return;
  const log::Level level = severity >= ORT_LOGGING_LEVEL_ERROR     ? log::Level::kInfo
                           : severity == ORT_LOGGING_LEVEL_WARNING ? log::Level::kDebug
                                                                   : log::Level::kTrace;
  log::line(level, kLogPart, "ONNX Runtime ({}): {}", category == nullptr ? "" : category,
            message == nullptr ? "" : message);
}

/// Found by the module's own search path: `engine` beside it, or where the build found it.
/// RTLD_LOCAL: its symbols must not meet those of an onnxruntime that the program has loaded.
Result<void*> open_file() {
  if (void* const handle = dlopen(CORELANE_ORT_LIBRARY, RTLD_NOW | RTLD_LOCAL)) return handle;
  const char* const reason = dlerror();
  return error(Code::kIo,
               "the second engine cannot be opened: {}; install the package onnxruntime, or take "
               "engine=openvino",
               reason == nullptr ? CORELANE_ORT_LIBRARY : reason);
}

/// The text between `before` and the next `after`; "" where either is missing.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const auto begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  return text.substr(0, std::min(text.find(after), text.size()));
}

bool says_out_of_memory(std::string_view text) {
  return text.find("bad_alloc") != std::string_view::npos ||
         text.find("Failed to allocate memory") != std::string_view::npos;
}

}  // namespace

OrtSilence::OrtSilence() noexcept { silent = true; }
OrtSilence::~OrtSilence() { silent = false; }

/// The text names source files and lines; what follows them says what is wrong.
OrtComplaint read_ort_complaint(std::string_view message) {
  OrtComplaint complaint;
  complaint.op = between(message, "while running ", " node. Name:'");
  complaint.node = between(message, " node. Name:'", "' Status Message: ");
  constexpr std::string_view kMessage = "Status Message: ";
  if (const auto at = message.find(kMessage); at != std::string_view::npos)
    message.remove_prefix(at + kMessage.size());
  if (complaint.op.empty()) {
    // "... (op_type:Foo, node name: bar): ..." and "Node (bar) Op (Foo) [ShapeInferenceError] ...".
    complaint.op = between(message, "op_type:", ",");
    complaint.node = between(message, "node name: ", ")");
    if (complaint.op.empty()) complaint.op = between(message, ") Op (", ")");
    if (complaint.node.empty()) complaint.node = between(message, "Node (", ")");
  }
  // "/path/file.cc:12 Status ns::function(args) " goes before the sentence.
  if (message.starts_with('/')) {
    const auto end = message.rfind(") ");
    if (const auto place = message.find(".cc:");
        place != std::string_view::npos && end != std::string_view::npos && end > place)
      message.remove_prefix(end + 2);
  }
  constexpr std::size_t kMostDetail = 400;
  for (const char c : message.substr(0, kMostDetail))
    complaint.detail += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  while (complaint.detail.ends_with(' ')) complaint.detail.pop_back();
  return complaint;
}

Status OrtLibrary::failure(OrtStatus* status, std::string_view what, Code code) const {
  const OrtErrorCode number = entry::GetErrorCode::of(*api_)(status);
  const char* const text = entry::GetErrorMessage::of(*api_)(status);
  const std::string message = text == nullptr ? "no reason given" : text;
  release<entry::ReleaseStatus>(status);
  if (says_out_of_memory(message))
    return error(Code::kOutOfMemory, "{}: the engine found no memory", what);
  const OrtComplaint complaint = read_ort_complaint(message);
  if (number == ORT_INVALID_PROTOBUF) code = Code::kMalformed;
  std::string where;
  if (!complaint.op.empty()) where = fmt::format("operator '{}'", complaint.op);
  if (!complaint.node.empty())
    where += fmt::format("{}node '{}'", where.empty() ? "" : " ", complaint.node);
  Status failed =
      error(code, "{}: {}{}{}", what, where, where.empty() ? "" : ": ", complaint.detail);
  if (!complaint.op.empty()) failed = failed.with(Detail::kOperator, complaint.op);
  if (!complaint.node.empty()) failed = failed.with(Detail::kNode, complaint.node);
  return failed;
}

using OwnedThreading = OrtOwned<OrtThreadingOptions, entry::ReleaseThreadingOptions>;

/// Fills in what the class keeps private.
struct OrtLibraryMaker {
  static Result<const OrtLibrary*> make() {
    const TelemetryOff off;
    CORELANE_ASSIGN(void* const handle, open_file());
    using GetBase = const OrtApiBase* (*)();
    const auto base = reinterpret_cast<GetBase>(dlsym(handle, "OrtGetApiBase"));
    const OrtApiBase* const found = base == nullptr ? nullptr : base();
    if (found == nullptr) return error(Code::kIo, "'{}' is not ONNX Runtime", CORELANE_ORT_LIBRARY);
    // Never deleted: threads may still use it while the process ends.
    auto library = std::unique_ptr<OrtLibrary>(new OrtLibrary());
    library->version_ = found->GetVersionString();
    library->api_ = found->GetApi(kApiVersion);
    if (library->api_ == nullptr)
      return error(Code::kVersionMismatch, "ONNX Runtime {} is too old: 1.{} or newer is needed",
                   library->version_, kApiVersion);
    CORELANE_TRY(fill(*library));
    log::debug(kLogPart, "ONNX Runtime {} is open", library->version_);
    return library.release();
  }

 private:
  static Status fill(OrtLibrary& library) {
    constexpr std::string_view kWhat = "starting ONNX Runtime";
    // Pools of no threads but the caller's. Plain sessions use them; others have their own.
    CORELANE_ASSIGN(const auto pools, (make_owned<OwnedThreading, entry::CreateThreadingOptions>(
                                          library, kWhat, Code::kEngineFailed)));
    CORELANE_TRY(library.call<entry::SetGlobalIntraOpNumThreads>(kWhat, Code::kEngineFailed,
                                                                 pools.get(), 1));
    CORELANE_TRY(library.call<entry::SetGlobalInterOpNumThreads>(kWhat, Code::kEngineFailed,
                                                                 pools.get(), 1));
    CORELANE_TRY(library.call<entry::CreateEnvWithCustomLoggerAndGlobalThreadPools>(
        kWhat, Code::kEngineFailed, &write_log, nullptr, ORT_LOGGING_LEVEL_WARNING, "corelane",
        static_cast<const OrtThreadingOptions*>(pools.get()), &library.environment_));
    CORELANE_TRY(library.call<entry::DisableTelemetryEvents>(kWhat, Code::kEngineFailed,
                                                             library.environment_));
    CORELANE_TRY(library.call<entry::CreateCpuMemoryInfo>(
        kWhat, Code::kEngineFailed, OrtDeviceAllocator, OrtMemTypeDefault, &library.cpu_));
    return library.call<entry::GetAllocatorWithDefaultOptions>(kWhat, Code::kEngineFailed,
                                                               &library.allocator_);
  }
};

Result<const OrtLibrary*> OrtLibrary::get() {
  if (library_left_behind.load(std::memory_order_relaxed)) {
    return error(Code::kWrongState,
                 "the parent of this process used the virtual NPU before it forked, and the "
                 "engine's threads stayed there; start workers by spawn or exec (in Python: "
                 "multiprocessing's 'spawn'), or fork before the first session is made");
  }
  static std::atomic<const OrtLibrary*> open{nullptr};
  if (const OrtLibrary* const there = open.load(std::memory_order_acquire)) return there;
  static Mutex mutex(LockRank::kOnnxReader);
  const MutexLock lock(mutex);
  if (const OrtLibrary* const there = open.load(std::memory_order_acquire)) return there;
  // Before it starts threads: a fork in between leaves them behind as well.
  library_used.store(true, std::memory_order_relaxed);
  CORELANE_ASSIGN(const OrtLibrary* const made, OrtLibraryMaker::make());
  open.store(made, std::memory_order_release);
  return made;
}

}  // namespace corelane::drivers::virtual_npu::ort
