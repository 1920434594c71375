// Files made to get past the patch: whatever the engine would read otherwise than the patch did
// must be refused, since the engine trusts the addresses it is given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/virtual/common/onnx_patch.h"
#include "drivers/virtual/test_networks.h"

namespace corelane::drivers::virtual_npu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kEngine = "*/_ORT_MEM_ADDR_/*";
constexpr std::string_view kOwn = "corelane:constants";

std::string joined(std::initializer_list<std::string> parts) {
  std::string all;
  for (const auto& p : parts) all += p;
  return all;
}

std::string field(std::uint32_t number, std::string_view payload) {
  std::string out;
  append_bytes_field(out, number, payload);
  return out;
}

std::string varint_field(std::uint32_t number, std::uint64_t value) {
  std::string out;
  append_varint_field(out, number, value);
  return out;
}

std::string entry(std::string_view key, std::string_view value) {
  return field(13, field(1, key) + field(2, value));
}

/// Six floats at `offset` of `location`, by an encoded data location.
std::string tensor(std::string_view location, std::string_view offset, std::uint64_t where = 1) {
  return joined({varint_field(1, 2), varint_field(1, 3), varint_field(2, 1), field(8, "w"),
                 entry("location", location), entry("offset", offset), entry("length", "24"),
                 varint_field(14, where)});
}

/// A Constant node with one attribute.
std::string constant_node(std::string_view attribute) {
  return field(1, joined({field(2, "c"), field(4, "Constant"), field(5, attribute)}));
}

Result<PatchedModel> patch_hostile(const std::string& model) {
  return patch_onnx(onnx_image(model, ByteVector(88)), {});
}

void expect_refused(const std::string& model, std::string_view what, std::string_view text) {
  const auto patched = patch_hostile(model);
  ASSERT_FALSE(patched) << what;
  EXPECT_EQ(patched.error().code(), Code::kMalformed) << what;
  EXPECT_THAT(patched.error().message(), HasSubstr(text)) << what;
}

TEST(OnnxPatchHostile, EngineLocationAnywhereInTheFileIsRefused) {
  const std::string plain = tensor(kEngine, "4096");
  const std::string sparse = field(1, plain);
  const std::string graphs[] = {
      field(5, plain),
      field(15, sparse),
      constant_node(field(1, "sparse_value") + field(22, sparse)),
      constant_node(field(1, "sparse_values") + field(23, sparse)),
      field(5, tensor(kEngine, "4096", (std::uint64_t{1} << 32) + 1)),
      field(5, tensor(kEngine, "4096", 0)),
  };
  for (const auto& graph : graphs) expect_refused(field(7, graph), graph, "addresses of memory");
  expect_refused(matmul_network() + field(7, field(5, plain)), "second graph",
                 "addresses of memory");
  expect_refused(matmul_network() + field(25, field(11, field(5, plain))), "function",
                 "addresses of memory");
}

TEST(OnnxPatchHostile, ExternalFilesAreRefusedWhereverATensorMayBe) {
  const std::string file = tensor("/etc/passwd", "0");
  const std::string sparse = field(2, file);
  for (const auto& model : {field(7, field(15, sparse)), field(7, constant_node(field(22, sparse))),
                            field(7, constant_node(field(23, sparse))),
                            matmul_network() + field(25, field(11, field(5, file)))})
    expect_refused(model, model, "/etc/passwd");
}

TEST(OnnxPatchHostile, FieldsThatProtobufWouldMergeAreRefused) {
  const std::string own = tensor(kOwn, "0");
  const std::string stray = entry("offset", "4096");
  expect_refused(joined({field(7, field(5, own)), field(7, "")}), "graph", "field 7 twice");
  expect_refused(field(7, constant_node(field(5, own) + field(5, stray))), "t", "field 5 twice");
  expect_refused(field(7, constant_node(field(6, "") + field(6, ""))), "g", "field 6 twice");
  const std::string values = field(1, own);
  expect_refused(field(7, constant_node(field(22, values) + field(22, field(1, stray)))), "sparse",
                 "field 22 twice");
  expect_refused(field(7, field(15, values + field(1, stray))), "values", "field 1 twice");
  // Repeated fields may come often.
  EXPECT_TRUE(patch_hostile(field(7, constant_node(field(10, own) + field(10, own)))));
}

TEST(OnnxPatchHostile, DataLocationsThatProtobufReadsOtherwiseAreRefused) {
  for (const std::uint64_t where : {(std::uint64_t{1} << 32) + 1, std::uint64_t{7}})
    expect_refused(field(7, field(5, tensor("/etc/passwd", "0", where))), "location",
                   "data location");
}

TEST(OnnxPatchHostile, KeysOfMoreThan32BitsAreRefused) {
  std::string model;
  append_varint(model, (std::uint64_t{1} << 32) | (7U << 3U) | 2U);
  append_varint(model, 0);
  expect_refused(matmul_network() + model, "key", "more than 32 bits");
}

TEST(OnnxPatchHostile, StrayExternalEntriesAreDropped) {
  const auto patched = patch_hostile(field(7, field(5, tensor("/etc/passwd", "4096", 0))));
  ASSERT_TRUE(patched) << patched.error().to_string();
  EXPECT_THAT(patched->bytes, Not(HasSubstr("/etc/passwd")));
}

TEST(OnnxPatchHostile, SparseConstantsAreReadFromTheSegment) {
  ByteVector constants(24, std::byte{0x55});
  const std::string model =
      field(7, constant_node(field(1, "sparse_value") + field(22, field(1, tensor(kOwn, "0")))));
  const auto patched = patch_onnx(onnx_image(model, constants), {});
  ASSERT_TRUE(patched) << patched.error().to_string();
  EXPECT_THAT(patched->bytes, HasSubstr(field(9, std::string(24, '\x55'))));
  EXPECT_THAT(patched->bytes, Not(HasSubstr(std::string(kOwn))));
}

TEST(OnnxPatchHostile, SparseConstantsThatShareTheirBytesDoNotGrow) {
  const std::string one = field(15, field(1, tensor(kOwn, "0")));
  std::string graph;
  for (int i = 0; i < 4; ++i) graph += one;
  expect_refused(field(7, graph), "4 times 24 of 88 bytes", "shares its bytes");
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
