// Different copies are made at the same time, equal ones once. The log line of each copy that the
// engine is about to make is the gate.
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
