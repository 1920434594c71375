#include "tensor/box.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

namespace corelane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Rows = std::vector<std::tuple<std::size_t, std::size_t, std::size_t>>;

Rows rows(const Box& box) {
  Rows found;
  box.each_row([&](std::size_t place, std::size_t inside, std::size_t bytes) {
    found.emplace_back(place, inside, bytes);
  });
  return found;
}

TEST(Box, ItsRowsLieWhereItBegins) {
  const Box box{{3, 4, 5}, {1, 2, 1}, {2, 1, 3}, 2};
  ASSERT_TRUE(box.check().ok());
  EXPECT_EQ(box.bytes(), 12U);
  EXPECT_EQ(box.whole_bytes(), 120U);
  EXPECT_FALSE(box.is_whole());
  EXPECT_THAT(rows(box), ElementsAre(std::tuple(62, 0, 6), std::tuple(102, 6, 6)));
}

TEST(Box, AScalarIsOneRowAndNothingIsNone) {
  EXPECT_THAT(rows({{}, {}, {}, 4}), ElementsAre(std::tuple(0, 0, 4)));
  EXPECT_THAT(rows({{4}, {1}, {0}, 4}), ElementsAre());
  EXPECT_THAT(rows({{2, 2}, {0, 0}, {2, 2}, 1}),
              ElementsAre(std::tuple(0, 0, 2), std::tuple(2, 2, 2)));
}

TEST(Box, WhatLeavesTheTensorIsRefusedByItsDimension) {
  const Status late = Box{{2, 8}, {0, 6}, {2, 3}, 1}.check();
  EXPECT_EQ(late.code(), Code::kOutOfRange);
  EXPECT_THAT(late.message(),
              HasSubstr("dimension 1 begins at 6 with an extent of 3 elements, of 8; a start of 0 "
                        "to 5 is allowed"));
  EXPECT_EQ((Box{{2, 8}, {-1, 0}, {1, 1}, 1}.check().code()), Code::kOutOfRange);
  const Status large = Box{{2, 8}, {0, 0}, {3, 8}, 1}.check();
  EXPECT_THAT(large.message(), HasSubstr("dimension 0 is given with an extent of 3 elements; at "
                                         "most 2 are allowed"));
  EXPECT_EQ((Box{{8}, {std::numeric_limits<std::int64_t>::max()}, {8}, 1}.check().code()),
            Code::kOutOfRange);
  EXPECT_EQ((Box{{8}, {0, 0}, {8}, 1}.check().code()), Code::kInvalidArgument);
  EXPECT_EQ((Box{{8}, {0}, {1, 8}, 1}.check().code()), Code::kInvalidArgument);
}

}  // namespace
}  // namespace corelane
