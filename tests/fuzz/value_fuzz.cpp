// Any bytes as the flat form of a value: refused, or read within its bytes and written again as
// they are.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "corelane/tensor/value.h"

namespace {

using corelane::ValueBuilder;
using corelane::ValueKind;
using corelane::ValueView;

void copy(const ValueView& value, ValueBuilder& to) {
  switch (value.kind()) {
    case ValueKind::kTensor:
      if (value.dtype() == corelane::DType::kString)
        to.strings(value.shape(), value.strings());
      else
        to.tensor(value.tensor());
      return;
    case ValueKind::kMap:
      to.map(value.dtype());
      copy(value.keys(), to);
      return copy(value.values(), to);
    case ValueKind::kOptional:
      to.optional(value.size() == 1);
      break;
    case ValueKind::kSequence:
      to.sequence(value.size());
  }
  for (const ValueView& item : value.items()) copy(item, to);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const corelane::ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto value = corelane::read_value(bytes);
  if (!value) return 0;
  ValueBuilder again;
  copy(*value, again);
  const auto made = again.finish();
  const bool same =
      made && made->size() <= size && std::equal(made->begin(), made->end(), bytes.begin());
  if (!same) std::abort();
  return 0;
}
