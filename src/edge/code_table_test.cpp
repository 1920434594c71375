#include "edge/code_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace corelane::edge {
namespace {

TEST(CodeTable, TheListHasEveryCodeInTheOrderOfTheirNumbers) {
  std::vector<Code> codes;
  for (int number = 0; number < 1000; ++number)
    if (code_name(static_cast<Code>(number)) != "unknown")
      codes.push_back(static_cast<Code>(number));
  EXPECT_EQ(codes, std::vector<Code>(std::begin(kCodes), std::end(kCodes)));
}

}  // namespace
}  // namespace corelane::edge
