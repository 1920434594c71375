/// What the API leaves open: execution objects and programs.
#include "statements.h"

namespace statements {

namespace {

/// A context whose device is lost at every second run or so, each time for a millisecond.
shContext losing(std::atomic<int>& losses) {
  setenv("CORELANE_FAULTS", "lost=0.5,lost_ms=1,seed=3", 1);
  auto context = Context::Factory(
      nullptr, {kLosing}, nullptr,
      [&](QAicContextID, const char*, QAicErrorType type, const void*, size_t, void*) {
        if (type == QAIC_ERROR_CONTEXT_RUNTIME) ++losses;
      });
  unsetenv("CORELANE_FAULTS");
  return context;
}

}  // namespace

CORELANE_STATEMENT(decision_a_program_after_a_loss_fails_until_it_is_loaded) {
  std::atomic<int> losses{0};
  const auto context = losing(losses);
  const auto program = Program::Factory(context, kLosing, "p", Qpc::Factory(container("pair")));
  const Pair pair;
  const auto object = ExecObj::Factory(context, program, pair.buffers());
  int lost = 0;
  int good = 0;
  for (int i = 0; i < 40 && (lost < 3 || good < 3); ++i) {
    const QStatus status = object->run();
    if (status == QS_SUCCESS) {
      ++good;
      continue;
    }
    CORELANE_GIVES(QS_DEV_ERROR, status);
    ++lost;
    CORELANE_NEED(!program->isLoaded() && !program->isActivated());
    CORELANE_GIVES(QS_DEV_ERROR, object->run());
    QStatus loaded = program->load();
    while (loaded == QS_DEV_ERROR) {  // While the device is away.
      std::this_thread::yield();
      loaded = program->load();
    }
    CORELANE_GIVES(QS_SUCCESS, loaded);
    CORELANE_NEED(program->isLoaded());
  }
  CORELANE_NEED(lost >= 3 && good >= 3);
  while (losses < lost) std::this_thread::yield();
  CORELANE_NEED(losses == lost);
}

CORELANE_STATEMENT(decision_a_program_with_live_objects_is_neither_unloaded_nor_deactivated) {
  const auto context = Context::Factory(nullptr, {kLeft});
  const auto program = Program::Factory(context, kLeft, "p", Qpc::Factory(container("pair")));
  const Pair pair;
  auto object = ExecObj::Factory(context, program, pair.buffers());
  CORELANE_NEED(!program->isLoaded());
  CORELANE_GIVES(QS_SUCCESS, object->run());
  CORELANE_NEED(program->isActivated());
  CORELANE_GIVES(QS_BUSY, program->deactivate());
  CORELANE_GIVES(QS_BUSY, program->unload());
  object = nullptr;
  CORELANE_NEED(program->isLoaded() && !program->isActivated());
  CORELANE_GIVES(QS_SUCCESS, program->unload());
  CORELANE_NEED(!program->isLoaded());
  // Without the property an object activates nothing.
  const QAicExecObjProperties none = 0;
  object = ExecObj::Factory(context, program, pair.buffers(), &none);
  CORELANE_GIVES(QS_INVAL, object->run());
  CORELANE_GIVES(QS_SUCCESS, program->activate());
  CORELANE_GIVES(QS_SUCCESS, object->run());
  object = nullptr;
  CORELANE_NEED(program->isActivated());
}

CORELANE_STATEMENT(decision_the_work_of_an_object_that_is_released_goes_on) {
  const auto qpc = Qpc::Factory(container("pair"));
  const Pair pair;
  const auto enqueued = [&](QID device, shProgram& program) {
    const auto context = Context::Factory(nullptr, {device});
    program = Program::Factory(context, device, "p", qpc);
    auto object = ExecObj::Factory(context, program, pair.buffers());
    CORELANE_GIVES(QS_SUCCESS, Queue::Factory(context, device)->enqueue(object));
    return object;
  };
  shProgram program;
  enqueued(kLate, program) = nullptr;
  while (program->getInferenceCompleteCount() == 0) std::this_thread::yield();
  auto object = enqueued(kSlow, program);
  ExecObj* const waited_for = object.get();
  Caller forever([=] { return waited_for->waitForCompletion(); });
  Caller limited([=] { return waited_for->waitForCompletion(1h); });
  CORELANE_NEED(forever.waits() && limited.waits());
  object = nullptr;
  CORELANE_GIVES(QS_ERROR, forever.status());
  CORELANE_GIVES(QS_ERROR, limited.status());
}

CORELANE_STATEMENT(decision_a_wait_that_is_too_short_leaves_the_inference) {
  const auto context = Context::Factory(nullptr, {kSlow});
  const auto program = Program::Factory(context, kSlow, "p", Qpc::Factory(container("pair")));
  const auto queue = Queue::Factory(context, kSlow);
  const Pair pair;
  const auto object = ExecObj::Factory(context, program, pair.buffers());
  CORELANE_GIVES(QS_SUCCESS, queue->enqueue(object));
  for (int i = 0; i < 2; ++i) {
    CORELANE_GIVES(QS_TIMEDOUT, object->waitForCompletion(1us));
    CORELANE_GIVES(QS_BUSY, queue->enqueue(object));
  }
  CORELANE_NEED(program->getInferenceCompleteCount() == 0);
}

CORELANE_STATEMENT(decision_one_that_waits_for_its_own_handle_gets_it_of_another_thread) {
  const SetBench bench(kReal);
  const shInferenceHandle held = bench.take();
  shInferenceHandle handle;
  Caller waits([&] { return bench.set->getAvailable(handle); });
  CORELANE_NEED(waits.waits());
  CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(held));
  CORELANE_GIVES(QS_SUCCESS, waits.status());
  CORELANE_NEED(handle == held);
}

/// A code comes with a reason of its own, not with that of an earlier call.
CORELANE_STATEMENT(decision_what_a_class_refuses_has_its_reason) {
  const auto reason = [] { return std::string(qaic::rt::library().qaicGetLastErrorText()); };
  const auto file = std::string(scratch()) + "/plain";
  std::ofstream(file) << "text";
  CORELANE_GIVES(QS_ERROR, UtilFs::createDirectory(file + "/below"));
  CORELANE_NEED(reason().find("plain/below") != std::string::npos);
  CORELANE_GIVES(QS_ERROR, FileWriter().setOutputPath(file));
  CORELANE_NEED(reason().find("make the folder first") != std::string::npos);
  DataBuffer<QData> bytes;
  bytes.allocate(4);
  CORELANE_GIVES(QS_INVAL, bytes.shrinkBuffer(5));
  CORELANE_NEED(reason().find("5 are to be kept") != std::string::npos);
  const auto context = Context::Factory(nullptr, {kReal});
  const auto qpc = Qpc::Factory(container("pair"));
  try {
    static_cast<void>(
        InferenceSet::Factory(context, qpc, kReal, 1, 1, std::vector<shInferenceVector>{nullptr}));
    CORELANE_NEED(false);
  } catch (const CoreExceptionInit& e) {
    CORELANE_NEED(e.msg().find("vector 0 is null") != std::string::npos);
  }
}

}  // namespace statements
