#include "adapters/qaic/api/qaic_handle.h"

#include <array>
#include <string_view>

#include "base/leaked.h"
#include "edge/handle_table.h"

namespace corelane::qaic {
namespace handles {
namespace {

/// Objects of a kind, for messages: what they are, who gives them, who ends them.
struct KindWords {
  std::string_view what, made_by, released_by;
};
/// In the order of ObjectKind.
constexpr std::array<KindWords, 11> kWords{{
    {"context", "qaicCreateContext", "qaicReleaseContext"},
    {"container", "qaicOpenQpc", "qaicCloseQpc"},
    {"program", "qaicCreateProgram", "qaicReleaseProgram"},
    {"execution object", "qaicCreateExecObj", "qaicReleaseExecObj"},
    {"queue", "qaicCreateQueue", "qaicReleaseQueue"},
    {"event", "qaicCreateEvent", "qaicReleaseEvent"},
    {"inference set", "qaicCreateInferenceSet", "qaicReleaseInferenceSet"},
    {"program group", "qaicCreateProgramGroup", "qaicReleaseProgramGroup"},
    {"profiling handle", "qaicCreateProfilingHandle", "qaicReleaseProfilingHandle"},
    {"stream profiling handle", "qaicCreateStreamProfilingHandle",
     "qaicReleaseStreamProfilingHandle"},
    {"slicing specification", "qaicCreateSlicingSpec", "qaicReleaseSlicingSpec"},
}};
const KindWords& words(ObjectKind kind) { return kWords[static_cast<std::size_t>(kind)]; }

// Never destroyed: objects that are left at exit may still be in use by other threads.
constexpr std::uint64_t kFirst = 0x51a1'0001;
edge::HandleTable<Object>& table() {
  static Leaked<edge::HandleTable<Object>> table(kFirst);
  return *table;
}

}  // namespace

std::uint64_t add(std::shared_ptr<Object> object) {
  const ObjectKind kind = object->kind();
  const std::uint64_t number = table().add(std::move(object));
  check::object_made(number, words(kind).what);
  return number;
}

std::shared_ptr<Object> find(std::uint64_t number) noexcept { return table().find(number); }

std::shared_ptr<Object> take(std::uint64_t number) noexcept {
  std::shared_ptr<Object> object = table().take(number);
  if (object != nullptr) check::object_gone(number);
  return object;
}

Status refused(std::uint64_t number, ObjectKind wanted) {
  const KindWords& asked = words(wanted);
  if (number == 0)
    return error(Code::kInvalidArgument, "the {} is null; pass the one that {} gave", asked.what,
                 asked.made_by);
  if (const auto object = table().find(number); object != nullptr)
    return error(Code::kInvalidArgument, "{:#x} is a {}; pass a {} of {}", number,
                 words(object->kind()).what, asked.what, asked.made_by);
  if (table().state(number) == edge::HandleState::kUnknown)
    return error(Code::kInvalidArgument,
                 "{:#x} is not a {} of this library; pass the one that {} gave", number, asked.what,
                 asked.made_by);
  return error(Code::kInvalidArgument, "the {} {:#x} was released; do not use it after {}",
               asked.what, number, asked.released_by);
}

}  // namespace handles

Outcome check_process() {
  if (!handles::table().after_fork()) [[likely]]
    return {};
  return outcome(QS_ERROR,
                 "the parent of this process had used the library before fork(), and the device's "
                 "threads did not come along; start workers with exec or spawn, or fork before the "
                 "first call");
}

}  // namespace corelane::qaic
