#include "scheduler/config/key_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace corelane::scheduler {
namespace {

/// The row of a key on the page of keys.
std::string row(const Key& key) {
  const std::string marks =
      fmt::format("{}{}{}", key.parts ? ", `&`" : "", key.live ? ", live" : "",
                  key.global_only ? ", global only" : "");
  return fmt::format("| `{}` | {} | {} | {} | {} |", key.name, allowed_text(key),
                     key.default_text.empty() ? "none" : fmt::format("`{}`", key.default_text),
                     marks.empty() ? "" : marks.substr(2), key.meaning);
}

TEST(KeyTable, ThePageOfKeysHasEachRow) {
  std::ifstream file(CORELANE_KEYS_PAGE);
  std::stringstream page;
  page << file.rdbuf();
  for (const Key& key : key_table())
    EXPECT_NE(page.str().find(row(key) + "\n"), std::string::npos)
        << CORELANE_KEYS_PAGE << " has no row " << row(key);
}

TEST(KeyTable, EachKeyStandsOnceAndTakesItsDefault) {
  std::set<std::string_view> names;
  for (const Key& key : key_table()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_EQ(find_key(key.name), &key);
    EXPECT_LE(key.low, key.high) << key.name;
    if (!key.default_text.empty()) EXPECT_TRUE(takes(key, key.default_text)) << key.name;
  }
  EXPECT_EQ(find_key("nothing"), nullptr);
  EXPECT_EQ(find_key(""), nullptr);
}

TEST(KeyTable, ReservedNamesAreNoKeys) {
  for (const std::string_view name : reserved_names()) EXPECT_EQ(find_key(name), nullptr) << name;
  EXPECT_TRUE(is_key_of_several_nodes("next"));
  EXPECT_FALSE(is_key_of_several_nodes("backend"));
}

TEST(KeyTable, AllowedTextsSayWhatIsTaken) {
  EXPECT_EQ(allowed_text(*find_key("instance_num")), "a whole number from 1 to 1024");
  EXPECT_EQ(allowed_text(*find_key("queue_items")), "a whole number from 0");
  EXPECT_EQ(allowed_text(*find_key("batching_timeout")),
            "milliseconds from 0 to 3600000, fractions too");
  EXPECT_EQ(allowed_text(*find_key("queue_policy")), "one of block, reject, drop_oldest");
}

}  // namespace
}  // namespace corelane::scheduler
