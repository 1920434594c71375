/// What the examples of the object runtime share: a page in four turns as tensors, what the network
/// says of it, and the last line of a failure.
///
/// They are started as `example CONTAINER PICTURE`: the folder that `corelane compile --target
/// aic100` wrote, and a PNG or JPEG file. Two of them take a folder that they write to.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "QAicApi.hpp"

namespace qaic_example {

constexpr std::size_t kTurns = 4;

struct Arguments {
  std::string container;
  std::string picture;
  std::string dump;  ///< The folder that is written to. Empty: nothing is written.
};

/// Parses, runs, and says in one line what went wrong; the exit code.
int run(int argc, char** argv, const std::function<void(const Arguments&)>& body);
/// The same of an example that takes a folder, too, which the usage calls `folder`.
int run(int argc, char** argv, const char* folder,
        const std::function<void(const Arguments&)>& body);

/// A failure becomes an exception.
void need(QStatus status, const char* what);

/// One inference's memory: input 0 and output 0 of the orientation model.
class Page {
 public:
  /// The page of the picture, turned counter-clockwise by `turn` x 90 degrees. Throws
  /// std::runtime_error for a picture that cannot be read, or a program with other buffers.
  Page(const Arguments& arguments, const qaic::rt::BufferMappings& mappings, std::size_t turn);
  /// Inputs first. They stay the page's.
  std::vector<QBuffer> buffers();
  /// "turned by  90: lies at  90 degrees, 99.1 % sure".
  std::string answer() const;
  /// Writes <turn>-in.bin and <turn>-out.bin, values of 32 bits.
  void dump(const std::string& folder) const;

 private:
  std::size_t turn_;
  std::vector<float> input_, output_;
};

/// One inference; false where the device was lost under it, or is away.
bool infer(const qaic::rt::shInferenceSet& set, Page& page, std::size_t id);
/// Returns when the device is there (again).
void wait_until_ready(QID device);

}  // namespace qaic_example
