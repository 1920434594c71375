// The bytes choose a conversion; the fast path must give what the reference gives, or both refuse.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tensor/convert/convert_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::size_t used = 0;
  const corelane::testing::Pick pick = [&](std::uint32_t bound) {
    std::uint32_t value = 0;
    // As many bytes as the choice needs, so that one byte of the input is mostly one choice.
    for (std::uint32_t rest = bound - 1; rest != 0; rest >>= 8)
      value = value << 8 | (used < size ? data[used++] : 0U);
    return value % bound;
  };
  const corelane::testing::ConvertCase k = corelane::testing::random_case(pick);
  const corelane::testing::CheckResult r = corelane::testing::check_case(k, pick);
  if (r.problem.empty()) return 0;
  std::fprintf(stderr, "%s\n%s\n", k.to_string().c_str(), r.problem.c_str());
  std::abort();
}
