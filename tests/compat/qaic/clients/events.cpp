/// The C++ classes with events of the function table: several callbacks, and one that throws.
#include "QAicApi.hpp"
#include "client_support.h"

namespace {

struct Counts {
  std::atomic<int> first{0};
  std::atomic<int> second{0};
};

void count_first(QAicEvent*, QAicEventCompletionType, void* user) {
  ++static_cast<Counts*>(user)->first;
  throw std::runtime_error("a callback's own failure");
}

void count_second(QAicEvent* event, QAicEventCompletionType, void* user) {
  // A callback may call any function.
  client::need(qaic::rt::library().qaicEventRemoveCallback(event, count_second), "remove itself");
  ++static_cast<Counts*>(user)->second;
}

void wait_for(const std::atomic<int>& count, int wanted) {
  while (count < wanted) std::this_thread::yield();
}

}  // namespace

int main(int, char** argv) {
  const auto& api = qaic::rt::library();
  auto context = qaic::rt::Context::Factory(nullptr, {0});
  auto qpc = qaic::rt::Qpc::Factory(argv[1]);
  auto program = qaic::rt::Program::Factory(context, 0, nullptr, qpc);
  auto queue = qaic::rt::Queue::Factory(context, 0);
  Counts counts;
  QAicEvent* event = nullptr;
  client::need(api.qaicCreateEvent(context->get(), &event, QAIC_EVENT_DEVICE_COMPLETE), "create");
  client::need(api.qaicWaitforEvent(event) == QS_INVAL, "nothing would signal it");
  client::need(api.qaicEventAddCallback(event, count_first, &counts), "add");
  client::need(api.qaicEventAddCallback(event, count_second, &counts), "add");
  for (unsigned n = 0; n < client::kInferences; ++n) {
    client::Buffers buffers(program->getBufferMappings(), argv[1], n);
    auto object = qaic::rt::ExecObj::Factory(context, program, buffers.all());
    client::need(api.qaicEventClear(event), "clear");
    client::need(queue->enqueue(object, event), "enqueue");
    client::need(api.qaicWaitforEvent(event), "wait for the event");
    client::need(object->waitForCompletion(std::chrono::hours(1)), "wait for the object");
    wait_for(counts.first, static_cast<int>(n) + 1);
    buffers.write(argv[2], n);
  }
  wait_for(counts.second, 1);
  client::need(api.qaicEventRemoveCallback(event, count_second) == QS_INVAL, "it is removed");
  client::need(api.qaicReleaseEvent(event), "release");
  client::need(api.qaicEventClear(event) == QS_INVAL, "a released event");
  return 0;
}
