#include "drivers/rknn/vendor_layers.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text_parts.h"

namespace corelane::drivers::rknn {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r";
  Words words;
  for (std::size_t at = line.find_first_not_of(kSpace); at != std::string_view::npos;
       at = line.find_first_not_of(kSpace, at)) {
    const std::size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

/// The indices of the columns; past the last one when the table has none of that name.
struct Columns {
  std::size_t type = 0, dtype = 0, target = 0, time = 0, name = 0;

  static std::optional<Columns> of(const Words& head) {
    const auto index = [&](std::string_view title) {
      return static_cast<std::size_t>(std::find(head.begin(), head.end(), title) - head.begin());
    };
    const Columns c{index("OpType"), index("DataType"), index("Target"), index("Time(us)"),
                    index("FullName")};
    const bool table =
        !head.empty() && head[0] == "ID" && c.type < head.size() && c.time < head.size();
    return table ? std::optional(c) : std::nullopt;
  }
};

DType dtype_in(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return dtype_from_name(lower).value_or(DType::kUndefined);
}

/// "\" stands for nothing.
std::string_view word_at(const Words& row, std::size_t column) {
  return column < row.size() && row[column] != "\\" ? row[column] : std::string_view();
}

/// Times above 1e12 us, eleven days, are no times.
std::optional<device::LayerTime> layer_of(const Words& row, const Columns& columns) {
  if (row.empty() || !parse_number<std::uint32_t>(row[0])) return std::nullopt;
  const auto micros = parse_number<double>(word_at(row, columns.time));
  if (!micros || !(*micros >= 0 && *micros < 1e12)) return std::nullopt;
  device::LayerTime layer;
  layer.type = word_at(row, columns.type);
  layer.kernel = word_at(row, columns.target);
  layer.dtype = dtype_in(word_at(row, columns.dtype));
  layer.duration = Duration(static_cast<Duration::rep>(*micros * 1000));
  layer.executed = true;
  // "Conv:conv1", where the name itself may hold a colon.
  const std::string_view full = word_at(row, columns.name);
  const std::size_t colon = full.find(':');
  layer.name = colon == std::string_view::npos ? full : full.substr(colon + 1);
  return layer;
}

}  // namespace

std::vector<device::LayerTime> read_layers(std::string_view text) {
  std::vector<device::LayerTime> layers;
  std::optional<Columns> columns;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const Words row = words_of(text.substr(at, end - at));
    at = end + 1;
    if (!columns)
      columns = Columns::of(row);
    else if (auto layer = layer_of(row, *columns))
      layers.push_back(std::move(*layer));
    else if (!layers.empty())
      break;  // The table ends; others follow.
  }
  return layers;
}

}  // namespace corelane::drivers::rknn
