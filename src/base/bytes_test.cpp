#include "corelane/base/bytes.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"

namespace corelane {
namespace {

using namespace std::string_view_literals;

TEST(ByteReader, ReadsLittleEndianScalarsInOrder) {
  ByteReader reader(as_byte_span("\x01\x02\x00\x00\x00\xff"sv));
  EXPECT_EQ(reader.read<std::uint8_t>().value(), 1);
  EXPECT_EQ(reader.read<std::uint32_t>().value(), 2U);
  EXPECT_EQ(reader.offset(), 5U);
  EXPECT_EQ(reader.read<std::int8_t>().value(), -1);
  EXPECT_EQ(reader.remaining(), 0U);
}

TEST(ByteReader, AReadPastTheEndFailsAndMovesNothing) {
  ByteReader reader(as_byte_span("abc"));
  const auto r = reader.read<std::uint32_t>();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Code::kMalformed);
  EXPECT_NE(r.error().message().find("offset 0"), std::string::npos);
  EXPECT_EQ(reader.offset(), 0U);
  EXPECT_EQ(as_string_view(reader.read_bytes(3).value()), "abc");
  EXPECT_FALSE(reader.read_bytes(SIZE_MAX));
}

TEST(CheckedSlice, NeverOverflows) {
  const ByteSpan bytes = as_byte_span("0123456789");
  EXPECT_EQ(as_string_view(checked_slice(bytes, 2, 3, "part").value()), "234");
  EXPECT_TRUE(checked_slice(bytes, 10, 0, "part").value().empty());
  const std::pair<std::uint64_t, std::uint64_t> bad[] = {{11, 0},
                                                         {0, 11},
                                                         {9, 2},
                                                         {UINT64_MAX, 1},
                                                         {1, UINT64_MAX},
                                                         {UINT64_MAX, UINT64_MAX},
                                                         {UINT64_MAX - 4, 10}};
  for (const auto& [offset, size] : bad) {
    const auto r = checked_slice(bytes, offset, size, "segment 'weights'");
    ASSERT_FALSE(r) << offset << " " << size;
    EXPECT_EQ(r.error().code(), Code::kMalformed);
    EXPECT_NE(r.error().message().find("segment 'weights'"), std::string::npos);
  }
}

TEST(Crc32c, MatchesTheVectorsOfRfc3720) {
  ByteVector bytes(32);
  EXPECT_EQ(crc32c(bytes), 0x8A9136AAU);
  std::fill(bytes.begin(), bytes.end(), std::byte{0xFF});
  EXPECT_EQ(crc32c(bytes), 0x62A8AB43U);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes), 0x46DD794EU);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(crc32c(bytes), 0x113FDB5CU);
  EXPECT_EQ(crc32c(as_byte_span("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, ContinuesFromASeed) {
  const ByteSpan all = as_byte_span("the quick brown fox jumps");
  for (std::size_t cut = 0; cut <= all.size(); ++cut)
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
}

TEST(Crc32c, TableAndInstructionsAgreeAtEveryLengthAndAlignment) {
  if (!detail::crc32c_has_hardware()) GTEST_SKIP() << "this CPU has no CRC-32C instructions";
  ByteVector bytes(200);
  std::uint32_t x = 1;
  for (auto& b : bytes) b = static_cast<std::byte>((x = x * 1664525U + 1013904223U) >> 24);
  const ByteSpan all(bytes);
  for (std::size_t start = 0; start < 9; ++start) {
    for (std::size_t n = 0; n + start <= all.size(); ++n) {
      const auto part = all.subspan(start, n);
      ASSERT_EQ(detail::crc32c_table(x, part), detail::crc32c_hardware(x, part))
          << start << " " << n;
    }
  }
}

TEST(ContentHash, IsThe128BitXxh3InCanonicalOrder) {
  EXPECT_EQ(content_hash({}), "99aa06d3014798d86001c324468d497f");
  const std::string hash = content_hash(as_byte_span("corelane"));
  EXPECT_EQ(hash.size(), 32U);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(hash, content_hash(as_byte_span("corelanf")));
}

}  // namespace
}  // namespace corelane
