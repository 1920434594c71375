/// Timeouts, a descriptor to poll, cancel, drain and shutdown of a set.
#include <poll.h>

#include "QAicApi.hpp"
#include "client_support.h"

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, 60000) == 1;
}

}  // namespace

int main(int, char** argv) {
  const std::string folder = argv[1];
  auto context = qaic::rt::Context::Factory(nullptr, {0});
  auto qpc = qaic::rt::Qpc::Factory(folder);
  auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, 2, 1);
  std::vector<qaic::rt::shInferenceHandle> held(2);
  for (auto& handle : held) client::need(set->getAvailable(handle, 1h), "getAvailable");
  qaic::rt::shInferenceHandle none;
  client::need(set->getAvailable(none, 1us) == QS_TIMEDOUT && none == nullptr, "none is left");
  client::need(set->getCompleted(none, 0ms) == QS_TIMEDOUT && none == nullptr, "none is done");
  client::need(set->waitForCompletion(1ms), "nothing is in flight");

  for (unsigned n = 0; n < client::kInferences; ++n) {
    client::Buffers buffers(qpc->getBufferMappings(), folder, n);
    client::need(held[0]->setBuffers(buffers.all()), "setBuffers");
    client::need(set->submit(held[0], n), "submit");
    client::need(set->submit(held[0], n) == QS_BUSY, "submit of one in flight");
    client::need(held[0]->setBuffers(buffers.all()) == QS_BUSY, "setBuffers of one in flight");
    client::need(readable(set->fd()), "the descriptor");
    qaic::rt::shInferenceHandle done;
    client::need(set->getCompleted(done, 1h), "getCompleted");
    client::need(done == held[0], "its handle");
    buffers.write(argv[2], n);
  }
  client::need(set->cancel(5) == QS_INVAL, "cancel of an unknown id");
  client::Buffers buffers(qpc->getBufferMappings(), folder, 0);
  for (auto& handle : held) {
    client::need(handle->setBuffers(buffers.all()), "setBuffers");
    client::need(set->submit(handle), "submit");
  }
  client::need(set->drain(1h), "drain");
  for (auto& handle : held) {
    client::need(set->getAvailable(handle, 0s), "available after drain");
    client::need(set->putCompleted(handle), "putCompleted");
  }

  // Threads that wait are woken by shutdown. They hold no handle, so nobody refuses the wait.
  for (auto& handle : held) client::need(set->getAvailable(handle), "getAvailable");
  std::vector<std::thread> threads;
  std::atomic<int> woken{0};
  for (int i = 0; i < 64; ++i) {
    threads.emplace_back([&set, &woken, i] {
      qaic::rt::shInferenceHandle handle;
      const QStatus status = i % 2 == 0 ? set->getAvailable(handle) : set->getCompleted(handle, 1h);
      client::need(status == QS_ERROR && handle == nullptr, "a call that waits while the set ends");
      ++woken;
    });
  }
  client::need(set->shutdown(), "shutdown");
  for (std::thread& thread : threads) thread.join();
  client::need(woken == 64, "all have returned");
  client::need(set->submit(held[0]) == QS_ERROR, "submit after shutdown");
  return 0;
}
