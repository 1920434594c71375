/// Where contexts come from: bytes, files, slices, descriptors; duplicates; flags of rknn_init.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "adapters/rknn/api/rknn_test_support.h"
#include "adapters/rknn/model/rknn_model.h"
#include "corelane/base/log.h"
#include "corelane/runtime/program.h"
#include "program/testing/foreign_files.h"
#include "rknn_api.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::rknn {
namespace {

using test::lines_of;
using ::testing::HasSubstr;
using testing::OnnxBuilder;

std::string model_text() {
  return OnnxBuilder()
      .input("x", {2, 8})
      .output("y", {2, 8})
      .constant<float>("two", {1}, testing::kOnnxFloat, {2.0F})
      .node("Mul", {"x", "two"}, {"y"})
      .build();
}

std::string program_text(ImportOptions import = {}) {
  CompileOptions options;
  options.import = std::move(import);
  const std::string onnx = model_text();
  const auto bytes = compile_bytes(as_byte_span(onnx), options);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  return std::string(as_string_view(*bytes));
}

int init(rknn_context* context, std::string& bytes, std::uint32_t flags = 0,
         rknn_init_extend* extend = nullptr) {
  return rknn_init(context, bytes.data(), static_cast<std::uint32_t>(bytes.size()), flags, extend);
}

/// Runs on ones and gives the first result.
float first_result(rknn_context context) {
  std::vector<float> ones(16, 1.0F);
  rknn_input input{};
  input.buf = ones.data();
  input.size = 64;
  input.fmt = RKNN_TENSOR_UNDEFINED;
  EXPECT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  rknn_output output{};
  output.want_float = 1;
  EXPECT_EQ(rknn_outputs_get(context, 1, &output, nullptr), RKNN_SUCC);
  const float value = output.buf == nullptr ? 0 : *static_cast<float*>(output.buf);
  rknn_outputs_release(context, 1, &output);
  return value;
}

class TempFile {
 public:
  explicit TempFile(const std::string& content) {
    path_ = (std::filesystem::temp_directory_path() / "corelane_rknn_XXXXXX").string();
    const int fd = mkstemp(path_.data());
    EXPECT_EQ(write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    close(fd);
  }
  ~TempFile() { std::filesystem::remove(path_); }
  char* path() { return path_.data(); }

 private:
  std::string path_;
};

TEST(RknnOpen, BytesOfAProgramOrAnOnnxModelRunAndMayBeFreedAtOnce) {
  for (std::string text : {model_text(), program_text()}) {
    rknn_context context = 0;
    ASSERT_EQ(init(&context, text), RKNN_SUCC);
    std::fill(text.begin(), text.end(), '\xee');
    EXPECT_EQ(first_result(context), 2.0F);
    EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
  }
}

TEST(RknnOpen, SizeZeroMeansAPath) {
  for (const std::string& text : {model_text(), program_text()}) {
    TempFile file(text);
    rknn_context context = 0;
    ASSERT_EQ(rknn_init(&context, file.path(), 0, 0, nullptr), RKNN_SUCC);
    EXPECT_EQ(first_result(context), 2.0F);
    rknn_destroy(context);
  }
}

/// A product with 64 pages of weights.
std::string weighty_program(float weight) {
  const std::string model = OnnxBuilder()
                                .input("x", {1, 64})
                                .output("y", {1, 1024})
                                .constant<float>("w", {64, 1024}, testing::kOnnxFloat,
                                                 std::vector<float>(std::size_t{64} * 1024, weight))
                                .node("MatMul", {"x", "w"}, {"y"})
                                .build();
  return std::string(as_string_view(compile_bytes(as_byte_span(model)).value()));
}

TEST(RknnOpen, AFileThatIsCutWhileItIsOpenFailsWhatReadsItAgain) {
  for (const char* device : {"virtual?engine=openvino", "virtual?engine=onnxruntime"}) {
    const test::Environment inner("CORELANE_RKNN_INNER", device);
    TempFile file(weighty_program(1.0F));
    rknn_context context = 0, copy = 0;
    ASSERT_EQ(rknn_init(&context, file.path(), 0, 0, nullptr), RKNN_SUCC);
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
    ASSERT_EQ(::truncate(file.path(), 0), 0);
    const std::string line = lines_of([&] {
      EXPECT_EQ(rknn_set_core_mask(context, RKNN_NPU_CORE_0_1), RKNN_SUCC);
      EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_MODEL_INVALID) << device;
    });
    EXPECT_THAT(line, HasSubstr("was written to while it is open"));
    EXPECT_THAT(line, HasSubstr("renaming"));
    // Fails, or needs nothing of the file.
    if (rknn_dup_context(&context, &copy) == RKNN_SUCC) rknn_destroy(copy);
    rknn_perf_detail detail{};
    EXPECT_EQ(rknn_query(context, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail), RKNN_SUCC);
    rknn_destroy(context);
  }
}

TEST(RknnOpen, AFileThatIsOverwrittenWhileItIsOpenIsNotTakenForTheOneThatWasOpened) {
  TempFile file(weighty_program(1.0F));
  const std::string other = weighty_program(2.0F);
  rknn_context context = 0;
  ASSERT_EQ(rknn_init(&context, file.path(), 0, 0, nullptr), RKNN_SUCC);
  std::fstream(file.path(), std::ios::in | std::ios::out | std::ios::binary) << other;
  EXPECT_EQ(rknn_set_core_mask(context, RKNN_NPU_CORE_0_1), RKNN_SUCC);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_MODEL_INVALID);
  rknn_destroy(context);
}

TEST(RknnOpen, AFileThatIsReplacedByARenameStaysOpenAsItWas) {
  TempFile file(weighty_program(1.0F));
  rknn_context context = 0;
  ASSERT_EQ(rknn_init(&context, file.path(), 0, 0, nullptr), RKNN_SUCC);
  ASSERT_TRUE(write_file_atomic(file.path(), as_byte_span("another")).ok());
  EXPECT_EQ(rknn_set_core_mask(context, RKNN_NPU_CORE_0_1), RKNN_SUCC);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  rknn_destroy(context);
}

TEST(RknnOpen, ADuplicateThatCannotBeMadeIsZero) {
  rknn_context stale = 0x1234, copy = 0xdead;
  EXPECT_EQ(rknn_dup_context(&stale, &copy), RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(copy, 0U);
}

/// As a call finds it that waits for its lock meanwhile.
TEST(RknnOpen, AContextThatIsDestroyedUnderACallIsNoContext) {
  std::string text = program_text();
  rknn_context context = 0;
  ASSERT_EQ(init(&context, text), RKNN_SUCC);
  const auto found = find_context<ModelContext>(context);
  ASSERT_TRUE(found);
  ASSERT_EQ(rknn_destroy(context), RKNN_SUCC);
  std::shared_ptr<ModelContext> made;
  EXPECT_EQ((*found)->duplicate(made).code(), RKNN_ERR_CTX_INVALID);
  const Outcome shared =
      ModelContext::open(text.data(), static_cast<std::uint32_t>(text.size()),
                         RKNN_FLAG_SHARE_WEIGHT_MEM, nullptr, found->get(), made);
  EXPECT_EQ(shared.code(), RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(made, nullptr);
}

TEST(RknnOpen, SliceOfAFileIsOpened) {
  const std::string program = program_text();
  TempFile file("before" + program + "behind");
  rknn_init_extend extend{};
  extend.real_model_offset = 6;
  extend.real_model_size = static_cast<std::uint32_t>(program.size());
  rknn_context context = 0;
  ASSERT_EQ(rknn_init(&context, file.path(), 0, 0, &extend), RKNN_SUCC);
  EXPECT_EQ(first_result(context), 2.0F);
  rknn_destroy(context);
  extend.real_model_size = static_cast<std::uint32_t>(program.size()) + 7;
  EXPECT_EQ(rknn_init(&context, file.path(), 0, 0, &extend), RKNN_ERR_PARAM_INVALID);
  extend.real_model_offset = 1 << 30;
  EXPECT_EQ(rknn_init(&context, file.path(), 0, 0, &extend), RKNN_ERR_PARAM_INVALID);
  extend.real_model_offset = -1;
  EXPECT_EQ(rknn_init(&context, file.path(), 0, 0, &extend), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(context, 0U);
}

TEST(RknnOpen, SliceOfABufferIsOpened) {
  std::string bytes = "before" + program_text() + "behind";
  rknn_init_extend extend{};
  extend.real_model_offset = 6;
  extend.real_model_size = static_cast<std::uint32_t>(bytes.size()) - 12;
  const auto size = static_cast<std::uint32_t>(bytes.size());
  for (const std::uint32_t flags : {0, RKNN_FLAG_MODEL_BUFFER_ZERO_COPY}) {
    rknn_context context = 0;
    ASSERT_EQ(rknn_init(&context, bytes.data(), size, flags, &extend), RKNN_SUCC);
    EXPECT_EQ(first_result(context), 2.0F);
    rknn_destroy(context);
  }
  extend.real_model_size = size;
  rknn_context context = 0;
  EXPECT_EQ(rknn_init(&context, bytes.data(), size, 0, &extend), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnOpen, ModelBufferIsUsedAsItLiesOrThroughItsDescriptor) {
  std::string program = program_text();
  rknn_context context = 0;
  ASSERT_EQ(init(&context, program, RKNN_FLAG_MODEL_BUFFER_ZERO_COPY), RKNN_SUCC);
  EXPECT_EQ(first_result(context), 2.0F);
  rknn_destroy(context);

  const int fd = memfd_create("model", 0);
  ASSERT_EQ(write(fd, "head", 4), 4);
  ASSERT_EQ(write(fd, program.data(), program.size()), static_cast<ssize_t>(program.size()));
  rknn_init_extend extend{};
  extend.model_buffer_fd = fd;
  extend.real_model_offset = 4;
  extend.real_model_size = static_cast<std::uint32_t>(program.size());
  ASSERT_EQ(rknn_init(&context, nullptr, 0, RKNN_FLAG_MODEL_BUFFER_ZERO_COPY, &extend), RKNN_SUCC);
  close(fd);
  EXPECT_EQ(first_result(context), 2.0F);
  rknn_destroy(context);
}

TEST(RknnOpen, FilesThatAreNoneAreRefusedWithTheWayOut) {
  struct Case {
    std::string bytes;
    const char* says;
    int code;
  };
  const std::string vendor = testing::vendor_file(std::string(4096, 'v'));
  const std::string program = program_text();
  for (Case c :
       {Case{vendor, "corelane compile", RKNN_ERR_TARGET_PLATFORM_UNMATCH},
        Case{std::string("RKNNCRYPT") + std::string(4096, 'c'), "", 0},
        Case{program.substr(0, program.size() / 2), "", RKNN_ERR_MODEL_INVALID},
        Case{"this is a text, not a model\n", "", RKNN_ERR_MODEL_INVALID},
        Case{"RKNN garbage", "has 12 bytes, and its header alone has 24", RKNN_ERR_MODEL_INVALID},
        Case{vendor.substr(0, 2048), "4096 bytes follow its header, and 2024 do",
             RKNN_ERR_MODEL_INVALID},
        Case{"R", "", RKNN_ERR_MODEL_INVALID}}) {
    rknn_context context = 1;
    int code = 0;
    const std::string lines = lines_of([&] { code = init(&context, c.bytes); });
    EXPECT_LT(code, 0) << lines;
    EXPECT_TRUE(c.code == 0 || code == c.code) << code << lines;
    EXPECT_THAT(lines, HasSubstr(c.says));
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
    EXPECT_EQ(context, 0U);
  }
  rknn_context context = 1;
  char missing[] = "/nowhere/model.rknn";
  EXPECT_EQ(rknn_init(&context, missing, 0, 0, nullptr), RKNN_ERR_FAIL);
  char empty[] = "";
  EXPECT_EQ(rknn_init(&context, empty, 0, 0, nullptr), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnOpen, TypesWithoutANumberOfTheApiAreRefusedAndNotTakenForOthers) {
  for (const DType type : {DType::kF8E4M3FN, DType::kF8E5M2, DType::kF8E8M0, DType::kI2}) {
    const int number = onnx_type_of(type);
    const auto cast = [](int to) {
      return OnnxBuilder::Attributes{OnnxBuilder::attribute("to", std::int64_t{to})};
    };
    for (std::string model : {OnnxBuilder()
                                  .input("x", {2, 8}, number)
                                  .output("y", {2, 8})
                                  .node("Cast", {"x"}, {"y"}, {}, cast(testing::kOnnxFloat))
                                  .build("cast", 25),
                              OnnxBuilder()
                                  .input("x", {2, 8})
                                  .output("y", {2, 8}, number)
                                  .node("Cast", {"x"}, {"y"}, {}, cast(number))
                                  .build("cast", 25)}) {
      rknn_context context = 1;
      int code = 0;
      const std::string lines = lines_of([&] { code = init(&context, model); });
      EXPECT_EQ(code, RKNN_ERR_MODEL_INVALID) << lines;
      EXPECT_THAT(lines, HasSubstr(std::string("is of ").append(dtype_name(type))));
      EXPECT_THAT(lines, HasSubstr("this API has no number"));
      EXPECT_EQ(context, 0U);
    }
  }
}

TEST(RknnOpen, ValuesThatAreNoTensorsOfNumbersAreRefused) {
  std::string model = OnnxBuilder()
                          .input("words", {2}, onnx_type_of(DType::kString))
                          .output("y", {2}, onnx_type_of(DType::kString))
                          .node("Identity", {"words"}, {"y"})
                          .build();
  rknn_context context = 1;
  int code = 0;
  const std::string lines = lines_of([&] { code = init(&context, model); });
  EXPECT_EQ(code, RKNN_ERR_MODEL_INVALID) << lines;
  EXPECT_THAT(lines, HasSubstr("'words' is a tensor(string)"));
  EXPECT_EQ(context, 0U);
}

TEST(RknnOpen, AnOnnxModelIsImportedOnceAndNotAtAllWhereTheCompileCacheHasIt) {
  char cache[] = "/tmp/corelane-open-XXXXXX";
  ASSERT_NE(mkdtemp(cache), nullptr);
  const test::Environment folder("CORELANE_CACHE_DIR", cache);
  int imports = 0;
  const auto level = corelane::log::level();
  corelane::log::set_level(corelane::log::Level::kDebug);
  corelane::log::set_callback([&](corelane::log::Level, std::string_view, std::string_view text) {
    imports += text.starts_with("imported ");
  });
  for (const int expected : {1, 0}) {
    imports = 0;
    std::string text = model_text();
    rknn_context context = 0;
    EXPECT_EQ(init(&context, text), RKNN_SUCC);
    EXPECT_EQ(imports, expected);
    rknn_destroy(context);
  }
  corelane::log::set_callback({});
  corelane::log::set_level(level);
  std::filesystem::remove_all(cache);
}

TEST(RknnOpen, OnnxModelsWithAnOpenBatchTakeOneSample) {
  std::string text = OnnxBuilder()
                         .input("x", {std::string("n"), 8})
                         .output("y", {std::string("n"), 8})
                         .node("Relu", {"x"}, {"y"})
                         .build();
  rknn_context context = 0;
  ASSERT_EQ(init(&context, text), RKNN_SUCC);
  rknn_tensor_attr attr{};
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr), RKNN_SUCC);
  EXPECT_EQ(attr.dims[0], 1U);
  EXPECT_EQ(attr.n_elems, 8U);
  rknn_destroy(context);
}

TEST(RknnOpen, DuplicatesOutliveTheirFirstContextAndKeepTensorsOfTheirOwn) {
  std::string text = program_text();
  rknn_context first = 0, second = 0, third = 0;
  ASSERT_EQ(init(&first, text), RKNN_SUCC);
  ASSERT_EQ(rknn_dup_context(&first, &second), RKNN_SUCC);
  EXPECT_EQ(first_result(first), 2.0F);
  EXPECT_EQ(rknn_destroy(first), RKNN_SUCC);
  ASSERT_EQ(rknn_dup_context(&second, &third), RKNN_SUCC);
  EXPECT_EQ(first_result(second), 2.0F);
  EXPECT_EQ(first_result(third), 2.0F);
  EXPECT_EQ(rknn_destroy(second), RKNN_SUCC);
  EXPECT_EQ(first_result(third), 2.0F);
  EXPECT_EQ(rknn_destroy(third), RKNN_SUCC);
}

TEST(RknnOpen, ProgramsWithoutWeightsTakeThoseOfAnotherContext) {
  // A constant of some size, so that it lies apart from the graph.
  const auto onnx = [](float weight) {
    return OnnxBuilder()
        .input("x", {2, 2048})
        .output("y", {2, 2048})
        .constant<float>("w", {2048}, testing::kOnnxFloat, std::vector<float>(2048, weight))
        .node("Mul", {"x", "w"}, {"y"})
        .build();
  };
  const auto text = [&](bool remove) {
    const std::string model = onnx(3.0F);
    CompileOptions options;
    options.remove_weights = remove;
    return std::string(as_string_view(compile_bytes(as_byte_span(model), options).value()));
  };
  std::string whole = text(false), bare = text(true), other = onnx(4.0F);
  EXPECT_LT(bare.size() + 4096, whole.size());
  rknn_context first = 0, second = 0, wrong = 0;
  ASSERT_EQ(init(&first, whole), RKNN_SUCC);
  ASSERT_EQ(init(&wrong, other), RKNN_SUCC);
  const std::string line = lines_of([&] { EXPECT_EQ(init(&second, bare), RKNN_ERR_FAIL); });
  EXPECT_THAT(line, HasSubstr("RKNN_FLAG_SHARE_WEIGHT_MEM, and its context in extend->ctx"));
  rknn_init_extend extend{};
  EXPECT_EQ(init(&second, bare, RKNN_FLAG_SHARE_WEIGHT_MEM, &extend), RKNN_ERR_PARAM_INVALID);
  extend.ctx = wrong;
  EXPECT_EQ(init(&second, bare, RKNN_FLAG_SHARE_WEIGHT_MEM, &extend), RKNN_ERR_MODEL_INVALID);
  extend.ctx = first;
  ASSERT_EQ(init(&second, bare, RKNN_FLAG_SHARE_WEIGHT_MEM, &extend), RKNN_SUCC);
  rknn_destroy(first);  // The weights stay.
  std::vector<float> ones(4096, 1.0F);
  rknn_input input{};
  input.buf = ones.data();
  input.size = 16384;
  input.fmt = RKNN_TENSOR_UNDEFINED;
  ASSERT_EQ(rknn_inputs_set(second, 1, &input), RKNN_SUCC);
  ASSERT_EQ(rknn_run(second, nullptr), RKNN_SUCC);
  rknn_output output{};
  output.want_float = 1;
  ASSERT_EQ(rknn_outputs_get(second, 1, &output, nullptr), RKNN_SUCC);
  EXPECT_EQ(static_cast<float*>(output.buf)[4095], 3.0F);
  rknn_destroy(second);
  rknn_destroy(wrong);
}

TEST(RknnOpen, WeightsAndActivationsMayComeFromTheCaller) {
  std::string text = program_text();
  rknn_context context = 0;
  ASSERT_EQ(init(&context, text, RKNN_FLAG_MEM_ALLOC_OUTSIDE), RKNN_SUCC);
  std::fill(text.begin(), text.end(), '\xee');  // Kept by the library until the memory is there.
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);
  rknn_mem_size sizes{};
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes), RKNN_SUCC);
  EXPECT_GT(sizes.total_weight_size, 0U);
  EXPECT_GT(sizes.total_internal_size, 0U);
  rknn_tensor_mem* small = rknn_create_mem(context, 16);
  EXPECT_EQ(rknn_set_weight_mem(context, small), RKNN_ERR_PARAM_INVALID);
  rknn_tensor_mem* weights = rknn_create_mem(context, sizes.total_weight_size);
  rknn_tensor_mem* internal = rknn_create_mem(context, sizes.total_internal_size);
  ASSERT_EQ(rknn_set_weight_mem(context, weights), RKNN_SUCC);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);
  EXPECT_EQ(rknn_set_internal_mem(context, small), RKNN_ERR_PARAM_INVALID);
  ASSERT_EQ(rknn_set_internal_mem(context, internal), RKNN_SUCC);
  EXPECT_EQ(first_result(context), 2.0F);
  rknn_destroy_mem(context, weights);  // The context holds what it reads.
  EXPECT_EQ(first_result(context), 2.0F);
  rknn_destroy_mem(context, internal);
  rknn_destroy_mem(context, small);
  rknn_destroy(context);
}

TEST(RknnOpen, WeightsBesideAnOnnxFileMayComeFromTheCaller) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("rknn_{}", getpid());
  std::filesystem::create_directory(folder);
  const float two = 2;
  ASSERT_TRUE(write_file_atomic(folder / "w.bin", std::as_bytes(std::span(&two, 1))).ok());
  const std::string model = OnnxBuilder()
                                .input("x", {2, 8})
                                .output("y", {2, 8})
                                .external("two", {1}, testing::kOnnxFloat, "w.bin", 0, 4)
                                .node("Add", {"x", "two"}, {"y"})
                                .build();
  std::string path = folder / "model.onnx";
  ASSERT_TRUE(write_file_atomic(path, as_byte_span(model)).ok());
  rknn_context context = 0;
  ASSERT_EQ(rknn_init(&context, path.data(), 0, RKNN_FLAG_MEM_ALLOC_OUTSIDE, nullptr), RKNN_SUCC);
  rknn_mem_size sizes{};
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes), RKNN_SUCC);
  rknn_tensor_mem* weights = rknn_create_mem(context, sizes.total_weight_size);
  rknn_tensor_mem* internal = rknn_create_mem(context, sizes.total_internal_size);
  EXPECT_EQ(rknn_set_weight_mem(context, weights), RKNN_SUCC);
  EXPECT_EQ(rknn_set_internal_mem(context, internal), RKNN_SUCC);
  EXPECT_EQ(first_result(context), 3.0F);
  rknn_destroy_mem(context, weights);
  rknn_destroy_mem(context, internal);
  rknn_destroy(context);
  std::filesystem::remove_all(folder);
}

TEST(RknnOpen, MemoryFromOutsideIsRefusedWithoutTheFlag) {
  std::string text = program_text();
  rknn_context context = 0;
  ASSERT_EQ(init(&context, text), RKNN_SUCC);
  rknn_tensor_mem* mem = rknn_create_mem(context, 1 << 20);
  EXPECT_EQ(rknn_set_weight_mem(context, mem), RKNN_ERR_FAIL);
  EXPECT_EQ(rknn_set_internal_mem(context, mem), RKNN_ERR_FAIL);
  rknn_destroy_mem(context, mem);
  rknn_destroy(context);
}

TEST(RknnOpen, InfoOnlyContextsAnswerSizesOnly) {
  std::string text = program_text();
  rknn_context context = 0;
  ASSERT_EQ(init(&context, text, RKNN_FLAG_COLLECT_MODEL_INFO_ONLY), RKNN_SUCC);
  rknn_mem_size sizes{};
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes), RKNN_SUCC);
  EXPECT_GT(sizes.total_weight_size, 0U);
  rknn_input_output_num count{};
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &count, sizeof count), RKNN_ERR_FAIL);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);
  rknn_destroy(context);
}

TEST(RknnOpen, FlagsWithoutEffectAreAccepted) {
  std::string text = program_text();
  for (const std::uint32_t flag :
       {RKNN_FLAG_PRIOR_MEDIUM, RKNN_FLAG_PRIOR_LOW, RKNN_FLAG_ENABLE_SRAM, RKNN_FLAG_SHARE_SRAM,
        RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU, RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY,
        RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE, RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE}) {
    rknn_context context = 0;
    ASSERT_EQ(init(&context, text, flag), RKNN_SUCC) << flag;
    EXPECT_EQ(first_result(context), 2.0F);
    rknn_destroy(context);
  }
}

TEST(RknnOpen, ContextsThatCameThroughAForkAreRefusedNotWaitedFor) {
  std::string text = program_text();
  rknn_context context = 0;
  ASSERT_EQ(init(&context, text), RKNN_SUCC);
  const pid_t child = fork();
  if (child == 0) {
    rknn_context other = 0;
    const bool told = rknn_run(context, nullptr) == RKNN_ERR_CTX_INVALID &&
                      rknn_destroy(context) == RKNN_ERR_CTX_INVALID &&
                      init(&other, text) == RKNN_ERR_DEVICE_UNAVAILABLE;
    _exit(told ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(first_result(context), 2.0F);
  rknn_destroy(context);
}

}  // namespace
}  // namespace corelane::rknn
