#include "glyphs.h"

#include <fmt/format.h>
#include <ft2build.h>
#include FT_FREETYPE_H

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "canvas.h"

namespace page_reader {
namespace fs = std::filesystem;
namespace {

using corelane::Code;
using corelane::error;
using corelane::Result;

constexpr std::array<const char*, 4> kKnownFonts{
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
    "/usr/share/fonts/truetype/liberation2/LiberationSans-Regular.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf"};

constexpr double kUnits = 64;  // FreeType's 26.6 numbers.

fs::path first_known_font() {
  std::error_code ignored;
  for (const char* path : kKnownFonts)
    if (fs::exists(path, ignored)) return path;
  return {};
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string points;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    const int more = lead < 0x80 ? 0 : lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC2 ? 1 : -1;
    if (more < 0 || lead > 0xF4) {
      points.push_back(U'\xFFFD');
      continue;
    }
    char32_t point = more == 0 ? lead : lead & (0x3FU >> static_cast<unsigned>(more));
    int read = 0;
    for (; read < more && i < text.size(); ++read, ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      if ((next & 0xC0U) != 0x80U) break;
      point = (point << 6U) | (next & 0x3FU);
    }
    points.push_back(read == more ? point : U'\xFFFD');
  }
  return points;
}

struct Font::Impl {
  FT_Library library = nullptr;
  FT_Face face = nullptr;

  ~Impl() {
    if (face != nullptr) FT_Done_Face(face);
    if (library != nullptr) FT_Done_FreeType(library);
  }
  void set_size(double size) {
    FT_Set_Char_Size(face, 0, static_cast<FT_F26Dot6>(std::lround(size * kUnits)), 72, 72);
  }
};

Font::Font(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Font::Font(Font&&) noexcept = default;
Font& Font::operator=(Font&&) noexcept = default;
Font::~Font() = default;

Result<Font> Font::open(const fs::path& path) {
  const fs::path file = path.empty() ? first_known_font() : path;
  if (file.empty()) {
    return error(Code::kNotFound,
                 "no font found to draw with (looked for {} and others); install the Debian "
                 "package fonts-dejavu-core, or name a font file by --font",
                 kKnownFonts[0]);
  }
  auto impl = std::make_unique<Impl>();
  if (FT_Init_FreeType(&impl->library) != 0)
    return error(Code::kInternal, "FreeType cannot be initialised");
  if (const FT_Error problem = FT_New_Face(impl->library, file.c_str(), 0, &impl->face)) {
    impl->face = nullptr;
    return error(Code::kMalformed, "'{}' cannot be opened as a font (FreeType error {})",
                 file.string(), problem);
  }
  return Font(std::move(impl));
}

double Font::width(std::string_view text, double size) {
  impl_->set_size(size);
  double total = 0;
  for (const char32_t point : decode_utf8(text)) {
    if (FT_Load_Char(impl_->face, point, FT_LOAD_DEFAULT) != 0) continue;
    total += static_cast<double>(impl_->face->glyph->advance.x) / kUnits;
  }
  return total;
}

void Font::draw(Picture& picture, double x, double y, std::string_view text, double size,
                Colour colour) {
  impl_->set_size(size);
  double pen = x;
  const int baseline = static_cast<int>(std::lround(y));
  for (const char32_t point : decode_utf8(text)) {
    if (FT_Load_Char(impl_->face, point, FT_LOAD_RENDER) != 0) continue;
    const FT_GlyphSlot glyph = impl_->face->glyph;
    const FT_Bitmap& bitmap = glyph->bitmap;
    // Outline fonts render to grey; a bitmap font may hold glyphs of other kinds.
    const bool grey = bitmap.pixel_mode == FT_PIXEL_MODE_GRAY;
    const int left = static_cast<int>(std::lround(pen)) + glyph->bitmap_left;
    const int top = baseline - glyph->bitmap_top;
    for (int row = 0; grey && row < static_cast<int>(bitmap.rows); ++row) {
      for (int column = 0; column < static_cast<int>(bitmap.width); ++column) {
        const double cover = bitmap.buffer[row * bitmap.pitch + column] / 255.0;
        if (cover > 0) blend(picture, left + column, top + row, colour, cover);
      }
    }
    pen += static_cast<double>(glyph->advance.x) / kUnits;
  }
}

double Font::fitting_size(std::string_view text, double size, double smallest, double room) {
  const double needed = width(text, size);
  if (needed <= room) return size;
  double fitting = size * room / needed;
  // Hinting rounds the advances, so the width is not quite proportional.
  while (fitting > smallest && width(text, fitting) > room) fitting -= 0.25;
  return std::max(smallest, fitting);
}

}  // namespace page_reader
