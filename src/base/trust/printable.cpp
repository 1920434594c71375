#include "corelane/base/printable.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace corelane {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) noexcept {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

/// Bytes of the control character at the front of a text that is not empty; 0 where there is none.
std::size_t control_length(std::string_view text) noexcept {
  const unsigned first = byte_at(text, 0);
  const unsigned second = byte_at(text, 1);
  const unsigned third = byte_at(text, 2);
  if (first < 0x20 || first == 0x7f) return 1;
  if (first == 0xc2 && second >= 0x80 && second < 0xa0) return 2;
  if (first != 0xe2) return 0;
  const bool mark =
      second == 0x80 && (third == 0x8e || third == 0x8f || (third >= 0xa8 && third <= 0xae));
  const bool isolate = second == 0x81 && third >= 0xa6 && third <= 0xa9;
  return mark || isolate ? 3 : 0;
}

void append_control(std::string& out, std::string_view bytes) {
  const std::string_view named = "\n\r\t";
  if (const auto at = named.find(bytes.front()); at != named.npos) {
    out += {'\\', "nrt"[at]};
    return;
  }
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

/// Whether any character is a control one. Nearly no text has one, and is passed on as it is.
bool has_control(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (control_length(text.substr(i)) != 0) return true;
  return false;
}

std::string written_out(std::string&& given, bool lines) {
  std::string_view text = given;
  if (!has_control(text)) return std::move(given);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t control = control_length(text);
    const bool layout = lines && (text.front() == '\n' || text.front() == '\t');
    if (control == 0 || layout)
      out += text.front();
    else
      append_control(out, text.substr(0, control));
    text.remove_prefix(control == 0 ? 1 : control);
  }
  return out;
}

}  // namespace

std::string printable(std::string text) { return written_out(std::move(text), false); }

std::string printable_lines(std::string text) { return written_out(std::move(text), true); }

}  // namespace corelane
