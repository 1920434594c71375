/// How the files of a vendor begin, as its driver says, for tests of what tells files apart.
#pragma once

#include <string>
#include <vector>

#include "corelane/program/program_file.h"

namespace corelane::testing {

inline const std::vector<ForeignMagic>& foreign_rows() {
  static const std::vector<ForeignMagic> kRows{{"rknn", "RKNN", 0, false, 24},
                                               {"rknn", "RKNN", 4},
                                               {"rknn", "CYPTRKNN", 0, true},
                                               {"rknn", "CRYPTRKNN", 0, true},
                                               {"rknn", "RKNE", 0, true}};
  return kRows;
}

/// A file of the vendor's older tools with this data.
inline std::string vendor_file(const std::string& data) {
  std::string bytes("RKNN\0\0\0\0\6\0\0\0\0\0\0\0", 16);
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(data.size() >> 8 * i & 0xff);
  return bytes + data;
}

}  // namespace corelane::testing
