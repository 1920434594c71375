// Any bytes as the flat form of a value: refused, or read within its bytes and written again as
// they are.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "corelane/tensor/value.h"
#include "tensor/testing/value_copy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const corelane::ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto value = corelane::read_value(bytes);
  if (!value) return 0;
  corelane::ValueBuilder again;
  corelane::testing::copy_value(*value, again);
  const auto made = again.finish();
  const bool same =
      made && made->size() <= size && std::equal(made->begin(), made->end(), bytes.begin());
  if (!same) std::abort();
  return 0;
}
