/// Custom operators: when they are called, with what, and what their failures become.
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "adapters/rknn/api/rknn_test_support.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"

namespace corelane::rknn::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Where the callbacks, which get no pointer from the test, write what they saw.
struct Seen {
  std::atomic<int> inits{0}, prepares{0}, computes{0}, destroys{0};
  std::vector<rknn_custom_op_tensor> at_init, at_compute;
  std::vector<rknn_custom_op_attr> attributes;
  rknn_context context = 0;
  rknn_matmul_ctx product = 0;
  int inner_code = 1;
  rknn_context copy = 0, third = 0;
};
Seen* seen = nullptr;

class RknnCustom : public ::testing::Test {
 protected:
  RknnCustom() { seen = &seen_; }
  ~RknnCustom() override { seen = nullptr; }
  Seen seen_;
};

rknn_custom_op make(const char* type) {
  rknn_custom_op op{};
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  std::strncpy(op.op_type, type, sizeof op.op_type - 1);
  return op;
}

float* floats_at(rknn_custom_op_tensor& t) {
  return reinterpret_cast<float*>(static_cast<char*>(t.mem.virt_addr) + t.mem.offset);
}

int count_init(rknn_custom_op_context* c, rknn_custom_op_tensor* in, std::uint32_t n_in,
               rknn_custom_op_tensor* out, std::uint32_t n_out) {
  ++seen->inits;
  seen->at_init.assign(in, in + n_in);
  seen->at_init.insert(seen->at_init.end(), out, out + n_out);
  c->priv_data = new int(7);
  return 0;
}
int count_prepare(rknn_custom_op_context*, rknn_custom_op_tensor*, std::uint32_t,
                  rknn_custom_op_tensor*, std::uint32_t) {
  ++seen->prepares;
  return 0;
}
/// out = in + 1.
int add_one(rknn_custom_op_context* c, rknn_custom_op_tensor* in, std::uint32_t n_in,
            rknn_custom_op_tensor* out, std::uint32_t n_out) {
  ++seen->computes;
  EXPECT_EQ(c->target, RKNN_TARGET_TYPE_CPU);
  seen->at_compute.assign(in, in + n_in);
  seen->at_compute.insert(seen->at_compute.end(), out, out + n_out);
  for (std::uint32_t i = 0; i < out[0].attr.n_elems; ++i)
    floats_at(out[0])[i] = floats_at(in[0])[i] + 1;
  return 0;
}
int count_destroy(rknn_custom_op_context* c) {
  ++seen->destroys;
  delete static_cast<int*>(std::exchange(c->priv_data, nullptr));
  return 0;
}

rknn_custom_op add_one_op(const char* type = "AddOne") {
  rknn_custom_op op = make(type);
  op.init = count_init;
  op.prepare = count_prepare;
  op.compute = add_one;
  op.destroy = count_destroy;
  return op;
}

/// y = 2 * AddOne(x).
std::string plus_and_twice(const OnnxBuilder::Attributes& attributes = {}) {
  return OnnxBuilder()
      .input("x", {1, 4})
      .output("y", {1, 4})
      .inner("sum", {1, 4})
      .constant<float>("two", {1}, testing::kOnnxFloat, {2.0F})
      .node("AddOne", {"x"}, {"sum"}, "own", attributes)
      .node("Mul", {"sum", "two"}, {"y"})
      .build("plus_and_twice");
}
std::string plus_program() {
  ImportOptions options;
  options.custom_operators = {"AddOne"};
  return compiled(plus_and_twice(), options);
}

TEST_F(RknnCustom, InitOnceThenPrepareAndComputeEachRunThenDestroyOnce) {
  for (const std::string& bytes : {plus_program(), plus_and_twice()}) {
    seen_.inits = seen_.prepares = seen_.computes = seen_.destroys = 0;
    Model model(bytes);
    {
      // The struct is copied: the caller may change it afterwards.
      auto op = std::make_unique<rknn_custom_op>(add_one_op());
      ASSERT_EQ(rknn_register_custom_ops(model.ctx, op.get(), 1), RKNN_SUCC);
      std::memset(op.get(), 0xEE, sizeof *op);
    }
    EXPECT_EQ(seen_.inits, 1);
    EXPECT_EQ(seen_.computes, 0);
    for (int run = 1; run <= 3; ++run) {
      ASSERT_EQ(model.set({1, 2, 3, static_cast<float>(run)}), RKNN_SUCC);
      ASSERT_EQ(model.run(), RKNN_SUCC);
      EXPECT_THAT(model.floats(), ElementsAre(4, 6, 8, 2 * run + 2));
      EXPECT_EQ(seen_.prepares, run);
      EXPECT_EQ(seen_.computes, run);
    }
    EXPECT_EQ(seen_.destroys, 0);
    model.destroy();
    EXPECT_EQ(seen_.inits, 1);
    EXPECT_EQ(seen_.destroys, 1);
  }
}

TEST_F(RknnCustom, AnUnknownOperatorOpensAndFailsTheRunByName) {
  for (const std::string& bytes : {plus_program(), plus_and_twice()}) {
    Model model(bytes);
    ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    const std::string lines = lines_of([&] { EXPECT_EQ(model.run(), RKNN_ERR_FAIL); });
    EXPECT_THAT(lines, HasSubstr("AddOne"));
    EXPECT_THAT(lines, HasSubstr("AddOne_sum"));
    // Registered late, it is there.
    rknn_custom_op op = add_one_op();
    ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_THAT(model.floats(), ElementsAre(4, 6, 8, 10));
  }
}

/// Guesses at shapes would be wrong results, and rknn_init must not fail for an unknown operator.
TEST_F(RknnCustom, WhatNoOperatorCouldComputeOpensAndFailsTheRun) {
  const auto model_of = [](const std::vector<std::string>& outputs, bool described,
                           const OnnxBuilder::Attributes& attributes) {
    OnnxBuilder builder;
    builder.input("x", {1, 4}).output("y", {1, 4});
    if (described) builder.inner("t", {1, 4});
    builder.node("AddOne", {"x"}, outputs, "own", attributes);
    return builder.node("Relu", {"t"}, {"y"}).build();
  };
  // An AttributeProto "k" with a tensor of no elements.
  const std::string tensor("\x0A\x01k\x2A\x04\x08\x00\x10\x01\xA0\x01\x04", 12);
  const std::pair<std::string, const char*> cases[] = {
      {model_of({"t"}, false, {}), "output 't'"},
      {model_of({"t", "z"}, true, {}), "output 'z'"},
      {model_of({"t"}, true, {tensor}), "attribute 'k'"}};
  for (const auto& [bytes, reason] : cases) {
    const Model model(bytes);
    rknn_custom_op op = add_one_op();
    ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
    ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    const std::string lines = lines_of([&] { EXPECT_EQ(model.run(), RKNN_ERR_FAIL); });
    EXPECT_THAT(lines, HasSubstr(reason));
    EXPECT_EQ(seen_.computes, 0);
  }
}

TEST_F(RknnCustom, TensorsTellTheirNamesShapesAndTypes) {
  Model model(plus_program());
  rknn_custom_op op = add_one_op();
  ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  for (const auto* tensors : {&seen_.at_init, &seen_.at_compute}) {
    ASSERT_EQ(tensors->size(), 2u);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const rknn_tensor_attr& attr = (*tensors)[i].attr;
      EXPECT_STREQ(attr.name, i == 0 ? "x" : "sum");
      EXPECT_EQ(attr.index, 0u);
      EXPECT_EQ(attr.n_dims, 2u);
      EXPECT_EQ(attr.dims[0], 1u);
      EXPECT_EQ(attr.dims[1], 4u);
      EXPECT_EQ(attr.n_elems, 4u);
      EXPECT_EQ(attr.size, 16u);
      EXPECT_EQ(attr.type, RKNN_TENSOR_FLOAT32);
      EXPECT_EQ(attr.fmt, RKNN_TENSOR_UNDEFINED);
      EXPECT_EQ((*tensors)[i].mem.size, 16u);
      EXPECT_EQ((*tensors)[i].mem.offset, 0);
      EXPECT_EQ((*tensors)[i].mem.virt_addr == nullptr, tensors == &seen_.at_init);
    }
  }
}

TEST_F(RknnCustom, OtherFloatsArriveAsFloat32AndIntegersAsThemselves) {
  constexpr int kHalf = 10;
  const std::string bytes = OnnxBuilder()
                                .input("h", {4}, kHalf)
                                .input("n", {4}, testing::kOnnxInt64)
                                .output("y", {4}, kHalf)
                                .node("Mix", {"h", "n"}, {"y"}, "own")
                                .build();
  Model model(bytes);
  rknn_custom_op op = make("Mix");
  op.compute = [](rknn_custom_op_context*, rknn_custom_op_tensor* in, std::uint32_t n_in,
                  rknn_custom_op_tensor* out, std::uint32_t n_out) {
    EXPECT_EQ(n_in, 2u);
    EXPECT_EQ(n_out, 1u);
    EXPECT_EQ(in[0].attr.type, RKNN_TENSOR_FLOAT32);
    EXPECT_EQ(in[1].attr.type, RKNN_TENSOR_INT64);
    EXPECT_EQ(in[1].attr.size, 32u);
    EXPECT_EQ(out[0].attr.type, RKNN_TENSOR_FLOAT32);
    const auto* n = static_cast<const std::int64_t*>(in[1].mem.virt_addr);
    for (int i = 0; i < 4; ++i)
      floats_at(out[0])[i] = floats_at(in[0])[i] + static_cast<float>(n[i]);
    return 0;
  };
  ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
  ASSERT_EQ(model.set({0.5F, 1.5F, 2.5F, -3.5F}), RKNN_SUCC);
  const std::vector<std::int64_t> n = {10, 20, 30, 40};
  ASSERT_EQ(model.set(1, n, RKNN_TENSOR_INT64, RKNN_TENSOR_UNDEFINED), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_THAT(model.floats(), ElementsAre(10.5F, 21.5F, 32.5F, 36.5F));
}

int note_attributes(rknn_custom_op_context* c, rknn_custom_op_tensor*, std::uint32_t,
                    rknn_custom_op_tensor*, std::uint32_t) {
  seen->attributes.clear();
  for (const char* name : {"axis", "alpha", "mode", "pads", "scales", "names", "absent"}) {
    rknn_custom_op_attr attr;
    std::memset(&attr, 0xEE, sizeof attr);
    rknn_custom_op_get_op_attr(c, name, &attr);
    EXPECT_STREQ(attr.name, name);
    seen->attributes.push_back(attr);
  }
  return 0;
}

template <class T>
std::vector<T> data_of(const rknn_custom_op_attr& attr) {
  const auto* first = static_cast<const T*>(attr.data);
  return {first, first + attr.n_elems};
}

TEST_F(RknnCustom, AttributesHaveTheirTypesAndLiveUntilDestroy) {
  const auto a = [](const char* name, auto value) { return OnnxBuilder::attribute(name, value); };
  const std::string bytes = plus_and_twice(
      {a("axis", std::int64_t{-1}), a("alpha", 0.5F), a("mode", "bilinear"),
       a("pads", std::vector<std::int64_t>{1, 2, 3}), a("scales", std::vector<float>{1.5F, 2}),
       a("names", std::vector<std::string>{"cat", "dog"})});
  Model model(bytes);
  rknn_custom_op op = add_one_op();
  op.init = note_attributes;
  op.destroy = nullptr;
  ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
  ASSERT_EQ(seen_.attributes.size(), 7u);
  const auto& at = seen_.attributes;
  EXPECT_EQ(at[0].dtype, RKNN_TENSOR_INT64);
  EXPECT_THAT(data_of<std::int64_t>(at[0]), ElementsAre(-1));
  EXPECT_EQ(at[1].dtype, RKNN_TENSOR_FLOAT32);
  EXPECT_THAT(data_of<float>(at[1]), ElementsAre(0.5F));
  EXPECT_EQ(at[2].dtype, RKNN_TENSOR_UINT8);
  EXPECT_EQ(at[2].n_elems, 8u);
  EXPECT_STREQ(static_cast<const char*>(at[2].data), "bilinear");
  EXPECT_THAT(data_of<std::int64_t>(at[3]), ElementsAre(1, 2, 3));
  EXPECT_THAT(data_of<float>(at[4]), ElementsAre(1.5F, 2));
  EXPECT_EQ(at[5].n_elems, 7u);
  EXPECT_EQ(std::memcmp(at[5].data, "cat\0dog", 8), 0);
  EXPECT_EQ(at[6].n_elems, 0u);
  EXPECT_EQ(at[6].data, nullptr);
}

TEST_F(RknnCustom, AttributesOfNothingAreEmpty) {
  rknn_custom_op_attr attr;
  rknn_custom_op_context context{};
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{12345}, ~std::uint64_t{0}}) {
    std::memset(&attr, 0xEE, sizeof attr);
    context.internal_ctx = number;
    rknn_custom_op_get_op_attr(&context, "axis", &attr);
    EXPECT_EQ(attr.n_elems, 0u);
    EXPECT_EQ(attr.data, nullptr);
  }
  rknn_custom_op_get_op_attr(nullptr, "axis", &attr);
  EXPECT_EQ(attr.n_elems, 0u);
  rknn_custom_op_get_op_attr(&context, nullptr, &attr);
  EXPECT_EQ(attr.n_elems, 0u);
  rknn_custom_op_get_op_attr(&context, "axis", nullptr);
}

TEST_F(RknnCustom, WrongRegistrationsAreRefusedWithTheReason) {
  Model model(plus_program());
  const auto refused = [&](rknn_custom_op op, int code, const char* why) {
    const std::string lines =
        lines_of([&] { EXPECT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), code); });
    EXPECT_THAT(lines, HasSubstr(why));
  };
  rknn_custom_op op = add_one_op();
  op.target = RKNN_TARGET_TYPE_GPU;
  refused(op, RKNN_ERR_PARAM_INVALID, "GPU");
  op.target = static_cast<rknn_target_type>(0);
  refused(op, RKNN_ERR_PARAM_INVALID, "target 0");
  op = add_one_op("");
  refused(op, RKNN_ERR_PARAM_INVALID, "op_type");
  op = add_one_op();
  std::memset(op.op_type, 'x', sizeof op.op_type);
  refused(op, RKNN_ERR_PARAM_INVALID, "op_type");
  op = add_one_op();
  op.compute_native = std::exchange(op.compute, nullptr);
  refused(op, RKNN_ERR_PARAM_INVALID, "compute_native is not supported");
  op = add_one_op();
  EXPECT_EQ(rknn_register_custom_ops(model.ctx, nullptr, 1), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_register_custom_ops(model.ctx, &op, 0), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_register_custom_ops(0, &op, 1), RKNN_ERR_CTX_INVALID);
  rknn_custom_op two[2] = {op, op};
  EXPECT_EQ(rknn_register_custom_ops(model.ctx, two, 2), RKNN_ERR_FAIL);
  EXPECT_EQ(seen_.inits, 0);
  ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
  refused(op, RKNN_ERR_FAIL, "registered already");
  EXPECT_EQ(seen_.inits, 1);
}

TEST_F(RknnCustom, AFailingInitUndoesTheRegistration) {
  Model model(plus_program());
  rknn_custom_op ops[2] = {add_one_op(), make("Other")};
  ops[1].compute = add_one;
  ops[0].init = [](auto...) { return -3; };
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_register_custom_ops(model.ctx, ops, 2), RKNN_ERR_FAIL); });
  EXPECT_THAT(lines, HasSubstr("init returned -3"));
  EXPECT_EQ(seen_.destroys, 0);
  ops[0] = add_one_op();
  EXPECT_EQ(rknn_register_custom_ops(model.ctx, ops, 2), RKNN_SUCC);
}

TEST_F(RknnCustom, ANodeLeftToTheLibraryFailsItsRuns) {
  Model model(plus_program());
  rknn_custom_op op = add_one_op();
  op.init = [](auto...) { return RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE; };
  const std::string warned =
      lines_of([&] { EXPECT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC); });
  EXPECT_THAT(warned, HasSubstr("no operator of that type"));
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  const std::string lines = lines_of([&] { EXPECT_EQ(model.run(), RKNN_ERR_FAIL); });
  EXPECT_THAT(lines, HasSubstr("left the node to the library"));
  EXPECT_EQ(seen_.computes, 0);
  model.destroy();
  EXPECT_EQ(seen_.destroys, 0);
}

TEST_F(RknnCustom, CodesAndExceptionsOfCallbacksFailTheRunByOperatorAndNode) {
  const auto failing = [&](auto compute, const char* why) {
    Model model(plus_program());
    rknn_custom_op op = add_one_op();
    op.compute = compute;
    ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
    ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    const std::string lines = lines_of([&] { EXPECT_EQ(model.run(), RKNN_ERR_FAIL); });
    EXPECT_THAT(lines, HasSubstr(why));
    EXPECT_THAT(lines, HasSubstr("'AddOne' (node 'AddOne_sum')"));
  };
  failing([](auto...) { return -42; }, "compute returned -42");
  failing([](auto...) -> int { throw std::runtime_error("no luck"); }, "compute threw: no luck");
  failing([](auto...) -> int { throw 1; }, "is not a std::exception");
}

TEST_F(RknnCustom, InsideACallbackQueriesWorkAndTheRestIsRefused) {
  Model model(plus_program());
  seen_.context = model.ctx;
  rknn_matmul_info info{};
  info.M = 1;
  info.K = info.N = 32;
  info.type = RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32;
  rknn_matmul_io_attr io;
  ASSERT_EQ(rknn_matmul_create(&seen_.product, &info, &io), RKNN_SUCC);
  rknn_custom_op op = add_one_op();
  op.compute = [](rknn_custom_op_context* c, rknn_custom_op_tensor* in, std::uint32_t n_in,
                  rknn_custom_op_tensor* out, std::uint32_t n_out) {
    rknn_input_output_num count{};
    EXPECT_EQ(rknn_query(seen->context, RKNN_QUERY_IN_OUT_NUM, &count, sizeof count), RKNN_SUCC);
    EXPECT_EQ(rknn_run(seen->context, nullptr), RKNN_ERR_FAIL);
    EXPECT_EQ(rknn_wait(seen->context, nullptr), RKNN_ERR_FAIL);
    rknn_output output{};
    EXPECT_EQ(rknn_outputs_get(seen->context, 1, &output, nullptr), RKNN_ERR_FAIL);
    rknn_context copy = 0;
    EXPECT_EQ(rknn_dup_context(&seen->context, &copy), RKNN_ERR_FAIL);
    rknn_custom_op more = add_one_op("More");
    EXPECT_EQ(rknn_register_custom_ops(seen->context, &more, 1), RKNN_ERR_FAIL);
    EXPECT_EQ(rknn_destroy(seen->context), RKNN_ERR_FAIL);
    EXPECT_EQ(rknn_matmul_run(seen->product), RKNN_ERR_FAIL);
    EXPECT_EQ(rknn_matmul_destroy(seen->product), RKNN_ERR_FAIL);
    return add_one(c, in, n_in, out, n_out);
  };
  ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_THAT(model.floats(), ElementsAre(4, 6, 8, 10));
  // In the background nobody else holds the context's order.
  rknn_run_extend extend{};
  extend.non_block = 1;
  ASSERT_EQ(model.run(&extend), RKNN_SUCC);
  EXPECT_EQ(rknn_wait(model.ctx, &extend), RKNN_SUCC);
  EXPECT_EQ(seen_.computes, 2);
  EXPECT_EQ(rknn_matmul_destroy(seen_.product), RKNN_SUCC);
}

TEST_F(RknnCustom, DuplicatesShareTheRegistrationAndCallAtTheSameTime) {
  Model first(plus_program());
  rknn_custom_op op = add_one_op();
  op.prepare = nullptr;
  // Each rknn_custom_op_context is in one call at a time.
  op.compute = [](rknn_custom_op_context* c, rknn_custom_op_tensor* in, std::uint32_t,
                  rknn_custom_op_tensor* out, std::uint32_t) {
    int& own = *static_cast<int*>(c->priv_data);
    EXPECT_EQ(own, 7);
    own = 8;
    for (int i = 0; i < 4; ++i) floats_at(out[0])[i] = floats_at(in[0])[i] + 1;
    own = 7;
    return 0;
  };
  ASSERT_EQ(rknn_register_custom_ops(first.ctx, &op, 1), RKNN_SUCC);
  std::vector<rknn_context> all = {first.ctx};
  for (int i = 0; i < 2; ++i) {
    rknn_context copy = 0;
    ASSERT_EQ(rknn_dup_context(&first.ctx, &copy), RKNN_SUCC);
    all.push_back(copy);
  }
  EXPECT_EQ(seen_.inits, 3);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < all.size(); ++t)
    threads.emplace_back([&, t] {
      for (int run = 0; run < 50; ++run) {
        const float x = static_cast<float>(t * 100) + static_cast<float>(run);
        std::vector<float> data(4, x);
        rknn_input input{};
        input.buf = data.data();
        input.size = 16;
        ASSERT_EQ(rknn_inputs_set(all[t], 1, &input), RKNN_SUCC);
        ASSERT_EQ(rknn_run(all[t], nullptr), RKNN_SUCC);
        std::vector<float> result(4);
        rknn_output output{};
        output.want_float = 1;
        output.is_prealloc = 1;
        output.buf = result.data();
        output.size = 16;
        ASSERT_EQ(rknn_outputs_get(all[t], 1, &output, nullptr), RKNN_SUCC);
        ASSERT_THAT(result, ::testing::Each(2 * (x + 1)));
      }
    });
  for (std::thread& thread : threads) thread.join();
  first.destroy();
  EXPECT_EQ(seen_.destroys, 1);
  EXPECT_EQ(rknn_destroy(all[1]), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy(all[2]), RKNN_SUCC);
  EXPECT_EQ(seen_.destroys, 3);
}

TEST_F(RknnCustom, RegisteredOnADuplicateTheFirstHasItToo) {
  Model first(plus_program());
  Model copy;
  ASSERT_EQ(rknn_dup_context(&first.ctx, &copy.ctx), RKNN_SUCC);
  rknn_custom_op op = add_one_op();
  ASSERT_EQ(rknn_register_custom_ops(copy.ctx, &op, 1), RKNN_SUCC);
  EXPECT_EQ(seen_.inits, 2);
  copy.destroy();
  ASSERT_EQ(first.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(first.run(), RKNN_SUCC);
  EXPECT_THAT(first.floats(), ElementsAre(4, 6, 8, 10));
  first.destroy();
  EXPECT_EQ(seen_.destroys, 2);
}

TEST_F(RknnCustom, OfTwoRegistrationsOfOneTypeAtOnceTheSecondIsRefusedAtOnce) {
  Model first(plus_program());
  Model copy;
  ASSERT_EQ(rknn_dup_context(&first.ctx, &copy.ctx), RKNN_SUCC);
  seen_.copy = copy.ctx;
  rknn_custom_op op = add_one_op();
  op.init = [](rknn_custom_op_context* c, rknn_custom_op_tensor* in, std::uint32_t n_in,
               rknn_custom_op_tensor* out, std::uint32_t n_out) {
    if (std::exchange(seen->inner_code, 0) == 1)
      std::thread([] {
        rknn_custom_op same = add_one_op();
        seen->inner_code = rknn_register_custom_ops(seen->copy, &same, 1);
      }).join();
    return count_init(c, in, n_in, out, n_out);
  };
  EXPECT_EQ(rknn_register_custom_ops(first.ctx, &op, 1), RKNN_SUCC);
  EXPECT_EQ(seen_.inits, 2);
  ASSERT_EQ(first.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(first.run(), RKNN_SUCC);
  EXPECT_THAT(first.floats(), ElementsAre(4, 6, 8, 10));
  first.destroy();
  copy.destroy();
  EXPECT_EQ(seen_.destroys, 2);
}

TEST_F(RknnCustom, AContextThatComesDuringARegistrationHasAnInstanceOfItsOwn) {
  Model first(plus_program());
  Model copy;
  ASSERT_EQ(rknn_dup_context(&first.ctx, &copy.ctx), RKNN_SUCC);
  seen_.copy = copy.ctx;
  rknn_custom_op op = add_one_op();
  op.init = [](rknn_custom_op_context* c, rknn_custom_op_tensor* in, std::uint32_t n_in,
               rknn_custom_op_tensor* out, std::uint32_t n_out) {
    if (std::exchange(seen->inner_code, 0) == 1)
      std::thread([] { EXPECT_EQ(rknn_dup_context(&seen->copy, &seen->third), RKNN_SUCC); }).join();
    return count_init(c, in, n_in, out, n_out);
  };
  ASSERT_EQ(rknn_register_custom_ops(first.ctx, &op, 1), RKNN_SUCC);
  EXPECT_EQ(seen_.inits, 3);
  EXPECT_EQ(rknn_destroy(seen_.third), RKNN_SUCC);
  EXPECT_EQ(seen_.destroys, 1);
}

TEST_F(RknnCustom, ACallbackThatOverwritesItsNumberKeepsItsAttributesAndIsDestroyed) {
  Model model(compiled(plus_and_twice({OnnxBuilder::attribute("n", std::int64_t{5})}), [] {
    ImportOptions options;
    options.custom_operators = {"AddOne"};
    return options;
  }()));
  rknn_custom_op op = add_one_op();
  op.prepare = [](rknn_custom_op_context* c, auto...) {
    c->internal_ctx = 0;
    return 0;
  };
  op.compute = [](rknn_custom_op_context* c, rknn_custom_op_tensor* in, std::uint32_t n_in,
                  rknn_custom_op_tensor* out, std::uint32_t n_out) {
    rknn_custom_op_attr attr{};
    rknn_custom_op_get_op_attr(c, "n", &attr);
    EXPECT_EQ(attr.n_elems, 1u);
    c->internal_ctx = 0;
    return add_one(c, in, n_in, out, n_out);
  };
  ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  model.destroy();
  EXPECT_EQ(seen_.destroys, 1);
}

TEST_F(RknnCustom, FunctionsOfAProductThatWaitsForTheCoreAreRefusedInsideACallback) {
  const Environment inner("CORELANE_RKNN_INNER", "virtual:rk3566");  // One core.
  Model model(plus_program());
  rknn_matmul_info info{};
  info.M = 1;
  info.K = info.N = 32;
  info.type = RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32;
  rknn_matmul_io_attr io;
  ASSERT_EQ(rknn_matmul_create(&seen_.product, &info, &io), RKNN_SUCC);
  std::vector<rknn_tensor_mem*> memory;
  for (rknn_matmul_tensor_attr* attr : {&io.A, &io.B, &io.C}) {
    memory.push_back(rknn_create_mem(seen_.product, attr->size));
    ASSERT_EQ(rknn_matmul_set_io_mem(seen_.product, memory.back(), attr), RKNN_SUCC);
  }
  static rknn_tensor_mem* a_mem;
  static rknn_matmul_tensor_attr a_attr;
  static std::thread multiplying;
  static std::atomic<bool> done;
  a_mem = memory[0];
  a_attr = io.A;
  done = false;
  rknn_custom_op op = add_one_op();
  op.compute = [](rknn_custom_op_context* c, rknn_custom_op_tensor* in, std::uint32_t n_in,
                  rknn_custom_op_tensor* out, std::uint32_t n_out) {
    multiplying = std::thread([] {
      EXPECT_EQ(rknn_matmul_run(seen->product), RKNN_SUCC);
      done = true;
    });
    // The product gets the core when this returns, and works with the context until then.
    int code = RKNN_SUCC;
    while (code == RKNN_SUCC && !done) code = rknn_matmul_set_io_mem(seen->product, a_mem, &a_attr);
    seen->inner_code = code;
    return add_one(c, in, n_in, out, n_out);
  };
  ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  const std::string lines = lines_of([&] { EXPECT_EQ(model.run(), RKNN_SUCC); });
  multiplying.join();
  EXPECT_EQ(seen_.inner_code, RKNN_ERR_FAIL);
  EXPECT_THAT(lines, HasSubstr("another thread works with this product"));
  for (rknn_tensor_mem* mem : memory) EXPECT_EQ(rknn_destroy_mem(seen_.product, mem), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_destroy(seen_.product), RKNN_SUCC);
}

TEST_F(RknnCustom, TwoNodesOfOneTypeHaveAContextEach) {
  const std::string bytes =
      OnnxBuilder()
          .input("x", {4})
          .output("y", {4})
          .inner("m", {4})
          .node("AddOne", {"x"}, {"m"}, "own", {OnnxBuilder::attribute("n", std::int64_t{1})})
          .node("AddOne", {"m"}, {"y"}, "own", {OnnxBuilder::attribute("n", std::int64_t{2})})
          .build();
  Model model(bytes);
  rknn_custom_op op = add_one_op();
  op.prepare = nullptr;
  op.compute = [](rknn_custom_op_context* c, rknn_custom_op_tensor* in, std::uint32_t,
                  rknn_custom_op_tensor* out, std::uint32_t) {
    rknn_custom_op_attr attr{};
    rknn_custom_op_get_op_attr(c, "n", &attr);
    const auto n = static_cast<float>(*static_cast<const std::int64_t*>(attr.data));
    for (int i = 0; i < 4; ++i) floats_at(out[0])[i] = floats_at(in[0])[i] * 10 + n;
    return 0;
  };
  ASSERT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
  EXPECT_EQ(seen_.inits, 2);
  ASSERT_EQ(model.set({0, 1, 2, 3}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_THAT(model.floats(), ElementsAre(12, 112, 212, 312));
  model.destroy();
  EXPECT_EQ(seen_.destroys, 2);
}

TEST_F(RknnCustom, ATypeThatNoNodeHasIsAWarning) {
  Model model(plus_program());
  rknn_custom_op op = add_one_op("Unused");
  EXPECT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC);
  EXPECT_EQ(seen_.inits, 0);
}

TEST_F(RknnCustom, PluginsThatCannotBeUsedLeaveTheModelOpenAndAreNamed) {
  const Environment list("CORELANE_RKNN_PLUGINS", "/nowhere/plugin.so::libm.so.6");
  Model model;
  const std::string lines = lines_of([&] {
    std::string program = plus_program();
    EXPECT_EQ(rknn_init(&model.ctx, program.data(), static_cast<std::uint32_t>(program.size()), 0,
                        nullptr),
              RKNN_SUCC);
  });
  EXPECT_THAT(lines, HasSubstr("W RKNN"));
  EXPECT_THAT(lines, HasSubstr("plug-in /nowhere/plugin.so of CORELANE_RKNN_PLUGINS is not used"));
  EXPECT_THAT(lines, HasSubstr("libm.so.6"));
}

TEST_F(RknnCustom, ATypeOfTheStandardIsNamedAsNotCalled) {
  const Model model(doubling({1, 4}));  // Of Mul.
  rknn_custom_op op = make("Mul");
  op.compute = count_prepare;
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_register_custom_ops(model.ctx, &op, 1), RKNN_SUCC); });
  EXPECT_THAT(lines, HasSubstr("the operator 'Mul' will not be called"));
}

}  // namespace
}  // namespace corelane::rknn::test
