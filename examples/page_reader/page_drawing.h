/// The annotated picture: the page with its lines and regions, and the text that was read beside
/// it, each line where it stands on the page.
#pragma once

#include <span>
#include <string>

#include "glyphs.h"
#include "page_pipeline.h"
#include "picture.h"

namespace page_reader {

/// `page` is upright. `title` stands above both panels.
Picture draw_result(const Picture& page, const PageResult& result,
                    std::span<const std::string> labels, const std::string& title, Font& font);

/// Small pages are enlarged so that annotations are readable, large ones reduced.
double drawing_scale(int page_width) noexcept;

}  // namespace page_reader
