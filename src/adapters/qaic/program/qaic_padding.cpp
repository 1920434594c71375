#include "adapters/qaic/program/qaic_padding.h"

#include <cstring>
#include <utility>

namespace corelane::qaic {

Padding::Padding(Box of) : box(std::move(of)), memory(box.whole_bytes()) {}

void Padding::put(const std::uint8_t* user) {
  box.each_row([&](std::size_t place, std::size_t inside, std::size_t bytes) {
    std::memcpy(memory.data() + place, user + inside, bytes);
  });
}

void Padding::cut(std::uint8_t* user) const {
  box.each_row([&](std::size_t place, std::size_t inside, std::size_t bytes) {
    std::memcpy(user + inside, memory.data() + place, bytes);
  });
}

}  // namespace corelane::qaic
