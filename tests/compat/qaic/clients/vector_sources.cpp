/// Inference vectors of the open runtime: from files, zeros, random bytes, and a user's buffers.
#include "QAicOpenRtApi.hpp"
#include "client_support.h"

using qaic::openrt::InferenceVector;

int main(int, char** argv) {
  const std::string folder = argv[1];
  auto context = qaic::openrt::Context::Factory(nullptr, {0});
  auto qpc = qaic::openrt::Qpc::Factory(folder);
  auto program = qaic::openrt::Program::Factory(context, 0, "sources", qpc);
  auto exec_obj = qaic::openrt::ExecObj::Factory(context, program);
  const size_t inputs = static_cast<size_t>(
      std::count_if(qpc->getBufferMappings().begin(), qpc->getBufferMappings().end(),
                    [](const BufferMapping& m) { return m.ioType == BUFFER_IO_TYPE_INPUT; }));
  for (unsigned n = 0; n < client::kInferences; ++n) {
    std::vector<std::string> files;
    for (size_t i = 0; i < inputs; ++i) files.push_back(client::input_file(folder, n, i));
    auto vector = InferenceVector::Factory(qpc, files);
    client::need(exec_obj->setData(vector), "setData of a vector");
    client::need(exec_obj->run(), "run");
    const std::vector<QBuffer>& buffers = vector->getVector();
    for (size_t i = inputs; i < buffers.size(); ++i)
      client::write_output(argv[2], n, i - inputs, buffers[i].buf, buffers[i].size);
    std::vector<QBuffer> used;
    client::need(exec_obj->getData(used), "getData");
    client::need(used.size() == buffers.size() && used[0].buf == buffers[0].buf, "its buffers");
  }

  auto zeros = InferenceVector::Factory(qpc->getBufferMappings(), InferenceVector::ZERO_FILL);
  const QBuffer& first = zeros->getVector()[0];
  client::need(std::all_of(first.buf, first.buf + first.size, [](uint8_t b) { return b == 0; }),
               "zeros");
  auto random = InferenceVector::Factory(qpc);
  const QBuffer& any = random->getVector()[0];
  client::need(std::any_of(any.buf, any.buf + any.size, [](uint8_t b) { return b != 0; }),
               "random bytes");
  std::vector<QBuffer> buffers = random->getVector();
  client::need(random->setInputBuffers(buffers) == QS_INVAL, "too many inputs");
  buffers.push_back(buffers[0]);
  client::need(random->setBuffers(buffers) == QS_INVAL, "too many buffers");
  buffers.resize(1);
  buffers[0].size -= 1;
  client::need(random->setBuffers(buffers) == QS_INVAL, "a short buffer");
  client::need(random->loadFromFileSet({folder + "/missing"}) == QS_INVAL, "a wrong count");
  return 0;
}
