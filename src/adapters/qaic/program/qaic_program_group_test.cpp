// Groups of programs by the C functions: turns, shares, waits, and their end.
#include <array>
#include <deque>
#include <future>
#include <limits>
#include <thread>

#include "adapters/qaic/testing/qaic_bench.h"
#include "device/registry/testing/listed_faults.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

ImportOptions eight_cores() {
  ImportOptions options;
  options.cores = 8;
  return options;
}

/// A group on a device of 16 cores whose jobs take 1 ms; its programs want 8 cores each.
struct GroupBench : Bench {
  explicit GroupBench(const QAicProgramGroupProperties* properties = nullptr,
                      std::shared_ptr<device::FaultPoint> faults = nullptr,
                      const std::string& device_text = "null:generic:16?a=1ms")
      : Bench(device_text, std::move(faults), true, one_in_one_out(), eight_cores()) {
    EXPECT_EQ(qaicCreateProgramGroup(context, &group, &queue, properties, "group", 0), QS_SUCCESS)
        << text();
  }
  ~GroupBench() {
    if (group != nullptr) EXPECT_EQ(qaicReleaseProgramGroup(group), QS_SUCCESS) << text();
  }
  QAicProgram* add() const { return add(qpc); }
  QAicProgram* add(QAicQpcObj* of) const {
    QAicProgram* made = nullptr;
    EXPECT_EQ(qaicProgramGroupAddProgram(group, of, &made, nullptr), QS_SUCCESS) << text();
    return made;
  }
  QAicProgramTurnFigures figures(QAicProgram* of) const {
    QAicProgramTurnFigures found;
    EXPECT_EQ(qaicGetFunctionTable()->qaicProgramGetTurnFigures(of, &found), QS_SUCCESS) << text();
    return found;
  }
  QStatus set_turn(QAicProgram* of, const QAicProgramGroupTurn& turn) const {
    return qaicGetFunctionTable()->qaicProgramGroupSetTurn(group, of, &turn);
  }
  QAicProgramGroup* group = nullptr;
  QAicQueue* queue = nullptr;
};

/// An execution object of a program, with its buffers and an event.
struct Runner {
  Runner(const GroupBench& of, QAicProgram* program)
      : bench(of), exec(of.exec(program)), event(of.event()) {
    EXPECT_EQ(tensors.give(exec), QS_SUCCESS) << text();
  }
  ~Runner() {
    EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseEvent(event), QS_SUCCESS);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  QStatus enqueue() const { return qaicEnqueueExecObj(bench.queue, exec, event); }
  /// Runs it again whenever it has ended, until `stopped`.
  void repeat() {
    EXPECT_EQ(qaicEventAddCallback(event, &Runner::again, this), QS_SUCCESS);
    EXPECT_EQ(enqueue(), QS_SUCCESS) << text();
  }
  static void again(QAicEvent*, QAicEventCompletionType, void* self) {
    auto& runner = *static_cast<Runner*>(self);
    ++runner.runs;
    if (!runner.stopped) EXPECT_EQ(runner.enqueue(), QS_SUCCESS) << text();
  }
  QStatus wait() const { return qaicExecObjWaitForCompletion(exec, 0); }

  const GroupBench& bench;
  const Tensors tensors;
  QAicExecObj* exec;
  QAicEvent* event;
  bool stopped = false;
  int runs = 0;
};

/// Programs that have more work than they get, for a time.
void run_busy(const GroupBench& bench, const std::vector<QAicProgram*>& programs, Duration time) {
  std::deque<Runner> runners;
  for (QAicProgram* program : programs)
    for (int i = 0; i < 4; ++i) runners.emplace_back(bench, program).repeat();
  for (Duration passed{}; passed < time; passed += milliseconds(1)) bench.advance(milliseconds(1));
  for (Runner& runner : runners) runner.stopped = true;
  bench.clock->run_all();
}

TEST(QaicProgramGroup, CoreTimeIsSharedByWeight) {
  const GroupBench bench;
  const std::array<double, 3> weights{1, 2, 2};
  std::vector<QAicProgram*> programs;
  for (const double weight : weights) {
    programs.push_back(bench.add());
    EXPECT_EQ(bench.set_turn(programs.back(), {0, 1, 0, weight}), QS_SUCCESS) << text();
  }
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  EXPECT_EQ(bench.free_cores(), 0);
  run_busy(bench, programs, seconds(10));
  double whole = 0;
  for (QAicProgram* program : programs)
    whole += static_cast<double>(bench.figures(program).servedNs);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double share = static_cast<double>(bench.figures(programs[i]).servedNs) / whole;
    EXPECT_NEAR(share, weights[i] / 5, 0.05 * weights[i] / 5) << "program " << i;
    EXPECT_GT(bench.figures(programs[i]).turns, 1U);
  }
}

TEST(QaicProgramGroup, PrioritiesAreKeptAndTheLowestWaitsNoLongerThanTheBound) {
  const GroupBench bench;
  std::vector<QAicProgram*> programs;
  for (const int priority : {2, 1, 0}) {
    programs.push_back(bench.add());
    EXPECT_EQ(bench.set_turn(programs.back(), {priority, 1, 0, 1}), QS_SUCCESS) << text();
  }
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  run_busy(bench, programs, seconds(10));
  const auto high = bench.figures(programs[0]);
  const auto low = bench.figures(programs[2]);
  EXPECT_GT(high.servedNs, 10 * low.servedNs);
  EXPECT_GE(low.turns, 10U) << "it does not starve";
  // TurnGroup: longest_wait, and one slice with its jobs in flight of each other one.
  EXPECT_LE(low.longestWaitNs, 500'000'000U + 2 * (10'000'000U + 2 * 1'000'000U));
}

/// A container of a network that no other one is.
struct OwnNetwork {
  explicit OwnNetwork(int number) {
    const std::vector<OnnxBuilder::Dim> dims{std::int64_t{1}, std::int64_t{4}};
    const std::string y = "y" + std::to_string(number);
    CompileOptions compile;
    compile.import = eight_cores();
    bytes = *compile_bytes(
        as_byte_span(
            OnnxBuilder().input("x", dims).output(y, dims).node("Relu", {"x"}, {y}).build("net")),
        compile);
    EXPECT_EQ(
        qaicOpenQpc(&qpc, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), false),
        QS_SUCCESS)
        << text();
  }
  ~OwnNetwork() { EXPECT_EQ(qaicCloseQpc(qpc), QS_SUCCESS); }
  OwnNetwork(const OwnNetwork&) = delete;
  OwnNetwork& operator=(const OwnNetwork&) = delete;
  ByteVector bytes;
  QAicQpcObj* qpc = nullptr;
};

TEST(QaicProgramGroup, TheMeasuredCostOfAChangeIsThatOfTheDevicesScript) {
  for (const int us : {0, 250, 3000}) {
    const GroupBench bench(nullptr, nullptr,
                           "null:generic:16?a=1ms&switch=" + std::to_string(us) + "us");
    std::deque<OwnNetwork> networks;
    std::vector<QAicProgram*> programs;
    for (int i = 0; i < 3; ++i) programs.push_back(bench.add(networks.emplace_back(i).qpc));
    ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
    run_busy(bench, programs, seconds(1));
    const auto cost = static_cast<std::uint64_t>(us) * 1000;
    for (QAicProgram* const program : programs) {
      const auto found = bench.figures(program);
      EXPECT_GE(found.turns, 10U);
      EXPECT_GE(found.switches, found.turns - 1) << "but for the first one on cores of nobody";
      EXPECT_EQ(found.switchLastNs, cost) << us;
      EXPECT_EQ(found.switchLongestNs, cost) << us;
      EXPECT_EQ(found.switchTotalNs, found.switches * cost) << us;
    }
  }
}

TEST(QaicProgramGroup, ProgramsThatFitSideBySideDoNotWaitForEachOther) {
  const GroupBench bench;
  std::deque<Runner> runners;
  for (int i = 0; i < 2; ++i) runners.emplace_back(bench, bench.add());
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  for (const Runner& runner : runners) ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << text();
  bench.advance(milliseconds(1));
  for (const Runner& runner : runners)
    EXPECT_EQ(qaicExecObjWaitForCompletion(runner.exec, 1), QS_SUCCESS) << "the time of one";
}

TEST(QaicProgramGroup, ATurnBeginsAfterTheTimeout) {
  const GroupBench bench;
  QAicProgram* program = bench.add();
  ASSERT_EQ(bench.set_turn(program, {0, 3, 50'000, 1}), QS_SUCCESS) << text();
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  const Runner runner(bench, program);
  ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << text();
  bench.advance(milliseconds(49));
  EXPECT_EQ(bench.figures(program).turns, 0U);
  bench.advance(milliseconds(2));
  EXPECT_EQ(runner.wait(), QS_SUCCESS) << text();
  EXPECT_EQ(bench.figures(program).turns, 1U);
  EXPECT_EQ(bench.figures(program).longestWaitNs, 0U) << "it asks after 50 ms, and has it at once";
}

TEST(QaicProgramGroup, ATurnBeginsWithAsManyInferencesAsTheThreshold) {
  const GroupBench bench;
  QAicProgram* program = bench.add();
  ASSERT_EQ(bench.set_turn(program, {0, 3, 50'000, 1}), QS_SUCCESS) << text();
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  std::deque<Runner> runners;
  for (int i = 0; i < 3; ++i) runners.emplace_back(bench, program);
  ASSERT_EQ(runners[0].enqueue(), QS_SUCCESS) << text();
  ASSERT_EQ(runners[1].enqueue(), QS_SUCCESS) << text();
  bench.advance(milliseconds(5));
  EXPECT_EQ(bench.figures(program).turns, 0U);
  ASSERT_EQ(runners[2].enqueue(), QS_SUCCESS) << text();
  bench.advance(milliseconds(3));
  for (const Runner& runner : runners) EXPECT_EQ(runner.wait(), QS_SUCCESS) << text();
  EXPECT_EQ(bench.figures(program).turns, 1U);
}

TEST(QaicProgramGroup, WithoutOversubscriptionEachHoldsItsCoresOrNothingIsHeld) {
  const QAicProgramGroupProperties properties{
      QAIC_PROGRAM_GROUP_PROTOCOL_DATA_PATH,
      QAIC_PROGRAM_GROUP_PROPERTIES_OVERSUBSCRIPTION_DISABLED};
  const GroupBench bench(&properties);
  QAicProgram* first = bench.add();
  bench.add();
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  EXPECT_EQ(bench.free_cores(), 0);
  const Runner runner(bench, first);
  ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << text();
  bench.advance(milliseconds(1));
  EXPECT_EQ(runner.wait(), QS_SUCCESS);
  EXPECT_EQ(bench.figures(first).turns, 0U);
  QAicProgram* third = nullptr;
  EXPECT_EQ(qaicProgramGroupAddProgram(bench.group, bench.qpc, &third, nullptr), QS_BUSY);
  ASSERT_EQ(qaicProgramGroupDisable(bench.group, true, 0), QS_SUCCESS) << text();
  EXPECT_EQ(bench.free_cores(), 16);
  third = bench.add();
  EXPECT_EQ(qaicProgramGroupEnable(bench.group), QS_NOSPC);
  EXPECT_EQ(bench.free_cores(), 16) << "all or none";
  EXPECT_EQ(bench.info(first).status, QAIC_PROGRAM_LOADED);
}

TEST(QaicProgramGroup, OnlyTheGroupActivatesItsPrograms) {
  const GroupBench bench;
  EXPECT_EQ(qaicProgramGroupEnable(bench.group), QS_INVAL) << "it has none";
  QAicProgram* program = bench.add();
  EXPECT_EQ(qaicRunActivationCmd(program, QAIC_PROGRAM_CMD_ACTIVATE_FULL), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("'group'"));
  const Runner runner(bench, program);
  EXPECT_EQ(runner.enqueue(), QS_INVAL) << "though the object has AUTO_LOAD_ACTIVATE";
  EXPECT_THAT(text(), HasSubstr("enable the group"));
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  EXPECT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << "nothing where it is enabled";
  EXPECT_EQ(qaicRunActivationCmd(program, QAIC_PROGRAM_CMD_DEACTIVATE_FULL), QS_INVAL);
  ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << text();
  bench.advance(milliseconds(1));
  EXPECT_EQ(runner.wait(), QS_SUCCESS);
  ASSERT_EQ(qaicProgramGroupDisable(bench.group, false, 0), QS_SUCCESS) << text();
  EXPECT_EQ(runner.enqueue(), QS_INVAL);
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << "the object binds its buffers anew: " << text();
  bench.advance(milliseconds(1));
  EXPECT_EQ(runner.wait(), QS_SUCCESS);
}

TEST(QaicProgramGroup, DisablingWaitsForWhatIsInFlightOrStaysEnabled) {
  const GroupBench bench;
  QAicProgram* program = bench.add();
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  const Runner runner(bench, program);
  ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << text();
  QStatus ended = QS_SUCCESS;
  std::thread disabling([&] { ended = qaicProgramGroupDisable(bench.group, true, 50); });
  bench.clock->await(1);
  EXPECT_EQ(qaicProgramGroupEnable(bench.group), QS_BUSY) << "one thread at a time";
  bench.advance(std::chrono::microseconds(50));
  disabling.join();
  EXPECT_EQ(ended, QS_TIMEDOUT);
  const Runner another(bench, program);
  ASSERT_EQ(another.enqueue(), QS_SUCCESS) << "it stays enabled: " << text();
  disabling = std::thread([&] { ended = qaicProgramGroupDisable(bench.group, true, 1'000'000); });
  bench.clock->await(1);
  bench.clock->run_all();
  disabling.join();
  EXPECT_EQ(ended, QS_SUCCESS) << text();
  EXPECT_EQ(runner.wait(), QS_SUCCESS);
  EXPECT_EQ(another.wait(), QS_SUCCESS);
  EXPECT_EQ(bench.free_cores(), 16);
}

TEST(QaicProgramGroup, DisablingWithoutWaitingEndsWhatWaitsForATurn) {
  const GroupBench bench;
  std::deque<Runner> runners;
  for (int i = 0; i < 3; ++i) runners.emplace_back(bench, bench.add());
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  for (const Runner& runner : runners) ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << text();
  ASSERT_EQ(qaicProgramGroupDisable(bench.group, false, 0), QS_SUCCESS) << text();
  EXPECT_EQ(runners[1].wait(), QS_ERROR) << "the first one has the turn";
  EXPECT_EQ(runners[2].wait(), QS_ERROR);
  bench.advance(milliseconds(1));
  EXPECT_EQ(runners[0].wait(), QS_SUCCESS);
  EXPECT_EQ(bench.free_cores(), 16);
}

TEST(QaicProgramGroup, ReleasingItEndsItsProgramsAndItsQueue) {
  GroupBench bench;
  QAicProgram* program = bench.add();
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  const Runner runner(bench, program);
  ASSERT_EQ(qaicReleaseProgramGroup(std::exchange(bench.group, nullptr)), QS_SUCCESS) << text();
  EXPECT_EQ(bench.free_cores(), 16);
  EXPECT_EQ(qaicLoadProgram(program), QS_INVAL);
  EXPECT_EQ(qaicReleaseQueue(bench.queue), QS_INVAL);
  EXPECT_EQ(runner.enqueue(), QS_INVAL);
}

TEST(QaicProgramGroup, ReleasingItEndsADisablingThatWaits) {
  GroupBench bench;
  QAicProgram* program = bench.add();
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  const Runner runner(bench, program);
  ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << text();
  auto disabling = std::async(
      std::launch::async, [&] { return qaicProgramGroupDisable(bench.group, true, 60'000'000); });
  bench.clock->await(1);
  ASSERT_EQ(qaicReleaseProgramGroup(bench.group), QS_SUCCESS) << text();
  EXPECT_EQ(disabling.get(), QS_ERROR);
  bench.group = nullptr;
  bench.advance(milliseconds(1));
  EXPECT_EQ(runner.wait(), QS_SUCCESS) << "what runs goes on";
  EXPECT_EQ(bench.free_cores(), 16);
}

TEST(QaicProgramGroup, IsEnabledBesideAProgramThatHoldsCores) {
  const GroupBench bench;
  QAicProgram* const other = bench.program();
  ASSERT_EQ(qaicRunActivationCmd(other, QAIC_PROGRAM_CMD_ACTIVATE_FULL), QS_SUCCESS) << text();
  QAicProgram* const first = bench.add();
  QAicProgram* const second = bench.add();
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  for (QAicProgram* const program : {first, second}) {
    const Runner runner(bench, program);
    ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << text();
    bench.advance(milliseconds(1));
    EXPECT_EQ(runner.wait(), QS_SUCCESS);
  }
  ASSERT_EQ(qaicProgramGroupDisable(bench.group, true, 0), QS_SUCCESS) << text();
  EXPECT_EQ(qaicReleaseProgram(other), QS_SUCCESS);
}

TEST(QaicProgramGroup, WrongArgumentsAreNamedAndChangeNothing) {
  const GroupBench bench;
  QAicProgram* program = bench.add();
  QAicProgram* stranger = bench.program();
  EXPECT_EQ(bench.set_turn(stranger, {}), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("not of the group 'group'"));
  const std::vector<std::pair<QAicProgramGroupTurn, const char*>> wrong{
      {{200, 1, 0, 1}, "-128 to 127"},
      {{0, 0, 0, 1}, "threshold is 0"},
      {{0, 2, 0, 1}, "more with a timeout"},
      {{0, 1, UINT64_MAX, 1}, "at most"},
      {{0, 1, 0, 0}, "above 0"},
      {{0, 1, 0, std::numeric_limits<double>::quiet_NaN()}, "above 0"}};
  for (const auto& [turn, why] : wrong) {
    EXPECT_EQ(bench.set_turn(program, turn), QS_INVAL);
    EXPECT_THAT(text(), HasSubstr(why));
  }
  QAicProgramGroup* group = nullptr;
  QAicQueue* queue = nullptr;
  QAicProgramGroupProperties properties;
  properties.protocolSelect = static_cast<QAicProgramGroupPropertiesProtocol>(7);
  EXPECT_EQ(qaicCreateProgramGroup(bench.context, &group, &queue, &properties, "g", 0), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("protocolSelect is 7"));
  EXPECT_EQ(qaicCreateProgramGroup(bench.context, &group, &queue, nullptr, "g", 9), QS_NODEV);
  EXPECT_EQ(qaicCreateProgramGroup(bench.context, nullptr, &queue, nullptr, "g", 0), QS_INVAL);
  EXPECT_EQ(qaicCreateProgramGroup(bench.context, &group, nullptr, nullptr, "g", 0), QS_INVAL);
  EXPECT_EQ(qaicProgramGroupAddProgram(bench.group, bench.qpc, nullptr, nullptr), QS_INVAL);
  EXPECT_EQ(qaicProgramGroupPropertiesInitDefault(nullptr), QS_INVAL);
  EXPECT_EQ(qaicReleaseProgram(stranger), QS_SUCCESS);
  EXPECT_EQ(group, nullptr);
}

TEST(QaicProgramGroup, AfterALossItIsDisabledAndEnabledAgain) {
  const GroupBench bench(nullptr,
                         std::make_shared<device::ListedFaults>(std::vector{device::Fault::kLost}));
  QAicProgram* program = bench.add();
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  const Runner runner(bench, program);
  ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << text();
  bench.advance(milliseconds(1));
  EXPECT_EQ(runner.wait(), QS_DEV_ERROR);
  bench.clock->run_all();
  EXPECT_EQ(qaicProgramGroupEnable(bench.group), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("disable the group before it is enabled again"));
  ASSERT_EQ(qaicProgramGroupDisable(bench.group, true, 0), QS_SUCCESS) << text();
  ASSERT_EQ(qaicProgramGroupEnable(bench.group), QS_SUCCESS) << text();
  ASSERT_EQ(runner.enqueue(), QS_SUCCESS) << text();
  bench.advance(milliseconds(1));
  EXPECT_EQ(runner.wait(), QS_SUCCESS);
}

}  // namespace
}  // namespace corelane::qaic::test
