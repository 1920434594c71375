/// One thread submits, another collects by id: 200 inferences over 6 handles of 2 activations.
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "QAicApi.hpp"
#include "client_support.h"

namespace {

constexpr unsigned kTotal = 200;

struct Pool {
  qaic::rt::shInferenceSet set;
  std::vector<client::Buffers> inputs;  // By inference.
  std::mutex mutex;
  std::condition_variable changed;
  unsigned submitted = 0;
};

void submit_all(Pool& pool, const qaic::rt::shQpc& qpc, const std::string& folder,
                std::map<unsigned, client::Buffers>& memory) {
  for (unsigned n = 0; n < kTotal; ++n) {
    qaic::rt::shInferenceHandle handle;
    client::need(pool.set->getAvailable(handle), "getAvailable");
    const std::unique_lock<std::mutex> lock(pool.mutex);
    auto found = memory.emplace(
        n, client::Buffers(qpc->getBufferMappings(), folder, n % client::kInferences));
    client::need(handle->setBuffers(found.first->second.all()), "setBuffers");
    client::need(pool.set->submit(handle, n), "submit");
    pool.submitted = n + 1;
    pool.changed.notify_one();
  }
}

void collect_all(Pool& pool, const std::string& results,
                 std::map<unsigned, client::Buffers>& memory) {
  for (unsigned n = 0; n < kTotal; ++n) {
    {
      std::unique_lock<std::mutex> lock(pool.mutex);
      pool.changed.wait(lock, [&] { return pool.submitted > n; });
    }
    qaic::rt::shInferenceHandle handle;
    client::need(pool.set->getCompletedId(handle, n), "getCompletedId");
    client::need(handle->getId() == n, "the id");
    {
      const std::unique_lock<std::mutex> lock(pool.mutex);
      if (n < client::kInferences || n + client::kInferences >= kTotal)
        memory.at(n).write(results, n % client::kInferences);
      memory.erase(n);
    }
    client::need(pool.set->putCompleted(handle), "putCompleted");
  }
}

}  // namespace

int main(int, char** argv) {
  auto context = qaic::rt::Context::Factory(nullptr, std::vector<QID>{0});
  auto qpc = qaic::rt::Qpc::Factory(argv[1]);
  Pool pool;
  pool.set = qaic::rt::InferenceSet::Factory(context, qpc, std::optional<QID>(0), 3, 2);
  std::map<unsigned, client::Buffers> memory;
  std::thread collector(collect_all, std::ref(pool), argv[2], std::ref(memory));
  submit_all(pool, qpc, argv[1], memory);
  collector.join();
  return 0;
}
