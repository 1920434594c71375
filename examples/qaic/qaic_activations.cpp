/// One activation and four of them: each is a copy of the network on cores of its own. One thread
/// submits, another collects; the rate is printed.
///
///   qaic_activations folder_of_the_container page.png
#include <chrono>
#include <iostream>
#include <thread>

#include "qaic_pages.h"

namespace {

using namespace qaic_example;  // NOLINT(google-build-using-namespace)

constexpr std::uint32_t kSetSize = 4;
constexpr std::size_t kInferences = 64;

/// Collects in the order of the ids; a failure ends the program.
void collect(qaic::rt::InferenceSet& set, std::size_t count, std::exception_ptr& failure) {
  try {
    for (std::size_t done = 0; done < count; ++done) {
      qaic::rt::shInferenceHandle handle;
      need(set.getCompleted(handle, std::chrono::minutes(1)), "getCompleted");
      need(set.putCompleted(std::move(handle)), "putCompleted");
    }
  } catch (...) {
    failure = std::current_exception();
    static_cast<void>(set.shutdown());  // Wakes the submitting thread.
  }
}

void measure(const qaic::rt::shContext& context, const qaic::rt::shQpc& qpc,
             std::vector<Page>& pages, std::uint32_t activations) {
  const auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, kSetSize, activations);
  std::exception_ptr failure;
  const auto begin = std::chrono::steady_clock::now();
  std::thread collector([&] { collect(*set, kInferences, failure); });
  try {
    for (std::size_t id = 0; id < kInferences; ++id) {
      qaic::rt::shInferenceHandle handle;
      need(set->getAvailable(handle), "getAvailable");
      // As many pages as handles: no two inferences in flight share memory.
      need(handle->setBuffers(pages[handle->getIndex()].buffers()), "setBuffers");
      need(set->submit(handle, id), "submit");
    }
  } catch (...) {
    if (!failure) failure = std::current_exception();
    static_cast<void>(set->shutdown());
  }
  collector.join();
  if (failure) std::rethrow_exception(failure);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  std::cout << activations << (activations == 1 ? " activation: " : " activations: ") << kInferences
            << " inferences, " << static_cast<double>(kInferences) / time.count() << " a second\n";
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](const Arguments& arguments) {
    const auto context = qaic::rt::Context::Factory(nullptr, {0});
    const auto qpc = qaic::rt::Qpc::Factory(arguments.container);
    QResourceInfo free{};
    need(qaic::rt::Util::getResourceInfo(0, free), "getResourceInfo");
    std::cout << int{free.nspFree} << " cores are free, the program wants "
              << qpc->getInfo()->program.at(0).numCores << "\n";
    std::vector<Page> pages;
    for (std::size_t i = 0; i < std::size_t{kSetSize} * 4; ++i)
      pages.emplace_back(arguments, qpc->getBufferMappings(), i);
    for (const std::uint32_t activations : {1U, 4U}) measure(context, qpc, pages, activations);
    for (std::size_t turn = 0; turn < kTurns; ++turn) std::cout << pages[turn].answer() << "\n";
  });
}
