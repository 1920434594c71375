#include "base/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace corelane {
namespace {

/// What `f` returns in a forked child, at most 255; -1 when the child did not exit.
int in_child(const std::function<int()>& f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int fork_calls = 0;

struct Counter {
  int value = 0;
};

/// How many were made.
struct Counted {
  Counted() { ++made; }
  static inline int made = 0;
};

TEST(Fork, CountIsOneMoreInAChild) {
  const std::uint64_t here = fork_count();
  EXPECT_EQ(in_child([&] { return static_cast<int>(fork_count() - here); }), 1);
  EXPECT_EQ(fork_count(), here);
  EXPECT_EQ(
      in_child([&] { return in_child([&] { return static_cast<int>(fork_count() - here); }); }), 2);
}

TEST(Fork, RegisteredCallsRunOncePerForkInTheChild) {
  call_in_forked_child([] { ++fork_calls; });
  call_in_forked_child([] { fork_calls *= 10; });  // Runs first.
  EXPECT_EQ(in_child([] { return fork_calls; }), 1);
  EXPECT_EQ(in_child([] { return in_child([] { return fork_calls; }); }), 11);
  EXPECT_EQ(fork_calls, 0);
}

TEST(Fork, AChildHasAnObjectOfItsOwn) {
  Counter& mine = per_process<Counter>();
  mine.value = 7;
  EXPECT_EQ(&per_process<Counter>(), &mine);
  EXPECT_EQ(in_child([&] {
              if (&per_process<Counter>() == &mine) return 1;
              return per_process<Counter>().value == 0 && mine.value == 7 ? 0 : 2;
            }),
            0);
  EXPECT_EQ(per_process<Counter>().value, 7);
}

/// A sanitizer does not free its allocator's locks in the child: the child would hang in fork().
TEST(Fork, AChildAllocatesNothingBeforeItAsks) {
  (void)per_process<Counted>();
  EXPECT_EQ(in_child([] { return Counted::made; }), 1);
  EXPECT_EQ(in_child([] {
              (void)per_process<Counted>();
              return Counted::made;
            }),
            2);
}

}  // namespace
}  // namespace corelane
