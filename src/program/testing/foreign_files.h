/// How the files of a vendor begin, as its driver says, for tests of what tells files apart.
#pragma once

#include <vector>

#include "corelane/program/program_file.h"

namespace corelane::testing {

inline const std::vector<ForeignMagic>& foreign_rows() {
  static const std::vector<ForeignMagic> kRows{{"rknn", "RKNN"},
                                               {"rknn", "RKNN", 4},
                                               {"rknn", "CYPTRKNN", 0, true},
                                               {"rknn", "CRYPTRKNN", 0, true},
                                               {"rknn", "RKNE", 0, true}};
  return kRows;
}

}  // namespace corelane::testing
