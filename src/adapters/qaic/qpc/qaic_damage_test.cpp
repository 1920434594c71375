// Damaged containers: each is a code, and nothing is taken that the file does not hold.
#include <random>

#include "adapters/qaic/api/qaic_test_support.h"
#include "corelane/program/program_file.h"
#include "program/testing/program_surgery.h"

namespace corelane::qaic {
namespace {

using namespace test;
using ::testing::AnyOf;
using ::testing::Eq;
using testing::repair_header;
using testing::write_at;

/// Three small ones: without constants, with them, and with specializations.
std::vector<ByteVector> containers() {
  const Dims open{std::string("n"), std::int64_t{16}};
  const auto product = [](const Dims& dims) {
    return OnnxBuilder()
        .input("x", dims)
        .output("y", dims)
        .constant("w", {16, 16}, testing::kOnnxFloat, std::vector<float>(256, 0.5F))
        .node("MatMul", {"x", "w"}, {"y"})
        .build("product");
  };
  ImportOptions sets;
  sets.shape_sets = {{Shape{1, 16}}, {Shape{4, 16}}};
  return {container_of(two_by_two({std::int64_t{2}})),
          container_of(product({std::int64_t{2}, std::int64_t{16}})),
          container_of(product(open), sets)};
}

/// All that the API says of a container that opens is read.
QStatus open_and_read(const ByteVector& bytes) {
  const OwnQpc qpc(bytes);
  if (qpc.status != QS_SUCCESS) return qpc.status;
  const QAicQpcInfo& info = qpc.info();
  std::uint64_t sum = 0;
  for (std::uint32_t p = 0; p < info.numPrograms; ++p) {
    const auto& io = info.programInfo[p].ioBufferInfo;
    for (std::uint32_t i = 0; i < io.numBufferMappings; ++i)
      sum += std::string(io.bufferMappings[i].bufferName).size() + io.bufferMappings[i].size;
    QData desc{};
    EXPECT_EQ(qaicQpcGetIoDescriptor(qpc, p, &desc), QS_SUCCESS);
    for (std::size_t i = 0; i < desc.size; ++i) sum += desc.data[i];
  }
  EXPECT_GT(sum, 0U);
  return QS_SUCCESS;
}

const auto kRefused = AnyOf(Eq(QS_INVAL), Eq(QS_DATA_CRC_ERROR), Eq(QS_UNSUPPORTED));

TEST(QaicDamage, EachTruncationIsRefused) {
  for (const ByteVector& whole : containers()) {
    ASSERT_EQ(open_and_read(whole), QS_SUCCESS);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const ByteVector cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      QAicQpcObj* qpc = nullptr;
      // Not null for no bytes: that would be another mistake.
      const std::uint8_t none = 0;
      const QStatus status =
          qaicOpenQpc(&qpc, size == 0 ? &none : data_of(cut), size, size % 2 == 0);
      ASSERT_THAT(status, kRefused) << size << " of " << whole.size() << ": " << last_error();
      if (size > 0) ASSERT_THAT(last_error(), ::testing::HasSubstr("--target aic100")) << size;
    }
  }
}

TEST(QaicDamage, EachFlippedByteIsRefused) {
  const ByteVector whole = containers()[0];
  for (std::size_t at = 0; at < whole.size(); ++at) {
    ByteVector damaged = whole;
    damaged[at] ^= std::byte{0x10};
    ASSERT_THAT(open_and_read(damaged), kRefused) << at;
  }
}

/// Changes some bytes, or takes or adds some, between two places.
ByteVector mutant_of(const ByteVector& whole, std::size_t begin, std::size_t end,
                     std::mt19937_64& random) {
  ByteVector out = whole;
  for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
    const std::size_t at = begin + random() % (std::min(end, out.size()) - begin);
    const auto place = out.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 4) {
      case 0:
        *place = static_cast<std::byte>(random());
        break;
      case 1:
        *place ^= static_cast<std::byte>(1U << (random() % 8));
        break;
      case 2:
        out.insert(place, static_cast<std::byte>(random()));
        break;
      default:
        if (at + 4 < out.size())
          write_at<std::uint32_t>(
              out, at, random() % 3 == 0 ? ~0U : static_cast<std::uint32_t>(random() % 64));
        break;
    }
  }
  return out;
}

TEST(QaicDamage, TenThousandMutantsAreCodesOrContainers) {
  const auto whole = containers();
  std::mt19937_64 random(15);
  int opened = 0;
  for (int i = 0; i < 10'000; ++i) {
    const ByteVector& from = whole[static_cast<std::size_t>(i) % whole.size()];
    const std::size_t header_end = 64 + testing::read_at<std::uint32_t>(from, 24);
    ByteVector mutant;
    if (i % 4 == 0) {
      // Anywhere, the checksums as they were.
      mutant = mutant_of(from, 0, from.size(), random);
    } else {
      // In the description, with its checksums mended.
      mutant = mutant_of(from, 64, header_end, random);
      repair_header(mutant);
    }
    const QStatus status = open_and_read(mutant);
    ASSERT_THAT(status, AnyOf(Eq(QS_SUCCESS), kRefused)) << i << ": " << last_error();
    opened += status == QS_SUCCESS ? 1 : 0;
  }
  EXPECT_GT(opened, 50) << "what comes after the checksums is reached";
}

/// A container whose segment table says of the last segment what `edit` makes of it.
ByteVector with_table(const std::function<void(std::uint64_t& offset, std::uint64_t& size)>& edit) {
  ByteVector file = containers()[1];
  const auto opened = ProgramFile::from_bytes(file).value();
  const SegmentInfo& last = opened->segments().back();
  std::uint64_t offset = last.offset, size = last.size;
  edit(offset, size);
  const std::size_t header_end = 64 + testing::read_at<std::uint32_t>(file, 24);
  int found = 0;
  for (std::size_t at = 64; at + 16 <= header_end; at += 4) {
    if (testing::read_at<std::uint64_t>(file, at) != last.offset ||
        testing::read_at<std::uint64_t>(file, at + 8) != last.size)
      continue;
    write_at(file, at, offset);
    write_at(file, at + 8, size);
    ++found;
  }
  EXPECT_EQ(found, 1) << "the table has them beside each other";
  repair_header(file);
  return file;
}

TEST(QaicDamage, OverlappingAndHugeSegmentsAreRefused) {
  ASSERT_EQ(open_and_read(with_table([](auto&, auto&) {})), QS_SUCCESS);
  EXPECT_EQ(open_and_read(with_table([](auto& offset, auto&) { offset = 64; })), QS_INVAL);
  EXPECT_EQ(open_and_read(with_table([](auto& offset, auto&) { offset = 0; })), QS_INVAL);
  EXPECT_EQ(open_and_read(with_table([](auto&, auto& size) { size += 64; })), QS_INVAL);
  EXPECT_EQ(open_and_read(with_table([](auto&, auto& size) { size = std::uint64_t{1} << 40; })),
            QS_INVAL);
  EXPECT_EQ(open_and_read(with_table([](auto& offset, auto& size) {
              offset = ~std::uint64_t{0} - 63;
              size = 128;
            })),
            QS_INVAL);
}

TEST(QaicDamage, AWrongChecksumHasItsCode) {
  for (ByteVector file : containers()) {
    const auto whole = ProgramFile::from_bytes(file).value();
    for (const SegmentInfo& segment : whole->segments()) {
      if (segment.size == 0) continue;
      file[segment.offset + segment.size / 2] ^= std::byte{1};
      EXPECT_EQ(open_and_read(file), QS_DATA_CRC_ERROR);
      file[segment.offset + segment.size / 2] ^= std::byte{1};
    }
    file[70] ^= std::byte{1};
    EXPECT_EQ(open_and_read(file), QS_DATA_CRC_ERROR) << "of the description";
  }
}

}  // namespace
}  // namespace corelane::qaic
