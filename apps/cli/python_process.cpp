#include "cli/python_process.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/options.h"
#include "corelane/base/file.h"

extern char** environ;  // POSIX: the environment of this process.

namespace corelane::cli {
namespace {

/// This process's environment; in a build tree with the package of that tree first. Without what
/// corelane.alias gives to children: onnxruntime itself is wanted.
std::vector<std::string> child_environment() {
  const auto package = own_directory().parent_path() / "python";
  const bool built = is_file(package / "corelane/__init__.py");
  std::vector<std::string> entries;
  std::string path = "PYTHONPATH=" + package.string();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("CORELANE_ALIAS_CHILDREN=", 0) == 0) continue;
    if (built && text.rfind("PYTHONPATH=", 0) == 0)
      path += ":" + text.substr(std::strlen("PYTHONPATH="));
    else
      entries.push_back(text);
  }
  if (built) entries.push_back(path);
  return entries;
}

/// posix_spawn does not write to its arguments, whatever their type says.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const auto& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make() {
  std::error_code ec;
  const auto parent = std::filesystem::temp_directory_path(ec);
  if (ec) {
    const char* given = ::secure_getenv("TMPDIR");
    return error(Code::kIo, "TMPDIR '{}' does not serve as the folder for temporary files: {}",
                 given != nullptr ? given : "/tmp", ec.message());
  }
  std::string name = (parent / "corelane-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return error(Code::kIo, "{}: cannot make a temporary folder: {}", name, std::strerror(errno));
  return TemporaryFolder(name);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ec;
  if (!path_.empty()) std::filesystem::remove_all(path_, ec);
}

bool is_file(const std::filesystem::path& path) {
  std::error_code ec;
  return std::filesystem::is_regular_file(path, ec);
}

std::string find_python(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* env = ::secure_getenv("CORELANE_PYTHON"); env != nullptr && *env != '\0')
    return env;
  for (auto dir = own_directory(); dir != dir.root_path(); dir = dir.parent_path())
    if (is_file(dir / ".venv/bin/python")) return (dir / ".venv/bin/python").string();
  return "python3";
}

Result<int> run_python(const std::vector<std::string>& words, std::string_view needs) {
  const auto environment = child_environment();
  pid_t child = 0;
  // The command's stdout may be a JSON document: what the child prints goes to stderr.
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  const int rc = ::posix_spawnp(&child, words[0].c_str(), &actions, nullptr, pointers(words).data(),
                                pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (rc != 0)
    return error(Code::kNotFound, "cannot start '{}': {}; {}", words[0], std::strerror(rc), needs);
  int state = 0;
  // The child gets Ctrl-C as well, being of the same process group, and ends.
  while (::waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (Interrupts::pending()) return error(Code::kCancelled, "interrupted");
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

}  // namespace corelane::cli
