/// Lines of the plugin to stderr or a file of the user.
#pragma once

#include <csignal>
#include <cstdio>
#include <ctime>
#include <string>

namespace corelane::ggml {

/// Writes the line with its end. Where the file may not grow (RLIMIT_FSIZE) the line is lost; the
/// kernel's SIGXFSZ, which would end the host, is held back and taken. Any thread.
inline void write_line(std::FILE* file, const std::string& line) {
  sigset_t set;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  const bool held = pthread_sigmask(SIG_BLOCK, &set, &before) == 0;
  const bool theirs = sigpending(&pending) != 0 || sigismember(&pending, SIGXFSZ) == 1;
  std::fputs((line + "\n").c_str(), file);
  std::fflush(file);
  const timespec none{};
  if (held && !theirs) sigtimedwait(&set, nullptr, &none);
  if (held) pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace corelane::ggml
