#include "worker_pool.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

namespace node_tests {
namespace {

using Time = std::chrono::steady_clock;
constexpr int kTookTooMuch = 78;  ///< Exit status of a process that limit_memory() has ended.

struct Worker {
  pid_t pid = -1;
  int socket = -1;
  std::optional<std::size_t> job;
  Time::time_point until;
};

bool write_all(int fd, const void* data, std::size_t size) {
  const auto* p = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::send(fd, p, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    p += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool read_all(int fd, void* data, std::size_t size) {
  auto* p = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = ::recv(fd, p, size, 0);
    if (n <= 0) return false;
    p += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_text(int fd, const std::string& text) {
  const std::uint32_t size = static_cast<std::uint32_t>(text.size());
  return write_all(fd, &size, sizeof size) && write_all(fd, text.data(), text.size());
}

bool read_text(int fd, std::string& text) {
  std::uint32_t size = 0;
  if (!read_all(fd, &size, sizeof size)) return false;
  text.resize(size);
  return read_all(fd, text.data(), size);
}

[[noreturn]] void serve(int socket, const std::function<Result(std::size_t)>& run) {
  std::uint64_t job = 0;
  while (read_all(socket, &job, sizeof job)) {
    const Result result = run(job);
    const char outcome = static_cast<char>(result.outcome);
    if (!write_all(socket, &outcome, 1) || !write_text(socket, result.text) ||
        !write_text(socket, result.warnings) || !write_text(socket, result.verdict) ||
        !write_text(socket, result.engine)) {
      break;
    }
  }
  _exit(0);
}

bool start(Worker& worker, const std::function<Result(std::size_t)>& run) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return false;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(pair[0]);
    serve(pair[1], run);
  }
  ::close(pair[1]);
  worker = {pid, pair[0], std::nullopt, {}};
  return pid > 0;
}

/// Ends a worker; how it ended, for the message.
std::string stop(Worker& worker, bool kill) {
  if (kill) ::kill(worker.pid, SIGKILL);
  // Workers forked later hold this socket too, so closing it alone would not end the stream.
  ::shutdown(worker.socket, SHUT_RDWR);
  ::close(worker.socket);
  int status = 0;
  ::waitpid(worker.pid, &status, 0);
  worker.pid = -1;
  if (kill) return "killed: it took too long";
  if (WIFEXITED(status) && WEXITSTATUS(status) == kTookTooMuch) return kNoMemory;
  if (WIFSIGNALED(status)) return fmt::format("crashed: {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("the process ended with {}", WEXITSTATUS(status));
}

Result receive(Worker& worker) {
  Result result;
  char outcome = 'e';
  if (read_all(worker.socket, &outcome, 1) && read_text(worker.socket, result.text) &&
      read_text(worker.socket, result.warnings) && read_text(worker.socket, result.verdict) &&
      read_text(worker.socket, result.engine)) {
    result.outcome = static_cast<Outcome>(outcome);
    return result;
  }
  return {Outcome::kError, stop(worker, false), "", ""};
}

int wait_milliseconds(const std::vector<Worker>& pool) {
  auto next = Time::now() + std::chrono::seconds(10);
  for (const auto& w : pool)
    if (w.job) next = std::min(next, w.until);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Time::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0)) + 1;
}

}  // namespace

std::vector<Result> run_forked(std::size_t count, std::size_t workers, int limit_seconds,
                               const std::function<Result(std::size_t)>& run) {
  std::vector<Result> results(count);
  std::vector<Worker> pool(std::min(workers, count));
  std::size_t next = 0;
  std::size_t done = 0;
  while (done < count) {
    std::vector<pollfd> fds;
    for (auto& w : pool) {
      if (!w.job && next < count) {
        if (w.pid < 0 && !start(w, run)) return results;
        const std::uint64_t job = next;
        w.job = next++;
        w.until = Time::now() + std::chrono::seconds(limit_seconds);
        write_all(w.socket, &job, sizeof job);
      }
      fds.push_back({w.job ? w.socket : -1, POLLIN, 0});
    }
    ::poll(fds.data(), fds.size(), wait_milliseconds(pool));
    for (std::size_t i = 0; i < pool.size(); ++i) {
      Worker& w = pool[i];
      if (!w.job) continue;
      if ((fds[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
        results[*w.job] = receive(w);
      else if (Time::now() >= w.until)
        results[*w.job] = {Outcome::kError, stop(w, true), ""};
      else
        continue;
      w.job.reset();
      ++done;
    }
  }
  for (auto& w : pool)
    if (w.pid > 0) stop(w, false);
  return results;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

void limit_memory(std::size_t bytes) {
  const auto watch = [bytes] {
    for (;;) {
      std::size_t all = 0;
      std::size_t resident = 0;
      std::ifstream("/proc/self/statm") >> all >> resident;
      if (resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) > bytes / 2)
        ::_exit(kTookTooMuch);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  };
  static std::once_flag once;
  std::call_once(once, [&] { std::thread(watch).detach(); });
}

#else

void limit_memory(std::size_t bytes) {
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
}

#endif

}  // namespace node_tests
