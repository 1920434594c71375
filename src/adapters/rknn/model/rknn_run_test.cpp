/// rknn_run and rknn_wait: in the background, frame ids, time limits, fences, ASYNC_MASK, threads.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>

#include "adapters/rknn/model/rknn_fault_support.h"
#include "device/fence_order.h"

namespace corelane::rknn::test {
namespace {

using ::testing::HasSubstr;

class EventFd {
 public:
  ~EventFd() { close(fd); }
  void signal() const {
    device::before_descriptor_write();
    eventfd_write(fd, 1);
  }
  const int fd = eventfd(0, EFD_CLOEXEC);
};

bool readable(int fd, int timeout_ms) {
  pollfd p{fd, POLLIN, 0};
  const bool is_readable = poll(&p, 1, timeout_ms) == 1;
  device::after_descriptor_wait();
  return is_readable;
}

// --- Blocking and in the background. ------------------------------------------------------------

TEST(RknnRun, IdsOfFramesCountRunsFromOne) {
  const Model model(doubling({1, 2}));
  ASSERT_EQ(model.set({1, 2}), RKNN_SUCC);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    rknn_run_extend extend = id % 2 == 0 ? background() : rknn_run_extend{};
    ASSERT_EQ(model.run(&extend), RKNN_SUCC);
    EXPECT_EQ(extend.frame_id, id);
  }
  EXPECT_EQ(model.floats(), (std::vector<float>{2, 4}));
}

TEST(RknnRun, WaitEndsARunInTheBackground) {
  const Model model(doubling({1, 2}));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(model.set({static_cast<float>(i), 2}), RKNN_SUCC);
    rknn_run_extend extend = background();
    ASSERT_EQ(model.run(&extend), RKNN_SUCC);
    ASSERT_EQ(rknn_wait(model.ctx, &extend), RKNN_SUCC);
    EXPECT_EQ(model.floats(), (std::vector<float>{2.0F * static_cast<float>(i), 4}));
  }
}

TEST(RknnRun, WaitWithoutAFrameIsForTheLastOne) {
  const Model model(doubling({1, 2}));
  ASSERT_EQ(model.set({1, 2}), RKNN_SUCC);
  rknn_run_extend extend = background();
  ASSERT_EQ(model.run(&extend), RKNN_SUCC);
  EXPECT_EQ(rknn_wait(model.ctx, nullptr), RKNN_SUCC);
  rknn_run_extend any{};
  EXPECT_EQ(rknn_wait(model.ctx, &any), RKNN_SUCC);
  EXPECT_EQ(any.frame_id, 1U);
}

TEST(RknnRun, OutputsGetWaitsForARunInTheBackground) {
  const Model model(doubling({1, 2}));
  ASSERT_EQ(model.set({1, 2}), RKNN_SUCC);
  rknn_run_extend extend = background();
  ASSERT_EQ(model.run(&extend), RKNN_SUCC);
  EXPECT_EQ(model.floats(), (std::vector<float>{2, 4}));
}

TEST(RknnRun, InputsSetDuringARunAreForTheNextOne) {
  const Model model(doubling({1, 2}));
  ASSERT_EQ(model.set({1, 2}), RKNN_SUCC);
  rknn_run_extend extend = background();
  ASSERT_EQ(model.run(&extend), RKNN_SUCC);
  ASSERT_EQ(model.set({5, 6}), RKNN_SUCC);
  EXPECT_EQ(model.floats(), (std::vector<float>{2, 4}));
}

TEST(RknnRun, FramesThatAreOverCanBeWaitedForAndFramesToComeCannot) {
  const Model model(doubling({1, 2}));
  ASSERT_EQ(model.set({1, 2}), RKNN_SUCC);
  EXPECT_EQ(rknn_wait(model.ctx, nullptr), RKNN_ERR_FAIL);  // Nothing runs.
  for (int i = 0; i < 3; ++i) {
    rknn_run_extend extend = background();
    ASSERT_EQ(model.run(&extend), RKNN_SUCC);
  }
  for (const std::uint64_t id : {1U, 2U, 3U, 3U, 1U}) {
    rknn_run_extend extend{};
    extend.frame_id = id;
    EXPECT_EQ(rknn_wait(model.ctx, &extend), RKNN_SUCC);
    EXPECT_EQ(extend.frame_id, id);
  }
  rknn_run_extend extend{};
  extend.frame_id = 4;
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_wait(model.ctx, &extend), RKNN_ERR_PARAM_INVALID); });
  EXPECT_THAT(lines, HasSubstr("the last one is 3"));
}

TEST(RknnRun, HowAFrameEndedIsForgottenAfterSixteenFailuresAndNotTakenForSuccess) {
  const Environment plan("CORELANE_FAULTS", "short=1");
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  const Model model(doubling({1, 4}));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(model.run(), RKNN_ERR_FAIL);
  const auto wait = [&](std::uint64_t id) {
    rknn_run_extend extend{};
    extend.frame_id = id;
    return rknn_wait(model.ctx, &extend);
  };
  const std::string line = lines_of([&] { EXPECT_EQ(wait(1), RKNN_ERR_PARAM_INVALID); });
  EXPECT_THAT(line, HasSubstr("how frame 1 ended is no longer known"));
  EXPECT_EQ(wait(4), RKNN_ERR_PARAM_INVALID);
  for (const std::uint64_t id : {5U, 19U, 20U}) EXPECT_EQ(wait(id), RKNN_ERR_FAIL) << id;
}

TEST(RknnRun, DestroyDuringARunInTheBackgroundIsClean) {
  for (int i = 0; i < 10; ++i) {
    Model model(doubling({1, 3, 64, 64}));
    const Mem out(model.ctx, 3 * 64 * 64 * 4);
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_OUTPUT_ATTR);
    attr.type = RKNN_TENSOR_FLOAT32;
    ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
    ASSERT_EQ(model.set(ramp(std::size_t{3} * 64 * 64)), RKNN_SUCC);
    rknn_run_extend extend = background();
    ASSERT_EQ(model.run(&extend), RKNN_SUCC);
    model.destroy();
  }
}

TEST(RknnRun, TimesOfARunAreReported) {
  const Model model(doubling({1, 3, 64, 64}));
  ASSERT_EQ(model.set(ramp(std::size_t{3} * 64 * 64)), RKNN_SUCC);
  rknn_run_extend extend = background();
  ASSERT_EQ(model.run(&extend), RKNN_SUCC);
  ASSERT_EQ(rknn_wait(model.ctx, &extend), RKNN_SUCC);
  rknn_perf_run perf{-1};
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_PERF_RUN, &perf, sizeof perf), RKNN_SUCC);
  EXPECT_GE(perf.run_duration, 0);
}

// --- Fences. ------------------------------------------------------------------------------------

/// The context with its input set, or bound so that it is converted at each run.
struct Fenced {
  explicit Fenced(std::uint32_t flags, bool bound) : model(doubling({1, 4}), flags) {
    if (!bound) {
      EXPECT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
      return;
    }
    in = std::make_unique<Mem>(model.ctx, 8);
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);  // Halves: converted.
    EXPECT_EQ(rknn_set_io_mem(model.ctx, in->mem, &attr), RKNN_SUCC);
  }
  void write() const {
    if (in) in->fill(halves({1, 2, 3, 4}));
  }
  Model model;
  std::unique_ptr<Mem> in;
};

TEST(RknnRun, ARunInTheBackgroundWaitsForTheFenceAndReturnsAtOnce) {
  for (const bool bound : {false, true}) {
    const Fenced f(RKNN_FLAG_FENCE_IN_OUTSIDE, bound);
    const EventFd go;
    rknn_run_extend extend = background();
    extend.fence_fd = go.fd;
    ASSERT_EQ(f.model.run(&extend), RKNN_SUCC);  // This thread signals, so it must come back.
    rknn_run_extend soon{};
    soon.timeout_ms = 1;
    const std::string lines =
        lines_of([&] { EXPECT_EQ(rknn_wait(f.model.ctx, &soon), RKNN_ERR_TIMEOUT); });
    EXPECT_THAT(lines, HasSubstr("wait"));
    f.write();  // The fence says that the input is there.
    go.signal();
    ASSERT_EQ(rknn_wait(f.model.ctx, &extend), RKNN_SUCC);
    EXPECT_EQ(f.model.floats(), (std::vector<float>{2, 4, 6, 8}));
    EXPECT_TRUE(readable(go.fd, 0));  // Not consumed, not closed.
  }
}

TEST(RknnRun, ABlockingRunWaitsForTheFence) {
  for (const bool bound : {false, true})
    for (const int timeout_ms : {0, 20000}) {
      const Fenced f(RKNN_FLAG_FENCE_IN_OUTSIDE, bound);
      const EventFd go;
      rknn_run_extend extend{};
      extend.fence_fd = go.fd;
      extend.timeout_ms = timeout_ms;
      std::thread other([&] {
        f.write();
        go.signal();
      });
      EXPECT_EQ(f.model.run(&extend), RKNN_SUCC);
      other.join();
      EXPECT_EQ(f.model.floats(), (std::vector<float>{2, 4, 6, 8}));
    }
}

TEST(RknnRun, AFenceThatDoesNotComeEndsAtTheTimeLimit) {
  for (const bool bound : {false, true})
    for (const bool background_run : {false, true}) {
      const Fenced f(RKNN_FLAG_FENCE_IN_OUTSIDE, bound);
      const EventFd never, go;
      rknn_run_extend extend = background_run ? background() : rknn_run_extend{};
      extend.fence_fd = never.fd;
      extend.timeout_ms = 5;
      if (background_run) {
        ASSERT_EQ(f.model.run(&extend), RKNN_SUCC);
        rknn_run_extend wait{};
        EXPECT_EQ(rknn_wait(f.model.ctx, &wait), RKNN_ERR_TIMEOUT);
      } else {
        EXPECT_EQ(f.model.run(&extend), RKNN_ERR_TIMEOUT);
      }
      // The context goes on.
      f.write();
      go.signal();
      extend.fence_fd = go.fd;
      extend.timeout_ms = 0;
      ASSERT_EQ(f.model.run(&extend), RKNN_SUCC);
      EXPECT_EQ(f.model.floats(), (std::vector<float>{2, 4, 6, 8}));
    }
}

TEST(RknnRun, DestroyDoesNotWaitForAFence) {
  for (const bool bound : {false, true}) {
    Fenced f(RKNN_FLAG_FENCE_IN_OUTSIDE, bound);
    const EventFd never;
    rknn_run_extend extend = background();
    extend.fence_fd = never.fd;
    ASSERT_EQ(f.model.run(&extend), RKNN_SUCC);
    f.model.destroy();
  }
}

TEST(RknnRun, WithoutTheFlagOrWithoutADescriptorThereIsNoFence) {
  const Fenced f(0, false);
  const EventFd never;
  rknn_run_extend extend{};
  extend.fence_fd = never.fd;
  EXPECT_EQ(f.model.run(&extend), RKNN_SUCC);
  EXPECT_EQ(extend.fence_fd, never.fd);
  const Fenced g(RKNN_FLAG_FENCE_IN_OUTSIDE, false);
  extend.fence_fd = -1;
  EXPECT_EQ(g.model.run(&extend), RKNN_SUCC);
  EXPECT_EQ(g.model.run(nullptr), RKNN_SUCC);
  extend.fence_fd = 1 << 20;  // Not open.
  EXPECT_EQ(g.model.run(&extend), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnRun, AFenceOutTurnsReadableWhenTheRunIsOver) {
  for (const bool in_background : {false, true}) {
    const Fenced f(RKNN_FLAG_FENCE_OUT_OUTSIDE, false);
    std::array<int, 3> fds{};
    for (int& fd : fds) {
      rknn_run_extend extend = in_background ? background() : rknn_run_extend{};
      ASSERT_EQ(f.model.run(&extend), RKNN_SUCC);
      fd = extend.fence_fd;
      ASSERT_GE(fd, 0);
      EXPECT_TRUE(readable(fd, in_background ? 20000 : 0));
    }
    EXPECT_NE(fds[0], fds[1]);
    for (const int fd : fds) EXPECT_EQ(close(fd), 0);
    EXPECT_EQ(f.model.floats(), (std::vector<float>{2, 4, 6, 8}));
  }
}

TEST(RknnRun, FencesChainTwoContexts) {
  constexpr std::uint32_t kBoth = RKNN_FLAG_FENCE_IN_OUTSIDE | RKNN_FLAG_FENCE_OUT_OUTSIDE;
  const Model first(doubling({1, 4}), kBoth), second(doubling({1, 4}), kBoth);
  const Mem between(first.ctx, 8);  // Halves: converted on both sides.
  rknn_tensor_attr attr = first.attr(RKNN_QUERY_OUTPUT_ATTR);
  ASSERT_EQ(rknn_set_io_mem(first.ctx, between.mem, &attr), RKNN_SUCC);
  attr = second.attr(RKNN_QUERY_INPUT_ATTR);
  ASSERT_EQ(rknn_set_io_mem(second.ctx, between.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(first.set({1, 2, 3, 4}), RKNN_SUCC);
  const EventFd go;
  rknn_run_extend extend = background();
  extend.fence_fd = go.fd;
  ASSERT_EQ(first.run(&extend), RKNN_SUCC);
  const int middle = extend.fence_fd;
  ASSERT_NE(middle, go.fd);
  ASSERT_EQ(second.run(&extend), RKNN_SUCC);
  const int end = extend.fence_fd;
  EXPECT_FALSE(readable(middle, 0));
  EXPECT_FALSE(readable(end, 0));
  go.signal();
  EXPECT_TRUE(readable(end, 20000));
  EXPECT_TRUE(readable(middle, 0));
  EXPECT_EQ(second.floats(), (std::vector<float>{4, 8, 12, 16}));
  close(middle);
  close(end);
}

TEST(RknnRun, AFailedRunGivesNoDescriptor) {
  constexpr std::uint32_t kBoth = RKNN_FLAG_FENCE_IN_OUTSIDE | RKNN_FLAG_FENCE_OUT_OUTSIDE;
  const Model model(doubling({1, 4}), kBoth);
  const EventFd never;
  rknn_run_extend extend{};
  extend.fence_fd = never.fd;
  extend.timeout_ms = 2;
  const int before = dup(never.fd);
  close(before);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(model.run(&extend), RKNN_ERR_TIMEOUT);
    EXPECT_EQ(extend.fence_fd, never.fd);  // The caller's, still.
  }
}

// --- ASYNC_MASK. --------------------------------------------------------------------------------

TEST(RknnRun, AsyncGivesTheResultsOfTheFrameBefore) {
  const Model model(doubling({1, 2}), RKNN_FLAG_ASYNC_MASK);
  for (int i = 1; i <= 6; ++i) {
    ASSERT_EQ(model.set({static_cast<float>(i), 0}), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    rknn_output output{};
    output.want_float = 1;
    rknn_output_extend extend{};
    ASSERT_EQ(rknn_outputs_get(model.ctx, 1, &output, &extend), RKNN_SUCC);
    const int expected = i == 1 ? 1 : i - 1;
    EXPECT_EQ(*static_cast<float*>(output.buf), 2.0F * static_cast<float>(expected));
    EXPECT_EQ(extend.frame_id, static_cast<std::uint64_t>(expected));
    EXPECT_EQ(rknn_outputs_release(model.ctx, 1, &output), RKNN_SUCC);
  }
}

TEST(RknnRun, AsyncRunsUseInputsThatWereSetOnce) {
  const Model model(two_by_two({1, 4096}), RKNN_FLAG_ASYNC_MASK);
  ASSERT_EQ(model.set(std::vector<float>(4096, 1), 0), RKNN_SUCC);
  ASSERT_EQ(model.set(std::vector<float>(4096, 5), 1), RKNN_SUCC);
  for (int i = 0; i < 6; ++i) ASSERT_EQ(model.run(), RKNN_SUCC) << i;
  EXPECT_EQ(model.floats(), std::vector<float>(4096, 6));
  // One of two is set anew; the other one is brought along.
  ASSERT_EQ(model.set(std::vector<float>(4096, 2), 0), RKNN_SUCC);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(model.run(), RKNN_SUCC) << i;
  EXPECT_EQ(model.floats(), std::vector<float>(4096, 7));
  EXPECT_EQ(model.floats(1), std::vector<float>(4096, -3));
}

TEST(RknnRun, AsyncGivesTheFirstResultAfterAChangeOfShapes) {
  const Model model(OnnxBuilder()
                        .input("x", {"batch", "n"})
                        .output("y", {"n"})
                        .node("Add", {"x", "x"}, {"y"})
                        .build(),
                    RKNN_FLAG_ASYNC_MASK);
  for (const std::uint32_t n : {2U, 3U, 4U}) {
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
    attr.n_dims = 2;
    attr.dims[0] = 1;
    attr.dims[1] = n;
    ASSERT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_SUCC);
    for (int i = 1; i <= 3; ++i) {
      const std::vector<float> x(n, static_cast<float>(i));
      ASSERT_EQ(model.set(x), RKNN_SUCC);
      ASSERT_EQ(model.run(), RKNN_SUCC);
      EXPECT_EQ(model.floats(),
                std::vector<float>(n, i == 1 ? 2 : 2.0F * static_cast<float>(i - 1)));
    }
  }
}

TEST(RknnRun, AsyncBoundMemoryHoldsTheLastResultWhicheverIsBound) {
  const Model model(doubling({1, 2}), RKNN_FLAG_ASYNC_MASK);
  const Mem outs[] = {{model.ctx, 8}, {model.ctx, 8}};
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_OUTPUT_ATTR);
  attr.type = RKNN_TENSOR_FLOAT32;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(rknn_set_io_mem(model.ctx, outs[i % 2].mem, &attr), RKNN_SUCC);
    const std::vector<float> x(2, static_cast<float>(i));
    ASSERT_EQ(model.set(x), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(x, 2)) << i;
    EXPECT_EQ(outs[i % 2].values<float>(2), times(x, 2)) << i;
  }
}

TEST(RknnRun, AsyncWaitEndsTheFrameThatIsNamed) {
  const Model model(doubling({1, 2}), RKNN_FLAG_ASYNC_MASK);
  ASSERT_EQ(model.set({1, 2}), RKNN_SUCC);
  for (std::uint64_t id = 1; id <= 5; ++id) {
    rknn_run_extend extend{};
    ASSERT_EQ(model.run(&extend), RKNN_SUCC);
    EXPECT_EQ(extend.frame_id, id);
    extend.frame_id = id == 1 ? 1 : id - 1;
    EXPECT_EQ(rknn_wait(model.ctx, &extend), RKNN_SUCC);
  }
}

TEST(RknnRun, AsyncInputsTakeTurnsBetweenSettingAndBinding) {
  const Model model(doubling({1, 4}), RKNN_FLAG_ASYNC_MASK);
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
  for (int round = 0; round < 2; ++round) {
    {
      const Mem in(model.ctx, 8);
      in.fill(halves({7, 7, 7, 7}));
      ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
      for (int i = 0; i < 3; ++i) ASSERT_EQ(model.run(), RKNN_SUCC);
      EXPECT_EQ(model.floats(), std::vector<float>(4, 14));
      ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    }  // The memory is gone; neither frame reads it.
    for (int i = 0; i < 3; ++i) ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 8}));
  }
}

// --- Threads. -----------------------------------------------------------------------------------

TEST(RknnRun, ContextsOfTheirOwnRunFromThreadsOfTheirOwn) {
  const Model master(doubling({1, 64}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      Model own;
      rknn_context from = master.ctx;
      ASSERT_EQ(rknn_dup_context(&from, &own.ctx), RKNN_SUCC);
      ASSERT_EQ(rknn_set_core_mask(own.ctx, static_cast<rknn_core_mask>(1 << t)), RKNN_SUCC);
      for (int i = 0; i < 50; ++i) {
        const auto x = ramp(64, static_cast<float>(t * 1000 + i));
        ASSERT_EQ(own.set(x), RKNN_SUCC);
        ASSERT_EQ(own.run(), RKNN_SUCC);
        ASSERT_EQ(own.floats(), times(x, 2));
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST(RknnRun, OneContextFromManyThreadsIsSerialised) {
  for (const std::uint32_t flags : {0U, std::uint32_t{RKNN_FLAG_ASYNC_MASK}}) {
    const Model model(doubling({1, 64}), flags);
    const Mem in(model.ctx, 256);
    in.fill(std::vector<float>(64, 3));
    ASSERT_EQ(model.set(std::vector<float>(64, 3)), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          rknn_run_extend extend = t % 2 == 0 ? background() : rknn_run_extend{};
          ASSERT_EQ(model.set(std::vector<float>(64, 3)), RKNN_SUCC);
          ASSERT_EQ(model.run(&extend), RKNN_SUCC);
          ASSERT_EQ(rknn_wait(model.ctx, &extend), RKNN_SUCC);
          ASSERT_EQ(model.floats(), std::vector<float>(64, 6));
          rknn_tensor_attr attr = model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR);
          attr.type = RKNN_TENSOR_FLOAT32;
          if (t < 3) continue;
          ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
        }
      });
    for (auto& thread : threads) thread.join();
  }
}

// --- Faults. ------------------------------------------------------------------------------------

TEST(RknnRun, AHungRunEndsAtTheTimeLimitAndTheContextGoesOn) {
  const Environment plan("CORELANE_FAULTS", faults("hang=0.2", device::Fault::kHang));
  for (const bool in_background : {false, true})
    for (const bool in_place : {false, true}) {
      const Environment inner("CORELANE_RKNN_INNER", own_device());
      const Model model(doubling({1, 4}));
      const Mem in(model.ctx, 16), out(model.ctx, 16);
      if (in_place) {
        rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
        attr.type = RKNN_TENSOR_FLOAT32;
        ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
        attr = model.attr(RKNN_QUERY_OUTPUT_ATTR);
        attr.type = RKNN_TENSOR_FLOAT32;
        ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
        in.fill(std::vector<float>{1, 2, 3, 4});
      } else {
        ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
      }
      rknn_run_extend extend = in_background ? background() : rknn_run_extend{};
      extend.timeout_ms = 30;
      int code = model.run(&extend);
      if (in_background) {
        ASSERT_EQ(code, RKNN_SUCC);
        rknn_run_extend wait{};
        code = rknn_wait(model.ctx, &wait);
      }
      ASSERT_EQ(code, RKNN_ERR_TIMEOUT);
      rknn_output output{};
      output.want_float = 1;
      EXPECT_EQ(rknn_outputs_get(model.ctx, 1, &output, nullptr), RKNN_ERR_TIMEOUT);
      // At once, without a word from the caller that the device is well again.
      extend = {};
      extend.timeout_ms = 20000;
      for (int tries = 0; (code = model.run(&extend)) == RKNN_ERR_TIMEOUT && tries < 2; ++tries) {
      }
      ASSERT_EQ(code, RKNN_SUCC);
      EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 8}));
      extend.frame_id = 1;  // How the first one ended is not forgotten.
      EXPECT_EQ(rknn_wait(model.ctx, &extend), RKNN_ERR_TIMEOUT);
    }
}

TEST(RknnRun, ACrashOfTheDeviceIsToldAndTheContextGoesOn) {
  const Environment plan("CORELANE_FAULTS", faults("crash=0.2", device::Fault::kCrash));
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  const Model model(doubling({1, 4}));
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  const std::string lines = lines_of([&] { EXPECT_LT(model.run(), 0); });
  EXPECT_THAT(lines, HasSubstr("rknn_run"));
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 8}));
}

TEST(RknnRun, SlowRunsAreRightAsWell) {
  const Environment plan("CORELANE_FAULTS", "slow=1,slow_ms=1");
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  const Model model(doubling({1, 4}));
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(model.set({1, 2, 3, static_cast<float>(i)}), RKNN_SUCC);
    rknn_run_extend extend = background();
    ASSERT_EQ(model.run(&extend), RKNN_SUCC);
    EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 2.0F * static_cast<float>(i)}));
  }
}

TEST(RknnRun, FlippedAndShortResultsNeverCrash) {
  const Environment plan("CORELANE_FAULTS", "flip=0.3,short=0.3,oom=0.1,seed=5");
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  std::string bytes = doubling({1, 4});
  int done = 0;
  for (int i = 0; i < 40; ++i) {
    rknn_context ctx = 0;
    const int code =
        rknn_init(&ctx, bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, nullptr);
    if (code != RKNN_SUCC) {
      EXPECT_EQ(code, RKNN_ERR_MALLOC_FAIL);
      continue;
    }
    std::vector<float> x{1, 2, 3, 4};
    rknn_input input{};
    input.buf = x.data();
    input.size = 16;
    if (rknn_inputs_set(ctx, 1, &input) == RKNN_SUCC && rknn_run(ctx, nullptr) == RKNN_SUCC) {
      rknn_output output{};
      output.want_float = 1;
      if (rknn_outputs_get(ctx, 1, &output, nullptr) == RKNN_SUCC) {
        ++done;
        EXPECT_EQ(rknn_outputs_release(ctx, 1, &output), RKNN_SUCC);
      }
    }
    EXPECT_EQ(rknn_destroy(ctx), RKNN_SUCC);
  }
  EXPECT_GT(done, 0);
}

}  // namespace
}  // namespace corelane::rknn::test
