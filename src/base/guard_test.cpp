#include "base/guard.h"

#include <gtest/gtest.h>

#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/leaked.h"
#include "corelane/base/log.h"

namespace corelane {
namespace {

TEST(Guard, WhatACallReturnsComesBack) {
  const Result<int> value = no_throw("the call", []() -> Result<int> { return 3; });
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 3);
  EXPECT_EQ(no_throw("the call", []() -> Status { return error(Code::kBusy, "in use"); }).code(),
            Code::kBusy);
}

TEST(Guard, ExceptionsBecomeFailuresThatNameTheCall) {
  const Status status =
      no_throw("the call", []() -> Status { throw std::runtime_error("no luck"); });
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.message(), "the call threw: no luck");
  const Result<int> other = no_throw("the call", []() -> Result<int> { throw 1; });
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message(), "the call threw something that is not a std::exception");
}

TEST(Guard, MemoryThatRunsOutIsACodeOfItsOwnInTheLibrarysWork) {
  const auto starve = []() -> Status { throw std::bad_alloc(); };
  EXPECT_EQ(no_throw("the call", starve).code(), Code::kOutOfMemory);
  EXPECT_EQ(no_throw("the engine", starve, Code::kEngineFailed).code(), Code::kEngineFailed);
}

TEST(Guard, WhatACallbackThrowsGoesToTheLog) {
  std::string lines;
  log::set_callback([&](log::Level, std::string_view part, std::string_view text) {
    lines += fmt::format("{}: {};", part, text);
  });
  run_callback(
      "part", "a callback", [](int) { throw std::runtime_error("no luck"); }, 1);
  run_callback("part", "a callback", [] { throw 1; });
  log::set_callback({});
  EXPECT_EQ(lines,
            "part: a callback threw: no luck;"
            "part: a callback threw something that is not a std::exception;");
}

struct CountsDestroyed {
  explicit CountsDestroyed(int& counter) : destroyed(&counter) {}
  ~CountsDestroyed() { ++*destroyed; }
  int* destroyed;
};

TEST(Leaked, ObjectIsMadeInPlaceAndNeverDestroyed) {
  int destroyed = 0;
  {
    Leaked<CountsDestroyed> object(destroyed);
    EXPECT_EQ(object->destroyed, &destroyed);
  }
  EXPECT_EQ(destroyed, 0);
}

TEST(Leaked, ContainerIsMadeFromItsListInBraces) {
  // Static, as in the library: a leak sanitizer finds what nothing refers to.
  static Leaked<const std::set<std::string_view>> names({"a", "b"});
  EXPECT_EQ(*names, (std::set<std::string_view>{"a", "b"}));
  static Leaked<const std::map<int, char>> table({{1, 'a'}});
  EXPECT_EQ(table->at(1), 'a');
}

}  // namespace
}  // namespace corelane
