// Sessions on a device that is lost and comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/registry/testing/listed_faults.h"
#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::feed_of;
using ::testing::HasSubstr;
using testing::milliseconds;
using testing::SessionBench;

/// Its device is lost for 30 ms when the first run begins.
struct LossBench : SessionBench {
  LossBench()
      : SessionBench("null:rk3588?a=1ms", true,
                     std::make_shared<device::ListedFaults>(std::vector{device::Fault::kLost})) {}
};

TEST(SessionLoss, TasksSayWhatHappenedAndTheSessionWorksAgain) {
  LossBench bench;
  SessionOptions options = bench.options();
  options.schedule = {1, 2};
  Session session = bench.session(options);
  std::vector<Future> futures;
  for (int i = 0; i < 3; ++i) futures.push_back(session.submit(feed_of(bench.x)).value());
  bench.clock->advance(milliseconds(1));
  bench.run_out(session);
  for (Future& future : futures) {
    const Status status = future.get().error();
    EXPECT_EQ(status.code(), Code::kDeviceLost);
    EXPECT_THAT(status.to_string(), AllOf(HasSubstr("lost"), HasSubstr("injected fault"),
                                          HasSubstr("'" + session.description().name + "'")));
  }
  bench.clock->advance(milliseconds(30));
  for (int i = 0; i < 3; ++i) {
    Future fine = session.submit(feed_of(bench.x)).value();
    bench.run_out(session);
    EXPECT_THAT(testing::floats_of(fine.get()->front()), ElementsAre(1, 2, 3, 4));
  }
}

}  // namespace
}  // namespace corelane
