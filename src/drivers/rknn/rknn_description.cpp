#include "base/leaked.h"
#include "corelane/driver/module.h"
#include "drivers/chips/known_chips.h"

namespace corelane::device {
namespace {

/// The API's core masks name three.
constexpr std::size_t kMostCores = 3;

}  // namespace

const DriverDescription& describe_rknn() {
  static Leaked<const DriverDescription> description([] {
    DriverDescription d;
    d.kind = "rknn";
    d.chips = drivers::chips::known_chips(kMostCores);
    d.most_generic_cores = kMostCores;
    // Older tools write the first word, four bytes of zero, the version and the length of the data;
    // newer ones a FlatBuffer with the same file identifier.
    d.files = {{"rknn", "RKNN", 0, false, 24},
               {"rknn", "CYPTRKNN", 0, true},
               {"rknn", "CRYPTRKNN", 0, true},
               {"rknn", "RKNE", 0, true},
               {"rknn", "RKNN", 4}};
    d.capabilities.multi_core_jobs = true;
    d.capabilities.layer_times = true;
    d.capabilities.image_kinds = {"rknn"};
    d.examples = {"rknn?library=/path/librknnrt.so"};
    return d;
  }());
  return *description;
}

}  // namespace corelane::device
