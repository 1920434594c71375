// Partial buffers and specializations by the C functions (A9).
#include <sys/mman.h>
#include <unistd.h>

#include <numeric>

#include "adapters/qaic/testing/qaic_bench.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// "ids", "cache" (partial) -> "logits", "kept", of [1, n]. The null device copies.
struct ShapeBench : Bench {
  explicit ShapeBench(const std::vector<std::int64_t>& lengths)
      : Bench("null:generic:2?a=1ms", nullptr, true, with_cache(), cache_options(lengths)),
        net(program()),
        object(exec(net)),
        sender(queue()) {}
  ~ShapeBench() {
    static_cast<void>(qaicReleaseExecObj(object));
    static_cast<void>(qaicReleaseProgram(net));
    static_cast<void>(qaicReleaseQueue(sender));
  }
  QStatus set(const std::vector<QBuffer>& buffers) const {
    return qaicExecObjSetData(object, static_cast<std::uint32_t>(buffers.size()), buffers.data());
  }
  /// Dimensions of the four buffers; elements of 4 bytes unless said otherwise.
  QStatus set(const std::vector<QBuffer>& buffers, std::vector<std::vector<std::uint32_t>> dims,
              std::uint32_t element = 4) const {
    std::vector<QBufferDimensions> all;
    for (auto& one : dims)
      all.push_back({static_cast<std::uint32_t>(one.size()), element, one.data()});
    return qaicExecObjSetDataExt(object, static_cast<std::uint32_t>(buffers.size()), buffers.data(),
                                 all.data());
  }
  QStatus run() const {
    const QStatus sent = qaicEnqueueExecObj(sender, object, nullptr);
    if (sent != QS_SUCCESS) return sent;
    advance(milliseconds(1));
    return qaicExecObjWaitForCompletion(object, 0);
  }
  QAicProgram* net;
  QAicExecObj* object;
  QAicQueue* sender;
};

QBuffer cut(QBuffer buffer, std::size_t size) {
  buffer.size = size;
  return buffer;
}

TEST(QaicShapes, APartialInputKeepsTheRest) {
  const ShapeBench bench({4});
  Tensors t(4);
  t.values[1] = {5, 6, 7, 8};
  ASSERT_EQ(bench.set(t.buffers), QS_SUCCESS) << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_EQ(t.values[3], (std::vector<float>{5, 6, 7, 8}));
  // Shorter: the rest stays what it was.
  t.values[1] = {1, 1, 1, 1};
  ASSERT_EQ(bench.set({t.buffers[0], cut(t.buffers[1], 8), t.buffers[2], t.buffers[3]}),
            QS_SUCCESS);
  ASSERT_EQ(bench.run(), QS_SUCCESS);
  EXPECT_EQ(t.values[3], (std::vector<float>{1, 1, 7, 8}));
  // Left out, as clients write it.
  ASSERT_EQ(
      bench.set({t.buffers[0], {}, t.buffers[2], t.buffers[3]}, {{1, 4}, {0}, {1, 4}, {1, 4}}),
      QS_SUCCESS)
      << text();
  t.values[1] = {9, 9, 9, 9};
  t.values[0] = {4, 3, 2, 1};
  ASSERT_EQ(bench.run(), QS_SUCCESS);
  EXPECT_EQ(t.values[3], (std::vector<float>{1, 1, 7, 8}));
  EXPECT_EQ(t.values[2], (std::vector<float>{4, 3, 2, 1}));
}

TEST(QaicShapes, OnlyPartialBuffersAreLeftOut) {
  const ShapeBench bench({4});
  const Tensors t(4);
  EXPECT_EQ(bench.set({{}, t.buffers[1], t.buffers[2], t.buffers[3]}), QS_INVAL);
  EXPECT_EQ(
      bench.set({{}, t.buffers[1], t.buffers[2], t.buffers[3]}, {{0}, {1, 4}, {1, 4}, {1, 4}}),
      QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("'ids'"));
  EXPECT_EQ(bench.set({t.buffers[0], cut(t.buffers[1], 20), t.buffers[2], t.buffers[3]}), QS_INVAL)
      << "longer than it is";
  EXPECT_EQ(bench.set({t.buffers[0], t.buffers[1], t.buffers[2], cut(t.buffers[3], 8)}), QS_INVAL)
      << "an output that does not allow partial data";
}

TEST(QaicShapes, EachTupleIsAllowedAndOneOffIsNot) {
  const std::vector<std::int64_t> lengths{4, 8, 16};
  const ShapeBench bench(lengths);
  for (const std::int64_t length : lengths) {
    const auto n = static_cast<std::uint32_t>(length);
    Tensors t(4, n);
    ASSERT_EQ(bench.set(t.buffers, {{1, n}, {1, n}, {1, n}, {1, n}}), QS_SUCCESS) << text();
    ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
    EXPECT_EQ(t.values[2], t.values[0]);
    // By the sizes alone, too.
    t.values[0][n - 1] = 77;
    ASSERT_EQ(bench.set(t.buffers), QS_SUCCESS) << text();
    ASSERT_EQ(bench.run(), QS_SUCCESS);
    EXPECT_EQ(t.values[2], t.values[0]);
    for (std::size_t odd = 0; odd < 4; ++odd) {
      std::vector<std::vector<std::uint32_t>> dims(4, {1, n});
      dims[odd] = {1, n + 1};
      EXPECT_EQ(bench.set(t.buffers, dims), QS_INVAL) << n << ", buffer " << odd;
      dims[odd] = {n};
      EXPECT_EQ(bench.set(t.buffers, dims), QS_INVAL) << "wrong rank";
    }
    EXPECT_EQ(bench.set(t.buffers, {{1, n}, {1, n}, {1, n}, {1, n}}, 2), QS_INVAL) << "element";
    EXPECT_EQ(bench.run(), QS_SUCCESS) << "the earlier buffers stay";
  }
}

TEST(QaicShapes, ARefusalNamesTheBufferAndTheNearestTuples) {
  const ShapeBench bench({4, 8, 16, 32});
  const Tensors t(4, 8);
  ASSERT_EQ(bench.set(t.buffers, {{1, 8}, {1, 8}, {1, 9}, {1, 8}}), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("buffer 2 ('logits') is given as [1, 9]"));
  EXPECT_THAT(text(), HasSubstr("(ids [1, 8], cache [1, 8], logits [1, 8], kept [1, 8])"));
  EXPECT_THAT(text(), HasSubstr("none of the 4 specializations"));
  ASSERT_EQ(bench.set(t.buffers, {{1, 16}, {1, 16}, {1, 16}, {1, 16}}), QS_INVAL)
      << "the sizes are those of another";
  EXPECT_THAT(text(), HasSubstr("has 32 bytes; 64 bytes"));
}

TEST(QaicShapes, MixedSizesAreNoSpecialization) {
  const ShapeBench bench({4, 8});
  const Tensors small(4, 4);
  const Tensors large(4, 8);
  EXPECT_EQ(bench.set({small.buffers[0], small.buffers[1], large.buffers[2], small.buffers[3]}),
            QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("none of the 2 specializations"));
  EXPECT_THAT(text(), HasSubstr("'logits'"));
}

TEST(QaicShapes, ALeftOutBufferFollowsTheOthers) {
  const ShapeBench bench({4, 8});
  const Tensors t(4, 8);
  ASSERT_EQ(
      bench.set({t.buffers[0], {}, t.buffers[2], t.buffers[3]}, {{1, 8}, {0}, {1, 8}, {1, 8}}),
      QS_SUCCESS)
      << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS);
  EXPECT_EQ(t.values[2], t.values[0]);
  EXPECT_EQ(t.values[3], std::vector<float>(8)) << "zeros at first";
  QBufferDimensions none[4];
  EXPECT_EQ(qaicExecObjSetDataExt(bench.object, 4, t.buffers.data(), none), QS_INVAL);
  none[0] = {2, 4, nullptr};
  EXPECT_EQ(qaicExecObjSetDataExt(bench.object, 4, t.buffers.data(), none), QS_INVAL);
}

/// A mapped descriptor of eight floats, which count from 100.
struct Mapped {
  Mapped() : fd(memfd_create("qaic-shapes", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd, 64), 0);
    std::vector<float> values(8);
    std::iota(values.begin(), values.end(), 100.F);
    EXPECT_EQ(pwrite(fd, values.data(), 32, 0), 32);
  }
  ~Mapped() { close(fd); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  QBuffer first(std::size_t floats) const {
    return {floats * sizeof(float), nullptr, static_cast<std::uint64_t>(fd), 0,
            QBUFFER_TYPE_DMABUF};
  }
  const int fd;
};

/// The buffer stayed bound, and was too small for the larger one: nothing could be set.
TEST(QaicShapes, ADescriptorThatIsTooSmallMayBeLeftOutInALargerSpecialization) {
  const ShapeBench bench({4, 8});
  const Mapped file;
  const Tensors four(4);
  const Tensors eight(4, 8);
  const auto give = [&](const Tensors& t, const QBuffer& cache, std::uint32_t n, bool left_out) {
    return bench.set(
        {t.buffers[0], cache, t.buffers[2], t.buffers[3]},
        {{1, n}, left_out ? std::vector<std::uint32_t>{0} : std::vector{1U, n}, {1, n}, {1, n}});
  };
  ASSERT_EQ(give(four, file.first(4), 4, false), QS_SUCCESS) << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_EQ(four.values[3], (std::vector<float>{100, 101, 102, 103}));
  ASSERT_EQ(give(eight, {}, 8, true), QS_SUCCESS) << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_EQ(eight.values[3], std::vector<float>(8));
  // One that is large enough stays.
  ASSERT_EQ(give(eight, file.first(8), 8, false), QS_SUCCESS) << text();
  ASSERT_EQ(give(four, {}, 4, true), QS_SUCCESS) << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_EQ(four.values[3], (std::vector<float>{100, 101, 102, 103}));
}

/// What stayed bound did not count as left out: the earlier list brought its buffer back.
TEST(QaicShapes, WhatIsLeftOutStaysSoWhereOthersAreSet) {
  const ShapeBench bench({4});
  const Mapped file;
  Tensors t(4);
  t.values[1] = {1, 1, 1, 1};
  ASSERT_EQ(bench.set({t.buffers[0], file.first(4), t.buffers[2], t.buffers[3]}), QS_SUCCESS);
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  ASSERT_EQ(bench.set(t.buffers, {{1, 4}, {0}, {1, 4}, {1, 4}}), QS_SUCCESS) << text();
  std::vector<float> other{9, 8, 7, 6};
  const QBuffer given = whole(other);
  const std::uint32_t first = 0;
  ASSERT_EQ(
      qaicExecObjSetDataWithSlices(bench.object, 1, &first, &given, nullptr, nullptr, 0, nullptr),
      QS_SUCCESS)
      << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_EQ(t.values[2], other);
  EXPECT_EQ(t.values[3], (std::vector<float>{100, 101, 102, 103}));
}

}  // namespace
}  // namespace corelane::qaic::test
