/// Tells a person how far a long step is: a bar that redraws itself on a terminal, one plain line
/// a step elsewhere. Writes to stderr only. One thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace page_reader {

class Progress {
 public:
  /// `title` names the step ("models"). `terminal` draws the bar; see stderr_is_terminal().
  Progress(std::string title, bool terminal);
  /// Ends the bar's line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of `total` steps, and what is going on. The bar never runs backwards. Without a
  /// terminal a line is written when the text changes.
  void show(std::size_t done, std::size_t total, std::string_view what);

 private:
  const std::string title_;
  const bool terminal_;
  double fraction_ = 0;
  std::string drawn_;
};

bool stderr_is_terminal() noexcept;

/// The bar alone: "[######....]" with `width` places.
std::string progress_bar(double fraction, std::size_t width);

}  // namespace page_reader
