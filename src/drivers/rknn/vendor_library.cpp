#include "drivers/rknn/vendor_library.h"

#include <dlfcn.h>
#include <link.h>

#include "corelane/base/bytes.h"
#include "corelane/base/file.h"

namespace corelane::drivers::rknn {
namespace {

struct Meaning {
  int value;
  const char* name;
  const char* text;
  Code code;
};

/// Sanitizers do not load a library that looks up its own names first.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnNamesFirst = 0;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int kOwnNamesFirst = 0;
#else
constexpr int kOwnNamesFirst = RTLD_DEEPBIND;
#endif
#else
constexpr int kOwnNamesFirst = RTLD_DEEPBIND;
#endif

/// The API's codes. RKNN_ERR_FAIL is missing: its meaning depends on the call.
constexpr Meaning kMeanings[] = {
    {RKNN_ERR_TIMEOUT, "RKNN_ERR_TIMEOUT", "the NPU did not answer in time", Code::kTimeout},
    {RKNN_ERR_DEVICE_UNAVAILABLE, "RKNN_ERR_DEVICE_UNAVAILABLE",
     "the NPU is not available; the device is not given up, try again", Code::kEngineFailed},
    {RKNN_ERR_MALLOC_FAIL, "RKNN_ERR_MALLOC_FAIL", "no memory", Code::kOutOfMemory},
    {RKNN_ERR_PARAM_INVALID, "RKNN_ERR_PARAM_INVALID", "an argument is refused",
     Code::kInvalidArgument},
    {RKNN_ERR_MODEL_INVALID, "RKNN_ERR_MODEL_INVALID", "no model that it can read",
     Code::kMalformed},
    {RKNN_ERR_CTX_INVALID, "RKNN_ERR_CTX_INVALID", "no living context", Code::kWrongState},
    {RKNN_ERR_INPUT_INVALID, "RKNN_ERR_INPUT_INVALID", "an input is refused",
     Code::kInvalidArgument},
    {RKNN_ERR_OUTPUT_INVALID, "RKNN_ERR_OUTPUT_INVALID", "an output is refused",
     Code::kInvalidArgument},
    {RKNN_ERR_DEVICE_UNMATCH, "RKNN_ERR_DEVICE_UNMATCH",
     "the NPU's driver and this library do not fit; update one of them", Code::kVersionMismatch},
    {RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL, "RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL",
     "the image was pre-compiled for another driver", Code::kVersionMismatch},
    {RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION,
     "RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION",
     "the image's optimisation level needs another driver", Code::kVersionMismatch},
    {RKNN_ERR_TARGET_PLATFORM_UNMATCH, "RKNN_ERR_TARGET_PLATFORM_UNMATCH",
     "the image was compiled for another chip", Code::kForeignImage},
};

/// A program that is linked with a librknnrt.so itself exports the same names: the library must
/// find its own first. Nowhere else, for it would miss the program's own malloc and free too.
int names_mode() {
  for (const char* name : {"rknn_init", "rknn_query"})
    if (::dlsym(RTLD_DEFAULT, name) != nullptr) return kOwnNamesFirst;
  return 0;
}

/// POSIX lets a data pointer of dlsym() stand for a function.
template <class F>
void find(void* handle, const char* name, F*& function) {
  function = reinterpret_cast<F*>(::dlsym(handle, name));
}

/// The first required function that is missing, or null.
const char* find_functions(void* handle, Functions& api) {
  const char* missing = nullptr;
  const auto require = [&](const char* name, auto& function) {
    find(handle, name, function);
    if (function == nullptr && missing == nullptr) missing = name;
  };
  require("rknn_init", api.init);
  require("rknn_destroy", api.destroy);
  require("rknn_query", api.query);
  require("rknn_inputs_set", api.inputs_set);
  require("rknn_run", api.run);
  require("rknn_outputs_get", api.outputs_get);
  require("rknn_outputs_release", api.outputs_release);
  find(handle, "rknn_dup_context", api.dup_context);
  find(handle, "rknn_set_core_mask", api.set_core_mask);
  find(handle, "rknn_set_input_shapes", api.set_input_shapes);
  return missing;
}

/// The file that the loader found for a soname: version texts are read from it.
std::string resolved_path(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr ||
      *map->l_name == '\0')
    return asked;
  return map->l_name;
}

}  // namespace

std::string version_in_text(std::string_view bytes) {
  constexpr std::string_view kMark = "librknnrt version: ";
  constexpr std::size_t kLongest = 200;
  for (std::size_t at = bytes.find(kMark); at != std::string_view::npos;
       at = bytes.find(kMark, at + 1)) {
    std::string_view text = bytes.substr(at + kMark.size(), kLongest);
    std::size_t length = 0;
    while (length < text.size() && text[length] >= ' ' && text[length] <= '~') ++length;
    text = text.substr(0, length);
    // A format for printing a version is not one.
    if (!text.empty() && text[0] >= '0' && text[0] <= '9') return std::string(text);
  }
  return {};
}

/// RTLD_LOCAL: its names must not be found by the program or other libraries.
Result<std::shared_ptr<const Library>> Library::load(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | names_mode());
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return error(Code::kIo,
                 "the RKNN runtime '{}' cannot be loaded: {}; name the library with "
                 "rknn?library=PATH or CORELANE_RKNN_LIBRARY, or choose another device",
                 path, reason == nullptr ? "no reason given" : reason);
  }
  std::shared_ptr<Library> library(new Library);
  library->path_ = resolved_path(handle, path);
  if (const auto file = MappedFile::open(library->path_)) {
    std::string version = version_in_text(as_string_view(file->bytes()));
    library->takes_programs_ = version.find("corelane") != std::string::npos;
    library->note_version(std::move(version));
  }
  if (const char* function = find_functions(handle, library->api_))
    return error(library->missing(function, "to run anything"));
  return library;
}

std::string Library::name() const {
  const MutexLock lock(mutex_);
  return version_.empty() ? "librknnrt of unknown version" : "librknnrt " + version_;
}

void Library::note_version(std::string version) const {
  const MutexLock lock(mutex_);
  if (!version.empty()) version_ = std::move(version);
}

Status Library::missing(std::string_view function, std::string_view purpose) const {
  return error(Code::kUnsupported,
               "{} ('{}') has no function {}, which is needed {}; use a newer library", name(),
               path_, function, purpose);
}

/// A code with a meaning of its own decides; else `general` does.
Status Library::failed(std::string_view function, int code, Code general,
                       std::string_view subject) const {
  const char* constant = code == RKNN_ERR_FAIL ? "RKNN_ERR_FAIL" : "a code of its own";
  const char* text = "no reason given";
  for (const Meaning& meaning : kMeanings) {
    if (meaning.value != code) continue;
    constant = meaning.name;
    text = meaning.text;
    general = meaning.code;
  }
  const std::string message = fmt::format(
      "{}: {} returned {} ({}: {}); the library's own log says more "
      "(RKNN_LOG_LEVEL=3). It is {}, '{}'",
      subject, function, code, constant, text, name(), path_);
  if (code != RKNN_ERR_DEVICE_UNAVAILABLE) return error(general, "{}", message);
  // Nothing tells when it is back: users who wait for that must not take the device for lost.
  const Status cause = error(Code::kDeviceLost, "the library reports no NPU");
  return cause.wrap(general, message);
}

}  // namespace corelane::drivers::rknn
