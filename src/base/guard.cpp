#include "base/guard.h"

#include <algorithm>
#include <exception>
#include <new>

#include "base/leaked.h"
#include "corelane/base/log.h"

namespace corelane {
namespace {

// Made when the library is loaded: when memory has run out there is none to make it.
Leaked<const Status> out_of_memory(Code::kOutOfMemory, "out of memory; free some and call again");

/// Texts of exceptions may have several lines.
std::string on_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace

Status status_of_exception(std::string_view what, Code code) noexcept {
  try {
    try {
      throw;
    } catch (const std::exception& e) {
      if (code == Code::kInternal && dynamic_cast<const std::bad_alloc*>(&e) != nullptr)
        return error(Code::kOutOfMemory, "{}: out of memory", what);
      return error(code, "{} threw: {}", what, on_one_line(e.what()));
    } catch (...) {
      return error(code, "{} threw something that is not a std::exception", what);
    }
  } catch (...) {
    return *out_of_memory;
  }
}

void detail::log_exception(std::string_view part, std::string_view what) noexcept {
  // The code of somebody else's work, so that the text of std::bad_alloc is shown too.
  const Status thrown = status_of_exception(what, Code::kEngineFailed);
  log::write(log::Level::kError, part, thrown.message());
}

}  // namespace corelane
