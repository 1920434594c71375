// A program that is linked with a library of the same names, as one that came through another door
// is: a function that the vendor's library calls of its own must not lead here.
#include <cstdint>

extern "C" __attribute__((visibility("default"))) int rknn_query(std::uint64_t, int, void*,
                                                                 std::uint32_t) {
  return -99;
}
