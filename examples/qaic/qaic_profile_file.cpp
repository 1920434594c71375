/// Profiling to a file: where the time of the page's inferences went.
///
///   qaic_profile_file folder_of_the_container page.png [folder_for_the_report]
#include <filesystem>
#include <iostream>

#include "qaic_pages.h"

int main(int argc, char** argv) {
  return qaic_example::run(argc, argv, "REPORT", [](const qaic_example::Arguments& arguments) {
    using qaic_example::need;
    const auto qpc = qaic::rt::Qpc::Factory(arguments.container);
    const auto context = qaic::rt::Context::Factory(nullptr, {0});
    const auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, 2, 1);
    // One report of at most 100 inferences of the set, to the callback and, with a folder, to
    // <folder>/aic-profiling-program-<number>-latency.txt.
    const auto profiling = qaic::rt::ProfilingHandle::Factory(
        {set->getProgram()}, 100, [](const std::string& report) { std::cout << report; },
        QAIC_PROFILING_TYPE_LATENCY, "", arguments.dump);
    need(profiling->start(), "start");
    for (std::size_t turn = 0; turn < qaic_example::kTurns; ++turn) {
      qaic_example::Page page(arguments, qpc->getBufferMappings(), turn);
      if (!qaic_example::infer(set, page, turn)) throw std::runtime_error("the device was lost");
      std::cout << page.answer() << std::endl;
    }
    // Fewer than 100 have come: the report is of these, and is there when this returns.
    need(profiling->stop(), "stop");
    if (!arguments.dump.empty())
      for (const auto& entry : std::filesystem::directory_iterator(arguments.dump))
        std::cout << "wrote " << entry.path().filename().string() << "\n";
  });
}
