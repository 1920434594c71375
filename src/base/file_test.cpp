#include "corelane/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

namespace corelane {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A folder of its own for each test.
class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern = (fs::temp_directory_path() / "corelane-file-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(FileTest, MapsWhatWasWritten) {
  const fs::path path = folder_ / "new" / "folder" / "x.bin";
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("hello")).ok());
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped) << mapped.error().to_string();
  EXPECT_EQ(as_string_view(mapped->bytes()), "hello");
  EXPECT_EQ(as_string_view(read_file(path).value()), "hello");
}

TEST_F(FileTest, TheLongestNamesCanBeWritten) {
  const fs::path path = folder_ / std::string(255, 'n');
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("hello")).ok());
  EXPECT_EQ(as_string_view(read_file(path).value()), "hello");
}

TEST_F(FileTest, AMappingMovesAndTheSourceIsEmpty) {
  ASSERT_TRUE(write_file_atomic(folder_ / "a", as_byte_span("aa")).ok());
  ASSERT_TRUE(write_file_atomic(folder_ / "b", as_byte_span("bbb")).ok());
  MappedFile a = MappedFile::open(folder_ / "a").value();
  MappedFile moved(std::move(a));
  EXPECT_TRUE(a.bytes().empty());  // NOLINT(bugprone-use-after-move): the contract under test.
  EXPECT_EQ(as_string_view(moved.bytes()), "aa");
  moved = MappedFile::open(folder_ / "b").value();
  EXPECT_EQ(as_string_view(moved.bytes()), "bbb");
}

TEST_F(FileTest, AMappingSurvivesAReplacedFile) {
  const fs::path path = folder_ / "x";
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("old")).ok());
  const MappedFile mapped = MappedFile::open(path).value();
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("newer")).ok());
  EXPECT_EQ(as_string_view(mapped.bytes()), "old");
  EXPECT_EQ(as_string_view(read_file(path).value()), "newer");
}

TEST_F(FileTest, IdentityTellsAFileFromTheOneThatReplacesIt) {
  const fs::path path = folder_ / "x";
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("same size")).ok());
  const MappedFile first = MappedFile::open(path).value();
  EXPECT_EQ(first.identity(), MappedFile::open(path).value().identity());
  fs::create_symlink(path, folder_ / "link");
  EXPECT_EQ(first.identity(), MappedFile::open(folder_ / "link").value().identity());
  // `first` still has the old file open, so its inode is not used again.
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("SAME SIZE")).ok());
  EXPECT_NE(first.identity(), MappedFile::open(path).value().identity());
  const MappedFile second = MappedFile::open(path).value();
  fs::resize_file(path, 4);
  EXPECT_NE(second.identity(), MappedFile::open(path).value().identity());
}

TEST_F(FileTest, AReaderReadsWhatIsMapped) {
  const fs::path path = folder_ / "x";
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("0123456789")).ok());
  const MappedFile mapped = MappedFile::open(path).value();
  const FileReader reader = FileReader::reopen(mapped, path).value();
  ByteVector read(4);
  ASSERT_TRUE(reader.read(3, read).ok());
  EXPECT_EQ(as_string_view(read), "3456");
  EXPECT_TRUE(reader.read(10, {}).ok());
  const Status late = reader.read(7, read);
  EXPECT_EQ(late.code(), Code::kCorrupted);
  EXPECT_THAT(late.message(), HasSubstr("ends at byte 10"));
}

TEST_F(FileTest, AReaderIsOfTheFileThatIsMappedAlone) {
  const fs::path path = folder_ / "x";
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("one")).ok());
  const MappedFile mapped = MappedFile::open(path).value();
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("two")).ok());
  const auto other = FileReader::reopen(mapped, path);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Code::kCorrupted);
  EXPECT_THAT(other.error().message(), HasSubstr(path.string()));
  fs::remove(path);
  EXPECT_EQ(FileReader::reopen(mapped, path).error().code(), Code::kNotFound);
}

TEST_F(FileTest, AReaderOfAFileThatBecameShorterFails) {
  const fs::path path = folder_ / "x";
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("0123456789")).ok());
  const MappedFile mapped = MappedFile::open(path).value();
  const FileReader reader = FileReader::reopen(mapped, path).value();
  ASSERT_EQ(::truncate(path.c_str(), 2), 0);
  ByteVector read(4);
  EXPECT_EQ(reader.read(0, read).code(), Code::kCorrupted);
}

TEST_F(FileTest, AnEmptyFileIsAnEmptySpan) {
  ASSERT_TRUE(write_file_atomic(folder_ / "empty", {}).ok());
  EXPECT_TRUE(MappedFile::open(folder_ / "empty").value().bytes().empty());
  EXPECT_TRUE(read_file(folder_ / "empty").value().empty());
}

TEST_F(FileTest, AMissingFileIsNotFoundAndNamed) {
  const fs::path path = folder_ / "nothing.rknn";
  const auto mapped = MappedFile::open(path);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code(), Code::kNotFound);
  EXPECT_THAT(mapped.error().message(), HasSubstr("nothing.rknn"));
  EXPECT_THAT(mapped.error().message(), HasSubstr("No such file"));
  EXPECT_EQ(read_file(path).error().code(), Code::kNotFound);
  EXPECT_EQ(read_file(folder_ / "a" / "b").error().code(), Code::kNotFound);
}

TEST_F(FileTest, AnUnreadableFileIsAnIoError) {
  const fs::path path = folder_ / "secret";
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("x")).ok());
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  if (::geteuid() == 0) GTEST_SKIP() << "root reads every file";
  EXPECT_EQ(MappedFile::open(path).error().code(), Code::kIo);
  EXPECT_EQ(read_file(path).error().code(), Code::kIo);
}

TEST_F(FileTest, DirectoriesAndPipesAreRefusedWithoutHanging) {
  EXPECT_EQ(MappedFile::open(folder_).error().code(), Code::kMalformed);
  EXPECT_EQ(read_file(folder_).error().code(), Code::kMalformed);
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(pipe).error().code(), Code::kMalformed);
}

TEST_F(FileTest, ReadFileKeepsItsLimit) {
  ASSERT_TRUE(write_file_atomic(folder_ / "x", as_byte_span("12345")).ok());
  EXPECT_EQ(read_file(folder_ / "x", 5).value().size(), 5U);
  const auto r = read_file(folder_ / "x", 4);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Code::kMalformed);
  EXPECT_THAT(r.error().message(), HasSubstr("4 bytes"));
}

TEST_F(FileTest, ReadFileReadsFilesThatReportNoSize) {
  const auto status = read_file("/proc/self/status");
  ASSERT_TRUE(status) << status.error().to_string();
  EXPECT_THAT(std::string(as_string_view(*status)), HasSubstr("Name:"));
  EXPECT_FALSE(read_file("/proc/self/status", 10));
}

TEST_F(FileTest, AFailedWriteLeavesNothingBehind) {
  ASSERT_TRUE(fs::create_directory(folder_ / "taken"));
  ASSERT_TRUE(write_file_atomic(folder_ / "taken" / "inside", as_byte_span("x")).ok());
  const Status s = write_file_atomic(folder_ / "taken", as_byte_span("x"));
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_THAT(s.message(), HasSubstr("taken"));
  EXPECT_EQ(entries(), 1U);
  EXPECT_EQ(write_file_atomic(folder_ / "", as_byte_span("x")).code(), Code::kInvalidArgument);
  EXPECT_EQ(write_file_atomic(folder_ / "taken" / "inside" / "y", {}).code(), Code::kIo);
}

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0);
  return info.st_mode;
}

TEST_F(FileTest, AReplacedFileKeepsItsPermissions) {
  const fs::path path = folder_ / "private";
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("a")).ok());
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("b")).ok());
  EXPECT_EQ(mode_of(path) & 0777U, 0600U);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ASSERT_TRUE(write_file_atomic(path, as_byte_span("c")).ok());
  EXPECT_EQ(mode_of(path) & 0777U, 0666U);
}

TEST_F(FileTest, AFileIsNoWiderThanItsSources) {
  const fs::path open = folder_ / "open";
  const fs::path secret = folder_ / "secret";
  ASSERT_TRUE(write_file_atomic(open, as_byte_span("a")).ok());
  ASSERT_TRUE(write_file_atomic(secret, as_byte_span("a")).ok());
  ASSERT_EQ(::chmod(open.c_str(), 0644), 0);
  ASSERT_EQ(::chmod(secret.c_str(), 0640), 0);
  const auto mode_from = [&](const fs::path& to, const std::vector<fs::path>& sources) {
    EXPECT_TRUE(write_file_atomic(to, as_byte_span("b"), sources).ok());
    return mode_of(to) & 0777U;
  };
  const mode_t old = ::umask(022);
  EXPECT_EQ(mode_from(folder_ / "1", {open}), 0644U);
  EXPECT_EQ(mode_from(folder_ / "2", {open, secret}), 0640U);
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  EXPECT_EQ(mode_from(folder_ / "3", {secret, open}), 0600U);
  EXPECT_EQ(mode_from(folder_ / "1", {secret}), 0600U) << "one that was there before, too";
  EXPECT_EQ(mode_from(folder_ / "4", {folder_ / "missing"}), 0644U);
  ::umask(077);
  EXPECT_EQ(mode_from(folder_ / "5", {open}), 0600U);
  ::umask(old);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to any group";
  ASSERT_EQ(::chmod(secret.c_str(), 0640), 0);
  ASSERT_EQ(::chown(secret.c_str(), 0, 65534), 0);
  EXPECT_EQ(mode_from(folder_ / "6", {secret}), 0600U) << "its group is another one";
}

TEST_F(FileTest, APipeIsWrittenToAndStaysAPipe) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(write_file_atomic(pipe, as_byte_span("through")).ok());
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  ::close(reader);
  EXPECT_TRUE(S_ISFIFO(mode_of(pipe)));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, ADeviceThroughALinkIsWrittenTo) {
  // A link, so that a failure of this test replaces no device of the machine.
  fs::create_symlink("/dev/null", folder_ / "null");
  EXPECT_TRUE(write_file_atomic(folder_ / "null", as_byte_span("x")).ok());
  EXPECT_TRUE(fs::is_symlink(folder_ / "null"));
  EXPECT_TRUE(S_ISCHR(mode_of("/dev/null")));
}

TEST_F(FileTest, ALinkStaysAndItsTargetIsReplaced) {
  ASSERT_TRUE(write_file_atomic(folder_ / "sub" / "real", as_byte_span("old")).ok());
  fs::create_symlink("sub/real", folder_ / "link");
  fs::create_symlink("link", folder_ / "again");
  fs::create_symlink("sub/new", folder_ / "dangling");
  ASSERT_TRUE(write_file_atomic(folder_ / "again", as_byte_span("new")).ok());
  ASSERT_TRUE(write_file_atomic(folder_ / "dangling", as_byte_span("made")).ok());
  EXPECT_EQ(fs::read_symlink(folder_ / "again"), "link");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));
  EXPECT_EQ(as_string_view(read_file(folder_ / "sub" / "real").value()), "new");
  EXPECT_EQ(as_string_view(read_file(folder_ / "sub" / "new").value()), "made");
  EXPECT_EQ(entries(), 4U);
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(write_file_atomic(folder_ / "loop", as_byte_span("x")).code(), Code::kIo);
}

TEST_F(FileTest, ConcurrentWritersLeaveOneWholeFile) {
  const fs::path path = folder_ / "shared";
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&path, i] {
      const ByteVector bytes(5000, static_cast<std::byte>('a' + i));
      for (int k = 0; k < 20; ++k) EXPECT_TRUE(write_file_atomic(path, bytes).ok());
    });
  }
  for (int k = 0; k < 50; ++k) {
    const auto bytes = read_file(path);
    if (!bytes) {
      EXPECT_EQ(bytes.error().code(), Code::kNotFound);
      continue;
    }
    ASSERT_EQ(bytes->size(), 5000U);
    EXPECT_EQ(bytes->front(), bytes->back());
  }
  for (auto& w : writers) w.join();
  EXPECT_EQ(entries(), 1U);
}

TEST(Directories, OwnDirectoryHoldsTheProgramOrLibrary) {
  EXPECT_EQ(own_directory(), fs::read_symlink("/proc/self/exe").parent_path());
}

/// Sets a variable for one scope.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value, 1);
  }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;
  ~ScopedEnv() { ::setenv(name_, old_.c_str(), 1); }

 private:
  const char* name_;
  std::string old_;
};

TEST(Directories, CacheDirectoryFollowsTheEnvironmentInOrder) {
  const ScopedEnv home("HOME", "/home/someone");
  const ScopedEnv xdg("XDG_CACHE_HOME", "/xdg");
  const ScopedEnv own("CORELANE_CACHE_DIR", "/own");
  EXPECT_EQ(cache_directory(), "/own");
  const ScopedEnv no_own("CORELANE_CACHE_DIR", "");
  EXPECT_EQ(cache_directory(), "/xdg/corelane");
  const ScopedEnv no_xdg("XDG_CACHE_HOME", "");
  EXPECT_EQ(cache_directory(), "/home/someone/.cache/corelane");
  const ScopedEnv no_home("HOME", "");
  EXPECT_THAT(cache_directory().string(), HasSubstr("corelane-"));
}

}  // namespace
}  // namespace corelane
