// Each function on objects that are null, stale, of another kind, released twice: a code and one
// line that says what to do.
#include <algorithm>
#include <functional>
#include <thread>

#include "adapters/qaic/testing/qaic_bench.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

/// One object of each kind, as numbers.
struct Objects {
  explicit Objects(const Bench& bench)
      : context(number(bench.context)),
        qpc(number(bench.qpc)),
        program(number(bench.program())),
        exec(number(bench.exec(as<QAicProgram>(program)))),
        queue(number(bench.queue())),
        event(number(bench.event())),
        set(number(bench.set(1))) {}
  template <class T>
  static T* as(std::uintptr_t of) {
    return reinterpret_cast<T*>(of);
  }
  template <class T>
  static std::uintptr_t number(T* of) {
    return reinterpret_cast<std::uintptr_t>(of);
  }
  void release() const {
    EXPECT_EQ(qaicReleaseInferenceSet(as<QAicInferenceSet>(set)), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseEvent(as<QAicEvent>(event)), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseExecObj(as<QAicExecObj>(exec)), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseQueue(as<QAicQueue>(queue)), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseProgram(as<QAicProgram>(program)), QS_SUCCESS);
  }
  std::uintptr_t context, qpc, program, exec, queue, event, set;
};

/// A function with everything right but the object, which is to be `of`.
struct Function {
  const char* name;
  std::uintptr_t Objects::*right;
  std::function<QStatus(const Objects&, std::uintptr_t)> call;
};

template <class T>
T* as(std::uintptr_t of) {
  return Objects::as<T>(of);
}

std::vector<Function> program_functions() {
  const auto of = &Objects::program;
  return {
      {"create", &Objects::context,
       [](const Objects& o, std::uintptr_t it) {
         QAicProgram* made = nullptr;
         return qaicCreateProgram(as<QAicContext>(it), &made, nullptr, 0, "n",
                                  as<QAicQpcObj>(o.qpc));
       }},
      {"create of", &Objects::qpc,
       [](const Objects& o, std::uintptr_t it) {
         QAicProgram* made = nullptr;
         return qaicCreateProgram(as<QAicContext>(o.context), &made, nullptr, 0, "n",
                                  as<QAicQpcObj>(it));
       }},
      {"load", of, [](const Objects&, auto it) { return qaicLoadProgram(as<QAicProgram>(it)); }},
      {"unload", of,
       [](const Objects&, auto it) { return qaicUnloadProgram(as<QAicProgram>(it)); }},
      {"activate", of,
       [](const Objects&, auto it) {
         return qaicRunActivationCmd(as<QAicProgram>(it), QAIC_PROGRAM_CMD_ACTIVATE_FULL);
       }},
      {"descriptor", of,
       [](const Objects&, auto it) {
         QData data{};
         return qaicProgramGetIoDescriptor(as<QAicProgram>(it), &data);
       }},
      {"buffer info", of,
       [](const Objects&, auto it) {
         QAicIoBufferInfo* info = nullptr;
         return qaicProgramGetIoBufferInfo(as<QAicProgram>(it), &info);
       }},
      {"info", of,
       [](const Objects&, auto it) {
         QAicProgramInfo info;
         return qaicProgramGetInfo(as<QAicProgram>(it), &info);
       }},
      {"count", of,
       [](const Objects&, auto it) {
         std::uint64_t count = 0;
         return qaicProgramGetInferenceCompletedCount(as<QAicProgram>(it), &count);
       }},
      {"release", of,
       [](const Objects&, auto it) { return qaicReleaseProgram(as<QAicProgram>(it)); }},
  };
}

std::vector<Function> exec_functions() {
  const auto of = &Objects::exec;
  static Tensors tensors;
  return {
      {"create", &Objects::context,
       [](const Objects& o, auto it) {
         QAicExecObj* made = nullptr;
         return qaicCreateExecObj(as<QAicContext>(it), &made, nullptr, as<QAicProgram>(o.program),
                                  nullptr, nullptr, nullptr);
       }},
      {"create of", &Objects::program,
       [](const Objects& o, auto it) {
         QAicExecObj* made = nullptr;
         return qaicCreateExecObj(as<QAicContext>(o.context), &made, nullptr, as<QAicProgram>(it),
                                  nullptr, nullptr, nullptr);
       }},
      {"set data", of, [](const Objects&, auto it) { return tensors.give(as<QAicExecObj>(it)); }},
      {"set data ext", of,
       [](const Objects&, auto it) {
         return qaicExecObjSetDataExt(as<QAicExecObj>(it), 2, tensors.buffers.data(), nullptr);
       }},
      {"set owned data", of,
       [](const Objects&, auto it) {
         static CountedOwner owner;
         return qaicExecObjSetOwnedData(as<QAicExecObj>(it), 2, tensors.buffers.data(), nullptr,
                                        &owner, &CountedOwner::release);
       }},
      {"in flight", of,
       [](const Objects&, auto it) {
         std::uint32_t count = 0;
         return qaicExecObjGetInFlight(as<QAicExecObj>(it), &count);
       }},
      {"io buffers", of,
       [](const Objects&, auto it) {
         std::uint32_t count = 0;
         QBuffer* found = nullptr;
         return qaicExecObjGetIoBuffers(as<QAicExecObj>(it), &count, &found);
       }},
      {"wait", of,
       [](const Objects&, auto it) {
         return qaicExecObjWaitForCompletion(as<QAicExecObj>(it), 1);
       }},
      {"id", of,
       [](const Objects&, auto it) {
         QAicExecObjID id = 0;
         return qaicExecObjGetId(as<QAicExecObj>(it), &id);
       }},
      {"run", of, [](const Objects&, auto it) { return qaicRunExecObj(as<QAicExecObj>(it)); }},
      {"enqueue", of,
       [](const Objects& o, auto it) {
         return qaicEnqueueExecObj(as<QAicQueue>(o.queue), as<QAicExecObj>(it), nullptr);
       }},
      {"enqueue at", &Objects::queue,
       [](const Objects& o, auto it) {
         return qaicEnqueueExecObj(as<QAicQueue>(it), as<QAicExecObj>(o.exec), nullptr);
       }},
      {"release", of,
       [](const Objects&, auto it) { return qaicReleaseExecObj(as<QAicExecObj>(it)); }},
      {"create queue", &Objects::context,
       [](const Objects&, auto it) {
         QAicQueue* made = nullptr;
         return qaicCreateQueue(as<QAicContext>(it), &made, nullptr, 0);
       }},
      {"release queue", &Objects::queue,
       [](const Objects&, auto it) { return qaicReleaseQueue(as<QAicQueue>(it)); }},
  };
}

void no_callback(QAicEvent*, QAicEventCompletionType, void*) {}

std::vector<Function> event_functions() {
  const auto of = &Objects::event;
  return {
      {"create", &Objects::context,
       [](const Objects&, auto it) {
         QAicEvent* made = nullptr;
         return qaicCreateEvent(as<QAicContext>(it), &made, QAIC_EVENT_DEVICE_COMPLETE);
       }},
      {"clear", of, [](const Objects&, auto it) { return qaicEventClear(as<QAicEvent>(it)); }},
      {"add", of,
       [](const Objects&, auto it) {
         return qaicEventAddCallback(as<QAicEvent>(it), &no_callback, nullptr);
       }},
      {"remove", of,
       [](const Objects&, auto it) {
         return qaicEventRemoveCallback(as<QAicEvent>(it), &no_callback);
       }},
      {"wait", of, [](const Objects&, auto it) { return qaicWaitforEvent(as<QAicEvent>(it)); }},
      {"release", of, [](const Objects&, auto it) { return qaicReleaseEvent(as<QAicEvent>(it)); }},
  };
}

std::vector<Function> set_functions() {
  const auto of = &Objects::set;
  static Tensors tensors;
  static thread_local std::uint32_t handle = 0;
  return {
      {"create", &Objects::context,
       [](const Objects& o, auto it) {
         const QAicInferenceSetConfig config;
         QAicInferenceSet* made = nullptr;
         return qaicCreateInferenceSet(as<QAicContext>(it), &made, &config, as<QAicQpcObj>(o.qpc));
       }},
      {"available", of,
       [](const Objects&, auto it) {
         return qaicInferenceSetGetAvailable(as<QAicInferenceSet>(it), 0, &handle);
       }},
      {"set data", of,
       [](const Objects&, auto it) { return tensors.give(as<QAicInferenceSet>(it), 0); }},
      {"set owned data", of,
       [](const Objects&, auto it) {
         static CountedOwner owner;
         return qaicInferenceSetSetOwnedData(as<QAicInferenceSet>(it), 0, 2, tensors.buffers.data(),
                                             nullptr, &owner, &CountedOwner::release);
       }},
      {"in flight", of,
       [](const Objects&, auto it) {
         std::uint32_t count = 0;
         return qaicInferenceSetGetInFlight(as<QAicInferenceSet>(it), &count);
       }},
      {"submit", of,
       [](const Objects&, auto it) {
         return qaicInferenceSetSubmit(as<QAicInferenceSet>(it), 0, 1);
       }},
      {"completed", of,
       [](const Objects&, auto it) {
         return qaicInferenceSetGetCompleted(as<QAicInferenceSet>(it), 0, &handle);
       }},
      {"completed id", of,
       [](const Objects&, auto it) {
         return qaicInferenceSetGetCompletedId(as<QAicInferenceSet>(it), 1, 0, &handle);
       }},
      {"put", of,
       [](const Objects&, auto it) {
         return qaicInferenceSetPutCompleted(as<QAicInferenceSet>(it), 0);
       }},
      {"wait", of,
       [](const Objects&, auto it) {
         return qaicInferenceSetWaitForCompletion(as<QAicInferenceSet>(it), 0);
       }},
      {"cancel", of,
       [](const Objects&, auto it) { return qaicInferenceSetCancel(as<QAicInferenceSet>(it), 1); }},
      {"shutdown", of,
       [](const Objects&, auto it) { return qaicInferenceSetShutdown(as<QAicInferenceSet>(it)); }},
      {"fd", of,
       [](const Objects&, auto it) {
         int fd = -1;
         return qaicInferenceSetGetFd(as<QAicInferenceSet>(it), &fd);
       }},
      {"program info", of,
       [](const Objects&, auto it) {
         QAicProgramInfoV2 info;
         return qaicInferenceSetGetProgramInfo(as<QAicInferenceSet>(it), &info);
       }},
      {"release", of,
       [](const Objects&, auto it) { return qaicReleaseInferenceSet(as<QAicInferenceSet>(it)); }},
  };
}

std::vector<Function> all_functions() {
  std::vector<Function> all;
  for (const auto& some :
       {program_functions(), exec_functions(), event_functions(), set_functions()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

void expect_refused(QStatus status, const char* function, const char* why) {
  EXPECT_EQ(status, QS_INVAL) << function << ", " << why;
  EXPECT_THAT(text(), Not(HasSubstr("\n"))) << function;
  EXPECT_THAT(text(), HasSubstr(";")) << function << " names no next step: " << text();
}

TEST(QaicMisuse, ObjectsThatAreNoneAreRefused) {
  const Bench bench("null:generic:4");
  const Objects objects(bench);
  for (const Function& function : all_functions()) {
    expect_refused(function.call(objects, 0), function.name, "null");
    expect_refused(function.call(objects, 0xdeadbeef), function.name, "no object");
    for (const auto other : {&Objects::context, &Objects::qpc, &Objects::program, &Objects::exec,
                             &Objects::queue, &Objects::event, &Objects::set}) {
      if (other != function.right)
        expect_refused(function.call(objects, objects.*other), function.name, "another kind");
    }
  }
  objects.release();
}

TEST(QaicMisuse, ObjectsThatWereReleasedAreRefused) {
  const Bench bench("null:generic:4");
  const Objects stale(bench);
  stale.release();
  const Objects live(bench);
  for (const Function& function : all_functions()) {
    if (function.right == &Objects::context || function.right == &Objects::qpc) continue;
    expect_refused(function.call(live, stale.*function.right), function.name, "stale");
    EXPECT_THAT(text(), HasSubstr("was released"));
  }
  live.release();
}

TEST(QaicMisuse, NullOutputsAreRefused) {
  const Bench bench("null:generic:4");
  const Objects o(bench);
  auto* program = as<QAicProgram>(o.program);
  auto* exec = as<QAicExecObj>(o.exec);
  auto* set = as<QAicInferenceSet>(o.set);
  const QAicInferenceSetConfig config;
  QBuffer* buffers = nullptr;
  std::uint32_t count = 0;
  const QStatus refused[] = {
      qaicProgramPropertiesInitDefault(nullptr),
      qaicCreateProgram(bench.context, nullptr, nullptr, 0, "n", bench.qpc),
      qaicProgramGetIoDescriptor(program, nullptr),
      qaicProgramGetIoBufferInfo(program, nullptr),
      qaicProgramGetInfo(program, nullptr),
      qaicExecObjGetInFlight(exec, nullptr),
      qaicInferenceSetGetInFlight(set, nullptr),
      qaicExecObjSetOwnedData(exec, 0, nullptr, nullptr, nullptr, &CountedOwner::release),
      qaicInferenceSetSetOwnedData(set, 0, 0, nullptr, nullptr, nullptr, &CountedOwner::release),
      qaicProgramGetInferenceCompletedCount(program, nullptr),
      qaicRunActivationCmd(program, static_cast<QAicProgramActivationCmd>(55)),
      qaicRunActivationCmd(program, QAIC_PROGRAM_CMD_INVAL),
      qaicCreateExecObj(bench.context, nullptr, nullptr, program, nullptr, nullptr, nullptr),
      qaicExecObjGetIoBuffers(exec, nullptr, &buffers),
      qaicExecObjGetIoBuffers(exec, &count, nullptr),
      qaicExecObjGetId(exec, nullptr),
      qaicCreateQueue(bench.context, nullptr, nullptr, 0),
      qaicCreateEvent(bench.context, nullptr, QAIC_EVENT_DEVICE_COMPLETE),
      qaicEventAddCallback(as<QAicEvent>(o.event), nullptr, nullptr),
      qaicReleaseConstants(nullptr),
      qaicCreateInferenceSet(bench.context, nullptr, &config, bench.qpc),
      qaicInferenceSetGetAvailable(set, 0, nullptr),
      qaicInferenceSetGetCompleted(set, 0, nullptr),
      qaicInferenceSetGetCompletedId(set, 1, 0, nullptr),
      qaicInferenceSetGetFd(set, nullptr),
      qaicInferenceSetGetProgramInfo(set, nullptr),
      qaicEnqueueExecObj(as<QAicQueue>(o.queue), exec, as<QAicEvent>(o.queue)),
  };
  for (std::size_t i = 0; i < std::size(refused); ++i) EXPECT_EQ(refused[i], QS_INVAL) << i;
  o.release();
}

TEST(QaicMisuse, AnUndefinedBitOfAnExecutionObjectIsRefused) {
  const Bench bench("null:generic:4");
  QAicProgram* program = bench.program();
  const QAicExecObjProperties_t bits = 0x10;
  QAicExecObj* exec = nullptr;
  EXPECT_EQ(qaicCreateExecObj(bench.context, &exec, &bits, program, nullptr, nullptr, nullptr),
            QS_INVAL);
  QAicContext* other = nullptr;
  const QID device = 0;
  ASSERT_EQ(qaicCreateContext(&other, nullptr, 1, &device, nullptr, nullptr, nullptr, nullptr),
            QS_SUCCESS);
  EXPECT_EQ(qaicCreateExecObj(other, &exec, nullptr, program, nullptr, nullptr, nullptr), QS_INVAL)
      << "a program of another context";
  EXPECT_EQ(qaicReleaseContext(other), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
}

/// Threads that use and release the same objects: codes, and nothing else.
TEST(QaicMisuse, ObjectsThatOtherThreadsReleaseAreSafe) {
  const Bench bench("null:generic:4?threads=1", nullptr, false);
  for (int round = 0; round < 20; ++round) {
    const Objects objects(bench);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        std::vector<Function> all = all_functions();
        std::erase_if(all,
                      [](const Function& f) { return std::string(f.name).starts_with("create"); });
        std::rotate(all.begin(), all.begin() + i * 7, all.end());
        for (const Function& function : all)
          static_cast<void>(function.call(objects, objects.*function.right));
      });
    for (std::thread& thread : threads) thread.join();
    // The next round uses the same memory.
    while (bench.device->counters().submitted != bench.device->counters().completed)
      std::this_thread::yield();
  }
}

}  // namespace
}  // namespace corelane::qaic::test
