/// Inference sets: handles, submissions, completions, failures.
#include "statements.h"

namespace statements {

CORELANE_STATEMENT(statement_15_a_set_has_its_handles_and_all_are_available) {
  static_assert(!std::is_default_constructible_v<InferenceHandle> &&
                !std::is_constructible_v<InferenceHandle, shContext> &&
                !std::is_copy_constructible_v<InferenceHandle>);
  const SetBench bench(kReal, 3, 4);
  CORELANE_NEED(bench.set->size() == 12);
  std::vector<shInferenceHandle> handles;
  for (int i = 0; i < 12; ++i) handles.push_back(bench.take());
  std::sort(handles.begin(), handles.end());
  CORELANE_NEED(std::unique(handles.begin(), handles.end()) == handles.end());
  shInferenceHandle none;
  CORELANE_GIVES(QS_TIMEDOUT, bench.set->getAvailable(none, 0s));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL,
                  InferenceSet::Factory(bench.context, bench.qpc, kReal, 0, 1));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL,
                  InferenceSet::Factory(bench.context, bench.qpc, kReal, 1, 0));
}

CORELANE_STATEMENT(statement_16_get_available_waits_until_a_handle_is_put_back) {
  const SetBench bench(kReal);
  const shInferenceHandle held = bench.take();
  shInferenceHandle got;
  Caller waiter([&] { return bench.set->getAvailable(got); });
  CORELANE_NEED(waiter.waits());
  CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(held));
  CORELANE_GIVES(QS_SUCCESS, waiter.status());
  CORELANE_NEED(got == held);
  shInferenceHandle none = got;
  CORELANE_GIVES(QS_TIMEDOUT, bench.set->getAvailable(none, 1us));
  CORELANE_NEED(none == nullptr);
  Caller forever([&] { return bench.set->getAvailable(none); });
  CORELANE_NEED(forever.waits());
  CORELANE_GIVES(QS_SUCCESS, bench.set->shutdown());
  CORELANE_GIVES(QS_ERROR, forever.status());
  CORELANE_NEED(none == nullptr);
}

CORELANE_STATEMENT(statement_17_submit_waits_with_a_vector_and_not_with_a_handle) {
  const SetBench bench(kReal);
  const shInferenceHandle held = bench.take();
  const auto vector = InferenceVector::Factory(bench.qpc);
  Caller submitter([&] { return bench.set->submit(vector); });
  CORELANE_NEED(submitter.waits());
  CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(held));
  CORELANE_GIVES(QS_SUCCESS, submitter.status());
  shInferenceHandle done;
  CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(done, 0));
  // No handle is available, and nothing ends: a submission returns all the same.
  const SetBench slow(kSlow, 2);
  const shInferenceHandle handles[] = {slow.take(), slow.take()};
  CORELANE_GIVES(QS_SUCCESS, slow.set->submit(handles[0]));
  CORELANE_GIVES(QS_SUCCESS, slow.set->submit(handles[1], 7));
  CORELANE_NEED(handles[0]->getId() == 0 && handles[1]->getId() == 7);
  CORELANE_GIVES(QS_TIMEDOUT, slow.set->waitForCompletion(0s));
}

CORELANE_STATEMENT(statement_17_a_vector_has_nothing_of_an_earlier_user_of_its_handle) {
  const auto context = Context::Factory(nullptr, {kReal});
  const shQpc qpc = Qpc::Factory(container("shapes"));
  const auto set = InferenceSet::Factory(context, qpc, kReal, 1, 1);
  shInferenceHandle handle;
  CORELANE_GIVES(QS_SUCCESS, set->getAvailable(handle));
  CORELANE_GIVES(QS_SUCCESS, set->setCovering(handle, true));
  CORELANE_GIVES(QS_SUCCESS, handle->setBufferDimensions({{4, {1, 3}}, {4, {0}}, {4, {1, 3}}}));
  CORELANE_GIVES(QS_SUCCESS, set->putCompleted(handle));
  // Of 8 elements.
  const auto vector = InferenceVector::Factory(qpc, InferenceVector::ZERO_FILL);
  reinterpret_cast<float*>(vector->getVector()[0].buf)[7] = 3;
  reinterpret_cast<float*>(vector->getVector()[1].buf)[7] = 1;
  CORELANE_GIVES(QS_SUCCESS, set->submit(vector, 1));
  CORELANE_GIVES(QS_SUCCESS, set->getCompletedId(handle, 1));
  CORELANE_NEED(handle->getBufferDimensions().empty());
  CORELANE_NEED(reinterpret_cast<const float*>(vector->getVector()[2].buf)[7] == 7);
  uint32_t specialization = 77;
  CORELANE_GIVES(QS_SUCCESS, set->getSpecialization(handle, specialization));
  CORELANE_NEED(specialization == 1);
  // The covering has gone, too.
  CORELANE_GIVES(QS_INVAL, handle->setBuffers({QBuffer{12, vector->getVector()[0].buf}, QBuffer{},
                                               QBuffer{12, vector->getVector()[2].buf}}));
}

CORELANE_STATEMENT(statement_18_get_completed_takes_any_and_by_id_that_one) {
  const SetBench bench(kLate, 4, 4);
  for (uint64_t id = 0; id < 16; ++id)
    CORELANE_GIVES(QS_SUCCESS, bench.set->submit(bench.take(), id));
  // The last ones first, while all are in flight; each wait ends with its inference.
  std::vector<bool> collected(16);
  shInferenceHandle handle;
  for (uint64_t id = 16; id-- > 8;) {
    CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(handle, id));
    CORELANE_NEED(handle->getId() == id);
    collected[id] = true;
  }
  for (int i = 0; i < 8; ++i) {
    CORELANE_GIVES(QS_SUCCESS, bench.set->getCompleted(handle));
    CORELANE_NEED(!collected.at(handle->getId()));
    collected[handle->getId()] = true;
  }
  CORELANE_NEED(std::count(collected.begin(), collected.end(), true) == 16);
  // Both wait.
  const SetBench slow(kSlow, 2);
  CORELANE_GIVES(QS_SUCCESS, slow.set->submit(slow.take(), 1));
  shInferenceHandle none[2];
  Caller any([&] { return slow.set->getCompleted(none[0]); });
  Caller one([&] { return slow.set->getCompletedId(none[1], 1); });
  CORELANE_NEED(any.waits() && one.waits());
  CORELANE_GIVES(QS_TIMEDOUT, slow.set->getCompletedId(handle, 1, 1us));
  CORELANE_GIVES(QS_SUCCESS, slow.set->shutdown());
  CORELANE_GIVES(QS_ERROR, any.status());
  CORELANE_GIVES(QS_ERROR, one.status());
}

CORELANE_STATEMENT(statement_19_put_completed_makes_a_handle_available_again) {
  const SetBench bench(kReal, 2);
  for (int round = 0; round < 2; ++round) {
    shInferenceHandle done[2];
    for (uint64_t id = 0; id < 2; ++id) {
      CORELANE_GIVES(QS_SUCCESS, bench.set->submit(bench.take(), id));
      CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(done[id], id));
      CORELANE_NEED(bench.memory(done[id]).added());
    }
    // Without it none is left in the end.
    shInferenceHandle next;
    CORELANE_GIVES(QS_TIMEDOUT, bench.set->getAvailable(next, 0s));
    // By an lvalue, and by a moved pointer.
    const InferenceHandle* const second = done[1].get();
    CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(done[0]));
    CORELANE_GIVES(QS_SUCCESS, bench.set->getAvailable(next, 0s));
    CORELANE_NEED(next == done[0]);
    CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(std::move(done[1])));
    CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(std::move(next)));
    CORELANE_GIVES(QS_SUCCESS, bench.set->getAvailable(next, 0s));
    CORELANE_GIVES(QS_SUCCESS, bench.set->getAvailable(done[0], 0s));
    CORELANE_NEED(next.get() == second || done[0].get() == second);
    CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(next));
    CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(done[0]));
  }
}

CORELANE_STATEMENT(statement_20_waiting_for_completion_takes_nothing) {
  const SetBench bench(kLate, 3, 2);
  CORELANE_GIVES(QS_SUCCESS, bench.set->waitForCompletion());
  for (uint64_t id = 0; id < 6; ++id)
    CORELANE_GIVES(QS_SUCCESS, bench.set->submit(bench.take(), id));
  CORELANE_GIVES(QS_SUCCESS, bench.set->waitForCompletion());
  shInferenceHandle handle;
  for (uint64_t id = 0; id < 6; ++id)
    CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(handle, id, 0s));
  CORELANE_GIVES(QS_TIMEDOUT, bench.set->getCompleted(handle, 0s));
  const SetBench slow(kSlow);
  CORELANE_GIVES(QS_SUCCESS, slow.set->submit(slow.take(), 1));
  CORELANE_GIVES(QS_TIMEDOUT, slow.set->waitForCompletion(1us));
  Caller waiter([&] { return slow.set->waitForCompletion(); });
  CORELANE_NEED(waiter.waits());
  CORELANE_GIVES(QS_SUCCESS, slow.set->shutdown());
  CORELANE_GIVES(QS_ERROR, waiter.status());
}

CORELANE_STATEMENT(statement_21_a_failed_inference_gives_its_handle_back) {
  // Every second inference fails.
  const SetBench bench(kFailing);
  for (uint64_t id = 0, failed = 0; failed < 3; ++id) {
    const shInferenceHandle handle = bench.take();
    CORELANE_GIVES(QS_SUCCESS, bench.set->submit(handle, id));
    shInferenceHandle done;
    const QStatus status =
        id % 4 < 2 ? bench.set->getCompletedId(done, id) : bench.set->getCompleted(done);
    CORELANE_NEED(done == handle && done->getStatus() == status && done->getId() == id);
    CORELANE_NEED(status == QS_SUCCESS || status == QS_ERROR);
    CORELANE_NEED(done->getErrorText().empty() == (status == QS_SUCCESS));
    failed += status == QS_ERROR ? 1 : 0;
    CORELANE_NEED(id < 8);
    CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(std::move(done)));
  }
  // One that timed out is put back and submitted again.
  const SetBench slow(kSlow, 1, 1, limit(1));
  for (uint64_t id = 0; id < 3; ++id) {
    CORELANE_GIVES(QS_SUCCESS, slow.set->submit(slow.take(), id));
    shInferenceHandle done;
    CORELANE_GIVES(QS_TIMEDOUT, slow.set->getCompletedId(done, id));
    CORELANE_NEED(done != nullptr && !done->getErrorText().empty());
    CORELANE_GIVES(QS_SUCCESS, slow.set->putCompleted(done));
  }
}

CORELANE_STATEMENT(statement_22_a_kept_handle_is_submitted_without_being_taken) {
  const SetBench bench(kReal, 2);
  const shInferenceHandle kept = bench.take();
  CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(kept));
  for (uint64_t id = 0; id < 5; ++id) {
    CORELANE_GIVES(QS_SUCCESS, bench.set->submit(kept, id));
    shInferenceHandle done;
    CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(done, id));
    CORELANE_NEED(done == kept && bench.memory(kept).added());
    CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(kept));
  }
  // Submitted, it is off the list: one other is left.
  CORELANE_GIVES(QS_SUCCESS, bench.set->submit(kept, 9));
  const shInferenceHandle other = bench.take();
  CORELANE_NEED(other != kept);
  shInferenceHandle none;
  CORELANE_GIVES(QS_TIMEDOUT, bench.set->getAvailable(none, 0s));
  CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(none, 9));
  // Collected and not put back, it is submitted as well.
  CORELANE_GIVES(QS_SUCCESS, bench.set->submit(kept, 10));
  CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(none, 10));
  CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(kept));
  // A handle that fails goes on the same way.
  const SetBench failing(kFailing);
  const shInferenceHandle again = failing.take();
  CORELANE_GIVES(QS_SUCCESS, failing.set->putCompleted(again));
  for (uint64_t id = 0; id < 4; ++id) {
    CORELANE_GIVES(QS_SUCCESS, failing.set->submit(again, id));
    static_cast<void>(failing.set->getCompletedId(none, id));
    CORELANE_GIVES(QS_SUCCESS, failing.set->putCompleted(none));
  }
}

}  // namespace statements
