// What a forked child sees of its parent's pipelines: every call is refused, and none waits.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "corelane/scheduler/scheduler.h"

namespace corelane::scheduler {
namespace {

/// The number of the first thing that is wrong; 0: nothing.
int first_wrong_in_child(std::unique_ptr<Pipeline> pipeline) {
  Dict request;
  request[kData] = 2;
  if (pipeline->run(request).code() != Code::kWrongState) return 1;
  int calls = 0;
  Dict other;
  other[kData] = 3;
  Ticket ticket = pipeline->submit(std::move(other), {}, [&](const Ticket&) { ++calls; });
  if (ticket.wait().code() != Code::kWrongState || calls != 1) return 2;
  if (pipeline->drain().code() != Code::kWrongState) return 3;
  if (pipeline->shutdown(Shutdown::kCancel).code() != Code::kWrongState) return 4;
  if (pipeline->reconfigure({}).code() != Code::kWrongState) return 5;
  if (pipeline->statistics().submitted != 0 || !pipeline->records().empty()) return 6;
  pipeline.reset();
  return 0;
}

TEST(NodeFork, ChildIsRefusedAndCanLeave) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer's own allocator may be locked forever in a forked child";
#endif
  auto made = Pipeline::create({{"backend", "Identity"}});
  ASSERT_TRUE(made) << made.error().to_string();
  auto pipeline = std::make_unique<Pipeline>(*std::move(made));
  Dict request;
  request[kData] = 1;
  ASSERT_TRUE(pipeline->run(request).ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(first_wrong_in_child(std::move(pipeline)));
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  Dict again;
  again[kData] = 4;
  EXPECT_TRUE(pipeline->run(again).ok()) << "the parent goes on";
}

}  // namespace
}  // namespace corelane::scheduler
