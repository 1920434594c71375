#include "corelane/program/program_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "corelane/base/file.h"
#include "corelane/tensor/value_type.h"
#include "program/program_format.h"
#include "program/testing/foreign_files.h"
#include "program/testing/program_surgery.h"
#include "program/testing/random_program.h"

namespace corelane {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace format = program;
namespace fs = std::filesystem;

ProgramDescription small_description() {
  ProgramDescription d;
  d.name = "small";
  IoEntry out;
  out.desc.name = "y";
  out.desc.dtype = DType::kF32;
  out.desc.shape = Shape{2};
  d.outputs = {out};
  return d;
}

/// Graph of 100 bytes, constants of 5000, one foreign image.
ByteVector small_program() {
  testing::RandomProgram random(7);
  const ByteVector graph = random.bytes(100);
  const ByteVector constants = random.bytes(5000);
  const ByteVector foreign = random.bytes(33);
  ProgramWriter writer(small_description());
  writer.add_segment(SegmentKind::kGraph, "", graph);
  writer.add_segment(SegmentKind::kConstants, "", constants);
  writer.add_segment(SegmentKind::kForeign, "rknn", foreign);
  return writer.finish().value();
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "corelane-program-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

Status open_status(const ByteVector& bytes, Verify verify = Verify::kHeader) {
  auto file = ProgramFile::from_bytes(bytes, nullptr, verify);
  return file ? Status() : file.error();
}

TEST(ProgramFile, AnyDescriptionComesBackAsItWas) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    testing::RandomProgram random(seed);
    const ProgramDescription d = random.description();
    const auto bytes = random.file(d);
    ASSERT_TRUE(bytes) << seed << ": " << bytes.error().to_string();
    const auto file = ProgramFile::from_bytes(*bytes, nullptr, Verify::kEverything);
    ASSERT_TRUE(file) << seed << ": " << file.error().to_string();
    ASSERT_TRUE((*file)->description() == d) << seed;
    ASSERT_EQ((*file)->file_size(), bytes->size());
  }
}

TEST(ProgramFile, SegmentsComeBackAsTheyWere) {
  testing::RandomProgram random(1);
  const ByteVector graph = random.bytes(777);
  const ByteVector constants = random.bytes(9000);
  const ByteVector blob = random.bytes(1);
  ProgramWriter writer(small_description());
  writer.add_segment(SegmentKind::kForeign, "a", {});
  writer.add_segment(SegmentKind::kGraph, "", graph);
  writer.add_segment(SegmentKind::kPrecompiled, "x", blob);
  writer.add_segment(SegmentKind::kConstants, "", constants);
  const ByteVector bytes = writer.finish().value();
  const auto file = ProgramFile::from_bytes(bytes).value();
  ASSERT_EQ(file->segments().size(), 4U);
  EXPECT_EQ(file->segments()[2].tag, "x");
  EXPECT_EQ(file->segments()[2].kind, SegmentKind::kPrecompiled);
  const auto equal = [](ByteSpan a, ByteSpan b) { return as_string_view(a) == as_string_view(b); };
  EXPECT_TRUE(equal(file->segment(0).value(), {}));
  EXPECT_TRUE(equal(file->segment(1).value(), graph));
  EXPECT_TRUE(equal(file->find(SegmentKind::kPrecompiled, "x").value().value(), blob));
  EXPECT_TRUE(equal(file->find(SegmentKind::kConstants).value().value(), constants));
  EXPECT_FALSE(file->find(SegmentKind::kPrecompiled, "y").value().has_value());
  EXPECT_EQ(file->segment(4).error().code(), Code::kOutOfRange);
}

TEST(ProgramFile, SegmentsAreAlignedInTheFileAndInMemory) {
  TemporaryFolder folder;
  const ByteVector bytes = small_program();
  ASSERT_TRUE(write_file_atomic(folder / "p.rknn", bytes).ok());
  const auto mapped = ProgramFile::open(folder / "p.rknn").value();
  // From an odd address, so that only a deliberate copy can be aligned.
  ByteVector shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  const auto copied = ProgramFile::from_bytes(ByteSpan(shifted).subspan(1)).value();
  for (const auto& file : {mapped, copied}) {
    for (std::size_t i = 0; i < file->segments().size(); ++i) {
      const std::size_t alignment = format::alignment_of(file->segments()[i].kind);
      EXPECT_EQ(file->segments()[i].offset % alignment, 0U);
      const ByteSpan content = file->segment(i).value();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(content.data()) % alignment, 0U);
    }
  }
}

TEST(ProgramFile, TheSameInputGivesTheSameBytesAndKey) {
  const ByteVector a = small_program();
  EXPECT_EQ(a, small_program());
  const auto first = ProgramFile::from_bytes(a).value();
  EXPECT_EQ(first->content_key().size(), 32U);
  EXPECT_EQ(first->content_key(), ProgramFile::from_bytes(small_program()).value()->content_key());

  const ByteVector zeros(100);
  ProgramWriter writer(small_description());
  writer.add_segment(SegmentKind::kGraph, "", zeros);
  const auto other = ProgramFile::from_bytes(writer.finish().value()).value();
  EXPECT_NE(first->content_key(), other->content_key());
}

TEST(ProgramFile, BytesWithAnOwnerAreNotCopied) {
  const auto bytes = std::make_shared<const ByteVector>(small_program());
  const std::weak_ptr<const ByteVector> watch = bytes;
  auto file = ProgramFile::from_bytes(*bytes, bytes).value();
  const ByteSpan graph = file->find(SegmentKind::kGraph).value().value();
  EXPECT_GE(graph.data(), bytes->data());
  EXPECT_LT(graph.data(), bytes->data() + bytes->size());
  EXPECT_EQ(watch.use_count(), 2);
  file.reset();
  EXPECT_EQ(watch.use_count(), 1);
}

TEST(ProgramFile, BytesWithoutAnOwnerAreCopied) {
  auto bytes = std::make_unique<ByteVector>(small_program());
  const auto file = ProgramFile::from_bytes(*bytes).value();
  bytes.reset();
  EXPECT_EQ(file->find(SegmentKind::kGraph).value()->size(), 100U);
}

TEST(ProgramFile, AnUnalignedDescriptionIsReadAsWell) {
  const ByteVector bytes = small_program();
  for (std::size_t shift = 1; shift < 16; ++shift) {
    const auto shifted = std::make_shared<ByteVector>(bytes.size() + shift);
    std::copy(bytes.begin(), bytes.end(), shifted->begin() + static_cast<std::ptrdiff_t>(shift));
    const auto file = ProgramFile::from_bytes(ByteSpan(*shifted).subspan(shift), shifted);
    ASSERT_TRUE(file) << shift << ": " << file.error().to_string();
    EXPECT_EQ((*file)->description(), small_description());
  }
}

TEST(ProgramFile, EveryFlippedByteIsFound) {
  ByteVector bytes = small_program();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x10};
    ASSERT_FALSE(open_status(bytes, Verify::kEverything).ok()) << "byte " << i;
    bytes[i] ^= std::byte{0x10};
  }
  EXPECT_TRUE(open_status(bytes, Verify::kEverything).ok());
}

TEST(ProgramFile, AFlippedSegmentFailsWhenItIsReadNotWhenOpened) {
  ByteVector bytes = small_program();
  const auto good = ProgramFile::from_bytes(bytes).value();
  const std::size_t at = good->segments()[1].offset + 4000;
  bytes[at] ^= std::byte{1};
  const auto file = ProgramFile::from_bytes(bytes).value();
  EXPECT_TRUE(file->segment(0));
  for (int again = 0; again < 2; ++again) {
    const auto broken = file->find(SegmentKind::kConstants);
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().code(), Code::kCorrupted);
    EXPECT_THAT(broken.error().message(), AllOf(HasSubstr("constants"), HasSubstr("CRC-32C")));
  }
  const Status s = open_status(bytes, Verify::kEverything);
  EXPECT_EQ(s.code(), Code::kCorrupted) << s.to_string();
}

TEST(ProgramFile, ThreadsMayReadTheSameSegmentAtOnce) {
  const auto file = ProgramFile::from_bytes(small_program()).value();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < 300; ++i) good += file->segment(i % 3).has_value() ? 1 : 0;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 8 * 300);
}

/// Written into the file that is there.
void overwrite(const fs::path& path, ByteSpan bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

TEST(ProgramFile, AFileThatIsWrittenToWhileItIsOpenIsFound) {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.rknn";
  const ByteVector bytes = small_program();
  ASSERT_TRUE(write_file_atomic(path, bytes).ok());
  const auto file = ProgramFile::open(path).value();
  EXPECT_TRUE(file->check_unchanged().ok());
  // The same bytes again, at another time.
  overwrite(path, bytes);
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(5));
  EXPECT_TRUE(file->check_unchanged().ok());
  ByteVector others = bytes;
  others.back() ^= std::byte{1};
  overwrite(path, others);
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(50));
  const Status status = file->check_unchanged();
  EXPECT_EQ(status.code(), Code::kCorrupted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("x.rknn"), HasSubstr("renaming")));
  fs::resize_file(path, 10);
  EXPECT_THAT(file->check_unchanged().message(), HasSubstr("now it has 10"));
}

TEST(ProgramFile, AFileThatIsReplacedOrRemovedStaysReadable) {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.rknn";
  ASSERT_TRUE(write_file_atomic(path, small_program()).ok());
  const auto file = ProgramFile::open(path).value();
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("another")).ok());
  EXPECT_TRUE(file->check_unchanged().ok());
  fs::remove(path);
  EXPECT_TRUE(file->check_unchanged().ok());
  EXPECT_TRUE(file->verify_segments().ok());
  EXPECT_TRUE(ProgramFile::from_bytes(small_program()).value()->check_unchanged().ok());
}

TEST(ProgramFile, AMissingFileIsNamed) {
  const auto file = ProgramFile::open("/nonexistent/model.rknn");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), Code::kNotFound);
  EXPECT_THAT(file.error().message(), HasSubstr("/nonexistent/model.rknn"));
}

TEST(ProgramFile, OtherKindsOfFilesNameTheWayOut) {
  TemporaryFolder folder;
  const struct {
    const char* name;
    std::string content;
    Code code;
    const char* words;
  } cases[] = {
      {"m.onnx", std::string("\x08\x08\x3a\x03\x12\x01g", 7), Code::kMalformed, "corelane compile"},
      {"vendor.rknn", testing::vendor_file("data"), Code::kForeignImage, "CORELANE_DEVICE=rknn"},
      {"cut.rknn", testing::vendor_file("data").substr(0, 26), Code::kMalformed, "4 bytes follow"},
      {"crypt.rknn", "CYPTRKNN12345678", Code::kForeignImage, "encrypted"},
      {"text.rknn", "hello", Code::kMalformed, "corelane compile model.onnx -o model.rknn"},
      {"empty.rknn", "", Code::kMalformed, "0 bytes"},
  };
  for (const auto& c : cases) {
    ASSERT_TRUE(write_file_atomic(folder / c.name, as_byte_span(c.content)).ok());
    const auto file = ProgramFile::open(folder / c.name, Verify::kHeader, testing::foreign_rows());
    ASSERT_FALSE(file) << c.name;
    EXPECT_EQ(file.error().code(), c.code) << c.name;
    EXPECT_THAT(file.error().message(), AllOf(HasSubstr(c.name), HasSubstr(c.words)));
  }
}

TEST(ProgramFile, AnOnnxFileIsTakenIntoTheCommandThatCompilesIt) {
  TemporaryFolder folder;
  const fs::path path = folder / "net.onnx";
  ASSERT_TRUE(
      write_file_atomic(path, as_byte_span(std::string("\x08\x08\x3a\x03\x12\x01g", 7))).ok());
  EXPECT_THAT(ProgramFile::open(path).error().message(),
              HasSubstr("corelane compile " + path.string() + " -o model.rknn"));
}

TEST(ProgramFile, ATruncatedFileSaysSo) {
  ByteVector bytes = small_program();
  bytes.pop_back();
  const Status s = open_status(bytes);
  EXPECT_EQ(s.code(), Code::kMalformed);
  EXPECT_THAT(s.message(), HasSubstr("truncated"));
}

TEST(ProgramFile, AnAppendedByteIsFound) {
  ByteVector bytes = small_program();
  bytes.push_back(std::byte{});
  EXPECT_THAT(open_status(bytes).message(), HasSubstr("appended"));
  testing::repair_header(bytes);
  EXPECT_THAT(open_status(bytes).to_string(), HasSubstr("the last segment ends at"));
}

TEST(ProgramFile, AnotherMajorVersionIsNamedWithOurs) {
  for (const std::uint16_t major : {0, 2, 65535}) {
    ByteVector bytes = small_program();
    testing::write_at(bytes, offsetof(format::FixedHeader, major), major);
    testing::repair_fixed_header(bytes);
    const Status s = open_status(bytes);
    EXPECT_EQ(s.code(), Code::kVersionMismatch);
    EXPECT_THAT(s.message(), AllOf(HasSubstr(std::to_string(major) + ".0"), HasSubstr("1.x")));
  }
}

TEST(ProgramFile, ALaterMinorVersionMayUseWhatIsReserved) {
  ByteVector bytes = small_program();
  testing::write_at(bytes, offsetof(format::FixedHeader, minor), std::uint16_t{format::kMinor + 1});
  testing::write_at(bytes, offsetof(format::FixedHeader, flags), std::uint32_t{0x00010000});
  testing::write_at(bytes, offsetof(format::FixedHeader, reserved), std::uint32_t{123});
  testing::repair_fixed_header(bytes);
  const auto file = ProgramFile::from_bytes(bytes, nullptr, Verify::kEverything);
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ((*file)->description(), small_description());
}

TEST(ProgramFile, ARequiredFlagOfALaterVersionIsRefused) {
  ByteVector bytes = small_program();
  testing::write_at(bytes, offsetof(format::FixedHeader, minor), std::uint16_t{format::kMinor + 1});
  testing::write_at(bytes, offsetof(format::FixedHeader, flags), std::uint32_t{64});
  testing::repair_fixed_header(bytes);
  EXPECT_EQ(open_status(bytes).code(), Code::kVersionMismatch);
}

TEST(ProgramFile, ALoweredFormIsARequiredFlagForEarlierReaders) {
  const ByteVector one(1);
  const auto header_of = [&](ByteSpan lowered) {
    ProgramWriter writer(small_description());
    writer.add_segment(SegmentKind::kGraph, "", one);
    writer.add_segment(SegmentKind::kLowered, "engine/1", lowered);
    const ByteVector bytes = writer.finish().value();
    EXPECT_TRUE(ProgramFile::from_bytes(bytes, nullptr, Verify::kEverything));
    return std::pair{testing::read_at<std::uint16_t>(bytes, offsetof(format::FixedHeader, minor)),
                     testing::read_at<std::uint32_t>(bytes, offsetof(format::FixedHeader, flags))};
  };
  EXPECT_EQ(header_of(one), (std::pair{std::uint16_t{2}, std::uint32_t{1}}));
  // Empty: the engine takes the graph as it is, and so may a reader that skips the segment.
  EXPECT_EQ(header_of({}), (std::pair{std::uint16_t{2}, std::uint32_t{0}}));
}

TEST(ProgramFile, TypesOf8BitsAndFewerAreARequiredFlagForEarlierReaders) {
  const ByteVector one(1);
  for (std::size_t i = 1; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    ProgramDescription description = small_description();
    description.outputs[0].desc.dtype = description.outputs[0].reported_dtype = type;
    ProgramWriter writer(description);
    writer.add_segment(SegmentKind::kGraph, "", one);
    ByteVector bytes = writer.finish().value();
    const auto flags = testing::read_at<std::uint32_t>(bytes, offsetof(format::FixedHeader, flags));
    EXPECT_EQ(flags, is_opaque(type) ? 8U : 0U) << dtype_name(type);
    EXPECT_EQ(testing::read_at<std::uint16_t>(bytes, offsetof(format::FixedHeader, minor)),
              is_opaque(type) ? 7U : 0U);
    const auto file = ProgramFile::from_bytes(bytes);
    ASSERT_TRUE(file) << file.error().to_string();
    EXPECT_EQ((*file)->description(), description);
    // The flag says what the types say.
    testing::write_at(bytes, offsetof(format::FixedHeader, flags), flags ^ 8U);
    testing::repair_fixed_header(bytes);
    EXPECT_EQ(open_status(bytes).code(), Code::kMalformed);
  }
}

TEST(ProgramFile, ValuesAreARequiredFlagForEarlierReaders) {
  const ByteVector one(1);
  ProgramDescription description = small_description();
  TensorDesc& desc = description.outputs[0].desc;
  desc.dtype = description.outputs[0].reported_dtype = DType::kU8;
  desc.shape = Shape{Shape::kOpen};
  desc.dim_names.clear();
  for (const char* text : {"tensor(string)", "tensor(float)", "seq(map(int64,tensor(float)))",
                           "optional(seq(tensor(string)))"}) {
    for (const std::optional<Shape>& shape : {std::optional<Shape>(), std::optional<Shape>(Shape{}),
                                              std::optional<Shape>(Shape{Shape::kOpen, 3})}) {
      desc.value = parse_value_type(text).value();
      desc.value.shape = shape;
      if (shape && shape->rank() == 2) desc.value.dim_names = {"n", ""};
      ProgramWriter writer(description);
      writer.add_segment(SegmentKind::kGraph, "", one);
      ByteVector bytes = writer.finish().value();
      const auto flags =
          testing::read_at<std::uint32_t>(bytes, offsetof(format::FixedHeader, flags));
      EXPECT_EQ(flags, 16U);
      EXPECT_EQ(testing::read_at<std::uint16_t>(bytes, offsetof(format::FixedHeader, minor)), 8U);
      const auto file = ProgramFile::from_bytes(bytes);
      ASSERT_TRUE(file) << file.error().to_string();
      EXPECT_EQ((*file)->description(), description);
      testing::write_at(bytes, offsetof(format::FixedHeader, flags), std::uint32_t{0});
      testing::repair_fixed_header(bytes);
      EXPECT_EQ(open_status(bytes).code(), Code::kMalformed);
    }
  }
}

TEST(ProgramFile, AVerdictIsARequiredFlagForEarlierReaders) {
  const ByteVector one(1);
  ProgramWriter writer(small_description());
  writer.add_segment(SegmentKind::kGraph, "", one);
  writer.add_segment(SegmentKind::kLowered, "engine/1", {});
  writer.add_segment(SegmentKind::kVerdict, "engine/1", as_byte_span("node 'a' (Add): wrong"));
  const ByteVector bytes = writer.finish().value();
  EXPECT_EQ(testing::read_at<std::uint16_t>(bytes, offsetof(format::FixedHeader, minor)), 6U);
  EXPECT_EQ(testing::read_at<std::uint32_t>(bytes, offsetof(format::FixedHeader, flags)), 4U);
  const auto file = ProgramFile::from_bytes(bytes);
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(as_string_view((*file)->find(SegmentKind::kVerdict, "engine/1").value().value()),
            "node 'a' (Add): wrong");
}

TEST(ProgramFile, ThisVersionHasNoOtherFlagsAndNothingReserved) {
  ByteVector bytes = small_program();
  testing::write_at(bytes, offsetof(format::FixedHeader, flags), std::uint32_t{0x00010000});
  testing::repair_fixed_header(bytes);
  EXPECT_EQ(open_status(bytes).code(), Code::kMalformed);
  bytes = small_program();
  bytes[59] = std::byte{1};
  testing::repair_fixed_header(bytes);
  EXPECT_THAT(open_status(bytes).message(), HasSubstr("reserved"));
}

TEST(ProgramFile, ADescriptionSizeBeyondTheFileIsRefused) {
  for (const std::uint32_t size : {0U, 0xFFFFFFFFU, 1U << 20, 0x7FFFFFFFU}) {
    ByteVector bytes = small_program();
    testing::write_at(bytes, offsetof(format::FixedHeader, header_size), size);
    testing::repair_fixed_header(bytes);
    const Status s = open_status(bytes);
    EXPECT_EQ(s.code(), Code::kMalformed) << s.to_string();
  }
}

template <class T>
concept Addable = requires(ProgramWriter w, T bytes) {
  w.add_segment(SegmentKind::kGraph, "", std::forward<T>(bytes));
};
// A segment is borrowed until finish(): a temporary does not compile.
static_assert(Addable<ByteVector&> && Addable<const ByteVector&> && Addable<ByteSpan>);
static_assert(!Addable<ByteVector>);

TEST(ProgramWriter, RefusesAnInconsistentDescription) {
  ProgramDescription d = small_description();
  d.outputs.push_back(d.outputs[0]);
  const ByteVector one(1);
  ProgramWriter writer(d);
  writer.add_segment(SegmentKind::kGraph, "", one);
  const auto bytes = writer.finish();
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(bytes.error().message(), HasSubstr("'y'"));
}

TEST(ProgramWriter, RefusesAProgramWithoutAGraph) {
  ProgramWriter none(small_description());
  EXPECT_EQ(none.finish().error().code(), Code::kInvalidArgument);
  ProgramWriter empty(small_description());
  empty.add_segment(SegmentKind::kGraph, "", {});
  EXPECT_EQ(empty.finish().error().code(), Code::kInvalidArgument);
}

TEST(ProgramWriter, RefusesSegmentsThatCannotBeTold) {
  const ByteVector one(1);
  const auto finish = [&](SegmentKind kind, const char* tag, SegmentKind second, const char* tag2) {
    ProgramWriter writer(small_description());
    writer.add_segment(SegmentKind::kGraph, "", one);
    writer.add_segment(kind, tag, one);
    writer.add_segment(second, tag2, one);
    return writer.finish();
  };
  using K = SegmentKind;
  EXPECT_TRUE(finish(K::kForeign, "a", K::kForeign, "b"));
  EXPECT_TRUE(finish(K::kForeign, "a", K::kPrecompiled, "a"));
  EXPECT_FALSE(finish(K::kForeign, "a", K::kForeign, "a"));
  EXPECT_FALSE(finish(K::kForeign, "", K::kPrecompiled, "a"));
  EXPECT_FALSE(finish(K::kPrecompiled, "", K::kForeign, "a"));
  EXPECT_FALSE(finish(K::kConstants, "", K::kConstants, "b"));
  EXPECT_FALSE(finish(K::kGraph, "b", K::kConstants, ""));
  EXPECT_FALSE(finish(static_cast<K>(0), "", K::kConstants, ""));
  EXPECT_TRUE(finish(K::kLowered, "a/1", K::kLowered, "a/2"));
  EXPECT_FALSE(finish(K::kLowered, "a/1", K::kLowered, "a/1"));
  EXPECT_FALSE(finish(K::kLowered, "", K::kConstants, ""));
  EXPECT_FALSE(finish(static_cast<K>(6), "", K::kConstants, ""));
}

TEST(ProgramWriter, RefusesMoreThanAReaderWouldTake) {
  const ByteVector one(1);
  ProgramWriter many(small_description());
  many.add_segment(SegmentKind::kGraph, "", one);
  for (int i = 0; i < 1024; ++i) many.add_segment(SegmentKind::kForeign, std::to_string(i), one);
  EXPECT_THAT(many.finish().error().message(), HasSubstr("1025 segments"));

  ProgramDescription d = small_description();
  d.metadata["labels"] = std::string(format::kMaxHeaderBytes, 'x');
  ProgramWriter big(d);
  big.add_segment(SegmentKind::kGraph, "", one);
  EXPECT_THAT(big.finish().error().message(), HasSubstr("description"));

  d = small_description();
  d.findings.resize(format::kMaxTables);
  ProgramWriter parts(d);
  parts.add_segment(SegmentKind::kGraph, "", one);
  EXPECT_THAT(parts.finish().error().message(), HasSubstr("tables"));
}

}  // namespace
}  // namespace corelane
