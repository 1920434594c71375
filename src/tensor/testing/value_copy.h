/// A flat form that is read and written again, for tests and fuzz targets.
#pragma once

#include "corelane/tensor/value.h"

namespace corelane::testing {

/// Reads all of a value, and writes it again.
inline void copy_value(const ValueView& value, ValueBuilder& to) {
  switch (value.kind()) {
    case ValueKind::kTensor:
      if (value.dtype() == DType::kString)
        to.strings(value.shape(), value.strings());
      else
        to.tensor(value.tensor());
      return;
    case ValueKind::kMap:
      to.map(value.dtype());
      copy_value(value.keys(), to);
      return copy_value(value.values(), to);
    case ValueKind::kOptional:
      to.optional(value.size() == 1);
      break;
    case ValueKind::kSequence:
      to.sequence(value.size());
  }
  for (const ValueView& item : value.items()) copy_value(item, to);
}

}  // namespace corelane::testing
