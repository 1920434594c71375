#include "corelane/base/status.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/code_names.h"
#include "base/leaked.h"

namespace corelane {

struct Status::Rep {
  Code code;
  std::string message;
  std::string place;
  std::shared_ptr<const Rep> cause;
  std::vector<std::pair<Detail, std::string>> details = {};
};

namespace {

const std::string& empty_string() noexcept {
  static Leaked<const std::string> empty;  // Static destructors may read it.
  return *empty;
}

std::string place_of(const std::source_location& where) {
  std::string_view file = where.file_name();
  // Without folders: the same text wherever it was built.
  if (const auto slash = file.rfind('/'); slash != std::string_view::npos)
    file.remove_prefix(slash + 1);
  return fmt::format("{}:{}", file, where.line());
}

}  // namespace

std::string_view code_name(Code code) noexcept {
  for (const CodeName& row : kCodeNames)
    if (row.code == code) return row.name;
  return "unknown";
}

std::string_view detail_name(Detail key) noexcept {
  constexpr std::string_view kNames[] = {"input", "output", "dimension", "given",      "allowed",
                                         "limit", "node",   "operator",  "retry_after"};
  const auto index = static_cast<std::size_t>(key);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

Status::Status(tl::unexpected<Status> failure) noexcept : Status(std::move(failure.value())) {}

Status::Status(Code code, std::string message, std::source_location where)
    : rep_(std::make_shared<const Rep>(Rep{code == Code::kOk ? Code::kInternal : code,
                                           std::move(message), place_of(where), nullptr})) {}

Code Status::code() const noexcept { return rep_ ? rep_->code : Code::kOk; }

const std::string& Status::message() const noexcept {
  return rep_ ? rep_->message : empty_string();
}

const std::string& Status::place() const noexcept { return rep_ ? rep_->place : empty_string(); }

Status Status::cause() const noexcept {
  Status cause;
  if (rep_) cause.rep_ = rep_->cause;
  return cause;
}

std::string_view Status::detail(Detail key) const noexcept {
  for (const Rep* rep = rep_.get(); rep != nullptr; rep = rep->cause.get()) {
    for (const auto& [known, value] : rep->details)
      if (known == key) return value;
  }
  return {};
}

std::vector<std::pair<Detail, std::string>> Status::details() const {
  std::map<Detail, std::string> all;
  for (const Rep* rep = rep_.get(); rep != nullptr; rep = rep->cause.get())
    all.insert(rep->details.begin(), rep->details.end());  // Keeps what is there: outermost first.
  return {all.begin(), all.end()};
}

Status Status::with(Detail key, std::string value) const {
  if (ok()) return {};
  // Copies share the old one, which never changes.
  auto rep = std::make_shared<Rep>(*rep_);
  std::erase_if(rep->details, [&](const auto& detail) { return detail.first == key; });
  rep->details.emplace_back(key, std::move(value));
  Status more;
  more.rep_ = std::move(rep);
  return more;
}

Status Status::wrap(std::string message, std::source_location where) const {
  return wrap(code(), std::move(message), where);
}

Status Status::wrap(Code code, std::string message, std::source_location where) const {
  if (ok()) return {};
  Status outer;
  outer.rep_ = std::make_shared<const Rep>(
      Rep{code == Code::kOk ? Code::kInternal : code, std::move(message), place_of(where), rep_});
  return outer;
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  std::string text;
  for (const Rep* rep = rep_.get(); rep != nullptr; rep = rep->cause.get()) {
    if (rep != rep_.get()) text += ": caused by ";
    text += fmt::format("{}: {}", code_name(rep->code), rep->message);
  }
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace corelane
