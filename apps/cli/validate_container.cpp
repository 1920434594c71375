// `corelane validate`: checks all of a program file, or the form of the vendor's container, and
// lists what clients of the object runtime get of it.
#include <fmt/format.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/compile_target.h"
#include "cli/qaic/container_report.h"
#include "corelane/base/file.h"
#include "corelane/base/printable.h"
#include "corelane/runtime/file_kind.h"

namespace corelane::cli {
namespace {

Result<Json> validate(const std::string& path, ByteSpan bytes, std::string& text) {
  Json out{{"file", path}, {"bytes", bytes.size()}};
  const auto head = [&](std::string_view kind) {
    out["kind"] = kind;
    return fmt::format("{}: {} ({}): ", printable(path), kind, human_bytes(bytes.size()));
  };
  if (is_vendor_container(bytes)) {
    CORELANE_ASSIGN(const auto container, VendorContainer::read(bytes));
    text = head("container of the vendor's compiler") +
           "its form is sound; what its segments hold is not looked at, and runs on the vendor's "
           "device alone\n";
    out["valid"] = true;
    out["container"] = vendor_json(container, text);
    return out;
  }
  const FileKind kind = file_kind(bytes);
  if (kind == FileKind::kOnnx) {
    return error(Code::kInvalidArgument,
                 "'{}' is an ONNX model; compile it, which validates it, or show it with `corelane "
                 "inspect`",
                 path);
  }
  CORELANE_ASSIGN(const auto file, ProgramFile::open(path, Verify::kEverything, foreign_files()));
  text = head(file_kind_name(kind)) + "valid, all checksums\n";
  out["valid"] = true;
  out.update(container_json(*file, text));
  return out;
}

Result<int> run(const Global& global, std::string path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) path = target_file(path).string();
  CORELANE_ASSIGN(const MappedFile mapped, MappedFile::open(path));
  std::string text;
  CORELANE_ASSIGN(const Json out, validate(path, mapped.bytes(), text));
  print(global, out, text);
  return kExitOk;
}

}  // namespace

Action add_validate(CLI::App& parent, Global& global) {
  auto* app =
      parent.add_subcommand("validate", "Check a program file or container, list its programs");
  auto path = std::make_shared<std::string>();
  app->add_option("file", *path, "Program file, container, or folder with programqpc.bin")
      ->required();
  return [&global, path] { return run(global, *path); };
}

}  // namespace corelane::cli
