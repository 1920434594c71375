#include "base/trust/open_beneath.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "corelane/base/file.h"

namespace corelane {
namespace {

namespace fs = std::filesystem;

class OpenBeneath : public ::testing::Test {
 protected:
  OpenBeneath() {
    std::string pattern = ::testing::TempDir() + "corelane-beneath-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directories(folder_ / "root/a/b");
    std::ofstream(folder_ / "root/a/b/file") << "inside";
    std::ofstream(folder_ / "secret") << "outside";
    fs::create_symlink("../../../secret", folder_ / "root/a/b/leaves");
    fs::create_symlink("file", folder_ / "root/a/b/stays");
    fs::create_symlink("a", folder_ / "root/folder");
    root_ = ::open((folder_ / "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  }
  ~OpenBeneath() override {
    ::close(root_);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  /// "fd", or the reason.
  static std::string result(int fd) {
    if (fd >= 0) {
      ::close(fd);
      return "fd";
    }
    return errno == ELOOP || errno == EXDEV || errno == ENOTDIR ? "link" : std::to_string(errno);
  }
  fs::path folder_;
  int root_ = -1;
};

TEST_F(OpenBeneath, FollowsNoLinkAndDoesNotLeave) {
  const auto calls = {&open_beneath, &open_by_steps};
  for (const auto call : calls) {
    const auto opened = [&](const char* path) { return result(call(root_, path, O_RDONLY)); };
    EXPECT_EQ(opened("a/b/file"), "fd");
    EXPECT_EQ(opened("a/b/leaves"), "link");
    EXPECT_EQ(opened("a/b/stays"), "link");
    EXPECT_EQ(opened("folder/b/file"), "link");
    EXPECT_EQ(opened("../secret"), "link");
    EXPECT_EQ(opened("a/../../secret"), "link");
    EXPECT_EQ(opened("/etc/passwd"), "link");
    EXPECT_EQ(opened(""), "link");
    EXPECT_EQ(opened("a/b/missing"), std::to_string(ENOENT));
  }
}

TEST_F(OpenBeneath, AMappingOfItSaysWhy) {
  const fs::path root = folder_ / "root";
  const auto file = MappedFile::open_beneath(root, "a/b/file");
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(as_string_view(file->bytes()), "inside");
  EXPECT_EQ(file->names(), 1U);
  fs::create_hard_link(root / "a/b/file", root / "second");
  EXPECT_EQ(MappedFile::open_beneath(root, "second")->names(), 2U);
  EXPECT_EQ(MappedFile::open_beneath(root, "a/b/leaves").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(MappedFile::open_beneath(root, "absent").error().code(), Code::kNotFound);
  EXPECT_EQ(MappedFile::open_beneath(root, "a").error().code(), Code::kMalformed);
  EXPECT_EQ(MappedFile::open_beneath(folder_ / "absent", "x").error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace corelane
