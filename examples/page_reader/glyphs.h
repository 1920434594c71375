/// Text on pictures, through FreeType.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "corelane/base/status.h"
#include "picture.h"

namespace page_reader {

/// One outline font. Used by one thread.
class Font {
 public:
  /// Opens a TrueType or OpenType file. An empty path takes the first known one that is
  /// installed; kNotFound then names the Debian package.
  static corelane::Result<Font> open(const std::filesystem::path& path = {});
  Font(Font&&) noexcept;
  Font& operator=(Font&&) noexcept;
  ~Font();

  /// Width in pixels of UTF-8 text at a size in pixels per em.
  double width(std::string_view text, double size);
  /// Draws with the left end of the baseline at (x, y); what leaves the picture is cut off.
  void draw(Picture& picture, double x, double y, std::string_view text, double size,
            Colour colour);
  /// The largest size up to `size`, at least `smallest`, at which the text is no wider than
  /// `room`.
  double fitting_size(std::string_view text, double size, double smallest, double room);

 private:
  struct Impl;
  explicit Font(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The code points of UTF-8 text; a broken sequence gives U+FFFD.
std::u32string decode_utf8(std::string_view text);

}  // namespace page_reader
