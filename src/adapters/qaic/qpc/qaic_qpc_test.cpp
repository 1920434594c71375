// Containers: statements 1 to 6 of the object runtime as far as C goes.
#include "adapters/qaic/qpc/qaic_qpc.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "QAicApi.pb.h"
#include "adapters/qaic/api/qaic_test_support.h"
#include "adapters/qaic/qpc/qaic_io_descriptor.h"
#include "corelane/base/file.h"
#include "corelane/program/program_file.h"

namespace corelane::qaic {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A folder that is removed at the end.
struct Folder {
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name, const ByteVector& bytes) const {
    const auto at = path / name;
    EXPECT_TRUE(write_file_atomic(at, bytes).ok());
    return at.string();
  }
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("qaic_qpc_" + std::to_string(getpid()));
};

/// y = MatMul(x, w) with 4 KiB of constants; the first dimension of x is open.
std::string product() {
  return OnnxBuilder()
      .input("x", {std::string("n"), std::int64_t{32}})
      .output("y", {std::string("n"), std::int64_t{32}})
      .constant("w", {32, 32}, testing::kOnnxFloat, std::vector<float>(1024, 0.5F))
      .node("MatMul", {"x", "w"}, {"y"})
      .build("product");
}

ImportOptions sets(const std::vector<std::vector<Shape>>& shape_sets) {
  ImportOptions import;
  import.shape_sets = shape_sets;
  return import;
}

/// Several programs in one container.
ByteVector parts(const Folder& folder) {
  const std::string models[] = {two_by_two({std::int64_t{2}, std::int64_t{3}}), product()};
  std::vector<PartSource> sources;
  for (const std::size_t i : {0, 1}) {
    const std::string name = i == 0 ? "left" : "right";
    const auto bytes = as_byte_span(models[i]);
    sources.push_back(
        {folder.file(name + ".onnx", ByteVector(bytes.begin(), bytes.end())), name, {}});
  }
  sources[1].import = sets({{Shape{1, 32}}, {Shape{8, 32}}});
  return compile_parts(sources).value();
}

std::vector<std::uint32_t> dims_of(const QAicBufferShape& shape) {
  return {shape.dims, shape.dims + shape.numDims};
}

TEST(QaicQpc, InputsComeFirstThenOutputs) {
  ImportOptions import;
  import.cores = 3;
  import.partial_inputs = {"b"};
  const OwnQpc qpc(container_of(two_by_two({std::int64_t{2}, std::int64_t{3}}), import));
  ASSERT_EQ(qpc.status, QS_SUCCESS) << last_error();
  const QAicQpcInfo& info = qpc.info();
  ASSERT_EQ(info.numPrograms, 1U);
  EXPECT_EQ(info.numConstants, 0U);
  const QAicQpcProgramInfo& program = info.programInfo[0];
  EXPECT_STREQ(program.name, "two_by_two");
  EXPECT_EQ(program.numCores, 3U);
  EXPECT_EQ(program.batchSize, 1);
  EXPECT_EQ(program.numSemaphores, 0U);
  EXPECT_EQ(program.numMcids, 0U);
  EXPECT_EQ(program.reqMem, 4U * 24) << "no constants, four tensors";
  EXPECT_GT(program.size, 50U);
  ASSERT_EQ(program.ioBufferInfo.numBufferMappings, 4U);
  const char* const names[] = {"a", "b", "sum", "difference"};
  for (std::uint32_t i = 0; i < 4; ++i) {
    const QAicBufferMappings& mapping = program.ioBufferInfo.bufferMappings[i];
    EXPECT_STREQ(mapping.bufferName, names[i]);
    EXPECT_EQ(mapping.index, i);
    EXPECT_EQ(mapping.ioType, i < 2 ? BUFFER_IO_TYPE_INPUT : BUFFER_IO_TYPE_OUTPUT);
    EXPECT_EQ(mapping.size, 24U);
    EXPECT_EQ(mapping.dataType, BUFFER_DATA_TYPE_FLOAT);
    EXPECT_EQ(mapping.isPartialBufferAllowed, i == 1);
  }
  EXPECT_EQ(program.ioBufferInfoDma.numBufferMappings, 4U);
  std::uint32_t count = 0;
  const QAicBufferShapes* shapes = nullptr;
  ASSERT_EQ(qaicQpcGetBufferShapes(qpc, 0, &count, &shapes), QS_SUCCESS);
  ASSERT_EQ(count, 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(shapes[i].numShapes, 1U);
    EXPECT_THAT(dims_of(shapes[i].shapes[0]), ElementsAre(2, 3));
    EXPECT_EQ(shapes[i].shapes[0].dataType, BUFFER_DATA_TYPE_FLOAT);
  }
}

TEST(QaicQpc, SizesAreThoseOfTheLargestSpecialization) {
  const OwnQpc qpc(
      container_of(product(), sets({{Shape{4, 32}}, {Shape{16, 32}}, {Shape{1, 32}}})));
  ASSERT_EQ(qpc.status, QS_SUCCESS) << last_error();
  const auto& program = qpc.info().programInfo[0];
  ASSERT_EQ(program.ioBufferInfo.numBufferMappings, 2U);
  std::uint32_t count = 0;
  const QAicBufferShapes* shapes = nullptr;
  ASSERT_EQ(qaicQpcGetBufferShapes(qpc, 0, &count, &shapes), QS_SUCCESS);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(program.ioBufferInfo.bufferMappings[i].size, 16U * 32 * 4);
    ASSERT_EQ(shapes[i].numShapes, 3U);
    EXPECT_THAT(dims_of(shapes[i].shapes[0]), ElementsAre(4, 32));
    EXPECT_THAT(dims_of(shapes[i].shapes[1]), ElementsAre(16, 32));
    EXPECT_THAT(dims_of(shapes[i].shapes[2]), ElementsAre(1, 32));
  }
  ASSERT_EQ(qpc.info().numConstants, 1U);
  EXPECT_EQ(qpc.info().constantsInfo[0].size, 4096U);
  EXPECT_STREQ(qpc.info().constantsInfo[0].name, "constants");
  EXPECT_EQ(program.reqMem, 4096U + 2 * 2048);
}

TEST(QaicQpc, PartsAreProgramsThatShareTheConstants) {
  const Folder folder;
  const OwnQpc qpc(parts(folder));
  ASSERT_EQ(qpc.status, QS_SUCCESS) << last_error();
  const QAicQpcInfo& info = qpc.info();
  ASSERT_EQ(info.numPrograms, 2U);
  EXPECT_STREQ(info.programInfo[0].name, "left");
  EXPECT_STREQ(info.programInfo[1].name, "right");
  EXPECT_EQ(info.programInfo[1].programIndex, 1U);
  EXPECT_EQ(info.programInfo[1].ioBufferInfo.bufferMappings[1].size, 8U * 32 * 4);
  EXPECT_EQ(info.numConstants, 1U);
  std::uint32_t count = 0;
  const QAicBufferShapes* shapes = nullptr;
  ASSERT_EQ(qaicQpcGetBufferShapes(qpc, 1, &count, &shapes), QS_SUCCESS);
  EXPECT_EQ(count, 2U);
  QData desc{};
  EXPECT_EQ(qaicQpcGetIoDescriptor(qpc, 2, &desc), QS_INVAL);
  EXPECT_THAT(last_error(), HasSubstr("no program 2 in the container, which has 2"));
  EXPECT_EQ(qaicQpcGetBufferShapes(qpc, 2, &count, &shapes), QS_INVAL);
}

struct TypeRow {
  int onnx;
  QAicBufferDataTypeEnum type;
  std::uint32_t bytes;
};

TEST(QaicQpc, ElementTypesHaveTheirNumbers) {
  for (const TypeRow& row : {TypeRow{1, BUFFER_DATA_TYPE_FLOAT, 4},
                             {10, BUFFER_DATA_TYPE_FLOAT16, 2},
                             {16, BUFFER_DATA_TYPE_BFLOAT16, 2},
                             {3, BUFFER_DATA_TYPE_INT8, 1},
                             {9, BUFFER_DATA_TYPE_INT8, 1},
                             {2, BUFFER_DATA_TYPE_UINT8, 1},
                             {6, BUFFER_DATA_TYPE_INT32I, 4},
                             {7, BUFFER_DATA_TYPE_INT64I, 8}}) {
    const Dims dims{std::int64_t{5}};
    const OwnQpc qpc(container_of(OnnxBuilder()
                                      .input("x", dims, row.onnx)
                                      .output("y", dims, row.onnx)
                                      .node("Identity", {"x"}, {"y"})
                                      .build()));
    ASSERT_EQ(qpc.status, QS_SUCCESS) << last_error();
    for (int i = 0; i < 2; ++i) {
      const auto& mapping = qpc.info().programInfo[0].ioBufferInfo.bufferMappings[i];
      EXPECT_EQ(mapping.dataType, row.type) << row.onnx;
      EXPECT_EQ(mapping.size, 5 * row.bytes);
    }
  }
}

TEST(QaicQpc, WhatTheApiHasNoFormForIsRefusedWithTheWayOut) {
  const Dims five{std::int64_t{5}};
  const OwnQpc f64(container_of(OnnxBuilder()
                                    .input("x", five, 11)
                                    .output("y", five, 11)
                                    .node("Identity", {"x"}, {"y"})
                                    .build()));
  EXPECT_EQ(f64.status, QS_UNSUPPORTED);
  EXPECT_THAT(last_error(), HasSubstr("'x' is of f64"));
  EXPECT_THAT(last_error(), HasSubstr("add a Cast"));
  // Types that would fit a byte of the API's.
  for (const DType type : {DType::kF8E5M2, DType::kF8E8M0, DType::kF4E2M1, DType::kU2}) {
    const OwnQpc small(container_of(OnnxBuilder()
                                        .input("x", {2}, onnx_type_of(type))
                                        .output("y", {2}, onnx_type_of(type))
                                        .node("Identity", {"x"}, {"y"})
                                        .build()));
    EXPECT_EQ(small.status, QS_UNSUPPORTED);
    EXPECT_THAT(last_error(), HasSubstr(std::string("'x' is of ").append(dtype_name(type))));
  }
  const OwnQpc words(container_of(OnnxBuilder()
                                      .input("x", {2}, onnx_type_of(DType::kString))
                                      .output("y", {2}, onnx_type_of(DType::kString))
                                      .node("Identity", {"x"}, {"y"})
                                      .build()));
  EXPECT_EQ(words.status, QS_UNSUPPORTED);
  EXPECT_THAT(last_error(), HasSubstr("'x' is a tensor(string)"));
  const OwnQpc open(container_of(product()));
  EXPECT_EQ(open.status, QS_UNSUPPORTED);
  EXPECT_THAT(last_error(), HasSubstr("input 'x' has open dimensions"));
  EXPECT_THAT(last_error(), HasSubstr("--shape-set"));
  const OwnQpc counted(container_of(OnnxBuilder()
                                        .input("x", five)
                                        .output("y", {std::int64_t{1}, std::string("n")}, 7)
                                        .node("NonZero", {"x"}, {"y"})
                                        .build()));
  EXPECT_EQ(counted.status, QS_UNSUPPORTED);
  EXPECT_THAT(last_error(), HasSubstr("output 'y' is known after a run only"));
  const OwnQpc large(container_of(two_by_two({std::int64_t{1} << 30})));
  EXPECT_EQ(large.status, QS_UNSUPPORTED) << "4 GiB";
  EXPECT_THAT(last_error(), HasSubstr("4294967295 bytes are allowed"));
  EXPECT_EQ(OwnQpc(container_of(two_by_two({(std::int64_t{1} << 30) - 1}))).status, QS_SUCCESS);
}

TEST(QaicQpc, NamesThatAreNotTextsAreRefused) {
  const Dims dims{std::int64_t{2}};
  for (const std::string& name : {std::string("\xff"), std::string("a\xc3"), std::string("\x80z"),
                                  std::string("a\0b", 3), std::string("\xf0\x9f\x98")}) {
    const OwnQpc qpc(container_of(
        OnnxBuilder().input(name, dims).output("y", dims).node("Relu", {name}, {"y"}).build()));
    EXPECT_EQ(qpc.status, QS_UNSUPPORTED);
    EXPECT_THAT(last_error(), HasSubstr("not a text of UTF-8"));
  }
  for (const std::string& name : {std::string("\xc3\xa4"), std::string("\xf0\x9f\x98\x80")}) {
    const OwnQpc qpc(container_of(
        OnnxBuilder().input(name, dims).output("y", dims).node("Relu", {name}, {"y"}).build()));
    ASSERT_EQ(qpc.status, QS_SUCCESS) << last_error();
    EXPECT_EQ(qpc.info().programInfo[0].ioBufferInfo.bufferMappings[0].bufferName, name);
  }
}

TEST(QaicQpc, LongNamesAreCutToFit) {
  std::string name(62, 'n');
  name += "\xc3\xa4tail";
  const Dims dims{std::int64_t{2}};
  const std::string onnx =
      OnnxBuilder().input("x", dims).output("y", dims).node("Relu", {"x"}, {"y"}).build(name);
  const OwnQpc qpc(container_of(onnx));
  ASSERT_EQ(qpc.status, QS_SUCCESS) << last_error();
  EXPECT_EQ(std::string(qpc.info().programInfo[0].name), std::string(62, 'n'))
      << "before a character that does not fit";
}

/// The bytes of a client that parses them with a class of our file.
TEST(QaicQpc, TheDescriptorIsAnIoDesc) {
  ImportOptions import = sets({{Shape{4, 32}}, {Shape{16, 32}}});
  import.partial_inputs = {"x"};
  const OwnQpc qpc(container_of(product(), import));
  QData bytes{};
  ASSERT_EQ(qaicQpcGetIoDescriptor(qpc, 0, &bytes), QS_SUCCESS) << last_error();
  aicapi::IoDesc desc;
  ASSERT_TRUE(desc.ParseFromArray(bytes.data, static_cast<int>(bytes.size)));
  ASSERT_EQ(desc.io_sets_size(), 2);
  EXPECT_EQ(desc.io_sets(0).name(), "default");
  EXPECT_EQ(desc.io_sets(1).name(), "dma");
  EXPECT_EQ(desc.selected_set().name(), "default");
  ASSERT_EQ(desc.selected_set().bindings_size(), 2);
  const auto& x = desc.selected_set().bindings(0);
  EXPECT_EQ(x.name(), "x");
  EXPECT_EQ(x.index(), 0U);
  EXPECT_EQ(x.dir(), aicapi::BUFFER_IO_TYPE_INPUT);
  EXPECT_EQ(x.type(), aicapi::FLOAT_TYPE);
  EXPECT_THAT(x.dims(), ElementsAre(16, 32));
  EXPECT_EQ(x.size(), 2048U);
  EXPECT_TRUE(x.is_partial_buf_allowed());
  ASSERT_EQ(x.dma_buf_info_size(), 1);
  EXPECT_EQ(x.dma_buf_info(0).dma_size(), 2048U);
  const auto& y = desc.selected_set().bindings(1);
  EXPECT_EQ(y.dir(), aicapi::BUFFER_IO_TYPE_OUTPUT);
  EXPECT_EQ(y.index(), 1U);
  EXPECT_EQ(y.dma_buf_info(0).dma_buf_index(), 1U);
  ASSERT_EQ(desc.dma_buf_size(), 2);
  EXPECT_EQ(desc.dma_buf(1).dir(), aicapi::BUFFER_IO_TYPE_OUTPUT);
  ASSERT_EQ(desc.allowed_shapes_size(), 2);
  ASSERT_EQ(desc.allowed_shapes(0).shapes_size(), 2);
  EXPECT_THAT(desc.allowed_shapes(0).shapes(1).dims(), ElementsAre(4, 32));
  EXPECT_EQ(desc.allowed_shapes(1).shapes(0).type(), aicapi::FLOAT_TYPE);
}

TEST(QaicQpc, ADescriptorOfAClientIsChecked) {
  const OwnQpc qpc(container_of(two_by_two({std::int64_t{2}})));
  const QpcProgram& program = find<QpcObject>(qpc).value()->program(0);
  const auto check = [&](const aicapi::IoDesc& desc) {
    const std::string bytes = desc.SerializeAsString();
    return check_io_descriptor(as_byte_span(bytes), program);
  };
  aicapi::IoDesc desc;
  ASSERT_TRUE(desc.ParseFromArray(program.io_descriptor.data(),
                                  static_cast<int>(program.io_descriptor.size())));
  EXPECT_TRUE(check(desc).ok());
  *desc.mutable_selected_set() = desc.io_sets(1);
  EXPECT_TRUE(check(desc).ok());
  desc.mutable_selected_set()->set_name("quantize");
  EXPECT_THAT(check(desc).to_string(), HasSubstr("'default' and 'dma' are allowed"));
  *desc.mutable_selected_set() = desc.io_sets(0);
  desc.mutable_selected_set()->mutable_bindings(0)->set_name("other");
  EXPECT_THAT(check(desc).to_string(), HasSubstr("not that of this program"));
  desc.mutable_selected_set()->mutable_bindings()->RemoveLast();
  EXPECT_FALSE(check(desc).ok());
  EXPECT_FALSE(check({}).ok());
  EXPECT_FALSE(check_io_descriptor(as_byte_span("\xff\xff\xff"), program).ok());
}

/// Statement 6, and the first two of the open code's defects: its file factory keeps a pointer
/// into a buffer that is freed, and makeCopy has no effect there.
TEST(QaicQpc, ACopyAndAFileOwnTheirBytes) {
  const Folder folder;
  auto bytes = std::make_unique<ByteVector>(container_of(product(), sets({{Shape{4, 32}}})));
  const ByteVector whole = *bytes;
  const std::string path = folder.file("programqpc.bin", whole);
  const OwnQpc copy(*bytes, true);
  const OwnQpc file(path);
  ASSERT_EQ(file.status, QS_SUCCESS) << last_error();
  std::ranges::fill(*bytes, std::byte{0x5a});
  bytes.reset();
  std::filesystem::remove(path);
  for (const OwnQpc* const qpc : {&copy, &file}) {
    const auto container = find<QpcObject>(*qpc).value();
    EXPECT_TRUE(std::ranges::equal(container->file()->bytes(), whole));
    EXPECT_TRUE(container->file()->verify_segments().ok());
  }
}

TEST(QaicQpc, WithoutACopyTheUsersBytesAreRead) {
  const ByteVector bytes = container_of(product(), sets({{Shape{4, 32}}}));
  const OwnQpc qpc(bytes, false);
  EXPECT_EQ(find<QpcObject>(qpc).value()->file()->bytes().data(), bytes.data());
}

TEST(QaicQpc, AFileThatCannotBeReadIsAnErrorWithItsPath) {
  const Folder folder;
  const std::string missing = (folder.path / "none.bin").string();
  EXPECT_EQ(OwnQpc(missing).status, QS_ERROR);
  EXPECT_THAT(last_error(), HasSubstr(missing));
  EXPECT_EQ(OwnQpc(folder.path.string()).status, QS_ERROR) << "a directory";
  EXPECT_THAT(last_error(), HasSubstr(folder.path.string()));
  EXPECT_EQ(OwnQpc(folder.file("empty.bin", {})).status, QS_INVAL);
  EXPECT_THAT(last_error(), HasSubstr("empty.bin"));
}

TEST(QaicQpc, TheVendorsContainerIsRecognised) {
  const Folder folder;
  ByteVector vendor(200);
  const unsigned char magic[] = {0x7c, 0xcd, 0xa1, 0x00};
  std::memcpy(vendor.data(), magic, sizeof magic);
  EXPECT_EQ(OwnQpc(vendor).status, QS_UNSUPPORTED);
  EXPECT_THAT(last_error(), HasSubstr("corelane compile MODEL.onnx --target aic100 -o DIR"));
  const std::string path = folder.file("programqpc.bin", vendor);
  EXPECT_EQ(OwnQpc(path).status, QS_UNSUPPORTED);
  EXPECT_THAT(last_error(), HasSubstr(path));
  vendor.resize(4);
  EXPECT_EQ(OwnQpc(vendor).status, QS_UNSUPPORTED);
  vendor.resize(3);
  EXPECT_EQ(OwnQpc(vendor).status, QS_INVAL);
}

/// Each function with a handle that is null, released, foreign or of another kind, and null
/// pointers.
TEST(QaicQpc, MisuseIsRefused) {
  const OwnDevices devices({"null:generic:1"});
  const OwnContext context({0});
  const ByteVector bytes = container_of(two_by_two({std::int64_t{2}}));
  QAicQpcObj* released = nullptr;
  ASSERT_EQ(qaicOpenQpc(&released, data_of(bytes), bytes.size(), true), QS_SUCCESS);
  ASSERT_EQ(qaicCloseQpc(released), QS_SUCCESS);
  int foreign = 0;
  auto* const wrong = reinterpret_cast<QAicQpcObj*>(static_cast<QAicContext*>(context));
  const QAicQpcInfo* info = nullptr;
  QData desc{};
  std::uint32_t count = 0;
  const QAicBufferShapes* shapes = nullptr;
  for (QAicQpcObj* const handle : {static_cast<QAicQpcObj*>(nullptr), released,
                                   reinterpret_cast<QAicQpcObj*>(&foreign), wrong}) {
    EXPECT_EQ(qaicQpcGetInfo(handle, &info), QS_INVAL);
    EXPECT_EQ(qaicQpcGetIoDescriptor(handle, 0, &desc), QS_INVAL);
    EXPECT_EQ(qaicQpcGetBufferShapes(handle, 0, &count, &shapes), QS_INVAL);
    EXPECT_EQ(qaicCloseQpc(handle), QS_INVAL);
    EXPECT_THAT(last_error(), HasSubstr("container"));
  }
  const OwnQpc qpc(bytes);
  EXPECT_EQ(qaicQpcGetInfo(qpc, nullptr), QS_INVAL);
  EXPECT_EQ(qaicQpcGetIoDescriptor(qpc, 0, nullptr), QS_INVAL);
  EXPECT_EQ(qaicQpcGetBufferShapes(qpc, 0, nullptr, &shapes), QS_INVAL);
  EXPECT_EQ(qaicQpcGetBufferShapes(qpc, 0, &count, nullptr), QS_INVAL);
  QAicQpcObj* made = nullptr;
  EXPECT_EQ(qaicOpenQpc(nullptr, data_of(bytes), bytes.size(), true), QS_INVAL);
  EXPECT_EQ(qaicOpenQpc(&made, nullptr, 8, true), QS_INVAL);
  EXPECT_EQ(qaicOpenQpc(&made, data_of(bytes), 0, true), QS_INVAL);
  EXPECT_EQ(qaicOpenQpcFile(nullptr, "x"), QS_INVAL);
  EXPECT_EQ(qaicOpenQpcFile(&made, nullptr), QS_INVAL);
  EXPECT_EQ(made, nullptr);
}

}  // namespace
}  // namespace corelane::qaic
