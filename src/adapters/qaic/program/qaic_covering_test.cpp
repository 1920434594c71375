// Dimensions that are of no specialization, in the smallest one that covers them.
#include "adapters/qaic/program/qaic_padding.h"
#include "adapters/qaic/testing/qaic_bench.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;
using AllDims = std::vector<std::vector<std::uint32_t>>;

TEST(QaicPadding, ABoxGoesIntoTheCornerAndComesBack) {
  Padding padding(Box{{2, 3, 4}, {0, 0, 0}, {1, 2, 3}, 1});
  const std::vector<std::uint8_t> user{1, 2, 3, 4, 5, 6};
  padding.put(user.data());
  EXPECT_THAT(padding.memory, ElementsAre(1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0, 0,  //
                                          0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  std::vector<std::uint8_t> back(6);
  padding.cut(back.data());
  EXPECT_EQ(back, user);
  Padding scalar(Box{{}, {}, {}, 2});
  scalar.put(user.data());
  EXPECT_THAT(scalar.memory, ElementsAre(1, 2));
  Padding none(Box{{4}, {0}, {0}, 4});
  none.put(nullptr);
  EXPECT_EQ(none.memory.size(), 16U);
}

/// "ids" -> "logits", "cache" -> "kept" of [1, n] for n 4, 8 and 16, copied by the null device.
struct CoverBench : Bench {
  CoverBench() : Bench("null:generic:2?a=1ms", nullptr, true, with_cache(), sets()) {}
  static ImportOptions sets() {
    ImportOptions options = cache_options({16, 4, 8});
    options.partial_inputs.clear();
    return options;
  }
  static std::vector<QBufferDimensions> raw(AllDims& dims) {
    std::vector<QBufferDimensions> all;
    for (auto& one : dims) all.push_back({static_cast<std::uint32_t>(one.size()), 4, one.data()});
    return all;
  }
};

TEST(QaicCovering, TheSmallestOneThatCoversRuns) {
  const CoverBench bench;
  QAicProgram* const net = bench.program();
  QAicExecObj* const object = bench.exec(net);
  Floats ids{1, 2, 3, 4, 5};
  Floats cache{6, 7, 8, 9, 10};
  Floats logits(5, -1);
  Floats kept(5, -1);
  const std::vector<QBuffer> buffers{whole(ids), whole(cache), whole(logits), whole(kept)};
  AllDims dims(4, {1, 5});
  const auto all = CoverBench::raw(dims);
  const auto set = [&] { return qaicExecObjSetDataExt(object, 4, buffers.data(), all.data()); };
  EXPECT_EQ(set(), QS_INVAL) << "off at first";
  ASSERT_EQ(qaicExecObjSetCovering(object, true), QS_SUCCESS);
  ASSERT_EQ(set(), QS_SUCCESS) << text();
  std::uint32_t ran = 9;
  ASSERT_EQ(qaicExecObjGetSpecialization(object, &ran), QS_SUCCESS);
  EXPECT_EQ(ran, 2U) << "of [1, 8], the third one";
  QAicQueue* const sender = bench.queue();
  const auto run = [&] {
    EXPECT_EQ(qaicEnqueueExecObj(sender, object, nullptr), QS_SUCCESS) << text();
    bench.advance(milliseconds(1));
    return qaicExecObjWaitForCompletion(object, 0);
  };
  ASSERT_EQ(run(), QS_SUCCESS) << text();
  EXPECT_EQ(logits, ids);
  EXPECT_EQ(kept, cache);
  ids[4] = 50;
  ASSERT_EQ(run(), QS_SUCCESS) << "read anew at each inference";
  EXPECT_EQ(logits, ids);
  // One that is exactly there needs no padding.
  for (auto& one : dims) one = {1, 4};
  std::vector<QBuffer> four = buffers;
  for (QBuffer& buffer : four) buffer.size = 16;
  const auto exact = CoverBench::raw(dims);
  ASSERT_EQ(qaicExecObjSetDataExt(object, 4, four.data(), exact.data()), QS_SUCCESS) << text();
  ASSERT_EQ(qaicExecObjGetSpecialization(object, &ran), QS_SUCCESS);
  EXPECT_EQ(ran, 1U);
  // None covers 17, and a size has to be that of the dimensions.
  for (auto& one : dims) one = {1, 17};
  const auto large = CoverBench::raw(dims);
  EXPECT_EQ(qaicExecObjSetDataExt(object, 4, buffers.data(), large.data()), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("no specialization covers these dimensions either"));
  for (auto& one : dims) one = {1, 6};
  const auto six = CoverBench::raw(dims);
  EXPECT_EQ(qaicExecObjSetDataExt(object, 4, buffers.data(), six.data()), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("has 20 bytes, and 24 by its dimensions [1, 6]"));
  EXPECT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(sender), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
}

TEST(QaicCovering, AHandleOfASetCutsItsResultsWhenItIsCollected) {
  const CoverBench bench;
  QAicInferenceSet* const set = bench.set(2);
  Floats ids{1, 2, 3};
  Floats cache{6, 7, 8};
  Floats logits(3, -1);
  Floats kept(3, -1);
  const std::vector<QBuffer> buffers{whole(ids), whole(cache), whole(logits), whole(kept)};
  AllDims dims(4, {1, 3});
  const auto all = CoverBench::raw(dims);
  EXPECT_EQ(qaicInferenceSetSetData(set, 1, 4, buffers.data(), all.data()), QS_INVAL);
  ASSERT_EQ(qaicInferenceSetSetCovering(set, 1, true), QS_SUCCESS) << text();
  ASSERT_EQ(qaicInferenceSetSetData(set, 1, 4, buffers.data(), all.data()), QS_SUCCESS) << text();
  ASSERT_EQ(qaicInferenceSetSubmit(set, 1, 5), QS_SUCCESS) << text();
  EXPECT_EQ(qaicInferenceSetSetCovering(set, 1, false), QS_BUSY);
  bench.advance(milliseconds(1));
  std::uint32_t done = 9;
  ASSERT_EQ(qaicInferenceSetGetCompletedId(set, 5, 0, &done), QS_SUCCESS) << text();
  EXPECT_EQ(logits, ids);
  EXPECT_EQ(kept, cache);
  std::uint32_t ran = 9;
  ASSERT_EQ(qaicInferenceSetGetSpecialization(set, 1, &ran), QS_SUCCESS);
  EXPECT_EQ(ran, 1U);
  EXPECT_EQ(qaicInferenceSetSetCovering(set, 7, true), QS_INVAL);
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

/// The others' dimensions were forgotten, so that no specialization fitted.
TEST(QaicCovering, WhereSomeBuffersAreSetTheDimensionsOfAllStay) {
  const CoverBench bench;
  QAicProgram* const net = bench.program();
  QAicExecObj* const object = bench.exec(net);
  Floats ids{1, 2, 3};
  Floats later{7, 8, 9};
  Floats cache{4, 5, 6};
  Floats logits(3, -1);
  Floats kept(3, -1);
  const std::vector<QBuffer> buffers{whole(ids), whole(cache), whole(logits), whole(kept)};
  AllDims dims(4, {1, 3});
  const auto all = CoverBench::raw(dims);
  ASSERT_EQ(qaicExecObjSetCovering(object, true), QS_SUCCESS);
  ASSERT_EQ(qaicExecObjSetDataExt(object, 4, buffers.data(), all.data()), QS_SUCCESS) << text();
  const auto set_first = [&](const QBuffer& buffer) {
    const std::uint32_t first = 0;
    return qaicExecObjSetDataWithSlices(object, 1, &first, &buffer, nullptr, nullptr, 0, nullptr);
  };
  Floats four(4);
  EXPECT_EQ(set_first(whole(four)), QS_INVAL) << "of other dimensions";
  ASSERT_EQ(set_first(whole(later)), QS_SUCCESS) << text();
  QAicQueue* const sender = bench.queue();
  ASSERT_EQ(qaicEnqueueExecObj(sender, object, nullptr), QS_SUCCESS) << text();
  EXPECT_EQ(qaicReleaseQueue(sender), QS_SUCCESS);
  bench.advance(milliseconds(1));
  ASSERT_EQ(qaicExecObjWaitForCompletion(object, 0), QS_SUCCESS) << text();
  EXPECT_EQ(logits, later);
  EXPECT_EQ(kept, cache);
  EXPECT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
}

/// The memory in which the device sees a padded buffer went with the object.
TEST(QaicCovering, AnObjectThatIsReleasedInFlightLeavesItsPaddingToTheInference) {
  const CoverBench bench;
  QAicProgram* const net = bench.program();
  Floats ids{1, 2, 3};
  Floats cache{4, 5, 6};
  std::vector<Floats> results(4, Floats(3, -1));
  AllDims dims(4, {1, 3});
  const auto all = CoverBench::raw(dims);
  QAicQueue* const sender = bench.queue(QAIC_QUEUE_PROPERTIES_ENABLE_SINGLE_THREADED_QUEUES);
  QAicExecObj* objects[2];
  for (std::size_t i = 0; i < 2; ++i) {
    objects[i] = bench.exec(net);
    const std::vector<QBuffer> buffers{whole(ids), whole(cache), whole(results[2 * i]),
                                       whole(results[2 * i + 1])};
    ASSERT_EQ(qaicExecObjSetCovering(objects[i], true), QS_SUCCESS);
    ASSERT_EQ(qaicExecObjSetDataExt(objects[i], 4, buffers.data(), all.data()), QS_SUCCESS);
    ASSERT_EQ(qaicEnqueueExecObj(sender, objects[i], nullptr), QS_SUCCESS) << text();
  }
  for (QAicExecObj* one : objects) EXPECT_EQ(qaicReleaseExecObj(one), QS_SUCCESS);
  bench.advance(milliseconds(2));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(results[2 * i], ids) << i;
    EXPECT_EQ(results[2 * i + 1], cache) << i;
  }
  EXPECT_EQ(qaicReleaseQueue(sender), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
}

/// Fails under the address sanitizer where the memory goes with the set.
TEST(QaicCovering, ASetThatIsReleasedInFlightLeavesItsPaddingToTheInferences) {
  const CoverBench bench;
  QAicInferenceSet* const set = bench.set(4);
  const QAicApiFunctionTable& api = *qaicGetFunctionTable();
  Floats values(3, 1);
  Floats result(3, -1);
  CountedOwner owner;
  const std::vector<QBuffer> buffers{whole(values), whole(values), whole(result), whole(result)};
  AllDims dims(4, {1, 3});
  const auto all = CoverBench::raw(dims);
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(qaicInferenceSetSetCovering(set, i, true), QS_SUCCESS) << text();
    const QStatus given =
        i == 0 ? api.qaicInferenceSetSetOwnedData(set, i, 4, buffers.data(), all.data(), &owner,
                                                  &CountedOwner::release)
               : qaicInferenceSetSetData(set, i, 4, buffers.data(), all.data());
    ASSERT_EQ(given, QS_SUCCESS) << text();
    ASSERT_EQ(qaicInferenceSetSubmit(set, i, i), QS_SUCCESS) << text();
  }
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
  EXPECT_EQ(owner.releases, 0);
  bench.advance(milliseconds(8));
  EXPECT_EQ(owner.releases, 1);
}

TEST(QaicCovering, NearestMeansFewestBuffersThenSmallestDifference) {
  const CoverBench bench;
  QAicProgram* const net = bench.program();
  QAicExecObj* const object = bench.exec(net);
  Floats values(16);
  const std::vector<QBuffer> buffers(4, whole(values));
  AllDims dims(4, {1, 9});
  const auto all = CoverBench::raw(dims);
  ASSERT_EQ(qaicExecObjSetDataExt(object, 4, buffers.data(), all.data()), QS_INVAL);
  const std::string said = text();
  const std::size_t eight = said.find("ids [1, 8]");
  const std::size_t four = said.find("ids [1, 4]");
  const std::size_t sixteen = said.find("ids [1, 16]");
  EXPECT_LT(eight, four) << said;
  EXPECT_LT(four, sixteen) << said;
  EXPECT_NE(sixteen, said.npos);
  EXPECT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
}

}  // namespace
}  // namespace corelane::qaic::test
