/// One inference after the other: take a handle, set its buffers, submit, wait, read, put it back.
#include "QAicApi.hpp"
#include "client_support.h"

int main(int, char** argv) {
  const std::string folder = argv[1];
  const std::string results = argv[2];
  try {
    auto context = qaic::rt::Context::Factory(nullptr, {0});
    auto qpc = qaic::rt::Qpc::Factory(folder);
    auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, 2, 1);
    for (unsigned n = 0; n < client::kInferences; ++n) {
      client::Buffers buffers(qpc->getBufferMappings(), folder, n);
      qaic::rt::shInferenceHandle handle;
      client::need(set->getAvailable(handle), "getAvailable");
      client::need(handle->setInputBuffers(buffers.inputs()), "setInputBuffers");
      client::need(handle->setOutputBuffers(buffers.outputs()), "setOutputBuffers");
      client::need(set->submit(handle, n), "submit");
      handle = nullptr;
      client::need(set->getCompleted(handle), "getCompleted");
      client::need(handle->getId() == n, "the id of the completed handle");
      client::need(handle->getBuffers().size() == buffers.all().size(), "getBuffers");
      buffers.write(results, n);
      client::need(set->putCompleted(std::move(handle)), "putCompleted");
    }
    client::need(set->waitForCompletion(), "waitForCompletion with nothing in flight");
  } catch (const qaic::rt::CoreExceptionInit& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
  return 0;
}
