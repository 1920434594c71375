#include "dispatch/callback_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "corelane/base/log.h"

namespace corelane::dispatch {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<CallbackThread> make_thread() {
  return std::make_shared<CallbackThread>(real_clock(), "a-thread", "a-part");
}

void post(CallbackThread& thread, CallbackThread::Job job) { EXPECT_TRUE(thread.post(job).ok()); }

TEST(CallbackThread, JobsAreCalledInOrderInAThreadOfItsName) {
  const auto thread = make_thread();
  std::vector<std::string> calls;
  for (const char* job : {"1", "2", "3"}) {
    post(*thread, [&calls, job, owner = thread.get()] {
      char name[16] = {};
      pthread_getname_np(pthread_self(), name, sizeof name);
      calls.push_back(std::string(name) + job);
      EXPECT_TRUE(owner->is_current());
    });
  }
  EXPECT_TRUE(thread->wait_idle(kNever));
  EXPECT_THAT(calls, ElementsAre("a-thread1", "a-thread2", "a-thread3"));
  EXPECT_FALSE(thread->is_current());
  thread->stop_and_join();
}

TEST(CallbackThread, AnExceptionGoesToTheLogOfItsPartAndTheNextJobIsCalled) {
  std::vector<std::string> parts;
  log::set_callback(
      [&](log::Level, std::string_view part, std::string_view) { parts.emplace_back(part); });
  const auto thread = make_thread();
  bool called = false;
  post(*thread, [] { throw std::runtime_error("no"); });
  post(*thread, [&] { called = true; });
  EXPECT_TRUE(thread->wait_idle(kNever));
  thread->stop_and_join();
  log::set_callback({});
  EXPECT_TRUE(called);
  EXPECT_THAT(parts, ElementsAre("a-part"));
}

TEST(CallbackThread, ACallbackThreadDoesNotWaitForAnother) {
  const auto thread = make_thread();
  const auto other = make_thread();
  std::promise<void> release;
  post(*other, [held = release.get_future().share()] { held.wait(); });
  std::promise<bool> waited;
  post(*thread, [&] { waited.set_value(other->wait_idle(kNever)); });
  EXPECT_FALSE(waited.get_future().get());
  release.set_value();
  other->stop_and_join();
  thread->stop_and_join();
}

TEST(CallbackThread, AWithdrawnJobIsCalledByTheOneThatWithdrawsIt) {
  const auto thread = make_thread();
  std::promise<void> entered;
  std::promise<void> release;
  std::vector<std::string> calls;
  const auto job = [&calls, owner = thread.get()](const std::string& name) {
    return [&calls, owner, name] { calls.push_back(name + (owner->is_current() ? "" : " here")); };
  };
  const std::uint64_t first = thread->post_or_call([&] {
    entered.set_value();
    release.get_future().wait();
  });
  entered.get_future().wait();
  const std::uint64_t second = thread->post_or_call(job("second"));
  thread->post_or_call(job("third"));
  for (const std::uint64_t number : {first, second, second, std::uint64_t{0}})
    thread->withdraw(number);
  EXPECT_THAT(calls, ElementsAre("second here"));
  release.set_value();
  EXPECT_TRUE(thread->wait_idle(kNever));
  EXPECT_THAT(calls, ElementsAre("second here", "third"));
}

TEST(CallbackThread, APostAfterTheEndStartsAnotherThread) {
  const auto thread = make_thread();
  int calls = 0;
  post(*thread, [&] { ++calls; });
  thread->stop_and_join();
  post(*thread, [&] { ++calls; });
  EXPECT_TRUE(thread->wait_idle(kNever));
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace corelane::dispatch
