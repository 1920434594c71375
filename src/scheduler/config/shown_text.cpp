#include "scheduler/config/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace corelane::scheduler {
namespace {

constexpr std::size_t kMostShown = 80;

unsigned byte_at(std::string_view text, std::size_t at) noexcept {
  return static_cast<unsigned char>(text[at]);
}

/// Bytes of the UTF-8 sequence at the front of a text; 0 where there is none. Overlong forms and
/// surrogates pass: they do no harm on a screen.
std::size_t sequence_length(std::string_view text) noexcept {
  const unsigned first = byte_at(text, 0);
  // 0x80 to 0x9f as code points are control characters: two bytes, the first of them 0xc2.
  if (first == 0xc2 && text.size() > 1 && byte_at(text, 1) < 0xa0) return 0;
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte_at(text, i) & 0xc0U) != 0x80) return 0;
  return length;
}

}  // namespace

std::string shown(std::string_view text, char quote) {
  std::string out(1, quote);
  while (!text.empty() && out.size() <= kMostShown) {
    const unsigned first = byte_at(text, 0);
    const std::size_t length = first < 0x20 || first == 0x7f ? 0 : sequence_length(text);
    if (length == 0) out += fmt::format("\\x{:02x}", first);
    out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  out += quote;
  return text.empty() ? out : out + "...";
}

}  // namespace corelane::scheduler
