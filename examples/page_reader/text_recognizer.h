/// Text recognition: a line of text to a model input, and the model's answer to characters (CTC,
/// greedy). Pure functions, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_input.h"
#include "picture.h"

namespace page_reader {

inline constexpr int kLineHeight = 48;

/// What a class of the model stands for: class 0 is CTC's blank, then the characters, one a line
/// of `listing` (the model's metadata "character"), then the space.
class Alphabet {
 public:
  Alphabet() = default;
  explicit Alphabet(std::string_view listing);
  /// Blank and space included.
  std::size_t size() const noexcept { return characters_.size(); }
  /// UTF-8; empty for the blank.
  const std::string& operator[](std::size_t i) const noexcept { return characters_[i]; }

 private:
  std::vector<std::string> characters_;
};

struct RecognizedText {
  std::string text;  ///< UTF-8.
  float score = 0;   ///< Mean probability of the characters; 0 without any.
};

/// Width of the model input for a line: 48 high in its proportions, rounded up to a step so that
/// few different shapes occur (a new one costs the engine tens of milliseconds), 320 to 3200.
int recognizer_width(int width, int height) noexcept;

/// The line on a canvas of recognizer_width(): [1, 3, 48, W].
ModelInput recognizer_input(const Picture& line);

/// Greedy CTC: the best class of each step, repetitions merged, blanks dropped. `probabilities`
/// holds `steps` rows of alphabet.size() values; a shorter one gives no text.
RecognizedText decode_ctc(std::span<const float> probabilities, std::size_t steps,
                          const Alphabet& alphabet);

}  // namespace page_reader
