#include "adapters/qaic/program/qaic_slicing.h"

#include <fmt/format.h>

#include <utility>

#include "adapters/qaic/profiling/qaic_profile_tap.h"
#include "adapters/qaic/program/qaic_buffer_plan.h"
#include "corelane/base/printable.h"

namespace corelane::qaic {

SlicingObject::SlicingObject(std::vector<SliceRule> rules, std::shared_ptr<const BufferPlan> plan)
    : Object(kKind),
      rules_(std::move(rules)),
      plan_(std::move(plan)),
      rule_of_(plan_->count(), kNone) {}

/// The number of dimensions is the same in all specializations, or the slice fits only some.
Status SlicingObject::match(std::size_t index) {
  const SliceRule& rule = rules_[index];
  CORELANE_ASSIGN(const NameExpression expression, NameExpression::create(rule.name));
  bool any = false;
  for (std::size_t i = 0; i < plan_->count(); ++i) {
    const IoMapping& buffer = plan_->mapping(i);
    if (!expression.matches(buffer.name)) continue;
    any = true;
    // An earlier rule has it. This one counts as matched all the same: its name is of a buffer.
    if (rule_of_[i] != kNone) continue;
    rule_of_[i] = index;
    if (rule.element_size != buffer.element_size)
      return error(Code::kInvalidArgument,
                   "'{}' has an ElemSize of {}; elements of buffer {} ('{}') have {} bytes",
                   printable(rule.name), rule.element_size, i, buffer.name, buffer.element_size);
    const std::size_t rank = plan_->form(i, 0).shape.rank();
    if (rule.starts.size() != rank)
      return error(Code::kInvalidArgument,
                   "'{}' has DimSpecs for {} dimensions; buffer {} ('{}') has {}",
                   printable(rule.name), rule.starts.size(), i, buffer.name, rank);
  }
  if (any) return {};
  std::string names;
  for (std::size_t i = 0; i < plan_->count(); ++i)
    names += fmt::format("{}'{}'", i == 0 ? "" : ", ", plan_->mapping(i).name);
  return error(
      Code::kInvalidArgument,
      "'{}' is the whole name of no buffer; there are {}; 'past_key.*' matches a beginning",
      printable(rule.name), names);
}

Result<std::shared_ptr<SlicingObject>> SlicingObject::create(
    std::string_view json, std::shared_ptr<const BufferPlan> plan) {
  CORELANE_ASSIGN(auto rules, read_slicing(json));
  const std::size_t count = rules.size();
  std::shared_ptr<SlicingObject> made(new SlicingObject(std::move(rules), std::move(plan)));
  for (std::size_t i = 0; i < count; ++i)
    if (const Status matched = made->match(i); !matched.ok())
      return error(matched.wrap(fmt::format("BufferSpecs[{}]", i)));
  return made;
}

Result<std::vector<std::int64_t>> SlicingObject::start_of(std::size_t buffer,
                                                          const Values& values) const {
  std::vector<std::int64_t> start;
  const std::vector<SliceStart>& starts = rules_[rule_of_[buffer]].starts;
  for (std::size_t d = 0; d < starts.size(); ++d) {
    const std::string& name = starts[d].parameter;
    const auto value = values.find(name);
    if (!name.empty() && value == values.end())
      return error(Code::kNotFound,
                   "dimension {} of buffer {} ('{}') begins at '{}', which has no value; pass one",
                   d, buffer, plan_->mapping(buffer).name, printable(name));
    start.push_back(name.empty() ? starts[d].constant : value->second);
  }
  return start;
}

}  // namespace corelane::qaic
