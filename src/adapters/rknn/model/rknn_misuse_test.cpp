/// Each function of rknn_api.h with what a program may get wrong: a code, one line, never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/rknn/api/rknn_test_support.h"
#include "rknn_api.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::rknn {
namespace {

using test::lines_of;
using ::testing::HasSubstr;
using testing::OnnxBuilder;

std::string picture_model() {
  return OnnxBuilder()
      .input("x", {1, 3, 4, 4})
      .output("y", {1, 3, 4, 4})
      .node("Relu", {"x"}, {"y"})
      .build();
}

rknn_context make(std::uint32_t flags = 0) {
  std::string model = picture_model();
  rknn_context context = 0;
  EXPECT_EQ(
      rknn_init(&context, model.data(), static_cast<std::uint32_t>(model.size()), flags, nullptr),
      RKNN_SUCC);
  return context;
}

struct Model {
  rknn_context ctx = make();
  ~Model() { rknn_destroy(ctx); }
};

/// Every function that takes a context, with arguments that are right apart from it.
std::vector<std::pair<std::string, std::function<int(rknn_context)>>> functions() {
  return {
      {"rknn_destroy", [](rknn_context c) { return rknn_destroy(c); }},
      {"rknn_dup_context",
       [](rknn_context c) {
         rknn_context out = 0;
         return rknn_dup_context(&c, &out);
       }},
      {"rknn_query",
       [](rknn_context c) {
         rknn_input_output_num n;
         return rknn_query(c, RKNN_QUERY_IN_OUT_NUM, &n, sizeof n);
       }},
      {"rknn_inputs_set",
       [](rknn_context c) {
         std::vector<float> data(48);
         rknn_input input{};
         input.buf = data.data();
         input.size = 192;
         input.fmt = RKNN_TENSOR_NCHW;
         return rknn_inputs_set(c, 1, &input);
       }},
      {"rknn_set_batch_core_num", [](rknn_context c) { return rknn_set_batch_core_num(c, 1); }},
      {"rknn_set_core_mask", [](rknn_context c) { return rknn_set_core_mask(c, RKNN_NPU_CORE_0); }},
      {"rknn_run", [](rknn_context c) { return rknn_run(c, nullptr); }},
      {"rknn_wait", [](rknn_context c) { return rknn_wait(c, nullptr); }},
      {"rknn_outputs_get",
       [](rknn_context c) {
         rknn_output output{};
         output.want_float = 1;
         const int code = rknn_outputs_get(c, 1, &output, nullptr);
         if (code == RKNN_SUCC) rknn_outputs_release(c, 1, &output);
         return code;
       }},
      {"rknn_outputs_release",
       [](rknn_context c) {
         rknn_output output{};
         return rknn_outputs_release(c, 1, &output);
       }},
      {"rknn_set_weight_mem", [](rknn_context c) { return rknn_set_weight_mem(c, nullptr); }},
      {"rknn_set_internal_mem", [](rknn_context c) { return rknn_set_internal_mem(c, nullptr); }},
      {"rknn_set_io_mem",
       [](rknn_context c) {
         rknn_tensor_attr attr{};
         return rknn_set_io_mem(c, nullptr, &attr);
       }},
      {"rknn_set_input_shape",
       [](rknn_context c) {
         rknn_tensor_attr attr{};
         return rknn_set_input_shape(c, &attr);
       }},
      {"rknn_set_input_shapes",
       [](rknn_context c) {
         rknn_tensor_attr attr{};
         return rknn_set_input_shapes(c, 1, &attr);
       }},
      {"rknn_create_mem",
       [](rknn_context c) { return rknn_create_mem(c, 64) == nullptr ? RKNN_ERR_CTX_INVALID : 0; }},
      {"rknn_create_mem2",
       [](rknn_context c) {
         return rknn_create_mem2(c, 64, 0) == nullptr ? RKNN_ERR_CTX_INVALID : 0;
       }},
      {"rknn_create_mem_from_fd",
       [](rknn_context c) {
         return rknn_create_mem_from_fd(c, 0, nullptr, 64, 0) == nullptr ? RKNN_ERR_CTX_INVALID : 0;
       }},
      {"rknn_create_mem_from_phys",
       [](rknn_context c) {
         return rknn_create_mem_from_phys(c, 4096, nullptr, 64) == nullptr ? RKNN_ERR_CTX_INVALID
                                                                           : 0;
       }},
      {"rknn_create_mem_from_mb_blk",
       [](rknn_context c) {
         return rknn_create_mem_from_mb_blk(c, nullptr, 0) == nullptr ? RKNN_ERR_CTX_INVALID : 0;
       }},
      {"rknn_mem_sync",
       [](rknn_context c) {
         rknn_context own = make();
         rknn_tensor_mem* mem = rknn_create_mem(own, 64);
         const int code =
             c == 0 ? RKNN_ERR_CTX_INVALID : rknn_mem_sync(c, mem, RKNN_MEMORY_SYNC_TO_DEVICE);
         rknn_destroy_mem(own, mem);
         rknn_destroy(own);
         return code;
       }},
  };
}

TEST(RknnMisuse, NullStaleAndDestroyedContextsAreToldApartAndRefused) {
  const rknn_context destroyed = make();
  ASSERT_EQ(rknn_destroy(destroyed), RKNN_SUCC);
  for (const auto& [name, call] : functions()) {
    for (const rknn_context context : {rknn_context{0}, rknn_context{0xdeadbeef}, destroyed}) {
      int code = 0;
      const std::string lines = lines_of([&] { code = call(context); });
      EXPECT_EQ(code, RKNN_ERR_CTX_INVALID) << name << " with " << context;
      if (name == "rknn_mem_sync") continue;  // There is a second context.
      EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << name << ": " << lines;
      EXPECT_THAT(lines, HasSubstr("E RKNN: ["));
      EXPECT_THAT(lines, HasSubstr(name));
      EXPECT_THAT(lines, HasSubstr(context == 0           ? "the context is 0"
                                   : context == destroyed ? "was destroyed"
                                                          : "was not given out"));
    }
  }
}

TEST(RknnMisuse, SecondDestroyIsRefused) {
  const rknn_context context = make();
  EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy(context), RKNN_ERR_CTX_INVALID);
}

TEST(RknnMisuse, NullPointersAreRefused) {
  const Model m;
  rknn_context out = 0;
  rknn_context in = m.ctx;
  EXPECT_EQ(rknn_init(nullptr, nullptr, 0, 0, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_init(&out, nullptr, 0, 0, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_dup_context(nullptr, &out), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_dup_context(&in, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_query(m.ctx, RKNN_QUERY_IN_OUT_NUM, nullptr, 8), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_inputs_set(m.ctx, 1, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_outputs_get(m.ctx, 1, nullptr, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_outputs_release(m.ctx, 1, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_io_mem(m.ctx, nullptr, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_input_shapes(m.ctx, 1, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_input_shape(m.ctx, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_weight_mem(m.ctx, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_internal_mem(m.ctx, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_destroy_mem(m.ctx, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_mem_sync(m.ctx, nullptr, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_ERR_PARAM_INVALID);
  rknn_input input{};
  EXPECT_EQ(rknn_inputs_set(m.ctx, 1, &input), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnMisuse, WrongIndexNamesTheCount) {
  const Model m;
  std::vector<float> data(48);
  rknn_input input{};
  input.index = 1;
  input.buf = data.data();
  input.size = 192;
  EXPECT_EQ(rknn_inputs_set(m.ctx, 1, &input), RKNN_ERR_INPUT_INVALID);
  EXPECT_EQ(rknn_inputs_set(m.ctx, 2, &input), RKNN_ERR_PARAM_INVALID);
  rknn_output output{};
  output.index = 7;
  output.is_prealloc = 1;
  EXPECT_EQ(rknn_outputs_get(m.ctx, 1, &output, nullptr), RKNN_ERR_OUTPUT_INVALID);
  rknn_tensor_attr attr{};
  attr.index = 9;
  for (const int cmd : {1, 2, 8, 9, 10, 11, 14, 15, 16, 17})
    EXPECT_EQ(rknn_query(m.ctx, static_cast<rknn_query_cmd>(cmd), &attr, sizeof attr),
              RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_query(m.ctx, RKNN_QUERY_CMD_MAX, &attr, sizeof attr), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnMisuse, SmallBuffersNameBothSizesAndTheType) {
  const Model m;
  std::vector<unsigned char> pixels(48);
  rknn_input input{};  // Zeroed: FLOAT32, the commonest mistake.
  input.buf = pixels.data();
  input.size = 48;
  int code = 0;
  const std::string lines = lines_of([&] { code = rknn_inputs_set(m.ctx, 1, &input); });
  EXPECT_EQ(code, RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(lines, HasSubstr("param input size(48) < model input size(192)"));
  EXPECT_THAT(lines, HasSubstr("FLOAT32"));
  input.pass_through = 1;
  EXPECT_EQ(rknn_inputs_set(m.ctx, 1, &input), RKNN_ERR_PARAM_INVALID);

  char info[4] = {};
  for (int cmd = 0; cmd < RKNN_QUERY_CMD_MAX; ++cmd)
    EXPECT_EQ(rknn_query(m.ctx, static_cast<rknn_query_cmd>(cmd), info, sizeof info),
              RKNN_ERR_PARAM_INVALID)
        << cmd;
  rknn_tensor_attr attr{};
  const std::string message =
      lines_of([&] { rknn_query(m.ctx, RKNN_QUERY_INPUT_ATTR, &attr, 300); });
  EXPECT_THAT(message, HasSubstr("info_len(300) < sizeof(rknn_tensor_attr)(376)"));
}

TEST(RknnMisuse, TooSmallPreallocatedOutputIsRefusedAndLeftAlone) {
  const Model m;
  ASSERT_EQ(rknn_run(m.ctx, nullptr), RKNN_SUCC);
  std::vector<float> data(48, 7.0F);
  rknn_output output{};
  output.want_float = 1;
  output.is_prealloc = 1;
  output.buf = data.data();
  output.size = 191;
  EXPECT_EQ(rknn_outputs_get(m.ctx, 1, &output, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(data, std::vector<float>(48, 7.0F));
  EXPECT_EQ(output.buf, data.data());
}

TEST(RknnMisuse, ResultsBeforeTheFirstRunAreRefused) {
  const Model m;
  rknn_output output{};
  EXPECT_EQ(rknn_outputs_get(m.ctx, 1, &output, nullptr), RKNN_ERR_FAIL);
  EXPECT_EQ(rknn_wait(m.ctx, nullptr), RKNN_ERR_FAIL);
}

TEST(RknnMisuse, OutputsAreReleasedOnce) {
  const Model m;
  ASSERT_EQ(rknn_run(m.ctx, nullptr), RKNN_SUCC);
  rknn_output output{};
  ASSERT_EQ(rknn_outputs_get(m.ctx, 1, &output, nullptr), RKNN_SUCC);
  rknn_output copy = output;
  EXPECT_EQ(rknn_outputs_release(m.ctx, 1, &output), RKNN_SUCC);
  EXPECT_EQ(output.buf, nullptr);
  EXPECT_EQ(rknn_outputs_release(m.ctx, 1, &output), RKNN_SUCC);
  EXPECT_EQ(rknn_outputs_release(m.ctx, 1, &copy), RKNN_ERR_PARAM_INVALID);
  int foreign = 0;
  copy.buf = &foreign;
  EXPECT_EQ(rknn_outputs_release(m.ctx, 1, &copy), RKNN_ERR_PARAM_INVALID);
  copy.is_prealloc = 1;
  EXPECT_EQ(rknn_outputs_release(m.ctx, 1, &copy), RKNN_SUCC);
}

TEST(RknnMisuse, MemoryIsDestroyedOnceAndStalePointersAreKnown) {
  const Model m;
  rknn_tensor_mem* mem = rknn_create_mem(m.ctx, 64);
  ASSERT_NE(mem, nullptr);
  rknn_tensor_mem copy = *mem;
  EXPECT_EQ(rknn_destroy_mem(m.ctx, mem), RKNN_SUCC);
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_destroy_mem(m.ctx, mem), RKNN_ERR_PARAM_INVALID); });
  EXPECT_THAT(lines, HasSubstr("was destroyed"));
  EXPECT_EQ(rknn_mem_sync(m.ctx, mem, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_ERR_PARAM_INVALID);
  rknn_tensor_attr attr{};
  ASSERT_EQ(rknn_query(m.ctx, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr), RKNN_SUCC);
  EXPECT_EQ(rknn_set_io_mem(m.ctx, mem, &attr), RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(lines_of([&] { rknn_set_io_mem(m.ctx, &copy, &attr); }), HasSubstr("not a copy"));
}

TEST(RknnMisuse, MemoryOfADestroyedContextIsFreedAndReported) {
  const rknn_context context = make();
  rknn_tensor_mem* mem = rknn_create_mem(context, 64);
  ASSERT_EQ(rknn_destroy(context), RKNN_SUCC);
  std::memset(mem->virt_addr, 1, 64);  // It outlives its context.
  EXPECT_EQ(rknn_destroy_mem(context, mem), RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(rknn_destroy_mem(context, mem), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnMisuse, WrongSizesOfMemoryAreRefused) {
  const Model m;
  EXPECT_EQ(rknn_create_mem(m.ctx, 0), nullptr);
  EXPECT_EQ(rknn_create_mem2(m.ctx, 0, 0), nullptr);
  EXPECT_EQ(rknn_create_mem2(m.ctx, std::uint64_t{1} << 40, 0), nullptr);
  EXPECT_EQ(rknn_create_mem2(m.ctx, 64, std::uint64_t{1} << 30), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(m.ctx, -1, nullptr, 64, 0), nullptr);
  EXPECT_EQ(rknn_create_mem_from_phys(m.ctx, 4096, nullptr, 64), nullptr);
  EXPECT_EQ(rknn_create_mem_from_mb_blk(m.ctx, nullptr, 0), nullptr);
  rknn_tensor_mem* mem = rknn_create_mem(m.ctx, 64);
  EXPECT_EQ(rknn_create_mem_from_fd(m.ctx, mem->fd, nullptr, 64, -1), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(m.ctx, mem->fd, nullptr, 64, 1 << 20), nullptr);
  EXPECT_EQ(rknn_mem_sync(m.ctx, mem, static_cast<rknn_mem_sync_mode>(0)), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_mem_sync(m.ctx, mem, static_cast<rknn_mem_sync_mode>(4)), RKNN_ERR_PARAM_INVALID);
  rknn_tensor_attr attr{};
  ASSERT_EQ(rknn_query(m.ctx, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr), RKNN_SUCC);
  EXPECT_THAT(
      lines_of([&] { EXPECT_EQ(rknn_set_io_mem(m.ctx, mem, &attr), RKNN_ERR_PARAM_INVALID); }),
      HasSubstr("mem has 64"));
  rknn_destroy_mem(m.ctx, mem);
}

TEST(RknnMisuse, WrongTypesAndLayoutsAreRefused) {
  const Model m;
  std::vector<float> data(480);
  rknn_input input{};
  input.buf = data.data();
  input.size = 1920;
  input.type = static_cast<rknn_tensor_type>(99);
  EXPECT_EQ(rknn_inputs_set(m.ctx, 1, &input), RKNN_ERR_PARAM_INVALID);
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = static_cast<rknn_tensor_format>(42);
  EXPECT_EQ(rknn_inputs_set(m.ctx, 1, &input), RKNN_ERR_PARAM_INVALID);
  input.fmt = RKNN_TENSOR_NHWC;
  input.type = RKNN_TENSOR_INT4;
  EXPECT_EQ(rknn_inputs_set(m.ctx, 1, &input), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnMisuse, NamesThatAreNoneListThoseThatAre) {
  const Model m;
  rknn_tensor_mem* mem = rknn_create_mem(m.ctx, 4096);
  rknn_tensor_attr attr{};
  std::strcpy(attr.name, "z");
  EXPECT_THAT(
      lines_of([&] { EXPECT_EQ(rknn_set_io_mem(m.ctx, mem, &attr), RKNN_ERR_PARAM_INVALID); }),
      HasSubstr("there are 'x' 'y'"));
  rknn_destroy_mem(m.ctx, mem);
}

TEST(RknnMisuse, CoreNumbersAndMasksOutsideOfTheChipAreRefused) {
  const Model m;
  EXPECT_EQ(rknn_set_batch_core_num(m.ctx, 0), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_batch_core_num(m.ctx, 2), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_core_mask(m.ctx, static_cast<rknn_core_mask>(8)), RKNN_ERR_FAIL);
  EXPECT_EQ(rknn_set_core_mask(m.ctx, RKNN_NPU_CORE_UNDEFINED), RKNN_ERR_FAIL);
}

TEST(RknnMisuse, DestroyDuringARunOfAnotherThreadWaitsForIt) {
  for (int round = 0; round < 20; ++round) {
    const rknn_context context = make();
    std::atomic<int> failures{0};
    std::thread runner([&] {
      for (;;) {
        const int code = rknn_run(context, nullptr);
        if (code == RKNN_ERR_CTX_INVALID) break;
        failures += code == RKNN_SUCC ? 0 : 1;
      }
    });
    EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
    runner.join();
    EXPECT_EQ(failures, 0);
  }
}

TEST(RknnMisuse, OneContextFromSeveralThreadsIsServedInTurn) {
  const Model m;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<float> data(48, 1.0F);
      for (int i = 0; i < 50; ++i) {
        rknn_input input{};
        input.buf = data.data();
        input.size = 192;
        input.fmt = RKNN_TENSOR_NCHW;
        rknn_output output{};
        output.want_float = 1;
        failures += rknn_inputs_set(m.ctx, 1, &input) == RKNN_SUCC ? 0 : 1;
        failures += rknn_run(m.ctx, nullptr) == RKNN_SUCC ? 0 : 1;
        failures += rknn_outputs_get(m.ctx, 1, &output, nullptr) == RKNN_SUCC ? 0 : 1;
        failures += rknn_outputs_release(m.ctx, 1, &output) == RKNN_SUCC ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace corelane::rknn
