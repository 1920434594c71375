#include "corelane/base/status.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/code_names.h"

namespace corelane {
namespace {

TEST(Status, DefaultIsOkAndHoldsNothing) {
  const Status ok;
  EXPECT_TRUE(ok.ok());
  EXPECT_TRUE(static_cast<bool>(ok));
  EXPECT_EQ(ok.code(), Code::kOk);
  EXPECT_EQ(ok.message(), "");
  EXPECT_EQ(ok.place(), "");
  EXPECT_TRUE(ok.cause().ok());
  EXPECT_EQ(ok.to_string(), "ok");
}

TEST(Status, FailureKnowsFileAndLineWithoutFolders) {
  const int line = __LINE__ + 1;
  const Status s(Code::kNotFound, "no such thing");
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(s.code(), Code::kNotFound);
  EXPECT_EQ(s.message(), "no such thing");
  EXPECT_EQ(s.place(), fmt::format("status_test.cpp:{}", line));
  EXPECT_EQ(s.to_string(), "not_found: no such thing");
}

TEST(Status, FailureWithCodeOkIsInternal) {
  EXPECT_EQ(Status(Code::kOk, "impossible").code(), Code::kInternal);
  EXPECT_EQ(Status(Code::kBusy, "x").wrap(Code::kOk, "y").code(), Code::kInternal);
}

TEST(Status, WrapKeepsTheChainOfCauses) {
  const Status inner(Code::kIo, "disk gone");
  const Status middle = inner.wrap("cannot read 'a'");
  const Status outer = middle.wrap(Code::kMalformed, "program 'p'");
  EXPECT_EQ(middle.code(), Code::kIo);
  EXPECT_EQ(outer.code(), Code::kMalformed);
  EXPECT_EQ(outer.cause().message(), "cannot read 'a'");
  EXPECT_EQ(outer.cause().cause().message(), "disk gone");
  EXPECT_TRUE(outer.cause().cause().cause().ok());
  EXPECT_EQ(outer.to_string(),
            "malformed: program 'p': caused by io: cannot read 'a': caused by io: disk gone");
}

TEST(Status, WrapOfOkStaysOk) { EXPECT_TRUE(Status().wrap("context").ok()); }

TEST(Status, ControlCharactersOfNamesAreWrittenOut) {
  const Status status = error(Code::kNotFound, "no input named '{}'", "x\x1b[2J\nforged")
                            .with(Detail::kInput, "x\x1b[2J");
  EXPECT_EQ(status.message(), "no input named 'x\\x1b[2J\\nforged'");
  EXPECT_EQ(status.wrap("model \x7f").message(), "model \\x7f");
  EXPECT_EQ(status.detail(Detail::kInput), "x\x1b[2J") << "details are for programs";
}

TEST(Status, TextIsOneLine) {
  EXPECT_EQ(Status(Code::kBusy, "a\nb\r\nc").to_string(), "busy: a\\nb\\r\\nc");
}

TEST(Status, DetailsAreFoundThroughCausesOutermostFirst) {
  const Status inner =
      error(Code::kShapeMismatch, "x").with(Detail::kInput, "images").with(Detail::kDimension, 2);
  const Status outer = inner.wrap("y").with(Detail::kInput, "inner").with(Detail::kInput, "outer");
  EXPECT_EQ(inner.detail(Detail::kInput), "images");
  EXPECT_EQ(outer.detail(Detail::kInput), "outer");
  EXPECT_EQ(outer.detail(Detail::kDimension), "2");
  EXPECT_EQ(outer.detail(Detail::kLimit), "");
  const std::vector<std::pair<Detail, std::string>> all{{Detail::kInput, "outer"},
                                                        {Detail::kDimension, "2"}};
  EXPECT_EQ(outer.details(), all);
  EXPECT_TRUE(Status().with(Detail::kInput, "images").ok());
}

TEST(Status, DetailNamesAreUniqueAndStable) {
  std::set<std::string_view> names;
  for (int key = 0; key <= static_cast<int>(Detail::kKey); ++key)
    names.insert(detail_name(static_cast<Detail>(key)));
  EXPECT_EQ(names, (std::set<std::string_view>{"input", "output", "dimension", "given", "allowed",
                                               "limit", "node", "operator", "retry_after", "key"}));
  EXPECT_EQ(detail_name(static_cast<Detail>(200)), "unknown");
}

/// A code that is added to the enumeration is a warning here, and an error of the build.
bool is_code(Code code) {
  switch (code) {
    case Code::kOk:
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kOutOfRange:
    case Code::kWrongState:
    case Code::kUnsupported:
    case Code::kShapeMismatch:
    case Code::kTypeMismatch:
    case Code::kMalformed:
    case Code::kCorrupted:
    case Code::kVersionMismatch:
    case Code::kUnsupportedModel:
    case Code::kForeignImage:
    case Code::kOutOfMemory:
    case Code::kOutOfCores:
    case Code::kBusy:
    case Code::kIo:
    case Code::kTimeout:
    case Code::kCancelled:
    case Code::kDeviceReset:
    case Code::kDeviceLost:
    case Code::kBadResult:
    case Code::kHostOperatorMissing:
    case Code::kHostOperatorFailed:
    case Code::kEngineFailed:
    case Code::kInternal:
      return true;
  }
  return false;
}

TEST(Status, TheListOfNamesHasEveryCodeInTheOrderOfTheirNumbers) {
  std::vector<Code> codes;
  for (int number = 0; number < 1000; ++number)
    if (is_code(static_cast<Code>(number))) codes.push_back(static_cast<Code>(number));
  std::vector<Code> named;
  for (const CodeName& row : kCodeNames) named.push_back(row.code);
  EXPECT_EQ(named, codes);
}

TEST(Status, CodeNamesAreUniqueAndStable) {
  EXPECT_EQ(code_name(Code::kInvalidArgument), "invalid_argument");
  EXPECT_EQ(code_name(static_cast<Code>(9999)), "unknown");
  std::set<std::string_view> names;
  int count = 0;
  for (int c = 0; c < 600; ++c) {
    const auto name = code_name(static_cast<Code>(c));
    if (name == "unknown") continue;
    names.insert(name);
    ++count;
  }
  EXPECT_EQ(count, 26);
  EXPECT_EQ(names.size(), 26U);
}

Result<int> half(int x) {
  if (x % 2 != 0) return error(Code::kInvalidArgument, "{} is odd", x);
  return x / 2;
}
Result<int> quarter(int x) {
  CORELANE_ASSIGN(const int h, half(x));
  return half(h);
}
Status check_quarter(int x) {
  CORELANE_ASSIGN(const int q, quarter(x));
  if (q > 10) return error(Code::kOutOfRange, "{} is above 10", q);
  return {};
}
Result<int> checked_quarter(int x) {
  CORELANE_TRY(check_quarter(x));
  return quarter(x);
}
Status through(int x) {
  CORELANE_TRY(check_quarter(x));
  return {};
}

TEST(Result, MacrosHandFailuresUpUnchanged) {
  EXPECT_EQ(checked_quarter(8).value(), 2);
  EXPECT_EQ(checked_quarter(6).error().message(), "3 is odd");
  EXPECT_EQ(checked_quarter(80).error().code(), Code::kOutOfRange);
  EXPECT_TRUE(through(8).ok());
  EXPECT_EQ(through(7).message(), "7 is odd");
}

TEST(Result, ErrorNamesThePlaceOfTheCall) {
  EXPECT_EQ(half(1).error().place().substr(0, 16), "status_test.cpp:");
}

}  // namespace
}  // namespace corelane
