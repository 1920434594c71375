/// Reading and writing pictures: PNG and JPEG in, PNG out.
#pragma once

#include <filesystem>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "picture.h"

namespace page_reader {

/// At most this many pixels are decoded, so that a small file cannot ask for all memory.
inline constexpr double kMaxPixels = 100e6;

/// Reads PNG or JPEG, told apart by their first bytes; 8 or 16 bits, grey, palette or colour.
/// Transparent pixels are laid over white. kNotFound / kIo for the file, kMalformed for its
/// contents (the decoder's reason), kUnsupported for other formats and too many pixels.
corelane::Result<Picture> load_picture(const std::filesystem::path& path);
corelane::Result<Picture> decode_picture(corelane::ByteSpan bytes, const std::string& name);

/// Writes an RGB PNG, whole or not at all; creates missing folders.
corelane::Status save_png(const std::filesystem::path& path, const Picture& picture);

}  // namespace page_reader
