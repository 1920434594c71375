#include "base/reserve.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace corelane {
namespace {

TEST(Reserve, ContainersGrowAndGiveBack) {
  SureVector<int> numbers;
  SureDeque<std::string> texts;
  SureMap<int, std::string> named;
  for (int i = 0; i < 1000; ++i) {
    numbers.push_back(i);
    texts.emplace_back(40, 'x');
    named.emplace(i, "a text that is longer than what a string holds in place");
  }
  EXPECT_EQ(numbers.back(), 999);
  EXPECT_EQ(texts.size(), 1000U);
  EXPECT_EQ(named.size(), 1000U);
}

TEST(Reserve, AFunctionThatIsCalledOnceReleasesWhatItHolds) {
  auto held = std::make_shared<int>(0);
  const auto call = sure_once<void(int)>([held](int by) { *held += by; });
  EXPECT_EQ(held.use_count(), 2);
  call(3);
  EXPECT_EQ(*held, 3);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Reserve, AFunctionThatThrowsReleasesWhatItHolds) {
  auto held = std::make_shared<int>(0);
  const auto call = sure_once<void()>([held] { throw std::bad_alloc(); });
  EXPECT_THROW(call(), std::bad_alloc);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Reserve, ATextThatCannotBeMadeIsEmpty) {
  EXPECT_EQ(text_or_none([] { return std::string("a"); }), "a");
  EXPECT_EQ(text_or_none([]() -> std::string { throw std::bad_alloc(); }), "");
}

std::vector<std::string> elements(const SureShortList<std::string>& list) {
  std::vector<std::string> all;
  list.for_each([&](const std::string& element) { all.push_back(element); });
  return all;
}

TEST(SureShortList, ElementsAreMetInTheOrderInWhichTheyWereAdded) {
  SureShortList<std::string> list;
  EXPECT_TRUE(list.empty());
  for (const char* text : {"one", "two", "three"}) list.push_back(text);
  EXPECT_FALSE(list.empty());
  EXPECT_EQ(elements(list), (std::vector<std::string>{"one", "two", "three"}));
  list.clear();
  EXPECT_TRUE(list.empty());
  list.push_back("four");
  EXPECT_EQ(elements(list), (std::vector<std::string>{"four"}));
}

TEST(SureShortList, ListThatWasMovedIsEmpty) {
  SureShortList<std::string> list;
  for (const char* text : {"one", "two"}) list.push_back(text);
  SureShortList<std::string> other(std::move(list));
  EXPECT_EQ(elements(other), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(elements(list).empty());  // NOLINT(bugprone-use-after-move)
  const SureShortList<std::string> last(std::move(other));
  EXPECT_EQ(elements(last), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(elements(other).empty());  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace corelane
