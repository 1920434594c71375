// Different copies are made at the same time, equal ones once. The log line of each copy that the
// engine is about to make is the gate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "corelane/base/log.h"
#include "drivers/virtual/common/heap_growth.h"
#include "drivers/virtual/test_programs.h"

namespace corelane::drivers::virtual_npu {
namespace {

using ::testing::HasSubstr;

/// Calls `gate` where the engine is about to compile or import a copy, in the thread that does.
class CompileGate {
 public:
  explicit CompileGate(std::function<void()> gate) : level_(log::level()) {
    log::set_level(log::Level::kDebug);
    log::set_callback(
        [call = std::move(gate)](log::Level, std::string_view, std::string_view text) {
          if (text.starts_with("compiling a copy") || text.starts_with("importing a copy")) call();
        });
  }
  ~CompileGate() {
    log::set_callback({});
    log::set_level(level_);
  }
  CompileGate(const CompileGate&) = delete;
  CompileGate& operator=(const CompileGate&) = delete;

 private:
  log::Level level_;
};

TEST(VirtualCompile, TwoProgramsCompileAtTheSameTime) {
  std::barrier both(2);  // Neither compiles before both are about to.
  const CompileGate gate([&] { both.arrive_and_wait(); });
  std::jthread other([] { EXPECT_TRUE(prepare(onnx_image(matmul_network(1)), {}, 1)); });
  EXPECT_TRUE(prepare(onnx_image(relu_network()), {}, 1));
}

TEST(VirtualCompile, TwoCopiesOfOneProgramAreMadeAtTheSameTime) {
  const auto program = prepare(onnx_image(matmul_network(1)));
  std::barrier both(2);
  const CompileGate gate([&] { both.arrive_and_wait(); });
  std::jthread other([&] { EXPECT_TRUE(program->new_request(1, 1)); });
  EXPECT_TRUE(program->new_request(1, 2));
}

TEST(VirtualCompile, CopyThatTwoThreadsAskForIsMadeOnce) {
  const auto program = prepare(onnx_image(matmul_network(1)));
  std::atomic<int> made{0};
  std::barrier begun(2);
  std::barrier go(2);
  const CompileGate gate([&] {
    ++made;
    begun.arrive_and_wait();
    go.arrive_and_wait();
  });
  std::jthread first([&] { EXPECT_TRUE(program->new_request(1, 1)); });
  begun.arrive_and_wait();
  std::jthread second([&] { EXPECT_TRUE(program->new_request(1, 1)); });
  program->memory();  // Does not wait for the copy.
  go.arrive_and_wait();
  first.join();
  second.join();
  EXPECT_EQ(made, 1);
}

/// `nodes` between an input x of fixed sizes and an output y.
Status refusal_of(const std::vector<std::int64_t>& dims,
                  const std::function<void(NetworkBuilder&)>& nodes) {
  NetworkBuilder network;
  network.input("x", dims).output("y", {-1, -1});
  nodes(network);
  const auto program = make_virtual_engine(kLanes, false)->prepare(onnx_image(network.bytes()), {});
  return program ? Status() : program.error();
}

/// Gather ended the process while it was compiled, Transpose made [1, 1] of [1, 0].
TEST(VirtualCompile, InputsWithoutElementsAreRefusedByName) {
  const auto relu = [](NetworkBuilder& n) { n.node("Relu", {"x"}, {"y"}); };
  EXPECT_TRUE(refusal_of({2, 4}, relu).ok());
  EXPECT_TRUE(refusal_of({-1, 4}, relu).ok());
  const Status status = refusal_of({0, 4}, relu);
  EXPECT_EQ(status.code(), Code::kUnsupportedModel);
  EXPECT_THAT(status.message(), HasSubstr("'x' has no elements ([0, 4])"));
  EXPECT_EQ(status.detail(Detail::kInput), "x");
}

TEST(VirtualCompile, InputsWithoutElementsThatComeWithTheShapesAreRefused) {
  device::PrepareOptions options;
  options.input_shapes = {Shape{0, 4}};
  const auto program = make_virtual_engine(kLanes, false)
                           ->prepare(onnx_image(NetworkBuilder()
                                                    .input("x", {-1, 4})
                                                    .output("y", {-1, 4})
                                                    .node("Relu", {"x"}, {"y"})
                                                    .bytes()),
                                     options);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kUnsupportedModel);
}

/// ONNX Runtime has none.
TEST(VirtualCompile, TheLargestOfNoBoolsIsComputed) {
  constexpr std::int64_t kOnnxBool = 9;
  const auto program =
      prepare(onnx_image(NetworkBuilder()
                             .input("x", {2, 0}, kOnnxBool)
                             .constant("axis", {1}, kOnnxInt64, std::string("\1\0\0\0\0\0\0\0", 8))
                             .node("ReduceMax", {"x", "axis"}, {"y"})
                             .output("y", {2, 1}, kOnnxBool)
                             .bytes(20)));
  ASSERT_TRUE(program);
  const auto r = request(*program);
  bool none = false;
  ASSERT_TRUE(r->set_input(0, {&none, 0, Shape{2, 0}, nullptr}).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(std::string_view(static_cast<const char*>(r->output(0)->data), 2),
            std::string_view("\0\0", 2));
}

TEST(VirtualCompile, ValuesWithoutElementsAreNotTransposed) {
  const auto transposed = [](NetworkBuilder& n) {
    n.constant("at", {1}, kOnnxInt64, std::string(8, '\0'));
    n.node("Slice", {"x", "at", "at"}, {"nothing"});
    n.node("Transpose", {"nothing"}, {"y"}, "turn",
           {NetworkBuilder::ints_attribute("perm", {1, 0})});
  };
  for (const std::int64_t columns : {1, -1}) {
    const Status status = refusal_of({2, columns}, transposed);
    EXPECT_EQ(status.code(), Code::kUnsupportedModel) << columns;
    EXPECT_THAT(status.message(), HasSubstr("Transpose"));
  }
}

TEST(HeapGrowth, SharesOfWhatIsMeasuredAtTheSameTimeAddUp) {
  constexpr std::size_t kBytes = std::size_t{1} << 22;
  const HeapGrowth whole;
  const std::size_t before = heap_bytes();
  std::size_t one = 0;
  std::unique_ptr<char[]> first;
  std::unique_ptr<char[]> second;
  {
    const HeapGrowth alone;
    first = std::make_unique<char[]>(kBytes);
    one = alone.bytes();
  }
  second = std::make_unique<char[]>(kBytes);
  if (heap_bytes() == before) GTEST_SKIP() << "this build has a heap of its own";
  EXPECT_NEAR(static_cast<double>(one), kBytes / 2.0, kBytes / 16.0);
  EXPECT_NEAR(static_cast<double>(whole.bytes()), kBytes * 1.5, kBytes / 16.0);
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
