/// Four threads submit and three collect, over sets of several sizes: each id is collected once,
/// with the results of its own inputs, and every handle is available in the end.
#include "QAicApi.hpp"
#include "client_support.h"

namespace {

using namespace qaic::rt;  // NOLINT(google-build-using-namespace)

constexpr unsigned kSubmitters = 4;
constexpr unsigned kCollectors = 3;
constexpr unsigned kOfEach = 250;

/// Memory of a handle; the first input holds the number of its inference.
struct Slot {
  explicit Slot(const BufferMappings& mappings) {
    for (const BufferMapping& mapping : mappings) memory.emplace_back(mapping.size / sizeof(float));
    for (auto& one : memory)
      buffers.push_back({one.size() * sizeof(float), reinterpret_cast<uint8_t*>(one.data())});
  }
  std::vector<std::vector<float>> memory;
  std::vector<QBuffer> buffers;
};

struct Work {
  shInferenceSet set;
  std::vector<std::unique_ptr<Slot>> slots;  // By the index of the handle.
  std::mutex mutex;
  std::vector<int> collected = std::vector<int>(std::size_t{kSubmitters} * kOfEach);
  unsigned left = kSubmitters * kOfEach;
};

void submit(Work& work, unsigned first) {
  for (unsigned id = first; id < kSubmitters * kOfEach; id += kSubmitters) {
    shInferenceHandle handle;
    client::need(work.set->getAvailable(handle), "getAvailable");
    Slot& slot = *work.slots[handle->getIndex()];
    for (size_t i = 0; i < 2; ++i)
      std::fill(slot.memory[i].begin(), slot.memory[i].end(), static_cast<float>(id));
    client::need(handle->setBuffers(slot.buffers), "setBuffers");
    client::need(work.set->submit(handle, id), "submit");
  }
}

void collect(Work& work) {
  for (;;) {
    {
      const std::lock_guard<std::mutex> lock(work.mutex);
      if (work.left == 0) return;
      --work.left;
    }
    shInferenceHandle handle;
    client::need(work.set->getCompleted(handle, std::chrono::minutes(2)), "getCompleted");
    const Slot& slot = *work.slots[handle->getIndex()];
    const auto id = static_cast<size_t>(handle->getId());
    for (const float sum : slot.memory[2])
      client::need(sum == 2 * static_cast<float>(id), "the results are those of its inputs");
    {
      const std::lock_guard<std::mutex> lock(work.mutex);
      ++work.collected.at(id);
    }
    client::need(work.set->putCompleted(std::move(handle)), "putCompleted");
  }
}

void run(const shContext& context, const shQpc& qpc, uint32_t size, uint32_t activations) {
  Work work;
  work.set = InferenceSet::Factory(context, qpc, 0, size, activations);
  for (size_t i = 0; i < work.set->size(); ++i)
    work.slots.push_back(std::make_unique<Slot>(qpc->getBufferMappings()));
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kSubmitters; ++i) threads.emplace_back([&work, i] { submit(work, i); });
  for (unsigned i = 0; i < kCollectors; ++i) threads.emplace_back([&work] { collect(work); });
  for (std::thread& thread : threads) thread.join();
  for (const int times : work.collected) client::need(times == 1, "each id once");
  client::need(work.set->waitForCompletion(), "waitForCompletion");
  std::vector<shInferenceHandle> all(work.set->size());
  for (auto& handle : all)
    client::need(work.set->getAvailable(handle, std::chrono::seconds(0)), "all are available");
}

}  // namespace

int main(int, char** argv) {
  auto context = Context::Factory(nullptr, {0});
  auto qpc = Qpc::Factory(argv[1]);
  run(context, qpc, 1, 1);
  run(context, qpc, 4, 10);
  run(context, qpc, 16, 2);
  return 0;
}
