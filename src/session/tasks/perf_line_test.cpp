#include "session/tasks/perf_line.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "session/testing/session_bench.h"

namespace corelane::session {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

TEST(PerfLine, TotalIsTheSumOfWhatIsPrinted) {
  const std::string line =
      perf_line({7, 1, 2, nanoseconds(1999), nanoseconds(2999), nanoseconds(3999)});
  EXPECT_EQ(line,
            "[corelane_perf] task_id=7 thread_id=1 core_id=2 set_input_us=1 infer_us=2 "
            "copy_output_us=3 total_us=6");
}

TEST(PerfLine, FourWordsSwitchItOnInAnyCase) {
  for (const char* on : {"1", "true", "ON", "Yes", "TRUE"}) EXPECT_TRUE(is_switched_on(on)) << on;
  for (const char* off : {"", "0", "false", "2", "y"}) EXPECT_FALSE(is_switched_on(off)) << off;
  EXPECT_FALSE(is_switched_on(nullptr));
}

TEST(PerfLine, TheEnvironmentIsReadWhenASessionIsMade) {
  testing::SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.print_perf.reset();
  const char* const name = "CORELANE_PRINT_PERF";
  unsetenv(name);
  EXPECT_FALSE(*bench.session(options).options().print_perf);
  setenv(name, "Yes", 1);
  EXPECT_TRUE(*bench.session(options).options().print_perf);
  unsetenv(name);
}

TEST(PerfLine, EveryTaskHasOneAndFailedOnesToo) {
  testing::SessionBench bench("null:rk3588?fail=3");
  std::vector<std::string> lines;
  SessionOptions options = bench.options();
  options.print_perf = true;
  options.perf_sink = [&](std::string_view line) { lines.emplace_back(line); };
  options.schedule = {0, 2};
  Session session = bench.session(options);
  for (int i = 0; i < 6; ++i) static_cast<void>(session.run(testing::feed_of(bench.x)));
  testing::CallbackLog log;
  ASSERT_TRUE(session.run_async(testing::feed_of(bench.x), log.callback(bench)));
  session.wait_callbacks();
  ASSERT_EQ(lines.size(), 7U);
  const std::regex form(
      R"(\[corelane_perf\] task_id=(\d+) thread_id=(\d+) core_id=(\d+) set_input_us=(\d+) )"
      R"(infer_us=(\d+) copy_output_us=(\d+) total_us=(\d+))");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch m;
    ASSERT_TRUE(std::regex_match(lines[i], m, form)) << lines[i];
    EXPECT_EQ(std::stoul(m[1]), i);
    EXPECT_EQ(std::stoi(m[3]), i % 2 == 0 ? 0 : 2);
    EXPECT_EQ(std::stol(m[7]), std::stol(m[4]) + std::stol(m[5]) + std::stol(m[6]));
  }
}

}  // namespace
}  // namespace corelane::session
