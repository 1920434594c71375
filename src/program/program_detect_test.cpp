#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "corelane/program/program_file.h"
#include "program/testing/foreign_files.h"

namespace corelane {
namespace {

using namespace std::string_literals;

FileKind kind_of(const std::string& s) {
  return detect_file_kind(as_byte_span(s), testing::foreign_rows());
}

TEST(DetectFileKind, OursHasTheMagicAndTheTag) {
  EXPECT_EQ(kind_of("RKNNCLP1..."), FileKind::kProgram);
}

TEST(DetectFileKind, TheMagicWithoutOurTagIsTheVendors) {
  EXPECT_EQ(kind_of("RKNN\0\0\0\0\6\0\0\0"s), FileKind::kVendor);
  EXPECT_EQ(kind_of("RKNNCLP"), FileKind::kVendor);
  EXPECT_EQ(kind_of("RKNNCLP2"), FileKind::kVendor);
  EXPECT_EQ(kind_of("RKNN"), FileKind::kVendor);
}

TEST(CheckForeign, AFileThatCannotHaveTheHeaderIsDamaged) {
  const auto check = [](const std::string& s) {
    const auto& rows = testing::foreign_rows();
    return check_foreign(as_byte_span(s), *find_foreign(as_byte_span(s), rows), "'m.rknn'");
  };
  const std::string whole = testing::vendor_file("the data");
  EXPECT_TRUE(check(whole).ok());
  EXPECT_TRUE(check(whole + "{\"target\": \"rk3588\"}").ok()) << "a text may follow the data";
  EXPECT_TRUE(check("\x20\0\0\0RKNN\0\0"s).ok()) << "a FlatBuffer has no such header";
  std::string version = whole, length = whole;
  version[8] = 0;
  length[23] = 1;
  for (const std::string& damaged :
       {"RKNN"s, "RKNN garbage"s, whole.substr(0, 24), whole.substr(0, 31), version, length,
        whole.substr(0, 8) + whole}) {
    const Status status = check(damaged);
    EXPECT_EQ(status.code(), Code::kMalformed) << damaged;
    EXPECT_THAT(status.message(),
                ::testing::HasSubstr("'m.rknn' begins as a vendor-compiled rknn"));
  }
}

TEST(DetectFileKind, AFlatBufferIdentifierIsTheVendors) {
  EXPECT_EQ(kind_of("\x20\0\0\0RKNN\0\0"s), FileKind::kVendor);
}

TEST(DetectFileKind, EncryptedFormsAreTold) {
  EXPECT_EQ(kind_of("CYPTRKNN\1\0\0\0"s), FileKind::kVendorCrypted);
  EXPECT_EQ(kind_of("CRYPTRKNN"), FileKind::kVendorCrypted);
  EXPECT_EQ(kind_of("RKNE\0\0\0\0"s), FileKind::kVendorCrypted);
}

TEST(DetectFileKind, AModelProtoIsOnnx) {
  // ir_version 8, producer "x", graph { name "g" }, opset_import { version 17 }
  const std::string model = "\x08\x08\x12\x01x\x3a\x03\x12\x01g\x42\x02\x10\x11"s;
  EXPECT_EQ(kind_of(model), FileKind::kOnnx);
}

TEST(DetectFileKind, TheOrderOfFieldsDoesNotMatter) {
  EXPECT_EQ(kind_of("\x42\x02\x10\x11\x3a\x03\x12\x01g\x08\x08"s), FileKind::kOnnx);
}

TEST(DetectFileKind, TheBeginningOfAModelIsEnough) {
  // A graph of 1 MB of which four bytes are there.
  EXPECT_EQ(kind_of("\x08\x07\x3a\x80\x80\x40\x0a\x40\x0a\x01"s), FileKind::kOnnx);
}

TEST(DetectFileKind, AProducerNamedLikeTheMagicIsStillOnnx) {
  EXPECT_EQ(kind_of("\x08\x07\x12\x04RKNN\x3a\x03\x12\x01g"s), FileKind::kOnnx);
}

TEST(DetectFileKind, OtherFilesAreUnknown) {
  for (const std::string& s :
       {""s, "R"s, "RKN"s, "hello world"s, "\x89PNG\r\n\x1a\n"s, "BM\x46\0\0\0\0\0\0\0"s,
        "{\"a\": 1}"s, "PK\3\4"s, "\x7f"s + "ELF\2\1\1"s, "\x08\x07"s, "\x08"s, "<xml>"s,
        std::string(64, '\0'), std::string(64, '\xff'), "BATCH OF TEXT"s, ":0a"s}) {
    EXPECT_EQ(kind_of(s), FileKind::kUnknown) << s;
  }
}

TEST(FileKindName, EachKindHasItsOwn) {
  EXPECT_EQ(file_kind_name(FileKind::kProgram), "program");
  EXPECT_EQ(file_kind_name(FileKind::kOnnx), "onnx");
  EXPECT_EQ(file_kind_name(FileKind::kVendor), "vendor");
  EXPECT_EQ(file_kind_name(FileKind::kVendorCrypted), "vendor-crypted");
  EXPECT_EQ(file_kind_name(FileKind::kUnknown), "unknown");
}

}  // namespace
}  // namespace corelane
