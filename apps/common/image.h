/// Pictures for tools: PNG and JPEG in, 8 bits a channel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane::common {

/// Rows of interleaved channels (1 grey or 3 RGB), top to bottom.
struct Image {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;
};

/// At most this many pixels are decoded, so a small file cannot ask for all memory.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

/// Decodes PNG or JPEG (by content) to 1 or 3 channels. Pixels are the values that the file stores,
/// as Pillow and OpenCV give them: no gamma or colour profile changes a PNG, alpha is left out,
/// and 16 bits are rounded to 8.
/// kMalformed names the file and the decoder's reason.
Result<Image> load_image(const std::filesystem::path& path, int channels);
Result<Image> decode_image(ByteSpan bytes, const std::string& name, int channels);

/// Bilinear sampling with half-pixel centres (as ONNX Resize half_pixel), edges repeated.
Image resize_bilinear(const Image& image, int width, int height);

}  // namespace corelane::common
