// The layout of what clients in C, and bindings that declare the structures themselves, read of a
// container: it is frozen.
#include <cstddef>
#include <cstring>

#include "adapters/qaic/api/qaic_test_support.h"

namespace corelane::qaic {
namespace {

using namespace test;

static_assert(sizeof(QAicQpcInfo) == 32);
static_assert(offsetof(QAicQpcInfo, numPrograms) == 0);
static_assert(offsetof(QAicQpcInfo, programInfo) == 8);
static_assert(offsetof(QAicQpcInfo, numConstants) == 16);
static_assert(offsetof(QAicQpcInfo, constantsInfo) == 24);

static_assert(sizeof(QAicQpcConstantsInfo) == 72);
static_assert(offsetof(QAicQpcConstantsInfo, name) == 0);
static_assert(offsetof(QAicQpcConstantsInfo, constantsIndex) == 64);
static_assert(offsetof(QAicQpcConstantsInfo, size) == 68);

static_assert(sizeof(QAicQpcProgramInfo) == 136);
static_assert(offsetof(QAicQpcProgramInfo, name) == 0);
static_assert(offsetof(QAicQpcProgramInfo, programIndex) == 64);
static_assert(offsetof(QAicQpcProgramInfo, numCores) == 68);
static_assert(offsetof(QAicQpcProgramInfo, size) == 72);
static_assert(offsetof(QAicQpcProgramInfo, ioBufferInfo) == 80);
static_assert(offsetof(QAicQpcProgramInfo, ioBufferInfoDma) == 96);
static_assert(offsetof(QAicQpcProgramInfo, batchSize) == 112);
static_assert(offsetof(QAicQpcProgramInfo, numSemaphores) == 116);
static_assert(offsetof(QAicQpcProgramInfo, numMcids) == 120);
static_assert(offsetof(QAicQpcProgramInfo, reqMem) == 128);

static_assert(sizeof(QAicIoBufferInfo) == 16);
static_assert(offsetof(QAicIoBufferInfo, numBufferMappings) == 0);
static_assert(offsetof(QAicIoBufferInfo, bufferMappings) == 8);

static_assert(sizeof(QAicBufferMappings) == 32);
static_assert(offsetof(QAicBufferMappings, bufferName) == 0);
static_assert(offsetof(QAicBufferMappings, index) == 8);
static_assert(offsetof(QAicBufferMappings, ioType) == 12);
static_assert(offsetof(QAicBufferMappings, size) == 16);
static_assert(offsetof(QAicBufferMappings, isPartialBufferAllowed) == 20);
static_assert(offsetof(QAicBufferMappings, dataType) == 24);

/// What lies there.
template <class T>
T read_at(const void* structure, std::size_t offset) {
  T value{};
  std::memcpy(&value, static_cast<const char*>(structure) + offset, sizeof(value));
  return value;
}

TEST(QaicLayout, AClientThatDeclaresTheStructuresItselfReadsThem) {
  const OwnQpc qpc(container_of(two_by_two({std::int64_t{2}, std::int64_t{2}})));
  const void* const info = &qpc.info();
  ASSERT_EQ(read_at<std::uint32_t>(info, 0), 1U);
  const auto* const program = read_at<const void*>(info, 8);
  EXPECT_EQ(read_at<std::uint32_t>(program, 64), 0U) << "programIndex";
  EXPECT_EQ(read_at<std::uint32_t>(program, 68), qpc.info().programInfo->numCores);
  EXPECT_GT(read_at<std::uint32_t>(program, 72), 0U) << "size";
  ASSERT_EQ(read_at<std::uint32_t>(program, 80), 4U) << "numBufferMappings";
  const auto* const second = read_at<const char*>(program, 88) + 32;
  EXPECT_STREQ(read_at<const char*>(second, 0), "b");
  EXPECT_EQ(read_at<std::uint32_t>(second, 8), 1U) << "index";
  EXPECT_EQ(read_at<std::uint32_t>(second, 12), 1U) << "input";
  EXPECT_EQ(read_at<std::uint32_t>(second, 16), 16U) << "bytes";
  EXPECT_EQ(read_at<std::uint64_t>(program, 128), 64U) << "reqMem: four buffers, no constants";
}

}  // namespace
}  // namespace corelane::qaic
