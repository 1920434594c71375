/// Classifies many pictures with a pool of threads. Every thread has a context of its own that
/// shares the weights of the first (rknn_dup_context), is pinned to a core (rknn_set_core_mask 1,
/// 2, 4) and reuses its input and output memory for picture after picture.
///
///   rknn_pool direction.rknn --threads 6 line*.png
///
/// Prints one line for each picture, in the order given: its name and all scores.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "rknn_api.h"
#include "rknn_picture.h"

namespace {

struct Options {
  const char* model = nullptr;
  int threads = 3;
  int repeat = 1;  ///< How often the whole list is worked through.
  bool bgr = false;
  const char* dump = nullptr;  ///< Folder that the bytes fed to the model are written to.
  std::vector<std::string> pictures;
};

bool parse(int argc, char** argv, Options* out) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--threads" && more)
      out->threads = std::atoi(argv[++i]);
    else if (word == "--repeat" && more)
      out->repeat = std::atoi(argv[++i]);
    else if (word == "--dump" && more)
      out->dump = argv[++i];
    else if (word == "--bgr")
      out->bgr = true;
    else if (word[0] == '-')
      return false;
    else if (out->model == nullptr)
      out->model = argv[i];
    else
      out->pictures.push_back(word);
  }
  return !out->pictures.empty() && out->threads > 0 && out->repeat > 0;
}

int failed(const char* call, int code) {
  std::fprintf(stderr, "%s fails with %d\n", call, code);
  return code;
}

/// A context of the model with its memory: what one thread works with.
class Worker {
 public:
  Worker() = default;
  ~Worker() {
    if (input_ != nullptr) rknn_destroy_mem(ctx_, input_);
    if (output_ != nullptr) rknn_destroy_mem(ctx_, output_);
    if (ctx_ != 0) rknn_destroy(ctx_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The first opens the file, the others share its weights.
  int open(const char* path) {
    const int ret = rknn_init(&ctx_, const_cast<char*>(path), 0, RKNN_FLAG_PRIOR_MEDIUM, nullptr);
    return ret < 0 ? failed("rknn_init", ret) : 0;
  }
  int open(Worker* first) {
    const int ret = rknn_dup_context(&first->ctx_, &ctx_);
    return ret < 0 ? failed("rknn_dup_context", ret) : 0;
  }

  int prepare(rknn_core_mask core) {
    int ret = rknn_set_core_mask(ctx_, core);
    // A chip with one core has no core to choose.
    if (ret < 0 && ret != RKNN_ERR_TARGET_PLATFORM_UNMATCH)
      return failed("rknn_set_core_mask", ret);
    std::memset(&in_, 0, sizeof in_);
    std::memset(&out_, 0, sizeof out_);
    ret = rknn_query(ctx_, RKNN_QUERY_INPUT_ATTR, &in_, sizeof in_);
    if (ret < 0) return failed("RKNN_QUERY_INPUT_ATTR", ret);
    ret = rknn_query(ctx_, RKNN_QUERY_OUTPUT_ATTR, &out_, sizeof out_);
    if (ret < 0) return failed("RKNN_QUERY_OUTPUT_ATTR", ret);
    if (in_.n_dims != 4 || in_.fmt != RKNN_TENSOR_NHWC || in_.dims[3] != 3) {
      std::fprintf(stderr, "the model's input is not a picture of three channels\n");
      return RKNN_ERR_FAIL;
    }
    // Pixels in, whatever the model computes with; floats out.
    in_.type = RKNN_TENSOR_UINT8;
    in_.fmt = RKNN_TENSOR_NHWC;
    in_.size = in_.n_elems;
    input_ = rknn_create_mem(ctx_, in_.w_stride * in_.dims[1] * in_.dims[3]);
    out_.type = RKNN_TENSOR_FLOAT32;
    out_.size = out_.n_elems * static_cast<std::uint32_t>(sizeof(float));
    output_ = rknn_create_mem(ctx_, out_.size);
    if (input_ == nullptr || output_ == nullptr)
      return failed("rknn_create_mem", RKNN_ERR_MALLOC_FAIL);
    ret = rknn_set_io_mem(ctx_, input_, &in_);
    if (ret == 0) ret = rknn_set_io_mem(ctx_, output_, &out_);
    return ret < 0 ? failed("rknn_set_io_mem", ret) : 0;
  }

  int width() const { return static_cast<int>(in_.dims[2]); }
  int height() const { return static_cast<int>(in_.dims[1]); }

  int classify(const picture& image, std::vector<float>* scores) {
    const std::size_t row = static_cast<std::size_t>(width()) * 3;
    const std::size_t pitch = static_cast<std::size_t>(in_.w_stride) * 3;
    for (int y = 0; y < height(); ++y)
      std::memcpy(static_cast<char*>(input_->virt_addr) + static_cast<std::size_t>(y) * pitch,
                  image.pixels + static_cast<std::size_t>(y) * row, row);
    rknn_mem_sync(ctx_, input_, RKNN_MEMORY_SYNC_TO_DEVICE);
    const int ret = rknn_run(ctx_, nullptr);
    if (ret < 0) return failed("rknn_run", ret);
    rknn_mem_sync(ctx_, output_, RKNN_MEMORY_SYNC_FROM_DEVICE);
    const float* const values = static_cast<const float*>(output_->virt_addr);
    scores->assign(values, values + out_.n_elems);
    return 0;
  }

 private:
  rknn_context ctx_ = 0;
  rknn_tensor_attr in_, out_;
  rknn_tensor_mem* input_ = nullptr;
  rknn_tensor_mem* output_ = nullptr;
};

/// What the threads take from and put into.
struct Work {
  const Options* options = nullptr;
  std::vector<picture> images;
  std::vector<std::vector<float>> scores;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> good{true};
};

void work_through(Worker* worker, Work* work) {
  const std::size_t count = work->images.size();
  const std::size_t all = count * static_cast<std::size_t>(work->options->repeat);
  for (std::size_t job = work->next++; job < all && work->good; job = work->next++) {
    std::vector<float> scores;
    if (worker->classify(work->images[job % count], &scores) < 0)
      work->good = false;
    else if (job < count)
      work->scores[job] = scores;  // Each place has one writer.
  }
}

int read_pictures(const Options& options, int width, int height, Work* work) {
  for (const std::string& path : options.pictures) {
    picture full, image;
    if (picture_read(path.c_str(), &full) < 0) return -1;
    const int ret = picture_resize(&full, width, height, &image);
    picture_free(&full);
    if (ret < 0) return ret;
    if (options.bgr) picture_swap_red_blue(&image);
    work->images.push_back(image);
    if (options.dump == nullptr) continue;
    const std::string to =
        std::string(options.dump) + "/" + std::to_string(work->images.size() - 1) + ".input";
    if (file_write(to.c_str(), image.pixels, static_cast<std::size_t>(width * height) * 3) < 0)
      return -1;
  }
  work->scores.resize(work->images.size());
  return 0;
}

void print_scores(const Options& options, const Work& work) {
  for (std::size_t i = 0; i < work.scores.size(); ++i) {
    std::printf("%s:", options.pictures[i].c_str());
    for (const float score : work.scores[i]) std::printf(" %.9g", static_cast<double>(score));
    std::printf("\n");
  }
}

bool run(const Options& options, Work* work) {
  const rknn_core_mask cores[] = {RKNN_NPU_CORE_0, RKNN_NPU_CORE_1, RKNN_NPU_CORE_2};
  std::vector<Worker> workers(static_cast<std::size_t>(options.threads));
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const int ret = i == 0 ? workers[i].open(options.model) : workers[i].open(&workers[0]);
    if (ret < 0 || workers[i].prepare(cores[i % 3]) < 0) return false;
  }
  if (read_pictures(options, workers[0].width(), workers[0].height(), work) < 0) return false;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back(work_through, &worker, work);
  for (std::thread& thread : threads) thread.join();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double runs = static_cast<double>(work->images.size()) * options.repeat;
  std::fprintf(stderr, "%.0f pictures on %d threads: %.1f a second\n", runs, options.threads,
               runs / seconds);
  return work->good;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, &options)) {
    std::fprintf(
        stderr,
        "usage: %s MODEL [--threads N] [--repeat N] [--bgr] [--dump FOLDER] PICTURE.png...\n"
        "  --threads N    contexts and threads, on cores 0, 1, 2, 0, ... (3)\n"
        "  --repeat N     works through the list N times (1)\n"
        "  --bgr          the model wants blue, green, red\n"
        "  --dump FOLDER  writes what the model was fed with to FOLDER/0.input, ...\n",
        argv[0]);
    return 2;
  }
  Work work;
  work.options = &options;
  const bool good = run(options, &work);
  if (good) print_scores(options, work);
  for (picture& image : work.images) picture_free(&image);
  return good ? 0 : 1;
}
