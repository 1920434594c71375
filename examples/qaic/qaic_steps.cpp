/// The flow of an inference, step by step: which way up does a page lie?
///
///   qaic_steps folder_of_the_container page.png [folder_for_a_dump]
#include <iostream>

#include "qaic_pages.h"

int main(int argc, char** argv) {
  return qaic_example::run(argc, argv, "DUMP", [](const qaic_example::Arguments& arguments) {
    using qaic_example::need;
    // The container, and what is in it; no device is needed for that.
    const auto qpc = qaic::rt::Qpc::Factory(arguments.container);
    for (const auto& mapping : qpc->getBufferMappings())
      std::cout << (mapping.ioType == BUFFER_IO_TYPE_INPUT ? "input  " : "output ")
                << mapping.bufferName << ", " << mapping.size << " bytes\n";
    // A context of device 0, and a set that runs one activation with two handles there.
    const auto context = qaic::rt::Context::Factory(nullptr, {0});
    const auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, 2, 1);
    for (std::size_t turn = 0; turn < qaic_example::kTurns; ++turn) {
      qaic_example::Page page(arguments, qpc->getBufferMappings(), turn);
      // 1. A handle that is available; this waits for one.
      qaic::rt::shInferenceHandle handle;
      need(set->getAvailable(handle), "getAvailable");
      // 2. Its buffers. Their memory stays until the inference has completed.
      need(handle->setBuffers(page.buffers()), "setBuffers");
      // 3. Submit; the number is the caller's.
      need(set->submit(handle, turn), "submit");
      // 4. Wait for it. The results are in the output buffers then.
      need(set->getCompletedId(handle, turn), "getCompletedId");
      std::cout << page.answer() << "\n";
      page.dump(arguments.dump);
      // 5. The handle is available again.
      need(set->putCompleted(handle), "putCompleted");
    }
  });
}
