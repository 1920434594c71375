/// Pictures on a PC: what librga and turbojpeg do in a program for a board. libjpeg, libpng and
/// plain loops; nothing here knows the NPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Rows of RGB pixels, 8 bits a channel, without gaps.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;
};

/// How a picture lies in a larger one: scaled by `scale`, its corner at (left, top).
struct Letterbox {
  float scale = 1;
  int left = 0;
  int top = 0;
};

/// Decodes a JPEG or PNG file, by its first bytes. False with a line on stderr.
bool read_picture(const std::string& path, Picture& out);

/// Scales `in` to fit width x height, keeps its proportions, and fills the borders with `border`,
/// as a blit of the RGA into a filled target does. `target`: height rows of width * 3 bytes,
/// `pitch` bytes apart.
Letterbox letterbox(const Picture& in, int width, int height, std::uint8_t border,
                    std::uint8_t* target, int pitch);
