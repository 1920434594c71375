// The RKNN device's entry in the registration table: the options of its text, and what it presents.

#include "base/trust/secure_environment.h"
#include "corelane/driver/module.h"
#include "drivers/rknn/vendor_program.h"

namespace corelane::device {
namespace {

using drivers::rknn::Library;
using drivers::rknn::VendorProgram;

class VendorEngine final : public LaneEngine {
 public:
  VendorEngine(std::shared_ptr<const Library> library, std::size_t cores)
      : library_(std::move(library)), cores_(cores) {}

  /// "program" is a whole program file, which a Corelane library opens itself.
  Result<std::shared_ptr<LaneProgram>> prepare(const Image& image,
                                               const PrepareOptions& options) override {
    if (image.kind != "rknn" && !(image.kind == "program" && library_->takes_programs()))
      return error(Code::kForeignImage,
                   "an image of kind '{}' cannot run on {}, which takes '{}'; attach an image that "
                   "the vendor's tool compiled (compile --attach rknn=FILE), or choose another "
                   "device",
                   image.kind, library_->name(),
                   library_->takes_programs() ? "program' and 'rknn" : "rknn");
    CORELANE_TRY(check(options));
    return VendorProgram::create(library_, image, options, cores_);
  }

 private:
  static Status check(const PrepareOptions& options) {
    if (!options.exposed_values.empty())
      return error(Code::kUnsupported,
                   "the RKNN device cannot expose the inner value '{}': its images are opaque",
                   options.exposed_values.front());
    if (!options.custom_operators.empty())
      return error(Code::kUnsupported, "the RKNN device runs no custom operators, so not '{}'",
                   options.custom_operators.front().type);
    if (options.precision != Precision::kF32 || options.fast_math)
      return error(Code::kUnsupported,
                   "the RKNN device computes as its image was compiled: {}{} cannot be chosen",
                   precision_name(options.precision), options.fast_math ? " with fast math" : "");
    return {};
  }

  const std::shared_ptr<const Library> library_;
  const std::size_t cores_;
};

Status check_options(const DeviceSpec& spec) {
  for (const auto& [key, value] : spec.options)
    if (key != "library" && key != "name")
      return error(Code::kInvalidArgument,
                   "device '{}': unknown option '{}'; known are library, name, {}",
                   spec.to_string(), key, kLaneOptionNames);
  return {};
}

/// By the device's text, else by the environment, else where the loader finds the soname. An empty
/// name, such as that of a shell's variable that is not set, is none: the loader would take the
/// program itself.
std::string library_path(const DeviceSpec& spec) {
  const auto option = spec.options.find("library");
  if (option != spec.options.end() && !option->second.empty()) return option->second;
  const char* variable = environment("CORELANE_RKNN_LIBRARY");
  return variable == nullptr || *variable == '\0' ? "librknnrt.so" : variable;
}

/// The library is loaded here and nothing is run: whether there is an NPU shows at the first image.
Result<OpenedEngine> open_rknn(const OpenRequest& request) {
  CORELANE_TRY(check_options(request.spec));
  const std::size_t cores = request.info.cores.size();
  CORELANE_ASSIGN(auto library, Library::load(library_path(request.spec)));
  if (cores > 1 && library->api().set_core_mask == nullptr)
    return error(library->missing("rknn_set_core_mask",
                                  "to choose among several cores (without it, open rknn:rk3566)"));
  DeviceInfo info = request.info;
  info.engine = library->name();
  info.isa = "npu";
  info.capabilities.multi_core_jobs = cores > 1;
  if (library->takes_programs()) info.capabilities.image_kinds.emplace_back("program");
  return OpenedEngine{std::move(info), std::make_shared<VendorEngine>(library, cores)};
}

}  // namespace

const DriverDescription& describe_rknn();

const DriverModule& driver_rknn() {
  static constexpr DriverModule module = {CORELANE_DRIVER_BUILD, &describe_rknn, &open_rknn};
  return module;
}

}  // namespace corelane::device
