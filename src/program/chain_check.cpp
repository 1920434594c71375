#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "program/description_check.h"

namespace corelane {
namespace {

/// An output of a part, and whether anything reads it.
struct Made {
  const IoEntry* entry = nullptr;
  std::size_t part = 0;
  bool used = false;
};

bool same_form(const IoEntry& a, const IoEntry& b) {
  return a.desc.dtype == b.desc.dtype && a.desc.layout == b.desc.layout && a.desc.value.empty() &&
         b.desc.value.empty() && may_be_equal(a.desc.shape, b.desc.shape);
}

const IoEntry* find(const std::vector<IoEntry>& entries, std::string_view name) {
  const auto at = std::ranges::find(entries, name, [](const IoEntry& e) { return e.desc.name; });
  return at == entries.end() ? nullptr : &*at;
}

class ChainCheck {
 public:
  explicit ChainCheck(std::span<const ProgramDescription> parts)
      : whole_(parts.front()), parts_(parts) {}

  Status inputs(std::size_t part) {
    for (const IoEntry& input : parts_[part].inputs) {
      const auto made = made_.find(input.desc.name);
      const IoEntry* from =
          made == made_.end() ? find(whole_.inputs, input.desc.name) : made->second.entry;
      if (from == nullptr)
        return error(Code::kInvalidArgument,
                     "part '{}' reads '{}', which no part before it makes and which is not an "
                     "input of the network",
                     parts_[part].part, input.desc.name);
      if (!same_form(input, *from))
        return error(Code::kInvalidArgument, "part '{}' reads '{}' as {}, and gets {}",
                     parts_[part].part, input.desc.name, input.desc.to_string(),
                     from->desc.to_string());
      if (made == made_.end())
        read_.insert(input.desc.name);
      else
        made->second.used = true;
    }
    return {};
  }

  Status outputs(std::size_t part) {
    for (const IoEntry& output : parts_[part].outputs) {
      const bool known = find(whole_.inputs, output.desc.name) != nullptr;
      if (known || !made_.try_emplace(output.desc.name, Made{&output, part, false}).second)
        return error(Code::kInvalidArgument,
                     "part '{}' makes '{}', which is there already; one part makes a value",
                     parts_[part].part, output.desc.name);
    }
    return {};
  }

  /// Each value that a part makes has one use: a result, or an input of later parts.
  Status borders() {
    for (const IoEntry& output : whole_.outputs) {
      const auto made = made_.find(output.desc.name);
      if (made == made_.end() || made->second.used || !same_form(output, *made->second.entry))
        return error(Code::kInvalidArgument,
                     "output '{}' of the chain '{}' {}; one part makes each, in this form, and no "
                     "other reads it",
                     output.desc.name, whole_.part,
                     made == made_.end() ? "is made by no part"
                     : made->second.used ? "is read by a part"
                                         : "has another form in its part");
      made->second.used = true;
    }
    for (const auto& [name, made] : made_)
      if (!made.used)
        return error(Code::kInvalidArgument, "nothing reads '{}', which part '{}' makes", name,
                     parts_[made.part].part);
    for (const IoEntry& input : whole_.inputs)
      if (!read_.contains(input.desc.name))
        return error(Code::kInvalidArgument, "no part of the chain '{}' reads its input '{}'",
                     whole_.part, input.desc.name);
    return {};
  }

 private:
  const ProgramDescription& whole_;
  const std::span<const ProgramDescription> parts_;
  std::map<std::string_view, Made> made_;
  std::set<std::string_view> read_;
};

}  // namespace

Status check_chain(std::span<const ProgramDescription> parts) {
  if (parts.size() < 3)
    return error(Code::kInvalidArgument,
                 "a chain of {} parts; two or more are needed, after the network that they are",
                 parts.empty() ? 0 : parts.size() - 1);
  ChainCheck check(parts);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    CORELANE_TRY(check.inputs(i));
    CORELANE_TRY(check.outputs(i));
  }
  return check.borders();
}

}  // namespace corelane
