/// Measuring memory: what the kernel counts as anonymous memory of a fresh process for each case.
#pragma once

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <fstream>
#include <functional>
#include <string>

#include "harness.h"

namespace corelane::bench {

inline std::uint64_t anonymous_bytes() {
  ::malloc_trim(0);
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("Anonymous:", 0) == 0) return std::stoull(line.substr(10)) * 1024;
  fail("no /proc/self/smaps_rollup");
}

/// Runs `f` in a child process (no engine is loaded yet) and returns what it wrote.
inline Json in_child(const std::function<Json()>& f) {
  int fds[2];
  if (::pipe(fds) != 0) fail("pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(fds[0]);
    std::string text;
    try {
      text = f().dump();
    } catch (const std::exception& e) {
      text = Json{{"error", e.what()}}.dump();
    }
    [[maybe_unused]] const auto n = ::write(fds[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(fds[1]);
  std::string text;
  char block[4096];
  for (ssize_t n = 0; (n = ::read(fds[0], block, sizeof(block))) > 0;)
    text.append(block, static_cast<std::size_t>(n));
  ::close(fds[0]);
  ::waitpid(child, nullptr, 0);
  return Json::parse(text.empty() ? R"({"error":"the child died"})" : text);
}

}  // namespace corelane::bench
