/// Small ONNX models that together use every part of the format which the import looks at.
#pragma once

#include <string>
#include <vector>

#include "corelane/base/bytes.h"

namespace corelane::robustness {

struct SampleModel {
  std::string name;
  ByteVector bytes;
};

/// A few hundred bytes to a few kilobytes each; every one can be imported.
std::vector<SampleModel> sample_models();

/// One node each, for every operator that is lowered. Some can be imported, some not: they
/// are where damage begins.
std::vector<SampleModel> rule_models();

}  // namespace corelane::robustness
