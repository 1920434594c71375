/// The checking mode, each case in a process of its own: the variable is read once.
#include "adapters/rknn/checks/rknn_check.h"

#include "adapters/rknn/api/rknn_test_support.h"
#include "rknn_matmul_api.h"

namespace corelane::rknn::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RknnCheck : public ::testing::Test {
 protected:
  RknnCheck() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

/// What `child` writes, as the only thing of its process.
#define EXPECT_CHECKED(child, matcher) \
  EXPECT_EXIT((start(), (child)(), leave()), ::testing::ExitedWithCode(0), matcher)

void start() { setenv("CORELANE_RKNN_CHECK", "1", 1); }

/// y = 2 x of f32 (2, 8), with memory bound to both.
struct InPlace {
  explicit InPlace(std::uint32_t flags)
      : model(doubling({2, 8}), flags), in(model.ctx, 64), out(model.ctx, 64) {
    rknn_tensor_attr x = float_attr(RKNN_QUERY_INPUT_ATTR);
    rknn_tensor_attr y = float_attr(RKNN_QUERY_OUTPUT_ATTR);
    EXPECT_EQ(rknn_set_io_mem(model.ctx, in.mem, &x), RKNN_SUCC);
    EXPECT_EQ(rknn_set_io_mem(model.ctx, out.mem, &y), RKNN_SUCC);
  }
  rknn_tensor_attr float_attr(rknn_query_cmd cmd) const {
    rknn_tensor_attr attr = model.attr(cmd);
    attr.type = RKNN_TENSOR_FLOAT32;
    attr.size = 64;
    return attr;
  }
  int sync(const Mem& mem, rknn_mem_sync_mode mode) const {
    return rknn_mem_sync(model.ctx, mem.mem, mode);
  }
  Model model;
  Mem in, out;
};

constexpr std::uint32_t kOwnSyncs =
    RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE | RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE;

void correct_program(std::uint32_t flags) {
  InPlace p(flags);
  for (float first = 1; first < 4; ++first) {
    p.in.fill(ramp(16, first));
    EXPECT_EQ(p.sync(p.in, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
    EXPECT_EQ(p.model.run(), RKNN_SUCC);
    EXPECT_EQ(p.sync(p.out, RKNN_MEMORY_SYNC_FROM_DEVICE), RKNN_SUCC);
    EXPECT_EQ(p.out.as<float>()[0], 2 * first);
  }
}

TEST_F(RknnCheck, ACorrectProgramGetsNoReports) {
  EXPECT_CHECKED([] { correct_program(kOwnSyncs); }, Not(HasSubstr("check:")));
  EXPECT_CHECKED([] { correct_program(0); }, Not(HasSubstr("check:")));
}

TEST_F(RknnCheck, WithoutTheFlagsTheLibraryFlushesAndNoSyncIsMissed) {
  const auto child = [] {
    InPlace p(0);
    p.in.fill(ramp(16, 1));
    EXPECT_EQ(p.model.run(), RKNN_SUCC);
    EXPECT_EQ(p.model.run(), RKNN_SUCC);
  };
  EXPECT_CHECKED(child, Not(HasSubstr("check:")));
}

TEST_F(RknnCheck, AnInputThatWasWrittenAndNotSyncedIsReported) {
  const auto child = [] {
    InPlace p(RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE);
    p.in.fill(ramp(16, 1));
    EXPECT_EQ(p.model.run(), RKNN_SUCC);
  };
  EXPECT_CHECKED(child, AllOf(HasSubstr("W RKNN: ["), HasSubstr("check: the memory of input 0 'x'"),
                              HasSubstr("never synced"), HasSubstr("rknn_mem_sync(TO_DEVICE)"),
                              HasSubstr("caused by rknn_run (call ")));
}

TEST_F(RknnCheck, AnInputThatWasWrittenAfterItsSyncIsReportedOncePerContent) {
  const auto child = [] {
    InPlace p(RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE);
    p.in.fill(ramp(16, 1));
    EXPECT_EQ(p.sync(p.in, RKNN_MEMORY_SYNC_BIDIRECTIONAL), RKNN_SUCC);
    EXPECT_EQ(lines_of([&] { p.model.run(); }), "");
    p.in.as<float>()[3] = 100;
    EXPECT_THAT(lines_of([&] { p.model.run(); }),
                HasSubstr("was written after its last sync, rknn_mem_sync (call "));
    EXPECT_EQ(lines_of([&] { p.model.run(); }), "");
  };
  EXPECT_CHECKED(child, "");
}

TEST_F(RknnCheck, ASyncBeforeTheBindingCounts) {
  const auto child = [] {
    Model model(doubling({2, 8}), RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE);
    const Mem mem(model.ctx, 4096);
    mem.fill(ramp(16, 1));
    EXPECT_EQ(rknn_mem_sync(model.ctx, mem.mem, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
    rknn_tensor_attr x = model.attr(RKNN_QUERY_INPUT_ATTR);
    x.type = RKNN_TENSOR_FLOAT32;
    x.size = 64;
    EXPECT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &x), RKNN_SUCC);
    EXPECT_EQ(model.run(), RKNN_SUCC);
  };
  EXPECT_CHECKED(child, Not(HasSubstr("check:")));
}

TEST_F(RknnCheck, ResultsThatNobodySyncedAreReportedAtTheNextRunAndAtTheEnd) {
  const auto child = [] {
    InPlace p(RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE);
    p.in.fill(ramp(16, 1));
    EXPECT_EQ(lines_of([&] { p.model.run(); }), "");
    EXPECT_THAT(lines_of([&] { p.model.run(); }),
                AllOf(HasSubstr("results in the memory of output 0 'y'"),
                      HasSubstr("before the next run"), HasSubstr("caused by rknn_run (call ")));
    EXPECT_THAT(lines_of([&] { p.model.destroy(); }),
                HasSubstr("before the context was destroyed"));
  };
  EXPECT_CHECKED(child, "");
}

TEST_F(RknnCheck, ASizeThatDoesNotFollowTheTypeIsReported) {
  const auto child = [] {
    Model model(doubling({2, 8}));
    const Mem mem(model.ctx, 64);
    rknn_tensor_attr x = model.attr(RKNN_QUERY_INPUT_ATTR);
    EXPECT_EQ(x.size, 32u);  // Of FLOAT16.
    x.type = RKNN_TENSOR_FLOAT32;
    EXPECT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &x), RKNN_SUCC);
  };
  EXPECT_CHECKED(child, AllOf(HasSubstr("check: attr.size 32 of input 0 'x' is stale"),
                              HasSubstr("64 bytes"), HasSubstr("rknn_set_io_mem (call ")));
}

std::string two_shapes() {
  ImportOptions options;
  options.shape_sets = {{Shape({1, 8})}, {Shape({2, 8})}};
  const std::string onnx = OnnxBuilder()
                               .input("x", {"n", std::int64_t{8}})
                               .output("y", {"n", std::int64_t{8}})
                               .node("Neg", {"x"}, {"y"})
                               .build();
  return compiled(onnx, options);
}

TEST_F(RknnCheck, MemoryAndAttrsFromBeforeNewShapesAreStale) {
  const auto child = [] {
    Model model(two_shapes());
    rknn_tensor_attr x = model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR);
    x.type = RKNN_TENSOR_FLOAT32;
    x.size = 64;
    const rknn_tensor_attr before = x;
    const Mem mem(model.ctx, 64);
    EXPECT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &x), RKNN_SUCC);
    x.dims[0] = before.dims[0] == 1 ? 2 : 1;
    EXPECT_EQ(rknn_set_input_shapes(model.ctx, 1, &x), RKNN_SUCC);
    EXPECT_THAT(lines_of([&] { model.run(); }),
                AllOf(HasSubstr("the memory of input 0 'x' is stale"),
                      HasSubstr("bound by rknn_set_io_mem (call "),
                      HasSubstr("caused by rknn_set_input_shapes (call ")));
    EXPECT_EQ(lines_of([&] { model.run(); }), "");
    x = before;
    EXPECT_THAT(lines_of([&] { rknn_set_io_mem(model.ctx, mem.mem, &x); }), HasSubstr("attr.dims"));
  };
  EXPECT_CHECKED(child, "");
}

TEST_F(RknnCheck, MemoryThatIsTouchedBeforeItsRunIsOverIsReported) {
  const auto child = [] {
    InPlace p(0);
    p.in.fill(ramp(16, 1));
    rknn_run_extend extend{};
    extend.non_block = 1;
    EXPECT_EQ(p.model.run(&extend), RKNN_SUCC);
    EXPECT_THAT(lines_of([&] { p.sync(p.out, RKNN_MEMORY_SYNC_FROM_DEVICE); }),
                AllOf(HasSubstr("the memory of output 0 'y' is synced while rknn_run (call "),
                      HasSubstr("rknn_wait")));
    EXPECT_EQ(rknn_wait(p.model.ctx, &extend), RKNN_SUCC);
    EXPECT_EQ(lines_of([&] { p.sync(p.out, RKNN_MEMORY_SYNC_FROM_DEVICE); }), "");
    EXPECT_EQ(p.model.run(&extend), RKNN_SUCC);
    EXPECT_THAT(lines_of([&] { p.in.destroy(); }),
                HasSubstr("the memory of input 0 'x' is destroyed while rknn_run (call "));
    EXPECT_THAT(lines_of([&] { p.model.destroy(); }),
                HasSubstr("destroyed while nobody has waited for frame 2"));
  };
  EXPECT_CHECKED(child, "");
}

TEST_F(RknnCheck, WhatIsLeftAtExitIsReportedWithTheCallThatMadeIt) {
  const auto child = [] {
    std::string bytes = doubling({2, 8});
    rknn_context context = 0;
    EXPECT_EQ(
        rknn_init(&context, bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, nullptr),
        RKNN_SUCC);
    EXPECT_NE(rknn_create_mem(context, 128), nullptr);
    const Mem given_back(context, 64);
  };
  EXPECT_CHECKED(
      child,
      AllOf(::testing::ContainsRegex("check: context 0x[0-9a-f]+ was not destroyed at exit; "
                                     "caused by rknn_init \\(call 1"),
            ::testing::ContainsRegex("check: memory of 128 bytes was not destroyed at exit; caused "
                                     "by rknn_create_mem \\(call 2"),
            Not(HasSubstr("memory of 64 bytes"))));
}

TEST_F(RknnCheck, OutputBuffersThatWereNotReleasedAreReported) {
  const auto child = [] {
    Model model(doubling({2, 8}));
    EXPECT_EQ(model.set(ramp(16)), RKNN_SUCC);
    EXPECT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats().size(), 16u);  // Released.
    rknn_output output{};
    EXPECT_EQ(rknn_outputs_get(model.ctx, 1, &output, nullptr), RKNN_SUCC);
    EXPECT_THAT(lines_of([&] { model.destroy(); }),
                AllOf(HasSubstr("an output buffer was not given back"),
                      HasSubstr("caused by rknn_outputs_get (call ")));
  };
  EXPECT_CHECKED(child, "");
}

TEST_F(RknnCheck, BOfAProductThatWasWrittenWithoutASyncIsReported) {
  const auto child = [] {
    rknn_matmul_info info{};
    info.M = 1;
    info.K = 32;
    info.N = 32;
    info.type = RKNN_INT8_MM_INT8_TO_INT32;
    rknn_matmul_io_attr io;
    rknn_matmul_ctx ctx = 0;
    EXPECT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_SUCC);
    const Mem a(ctx, io.A.size), b(ctx, io.B.size), c(ctx, io.C.size);
    a.fill(std::vector<std::int8_t>(32, 1));
    b.fill(std::vector<std::int8_t>(1024, 2));
    EXPECT_EQ(rknn_matmul_set_io_mem(ctx, a.mem, &io.A), RKNN_SUCC);
    EXPECT_EQ(rknn_matmul_set_io_mem(ctx, b.mem, &io.B), RKNN_SUCC);
    EXPECT_EQ(rknn_matmul_set_io_mem(ctx, c.mem, &io.C), RKNN_SUCC);
    EXPECT_EQ(lines_of([&] { rknn_matmul_run(ctx); }), "");
    b.as<std::int8_t>()[0] = 7;
    EXPECT_EQ(rknn_mem_sync(ctx, b.mem, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
    EXPECT_EQ(lines_of([&] { rknn_matmul_run(ctx); }), "");
    b.as<std::int8_t>()[0] = 8;
    EXPECT_THAT(lines_of([&] { rknn_matmul_run(ctx); }),
                AllOf(HasSubstr("check: B was written after it was last announced"),
                      HasSubstr("caused by rknn_matmul_run (call ")));
    EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  };
  EXPECT_CHECKED(child, "");
}

TEST_F(RknnCheck, OffItIsSilent) {
  const auto child = [] {
    setenv("CORELANE_RKNN_CHECK", "0", 1);
    InPlace p(kOwnSyncs);
    p.in.fill(ramp(16, 1));
    EXPECT_EQ(p.model.run(), RKNN_SUCC);
    EXPECT_EQ(p.model.run(), RKNN_SUCC);
    EXPECT_NE(rknn_create_mem(p.model.ctx, 64), nullptr);
  };
  EXPECT_CHECKED(child, Not(HasSubstr("check:")));
}

}  // namespace
}  // namespace corelane::rknn::test
