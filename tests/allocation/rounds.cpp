/// Rounds of calls while a part of all allocations fails: each round is a process of its own, with
/// a door, a device, a share and a seed. Prints what became of them.
/// Exit code: 0 all calls were answered, 1 a hang, a crash or a lost call, 2 wrong usage.
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/text_parts.h"
#include "failing_new.h"
#include "round.h"

namespace corelane::allocation {

void Tally::expect(bool holds, const char* what) noexcept {
  if (holds) return;
  ++wrong;
  std::printf("not so: %s\n", what);
}

namespace {

struct Door {
  const char* name;
  void (*round)(const Plan&, Tally&);
};
constexpr Door kDoors[] = {
    {"session", session_round},     {"rknn", rknn_round}, {"exec", exec_round},  {"set", set_round},
    {"scheduler", scheduler_round}, {"load", load_round}, {"cache", cache_round}};
/// On the clock at once, on the clock later, and on threads.
constexpr const char* kDevices[] = {"null:rk3588", "null:rk3588?a=50us",
                                    "null:rk3588?threads=1&a=20us"};
constexpr double kShares[] = {0.002, 0.01, 0.05};
/// A round takes a fraction of a second.
constexpr int kHangMs = 60'000;

int run_round(const Door& door, std::uint64_t seed) {
  const Shielded test;
  Plan plan{kDevices[seed % std::size(kDevices)],
            kShares[seed / std::size(kDevices) % std::size(kShares)], seed};
  if (const char* device = std::getenv("ALLOCATION_DEVICE")) plan.device = device;
  Tally tally;
  door.round(plan, tally);
  const int lost = tally.taken - tally.answered;
  std::printf(
      "%s %s share=%g seed=%llu: %d taken, %d answered, %d refused, %d wrong, %llu failed\n",
      door.name, plan.device.c_str(), plan.share, static_cast<unsigned long long>(seed),
      tally.taken.load(), tally.answered.load(), tally.refused.load(), tally.wrong.load(),
      static_cast<unsigned long long>(failures()));
  std::fflush(stdout);
  // Not by way of static destructors: the round is over.
  std::_Exit(lost == 0 && tally.wrong == 0 ? 0 : 1);
}

/// How a child ended: its code, -1 for a signal, -2 for a hang.
int wait_for(pid_t child) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  pollfd ended{fd, POLLIN, 0};
  const bool in_time = fd < 0 || poll(&ended, 1, kHangMs) == 1;
  if (fd >= 0) close(fd);
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (!in_time) return -2;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

pid_t start_child(const Door& door, std::uint64_t seed) {
  const std::string number = std::to_string(seed);
  const pid_t child = fork();
  if (child != 0) return child;
  execl("/proc/self/exe", "allocation_rounds", "--one", door.name, number.c_str(), nullptr);
  std::_Exit(127);
}

int run_all(std::uint64_t rounds, std::uint64_t first) {
  int hangs = 0, crashes = 0, lost = 0;
  for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
    for (const Door& door : kDoors) {
      const int code = wait_for(start_child(door, seed));
      if (code == 0) continue;
      (code == -2 ? hangs : code == -1 ? crashes : lost) += 1;
      std::printf("%s with seed %llu: %s\n", door.name, static_cast<unsigned long long>(seed),
                  code == -2   ? "hangs"
                  : code == -1 ? "ended by a signal"
                               : "lost calls, or gave wrong answers");
      std::fflush(stdout);
    }
  }
  std::printf("%llu rounds of %zu doors: %d hangs, %d crashes, %d with lost calls\n",
              static_cast<unsigned long long>(rounds), std::size(kDoors), hangs, crashes, lost);
  return hangs + crashes + lost == 0 ? 0 : 1;
}

int usage() {
  std::fprintf(stderr,
               "usage: allocation_rounds [--rounds <n>] [--first <seed>]\n"
               "       allocation_rounds --one <door> <seed>\n");
  return 2;
}

int main_of(const std::vector<std::string>& words) {
  if (words.size() == 3 && words[0] == "--one") {
    const auto seed = parse_number<std::uint64_t>(words[2]);
    for (const Door& door : kDoors)
      if (words[1] == door.name && seed) return run_round(door, *seed);
    return usage();
  }
  std::uint64_t rounds = 100, first = 1;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const auto value =
        i + 1 < words.size() ? parse_number<std::uint64_t>(words[i + 1]) : std::nullopt;
    if (!value || (words[i] != "--rounds" && words[i] != "--first")) return usage();
    (words[i] == "--rounds" ? rounds : first) = *value;
  }
  return run_all(rounds, first);
}

}  // namespace
}  // namespace corelane::allocation

int main(int argc, char** argv) { return corelane::allocation::main_of({argv + 1, argv + argc}); }
