/// What the API leaves open: misuse of handles and ids, the end of a set, threads.
#include <future>

#include "statements.h"

namespace statements {

CORELANE_STATEMENT(statement_23_a_handle_in_flight_is_busy) {
  const SetBench bench(kLate);
  const shInferenceHandle handle = bench.take();
  CORELANE_GIVES(QS_SUCCESS, bench.set->submit(handle, 1));
  CORELANE_GIVES(QS_BUSY, bench.set->submit(handle, 2));
  CORELANE_GIVES(QS_BUSY, handle->setBuffers(bench.memory(handle).buffers()));
  CORELANE_GIVES(QS_BUSY, handle->setBufferDimensions({}));
  CORELANE_GIVES(QS_INVAL, bench.set->putCompleted(handle));
  // Completed and not collected, it is, too.
  CORELANE_GIVES(QS_SUCCESS, bench.set->waitForCompletion());
  CORELANE_GIVES(QS_BUSY, bench.set->submit(handle, 2));
  CORELANE_GIVES(QS_INVAL, bench.set->putCompleted(handle));
  shInferenceHandle done;
  CORELANE_GIVES(QS_INVAL, bench.set->getCompletedId(done, 2));
  CORELANE_NEED(done == nullptr && handle->getId() == 1);
  CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(done, 1));
  CORELANE_NEED(done == handle);
}

CORELANE_STATEMENT(statement_23_a_handle_that_is_put_twice_changes_nothing) {
  const SetBench bench(kReal, 2);
  const shInferenceHandle handle = bench.take();
  CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(handle));
  CORELANE_GIVES(QS_INVAL, bench.set->putCompleted(handle));
  const shInferenceHandle first = bench.take();
  const shInferenceHandle second = bench.take();
  CORELANE_NEED(first != second);
  shInferenceHandle third;
  CORELANE_GIVES(QS_TIMEDOUT, bench.set->getAvailable(third, 0s));
}

CORELANE_STATEMENT(statement_23_foreign_and_null_handles_are_refused) {
  const SetBench bench(kReal, 2);
  const SetBench foreign(kReal, 2);
  shInferenceHandle of_set_that_has_gone;
  {
    const SetBench gone(kReal);
    of_set_that_has_gone = gone.take();
  }
  for (const shInferenceHandle& handle :
       {shInferenceHandle(), foreign.take(), of_set_that_has_gone}) {
    CORELANE_GIVES(QS_INVAL, bench.set->submit(handle, 1));
    CORELANE_GIVES(QS_INVAL, bench.set->putCompleted(handle));
  }
  CORELANE_GIVES(QS_INVAL, bench.set->submit(shInferenceVector(), 1));
  shInferenceHandle done;
  CORELANE_GIVES(QS_INVAL, bench.set->getCompletedId(done, 1));
  static_cast<void>(bench.take());
  static_cast<void>(bench.take());
}

CORELANE_STATEMENT(statement_23_an_id_that_was_never_submitted_is_refused_at_once) {
  const SetBench bench(kSlow, 2);
  shInferenceHandle handle = bench.take();
  CORELANE_GIVES(QS_INVAL, bench.set->getCompletedId(handle, 77));
  CORELANE_NEED(handle == nullptr);
  // Also while another is in flight, and with a limit.
  CORELANE_GIVES(QS_SUCCESS, bench.set->submit(bench.take(), 1));
  CORELANE_GIVES(QS_INVAL, bench.set->getCompletedId(handle, 77));
  CORELANE_GIVES(QS_INVAL, bench.set->getCompletedId(handle, 77, 1h));
}

CORELANE_STATEMENT(statement_23_of_two_with_one_id_the_first_is_collected_first) {
  const SetBench bench(kLate, 2);
  const shInferenceHandle first = bench.take();
  const shInferenceHandle second = bench.take();
  for (const auto& [one, two] : {std::pair(first, second), std::pair(second, first)}) {
    CORELANE_GIVES(QS_SUCCESS, bench.set->submit(one, 5));
    CORELANE_GIVES(QS_SUCCESS, bench.set->submit(two, 5));
    shInferenceHandle done;
    CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(done, 5));
    CORELANE_NEED(done == one);
    CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(done, 5));
    CORELANE_NEED(done == two);
    CORELANE_GIVES(QS_INVAL, bench.set->getCompletedId(done, 5));
  }
}

CORELANE_STATEMENT(statement_23_with_nothing_in_flight_only_a_wait_with_a_limit_is_allowed) {
  const SetBench bench(kReal);
  shInferenceHandle handle = bench.take();
  const shInferenceHandle held = handle;
  CORELANE_GIVES(QS_INVAL, bench.set->getCompleted(handle));
  CORELANE_NEED(handle == nullptr);
  CORELANE_GIVES(QS_TIMEDOUT, bench.set->getCompleted(handle, 1ms));
  // One who waits with a limit gets what is submitted meanwhile.
  Caller collector([&] { return bench.set->getCompleted(handle, 1h); });
  CORELANE_NEED(collector.waits());
  CORELANE_GIVES(QS_SUCCESS, bench.set->submit(held, 1));
  CORELANE_GIVES(QS_SUCCESS, collector.status());
  CORELANE_NEED(handle == held);
}

CORELANE_STATEMENT(statement_23_calls_that_wait_return_when_the_set_is_destroyed) {
  SetBench bench(kSlow, 2);
  CORELANE_GIVES(QS_SUCCESS, bench.set->submit(bench.take(), 1));
  CORELANE_GIVES(QS_SUCCESS, bench.set->submit(bench.take(), 2));
  constexpr size_t kThreads = 16;
  InferenceSet* const set = bench.set.get();
  const auto vector = InferenceVector::Factory(bench.qpc);
  const std::function<QStatus(shInferenceHandle&)> calls[] = {
      [=](shInferenceHandle& handle) { return set->getAvailable(handle); },
      [=](shInferenceHandle& handle) { return set->getAvailable(handle, 1h); },
      [=](shInferenceHandle& handle) { return set->getCompleted(handle); },
      [=](shInferenceHandle& handle) { return set->getCompleted(handle, 1h); },
      [=](shInferenceHandle& handle) { return set->getCompletedId(handle, 1); },
      [=](shInferenceHandle& handle) { return set->getCompletedId(handle, 2, 1h); },
      [=](shInferenceHandle&) { return set->waitForCompletion(); },
      [=](shInferenceHandle&) { return set->submit(vector, 3); }};
  shInferenceHandle handles[kThreads];
  std::vector<std::unique_ptr<Caller<std::function<QStatus()>>>> callers;
  for (size_t i = 0; i < kThreads; ++i)
    callers.push_back(std::make_unique<Caller<std::function<QStatus()>>>(
        [&, i] { return calls[i % std::size(calls)](handles[i]); }));
  for (const auto& caller : callers) CORELANE_NEED(caller->waits());
  bench.set = nullptr;
  for (size_t i = 0; i < kThreads; ++i) {
    CORELANE_GIVES(QS_ERROR, callers[i]->status());
    // One collector may have got the inference that had not started.
    if (handles[i] != nullptr) CORELANE_NEED(handles[i]->getId() == 2);
  }
}

CORELANE_STATEMENT(decision_a_vector_in_flight_stays_when_its_set_or_object_goes_first) {
  // Of an inference that does not end, and of one that does.
  for (const QID device : {kSlow, kLate}) {
    auto vector = InferenceVector::Factory(Qpc::Factory(container("pair")));
    const std::weak_ptr<InferenceVector> watched = vector;
    if (device == kSlow) {
      SetBench bench(device);
      CORELANE_GIVES(QS_SUCCESS, bench.set->submit(vector, 1));
    } else {
      const SetBench bench(device);
      const auto program = Program::Factory(bench.context, device, "p", bench.qpc);
      const auto queue = Queue::Factory(bench.context, device);
      const auto object = ExecObj::Factory(bench.context, program);
      CORELANE_GIVES(QS_SUCCESS, object->setData(vector));
      CORELANE_GIVES(QS_SUCCESS, queue->enqueue(object));
      CORELANE_GIVES(QS_SUCCESS, bench.set->submit(vector, 1));
    }
    vector = nullptr;
    CORELANE_NEED(device != kSlow || !watched.expired());
    while (device == kLate && !watched.expired()) std::this_thread::yield();
  }
}

/// One user of a handle or an object at a time: a second one gets a code.
CORELANE_STATEMENT(threads_a_second_user_of_a_handle_or_an_object_gets_busy) {
  const SetBench bench(kSlow);
  const shInferenceHandle handle = bench.take();
  CORELANE_GIVES(QS_SUCCESS, bench.set->submit(handle, 1));
  const auto program = Program::Factory(bench.context, kSlow, "p", bench.qpc);
  const auto queue = Queue::Factory(bench.context, kSlow);
  const Pair pair;
  const auto object = ExecObj::Factory(bench.context, program, pair.buffers());
  CORELANE_GIVES(QS_SUCCESS, queue->enqueue(object));
  const std::function<QStatus()> second[] = {
      [&] { return bench.set->submit(handle, 2); },
      [&] { return handle->setBuffers(bench.memory(handle).buffers()); },
      [&] { return handle->setInputBuffers({}); },
      [&] { return queue->enqueue(object); },
      [&] { return object->run(); },
      [&] { return object->setData(pair.buffers()); },
  };
  for (const auto& call : second) CORELANE_GIVES(QS_BUSY, Caller(call).status());
  // Any number of them may wait.
  Caller first([&] { return object->waitForCompletion(1us); });
  Caller other([&] { return object->waitForCompletion(1us); });
  CORELANE_GIVES(QS_TIMEDOUT, first.status());
  CORELANE_GIVES(QS_TIMEDOUT, other.status());
}

/// One thread sets a handle that another one submits: each call is done, or is QS_BUSY.
CORELANE_STATEMENT(threads_that_set_and_submit_one_handle_get_busy_and_mix_nothing_up) {
  const SetBench bench(kReal);
  const shInferenceHandle handle = bench.take();
  const Pair pairs[] = {Pair(1), Pair(2)};
  const BufferDimensions dimensions[] = {BufferDimensions(4, {4, {2, 3}}), {}};
  std::atomic<bool> ended{false};
  Caller setter([&] {
    for (size_t round = 0; !ended; ++round) {
      const QStatus given[] = {handle->setBufferDimensions(dimensions[round % 2]),
                               handle->setBuffers(pairs[round / 2 % 2].buffers()),
                               bench.set->setCovering(handle, round % 2 == 0)};
      for (const QStatus status : given)
        if (status != QS_SUCCESS && status != QS_BUSY) return status;
    }
    return QS_SUCCESS;
  });
  for (uint64_t done = 0; done < 500;) {
    shInferenceHandle taken;
    const QStatus status = bench.set->submit(handle, done);
    if (status == QS_BUSY) continue;
    if (status != QS_SUCCESS) ended = true;  // The thread is waited for.
    CORELANE_GIVES(QS_SUCCESS, status);
    CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(taken, done++));
  }
  ended = true;
  CORELANE_GIVES(QS_SUCCESS, setter.status());
  for (const Pair& pair : pairs) {
    CORELANE_GIVES(QS_SUCCESS, handle->setBuffers(pair.buffers()));
    shInferenceHandle taken;
    CORELANE_GIVES(QS_SUCCESS, bench.set->submit(handle, 1000));
    CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(taken, 1000));
  }
  CORELANE_NEED(pairs[0].added() && pairs[1].added());
}

/// Methods of contexts, programs, queues and sets, from any thread.
CORELANE_STATEMENT(threads_share_a_context_a_program_a_queue_and_a_set) {
  const SetBench bench(kReal, 2, 2);
  const auto program = Program::Factory(bench.context, kReal, "p", bench.qpc);
  const auto queue = Queue::Factory(bench.context, kReal);
  const auto work = [&](int number) {
    const Pair pair(static_cast<float>(number));
    const auto object = ExecObj::Factory(bench.context, program, pair.buffers());
    for (uint64_t round = 0; round < 25; ++round) {
      CORELANE_GIVES(QS_SUCCESS, bench.context->setLogLevel(QL_ERROR));
      CORELANE_GIVES(QS_SUCCESS, bench.context->log(QL_INFO, "below the level"));
      CORELANE_GIVES(QS_SUCCESS, queue->enqueue(object));
      CORELANE_GIVES(QS_SUCCESS, object->waitForCompletion());
      CORELANE_NEED(pair.added() && program->isActivated());
      const uint64_t id = static_cast<uint64_t>(number) * 100 + round;
      shInferenceHandle handle;
      CORELANE_GIVES(QS_SUCCESS, bench.set->getAvailable(handle));
      CORELANE_GIVES(QS_SUCCESS, handle->setBuffers(bench.memory(handle).buffers()));
      CORELANE_GIVES(QS_SUCCESS, bench.set->submit(handle, id));
      CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(handle, id));
      CORELANE_NEED(bench.memory(handle).added() && handle->getId() == id);
      CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(handle));
    }
  };
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(std::async(std::launch::async, work, i));
  for (auto& thread : threads) thread.get();
  CORELANE_NEED(program->getInferenceCompleteCount() == 100);
  for (int i = 0; i < 4; ++i) static_cast<void>(bench.take());
}

}  // namespace statements
