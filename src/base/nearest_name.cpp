#include "base/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace corelane {
namespace {

/// Longer texts are no misspelt names, and would cost time.
constexpr std::size_t kLongest = 64;

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Edits from `a` to `b`, of at most kLongest letters each. Three rows of the table are kept.
std::size_t edits(std::string_view a, std::string_view b) noexcept {
  std::array<std::array<std::size_t, kLongest + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = lower(a[i - 1]);
      const char y = lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (x == y ? 0 : 1)});
      if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
        row[j] = std::min(row[j], rows[(i + 1) % 3][j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view given, std::span<const std::string> known) {
  if (given.size() > kLongest) return {};
  std::size_t least = std::max<std::size_t>(1, given.size() / 3) + 1;
  std::string found;
  for (const std::string& name : known) {
    if (name.size() > kLongest) continue;
    const std::size_t distance = edits(given, name);
    if (distance >= least) continue;
    least = distance;
    found = name;
  }
  return found;
}

std::string nearest_hint(std::string_view given, std::span<const std::string> known) {
  const std::string nearest = nearest_name(given, known);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace corelane
