/// What the client programs share: files, memory for a program's buffers, and checks. A client is
/// started as `client CONTAINER_FOLDER OUTPUT_FOLDER`; the folder of the container also holds
/// in-<inference>-<input>.bin, and results go to out-<inference>-<output>.bin.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "QAicTypes.h"

namespace client {

constexpr unsigned kInferences = 4;  // Of which the folder has inputs.

inline void need(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

inline void need(QStatus status, const char* what) {
  if (status == QS_SUCCESS) return;
  std::fprintf(stderr, "%s: status %d\n", what, static_cast<int>(status));
  std::exit(1);
}

inline std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  need(file.good(), path.c_str());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::string input_file(const std::string& folder, unsigned inference, size_t input) {
  return folder + "/in-" + std::to_string(inference) + "-" + std::to_string(input) + ".bin";
}

inline void write_output(const std::string& folder, unsigned inference, size_t output,
                         const void* data, size_t size) {
  std::ofstream file(
      folder + "/out-" + std::to_string(inference) + "-" + std::to_string(output) + ".bin",
      std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  need(file.good(), "writing an output");
}

/// Memory of one inference: inputs from files, outputs empty.
class Buffers {
 public:
  template <class Mappings>
  Buffers(const Mappings& mappings, const std::string& folder, unsigned inference) {
    for (const auto& mapping : mappings) {
      const bool input = mapping.ioType == BUFFER_IO_TYPE_INPUT;
      memory_.push_back(input ? read_file(input_file(folder, inference, inputs_))
                              : std::vector<char>(mapping.size));
      inputs_ += input ? 1 : 0;
    }
    for (std::vector<char>& memory : memory_) {
      QBuffer buffer;
      buffer.buf = reinterpret_cast<uint8_t*>(memory.data());
      buffer.size = memory.size();
      all_.push_back(buffer);
    }
  }
  const std::vector<QBuffer>& all() const { return all_; }
  std::vector<QBuffer> inputs() const { return {all_.begin(), first_output()}; }
  std::vector<QBuffer> outputs() const { return {first_output(), all_.end()}; }
  void write(const std::string& folder, unsigned inference) const {
    for (size_t i = inputs_; i < all_.size(); ++i)
      write_output(folder, inference, i - inputs_, all_[i].buf, all_[i].size);
  }

 private:
  std::vector<QBuffer>::const_iterator first_output() const {
    return all_.begin() + static_cast<std::ptrdiff_t>(inputs_);
  }

  std::vector<std::vector<char>> memory_;
  std::vector<QBuffer> all_;
  size_t inputs_ = 0;
};

}  // namespace client
