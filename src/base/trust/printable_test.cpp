#include "corelane/base/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace corelane {
namespace {

TEST(Printable, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("one\ntwo\r\tthree"), "one\\ntwo\\r\\tthree");
  EXPECT_EQ(printable(std::string("nul\0del\x7f", 8)), "nul\\x00del\\x7f");
  EXPECT_EQ(printable("csi \xc2\x9b"), "csi \\xc2\\x9b") << "U+009b, one character of a terminal";
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gnp.exe"),
            "\\xe2\\x80\\xaegnp.exe")
      << "a name that is shown backwards";
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x80\xa8"), "\\xe2\\x81\\xa6\\xe2\\x80\\xa8");
}

TEST(Printable, OtherTextStays) {
  for (const char* text : {"", "conv/Relu_3:0", "images \\ 100 %", "\xc3\xa4\xc2\xb5 \xe6\xbc\xa2",
                           "\xe2\x80\x93 dash", "\xe2", "\xc2", "\xff\xfe"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, LinesKeepTheirEnds) {
  EXPECT_EQ(printable_lines("a\tb\nc\x1b\r\n"), "a\tb\nc\\x1b\\r\n");
}

}  // namespace
}  // namespace corelane
