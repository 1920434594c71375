#include "base/trust/file_names.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

namespace corelane {
namespace {

TEST(FileNames, AreThoseOfFilesAndFolders) {
  std::string pattern = ::testing::TempDir() + "corelane-names-XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  EXPECT_TRUE(file_names(folder).empty());
  std::ofstream(folder / ".a").close();
  std::filesystem::create_directory(folder / "b");
  EXPECT_THAT(file_names(folder), ::testing::UnorderedElementsAre(".a", "b"));
  EXPECT_TRUE(file_names(folder / ".a").empty()) << "a file holds none";
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(file_names(folder).empty()) << "a folder that is not there";
}

}  // namespace
}  // namespace corelane
