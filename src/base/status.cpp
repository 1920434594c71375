#include "corelane/base/status.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "base/code_names.h"
#include "base/leaked.h"
#include "corelane/base/printable.h"

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
  constexpr std::string_view kNames[] = {"input", "output", "dimension", "given",       "allowed",
                                         "limit", "node",   "operator",  "retry_after", "key"};
  const auto index = static_cast<std::size_t>(key);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

Status::Status(tl::unexpected<Status> failure) noexcept : Status(std::move(failure.value())) {}

/// One for each code. Making them allocates nothing: their texts lie in the strings themselves.
std::shared_ptr<const Status::Rep> Status::without_text(Code code) noexcept {
  constexpr std::size_t kCodes = std::size(kCodeNames);
  static Leaked<std::array<Rep, kCodes>> reps([] {
    std::array<Rep, kCodes> made{};
    for (std::size_t i = 0; i < kCodes; ++i)
      made[i] = {kCodeNames[i].code, "out of memory", "", {}};
    return made;
  }());
  const auto found =
      std::find_if(reps->begin(), reps->end(), [code](const Rep& rep) { return rep.code == code; });
  return {std::shared_ptr<void>(), found == reps->end() ? reps->data() : &*found};
}

/// Names of models, files and clients come into the message: nothing in it may act on a terminal,
/// or look like a line of its own.
Status::Status(Code code, std::string message, std::source_location where) noexcept {
  if (code == Code::kOk) code = Code::kInternal;
  try {
    rep_ = std::make_shared<const Rep>(
        Rep{code, printable(std::move(message)), place_of(where), nullptr});
  } catch (...) {
    rep_ = without_text(code);
  }
}

Status detail::formatted(Code code, fmt::string_view format, fmt::format_args arguments,
                         std::source_location where) noexcept {
  std::string text;
  try {
    text = fmt::vformat(format, arguments);
  } catch (...) {
    text = "out of memory";  // Short enough to lie in the string itself.
  }
  return {code, std::move(text), where};
}

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

Status Status::with(Detail key, std::string value) const noexcept {
  if (ok()) return {};
  try {
    // Copies share the old one, which never changes.
    auto rep = std::make_shared<Rep>(*rep_);
    std::erase_if(rep->details, [&](const auto& detail) { return detail.first == key; });
    rep->details.emplace_back(key, std::move(value));
    Status more;
    more.rep_ = std::move(rep);
    return more;
  } catch (...) {
    return *this;
  }
}

Status Status::wrap(std::string_view message, std::source_location where) const noexcept {
  return wrap(code(), message, where);
}

Status Status::wrap(Code code, std::string_view message,
                    std::source_location where) const noexcept {
  if (ok()) return {};
  if (code == Code::kOk) code = Code::kInternal;
  Status outer;
  try {
    outer.rep_ = std::make_shared<const Rep>(
        Rep{code, printable(std::string(message)), place_of(where), rep_});
  } catch (...) {
    outer.rep_ = without_text(code);
  }
  return outer;
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  std::string text;
  for (const Rep* rep = rep_.get(); rep != nullptr; rep = rep->cause.get()) {
    if (rep != rep_.get()) text += ": caused by ";
    text += fmt::format("{}: {}", code_name(rep->code), rep->message);
  }
  return text;
}

}  // namespace corelane
