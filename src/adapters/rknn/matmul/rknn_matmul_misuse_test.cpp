/// Each function of rknn_matmul_api.h with what a program may get wrong: a code, one line, never a
/// crash. Null pointers, names, sizes and values that belong to one function are in its own
/// tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/rknn/matmul/rknn_matmul_test_support.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::rknn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

rknn_matmul_info small() { return product_info(RKNN_INT8_MM_INT8_TO_INT32, 2, 64, 32); }

/// Every function that takes a context, with arguments that are right apart from it.
std::vector<std::pair<std::string, std::function<int(rknn_matmul_ctx)>>> functions(Product& other) {
  return {
      {"rknn_matmul_set_io_mem",
       [&](rknn_matmul_ctx c) { return rknn_matmul_set_io_mem(c, other.a_mem, &other.io.A); }},
      {"rknn_matmul_set_core_mask",
       [](rknn_matmul_ctx c) { return rknn_matmul_set_core_mask(c, RKNN_NPU_CORE_0); }},
      {"rknn_matmul_set_quant_params",
       [&](rknn_matmul_ctx c) {
         std::vector<float> scales = {1};
         std::vector<std::int32_t> zeros;
         rknn_quant_params params = other.quant("A", scales, zeros);
         return rknn_matmul_set_quant_params(c, &params);
       }},
      {"rknn_matmul_get_quant_params",
       [&](rknn_matmul_ctx c) {
         std::vector<float> scales;
         std::vector<std::int32_t> zeros;
         rknn_quant_params params = other.quant("A", scales, zeros);
         float scale = 0;
         return rknn_matmul_get_quant_params(c, &params, &scale);
       }},
      {"rknn_matmul_set_dynamic_shape",
       [](rknn_matmul_ctx c) {
         rknn_matmul_shape shape = {2, 64, 32};
         return rknn_matmul_set_dynamic_shape(c, &shape);
       }},
      {"rknn_matmul_run", [](rknn_matmul_ctx c) { return rknn_matmul_run(c); }},
      {"rknn_matmul_destroy", [](rknn_matmul_ctx c) { return rknn_matmul_destroy(c); }},
  };
}

TEST(RknnMatmulMisuse, HandlesThatWereNeverGivenOutAreRefused) {
  Product other(small());
  rknn_matmul_ctx destroyed = 0;
  {
    Product gone(small());
    destroyed = gone.ctx;
  }
  const std::vector<std::pair<rknn_matmul_ctx, const char*>> handles = {
      {0, "the context is 0"},
      {destroyed, "was destroyed"},
      {0xDEADBEEF00000001, "was not given out"},
      {static_cast<rknn_matmul_ctx>(-1), "was not given out"}};
  for (const auto& [name, call] : functions(other))
    for (const auto& [handle, reason] : handles) {
      SCOPED_TRACE(name + ": " + reason);
      EXPECT_THAT(log_of([&] { EXPECT_EQ(call(handle), RKNN_ERR_CTX_INVALID); }),
                  AllOf(HasSubstr(name + ": "), HasSubstr(reason)));
    }
}

TEST(RknnMatmulMisuse, ContextsOfModelsAreNoProducts) {
  std::string model = testing::OnnxBuilder()
                          .input("x", {1, 4})
                          .output("y", {1, 4})
                          .node("Relu", {"x"}, {"y"})
                          .build();
  rknn_context ctx = 0;
  ASSERT_EQ(rknn_init(&ctx, model.data(), static_cast<std::uint32_t>(model.size()), 0, nullptr), 0);
  Product other(small());
  for (const auto& [name, call] : functions(other))
    EXPECT_THAT(log_of([&] { EXPECT_EQ(call(ctx), RKNN_ERR_CTX_INVALID); }),
                HasSubstr("this function takes those of rknn_matmul_create"));
  EXPECT_THAT(log_of([&] { EXPECT_EQ(rknn_run(other.ctx, nullptr), RKNN_ERR_CTX_INVALID); }),
              HasSubstr("is one of rknn_matmul_create"));
  EXPECT_THAT(log_of([&] { EXPECT_EQ(rknn_destroy(other.ctx), RKNN_ERR_CTX_INVALID); }),
              HasSubstr("is one of rknn_matmul_create"));
  EXPECT_EQ(rknn_destroy(ctx), RKNN_SUCC);
}

TEST(RknnMatmulMisuse, ASecondDestroyIsRefused) {
  rknn_matmul_info info = small();
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_io_attr io;
  ASSERT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  EXPECT_THAT(log_of([&] { EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_ERR_CTX_INVALID); }),
              HasSubstr("was destroyed"));
}

TEST(RknnMatmulMisuse, MemoryOfAnotherOriginIsRefused) {
  Product product(small());
  rknn_tensor_mem copy = *product.a_mem;
  rknn_tensor_mem* gone = rknn_create_mem(product.ctx, 4096);
  ASSERT_EQ(rknn_destroy_mem(product.ctx, gone), RKNN_SUCC);
  const std::vector<std::pair<rknn_tensor_mem*, const char*>> mems = {
      {nullptr, "mem is null"},
      {&copy, "was not allocated by this library"},
      {gone, "was destroyed"}};
  for (const auto& [mem, reason] : mems)
    EXPECT_THAT(log_of([&, m = mem] {
                  EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, m, &product.io.A),
                            RKNN_ERR_PARAM_INVALID);
                }),
                HasSubstr(reason));
}

TEST(RknnMatmulMisuse, UnknownNamesAreRefused) {
  Product product(small());
  EXPECT_THAT(log_of([&] {
                EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, product.a_mem, nullptr),
                          RKNN_ERR_PARAM_INVALID);
              }),
              HasSubstr("attr is null"));
  for (const std::string name : {"", "a", "AB", "D"}) {
    rknn_matmul_tensor_attr attr = product.io.A;
    std::memset(attr.name, 0, sizeof attr.name);
    std::memcpy(attr.name, name.data(), name.size());
    EXPECT_THAT(log_of([&] {
                  EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, product.a_mem, &attr),
                            RKNN_ERR_PARAM_INVALID);
                }),
                HasSubstr("name '" + name + "' is not a matrix"));
  }
  rknn_matmul_tensor_attr attr = product.io.A;
  std::memset(attr.name, 'x', sizeof attr.name);  // Not terminated.
  log_of([&] {
    EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, product.a_mem, &attr), RKNN_ERR_PARAM_INVALID);
  });
}

TEST(RknnMatmulMisuse, ARunNeedsEachMatrix) {
  Product product(small());
  const auto lines = [&] {
    return log_of([&] { EXPECT_EQ(rknn_matmul_run(product.ctx), RKNN_ERR_FAIL); });
  };
  EXPECT_THAT(lines(), HasSubstr("A has no memory"));
  ASSERT_EQ(rknn_matmul_set_io_mem(product.ctx, product.a_mem, &product.io.A), RKNN_SUCC);
  EXPECT_THAT(lines(), HasSubstr("B has no memory"));
  ASSERT_EQ(rknn_matmul_set_io_mem(product.ctx, product.b_mem, &product.io.B), RKNN_SUCC);
  EXPECT_THAT(lines(), HasSubstr("C has no memory; call rknn_matmul_set_io_mem"));
  ASSERT_EQ(rknn_matmul_set_io_mem(product.ctx, product.c_mem, &product.io.C), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
}

TEST(RknnMatmulMisuse, AttributesThatDoNotFitAreToldAtLevel1Only) {
  Product product(small());
  rknn_matmul_tensor_attr attr = product.io.A;
  attr.type = RKNN_TENSOR_FLOAT32;
  attr.size = 7;
  EXPECT_EQ(log_of([&] {
              EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, product.a_mem, &attr), RKNN_SUCC);
            }),
            "");
}

TEST(RknnMatmulMisuse, ContextsAreUsedAndDestroyedByOtherThreads) {
  rknn_matmul_info info = small();
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_io_attr io;
  std::thread([&] { EXPECT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_SUCC); }).join();
  std::thread([&] {
    EXPECT_EQ(rknn_matmul_set_core_mask(ctx, RKNN_NPU_CORE_1), RKNN_SUCC);
  }).join();
  std::thread([&] { EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC); }).join();
}

/// The exit status of a child that runs `body`.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(std::freopen("/dev/null", "w", stderr) != nullptr ? body() : 254);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

TEST(RknnMatmulMisuse, AChildOfForkIsToldInsteadOfHanging) {
  Product product(small());
  EXPECT_EQ(in_child([&] { return rknn_matmul_run(product.ctx) == RKNN_ERR_CTX_INVALID ? 0 : 1; }),
            0);
  EXPECT_EQ(in_child([&] {
              rknn_matmul_info info = small();
              rknn_matmul_ctx ctx = 0;
              rknn_matmul_io_attr io;
              return rknn_matmul_create(&ctx, &info, &io) == RKNN_ERR_DEVICE_UNAVAILABLE ? 0 : 1;
            }),
            0);
}

TEST(RknnMatmulShort, AProductWithAShortResultFails) {
  setenv("CORELANE_FAULTS", "short=1", 1);
  const InnerDevice inner("virtual:rk3588?name=shortproduct");
  Product product(small());
  unsetenv("CORELANE_FAULTS");
  ASSERT_EQ(product.code, RKNN_SUCC);
  ASSERT_EQ(product.bind(), 0);
  EXPECT_EQ(rknn_matmul_run(product.ctx), RKNN_ERR_FAIL);
}

}  // namespace
}  // namespace corelane::rknn
