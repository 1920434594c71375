// What a forked child sees of its parent's pipelines: every call is refused, and none waits.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <utility>

#include "corelane/scheduler/scheduler.h"
#include "scheduler/node/chain.h"

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

/// Answers when it may.
class Patient final : public Backend {
 public:
  explicit Patient(std::shared_future<void> released) : released_(std::move(released)) {}
  Status forward(std::span<const RequestPtr> batch) override {
    for (const RequestPtr& request : batch) {
      if (std::any_cast<int>(request->values.at(kData)) != 0) released_.wait();
      request->values[kResult] = 1;
    }
    return {};
  }

 private:
  const std::shared_future<void> released_;
};

/// As first_wrong_in_child(), of requests of the parent.
int first_wrong_ticket(const Ticket& answered, const Ticket& running, const Event& waiting) {
  if (!answered.done() || answered.state() != RequestState::kDone) return 1;
  if (!answered.wait().ok() || !answered.take()) return 2;
  if (!running.done() || running.state() != RequestState::kCancelled) return 3;
  if (running.wait().code() != Code::kWrongState || running.cancel()) return 4;
  if (running.take().error().code() != Code::kWrongState) return 5;
  if (!waiting.done() || waiting.wait().code() != Code::kWrongState) return 6;
  if (waiting.take().error().code() != Code::kWrongState) return 7;
  return 0;
}

TEST(NodeFork, ChildDoesNotWaitForRequestsOfItsParent) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer's own allocator may be locked forever in a forked child";
#endif
  std::promise<void> release;
  BackendRegistry registry;
  add_chain(registry);
  const std::shared_future<void> released = release.get_future().share();
  ASSERT_TRUE(registry
                  .add("Patient",
                       [released](const BackendSurroundings&) {
                         return std::make_unique<Patient>(released);
                       })
                  .ok());
  PipelineOptions options;
  options.registry = &registry;
  const auto pipeline = Pipeline::create({{"backend", "Patient"}}, options);
  ASSERT_TRUE(pipeline) << pipeline.error().to_string();
  const Ticket answered = pipeline->submit({{kData, 0}});
  ASSERT_TRUE(answered.wait().ok());
  const Ticket running = pipeline->submit({{kData, 1}});
  const auto waiting = std::make_shared<Event>();
  Dict request{{kData, 2}, {kEvent, waiting}};
  ASSERT_TRUE(pipeline->run(request).ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(first_wrong_ticket(answered, running, *waiting));
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  release.set_value();
  EXPECT_TRUE(running.wait().ok()) << "the parent goes on";
  EXPECT_TRUE(waiting->wait().ok());
}

}  // namespace
}  // namespace corelane::scheduler
