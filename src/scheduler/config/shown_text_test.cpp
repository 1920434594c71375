#include "scheduler/config/shown_text.h"

#include <gtest/gtest.h>

namespace corelane::scheduler {
namespace {

TEST(ShownText, PlainTextStaysBetweenQuotes) {
  EXPECT_EQ(shown(""), "\"\"");
  EXPECT_EQ(shown("2.5 ms"), "\"2.5 ms\"");
  EXPECT_EQ(shown("\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82"),
            "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82\"");
}

TEST(ShownText, ControlCharactersAndBrokenBytesAreEscaped) {
  EXPECT_EQ(shown("a\nb\x1b"),
            "\"a\\x0a"
            "b\\x1b\"");
  EXPECT_EQ(shown(std::string_view("\0", 1)), "\"\\x00\"");
  EXPECT_EQ(shown("\x7f\xff\xc3"), "\"\\x7f\\xff\\xc3\"");
  EXPECT_EQ(shown("\xc2\x9b"), "\"\\xc2\\x9b\"");  // A control character of two bytes.
}

TEST(ShownText, LongTextsAreCut) {
  const std::string text = shown(std::string(1'000'000, 'x'));
  EXPECT_LT(text.size(), 100U);
  EXPECT_EQ(text.substr(text.size() - 4), "\"...");
}

}  // namespace
}  // namespace corelane::scheduler
