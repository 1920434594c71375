// State that stays on the device by the C functions.
#include "adapters/qaic/testing/qaic_bench.h"
#include "device/registry/testing/listed_faults.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

/// On the null device, which copies "ids" to "logits" and "cache" to "kept": "logits" is "cache" of
/// the next inference, so "kept" is the "ids" of the one before.
ImportOptions delaying() {
  ImportOptions options;
  options.dims["n"] = 4;
  options.states = {{"logits", "cache"}};
  return options;
}

struct StateBench : Bench {
  explicit StateBench(std::shared_ptr<device::FaultPoint> faults = nullptr)
      : Bench("null:generic:4?a=1ms", std::move(faults), true, with_cache(), delaying()) {}

  /// The buffers of an inference that leaves the state on the device.
  static std::vector<QBuffer> leaving(Floats& ids, Floats& kept) {
    return {whole(ids), {}, {}, whole(kept)};
  }
};

struct StateExecBench : StateBench {
  explicit StateExecBench(std::shared_ptr<device::FaultPoint> faults = nullptr)
      : StateBench(std::move(faults)), net(program()), object(exec(net)), sender(queue()) {}
  ~StateExecBench() {
    static_cast<void>(qaicReleaseExecObj(object));
    static_cast<void>(qaicReleaseProgram(net));
    static_cast<void>(qaicReleaseQueue(sender));
  }
  QStatus run(const std::vector<QBuffer>& buffers) const {
    const QStatus set =
        qaicExecObjSetData(object, static_cast<std::uint32_t>(buffers.size()), buffers.data());
    return set == QS_SUCCESS ? run() : set;
  }
  QStatus run() const {
    const QStatus sent = qaicEnqueueExecObj(sender, object, nullptr);
    if (sent != QS_SUCCESS) return sent;
    advance(milliseconds(1));
    return qaicExecObjWaitForCompletion(object, 0);
  }
  Floats state() const {
    Floats values(4, -1);
    EXPECT_EQ(qaicExecObjCopyState(object, 0, values.data(), 16), QS_SUCCESS) << text();
    return values;
  }
  QAicProgram* net;
  QAicExecObj* object;
  QAicQueue* sender;
};

TEST(QaicStates, LeftOutBuffersStayOnTheDevice) {
  const StateExecBench bench;
  Floats ids{1, 2, 3, 4};
  Floats kept(4, -1);
  ASSERT_EQ(bench.run(StateBench::leaving(ids, kept)), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(0, 0, 0, 0)) << "zeros at first";
  ids = {5, 6, 7, 8};
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(1, 2, 3, 4)) << "what the inference before left";
  // As clients write it: dimensions of 0 for what is left out, whatever its size.
  std::vector<std::vector<std::uint32_t>> dims{{1, 4}, {0}, {0}, {1, 4}};
  std::vector<QBufferDimensions> all;
  for (auto& one : dims) all.push_back({static_cast<std::uint32_t>(one.size()), 4, one.data()});
  Floats unused(4, 9);
  const std::vector<QBuffer> buffers{whole(ids), whole(unused), whole(unused), whole(kept)};
  ASSERT_EQ(qaicExecObjSetDataExt(bench.object, 4, buffers.data(), all.data()), QS_SUCCESS);
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(unused, ElementsAre(9, 9, 9, 9)) << "nobody reads or writes it";
}

TEST(QaicStates, TheListsNameThemAsPartialBuffers) {
  const StateExecBench bench;
  QAicIoBufferInfo* found = nullptr;
  ASSERT_EQ(qaicProgramGetIoBufferInfo(bench.net, &found), QS_SUCCESS) << text();
  ASSERT_EQ(found->numBufferMappings, 4U);
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(found->bufferMappings[i].isPartialBufferAllowed, i == 1 || i == 2) << i;
  std::uint32_t count = 1;
  QAicStateInfo info;
  ASSERT_EQ(qaicExecObjGetStates(bench.object, &count, &info), QS_SUCCESS) << text();
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(info.inputIndex, 1U);
  EXPECT_EQ(info.outputIndex, 2U);
  EXPECT_EQ(info.size, 16U);
  EXPECT_TRUE(info.inputKept && info.outputKept);
  EXPECT_EQ(qaicExecObjGetStates(bench.object, nullptr, nullptr), QS_INVAL);
}

TEST(QaicStates, ItIsSetCopiedAndReset) {
  const StateExecBench bench;
  Floats ids{1, 2, 3, 4};
  Floats kept(4, -1);
  const Floats given{7, 7, 8, 8};
  ASSERT_EQ(qaicExecObjSetState(bench.object, 0, given.data(), 16), QS_SUCCESS) << text();
  EXPECT_EQ(bench.state(), given);
  ASSERT_EQ(bench.run(StateBench::leaving(ids, kept)), QS_SUCCESS) << text();
  EXPECT_EQ(kept, given);
  EXPECT_EQ(bench.state(), ids);
  for (const std::uint32_t which : {0U, QAIC_ALL_STATES}) {
    ASSERT_EQ(bench.run(), QS_SUCCESS);
    ASSERT_EQ(qaicExecObjResetState(bench.object, which), QS_SUCCESS) << text();
    EXPECT_THAT(bench.state(), ElementsAre(0, 0, 0, 0));
  }
  EXPECT_EQ(qaicExecObjCopyState(bench.object, 0, kept.data(), 12), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("the state of input 'cache' has 16 bytes, 12 are given"));
  EXPECT_EQ(qaicExecObjSetState(bench.object, 1, kept.data(), 16), QS_INVAL);
  EXPECT_EQ(qaicExecObjSetState(bench.object, 0, nullptr, 16), QS_INVAL);
}

TEST(QaicStates, WholeBuffersAreTheUsersOwn) {
  const StateExecBench bench;
  Floats ids{1, 2, 3, 4};
  Floats kept(4, -1);
  ASSERT_EQ(bench.run(StateBench::leaving(ids, kept)), QS_SUCCESS) << text();
  Floats cache{9, 9, 9, 9};
  Floats logits(4, -1);
  ASSERT_EQ(bench.run({whole(ids), whole(cache), whole(logits), whole(kept)}), QS_SUCCESS)
      << text();
  EXPECT_EQ(kept, cache);
  EXPECT_EQ(logits, ids);
  EXPECT_EQ(bench.state(), ids) << "what is kept stays as it was";
  std::uint32_t count = 1;
  QAicStateInfo info;
  ASSERT_EQ(qaicExecObjGetStates(bench.object, &count, &info), QS_SUCCESS);
  EXPECT_FALSE(info.inputKept || info.outputKept);
  QBuffer part = whole(cache);
  part.size = 8;
  EXPECT_EQ(bench.run({whole(ids), part, {}, whole(kept)}), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("'cache') has 8 bytes; 16 bytes are allowed, or none"));
}

TEST(QaicStates, AFailedInferenceLeavesTheStateBeforeIt) {
  const StateExecBench bench(std::make_shared<device::ListedFaults>(
      std::vector{device::Fault::kNone, device::Fault::kCrash}));
  Floats ids{1, 2, 3, 4};
  Floats kept(4, -1);
  ASSERT_EQ(bench.run(StateBench::leaving(ids, kept)), QS_SUCCESS) << text();
  const Floats before = bench.state();
  ids = {5, 6, 7, 8};
  EXPECT_NE(bench.run(), QS_SUCCESS);
  EXPECT_EQ(bench.state(), before);
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_EQ(kept, before) << "run again from the state before it";
  EXPECT_EQ(bench.state(), ids);
}

TEST(QaicStates, ObjectsOfOneProgramFollowEachOther) {
  const StateExecBench bench;
  QAicExecObj* const other = bench.exec(bench.net);
  Floats ids{1, 2, 3, 4};
  Floats kept(4, -1);
  const auto buffers = StateBench::leaving(ids, kept);
  ASSERT_EQ(qaicExecObjSetData(bench.object, 4, buffers.data()), QS_SUCCESS);
  ASSERT_EQ(qaicExecObjSetData(other, 4, buffers.data()), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(bench.sender, bench.object, nullptr), QS_SUCCESS) << text();
  EXPECT_EQ(qaicEnqueueExecObj(bench.sender, other, nullptr), QS_BUSY);
  EXPECT_THAT(text(), HasSubstr("is in use by another inference"));
  EXPECT_EQ(qaicExecObjResetState(other, 0), QS_BUSY);
  EXPECT_EQ(qaicExecObjResetState(bench.object, 0), QS_BUSY) << "it is in flight";
  bench.advance(milliseconds(1));
  ASSERT_EQ(qaicExecObjWaitForCompletion(bench.object, 0), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(bench.sender, other, nullptr), QS_SUCCESS) << text();
  bench.advance(milliseconds(1));
  ASSERT_EQ(qaicExecObjWaitForCompletion(other, 0), QS_SUCCESS);
  EXPECT_THAT(kept, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(qaicReleaseExecObj(other), QS_SUCCESS);
}

TEST(QaicStates, ActivationsOfASetHaveTheirOwn) {
  const StateBench bench;
  QAicInferenceSet* const set = bench.set(2, 2);
  Floats ids{1, 2, 3, 4};
  Floats kept(4, -1);
  const auto buffers = StateBench::leaving(ids, kept);
  const auto run = [&](std::uint32_t handle) {
    QStatus status = qaicInferenceSetSetData(set, handle, 4, buffers.data(), nullptr);
    if (status == QS_SUCCESS) status = qaicInferenceSetSubmit(set, handle, handle);
    if (status != QS_SUCCESS) return status;
    bench.advance(milliseconds(1));
    std::uint32_t done = 0;
    status = qaicInferenceSetGetCompletedId(set, handle, 0, &done);
    if (status == QS_SUCCESS) status = qaicInferenceSetPutCompleted(set, done);
    return status;
  };
  ASSERT_EQ(run(0), QS_SUCCESS) << text();
  ids = {5, 6, 7, 8};
  ASSERT_EQ(run(1), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(0, 0, 0, 0)) << "another activation";
  ASSERT_EQ(run(2), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(1, 2, 3, 4)) << "another handle of the first";
  Floats state(4);
  ASSERT_EQ(qaicInferenceSetCopyState(set, 0, 0, state.data(), 16), QS_SUCCESS) << text();
  EXPECT_EQ(state, ids);
  ASSERT_EQ(qaicInferenceSetResetState(set, 2, QAIC_ALL_STATES), QS_SUCCESS) << text();
  ASSERT_EQ(run(0), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(0, 0, 0, 0));
  ASSERT_EQ(qaicInferenceSetSetState(set, 1, 0, state.data(), 16), QS_SUCCESS) << text();
  ASSERT_EQ(run(1), QS_SUCCESS);
  EXPECT_EQ(kept, state);
  std::uint32_t count = 0;
  ASSERT_EQ(qaicInferenceSetGetStates(set, 0, &count, nullptr), QS_SUCCESS);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(qaicInferenceSetResetState(set, 4, 0), QS_INVAL) << "there is no such handle";
  // Two at once on one activation.
  ASSERT_EQ(qaicInferenceSetSubmit(set, 0, 10), QS_SUCCESS) << text();
  EXPECT_EQ(qaicInferenceSetResetState(set, 0, 0), QS_BUSY) << "not collected";
  EXPECT_EQ(qaicInferenceSetSubmit(set, 2, 12), QS_BUSY);
  bench.advance(milliseconds(1));
  std::uint32_t done = 0;
  EXPECT_EQ(qaicInferenceSetGetCompleted(set, 0, &done), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

}  // namespace
}  // namespace corelane::qaic::test
