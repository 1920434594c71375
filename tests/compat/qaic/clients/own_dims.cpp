/// A program with specializations, and an input that may be left out: the dimensions of each
/// inference are the caller's. In: 4 and 8 values for x by turns; y = 2 x + rest.
#include "QAicApi.hpp"
#include "client_support.h"

namespace {

using qaic::rt::BufferDimensions;

/// The dimensions of specialization `number`, with one buffer left out.
BufferDimensions dims_of(const qaic::rt::v2::BufferMappings& mappings, size_t number,
                         const std::string& left_out) {
  const qaic::rt::BufferIdentifiers identifiers(mappings);
  BufferDimensions dims = identifiers.getBufferSizeDimensionPair();
  for (const auto& identifier : identifiers.getBufferIdentifierVec()) {
    auto& entry = dims[identifier.getBufferIndex()];
    entry.second = mappings[identifier.getBufferIndex()].ioShapes[number].dims;
    if (identifier.getBufferName() == left_out) entry.second = {0U};
  }
  return dims;
}

size_t bytes_of(const std::pair<uint32_t, std::vector<uint32_t>>& entry) {
  size_t bytes = entry.first;
  for (const uint32_t dim : entry.second) bytes *= dim;
  return bytes;
}

}  // namespace

int main(int, char** argv) {
  const std::string folder = argv[1];
  auto context = qaic::rt::Context::Factory(nullptr, {0});
  auto qpc = qaic::rt::Qpc::Factory(folder);
  const auto& mappings = qpc->getBufferMappingsV2();
  client::need(mappings.at(0).ioShapes.size() == 2, "two specializations");
  client::need(mappings[0].bufferMapping.ioType == BUFFER_IO_TYPE_INPUT, "inputs come first");
  client::need(mappings[0].ioShapes[0].dataType == BUFFER_DATA_TYPE_FLOAT, "the data type");
  auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, 2, 1);
  qaic::rt::shInferenceHandle handle;
  client::need(set->getAvailable(handle), "getAvailable");
  for (unsigned n = 0; n < client::kInferences; ++n) {
    std::vector<char> x = client::read_file(client::input_file(folder, n, 0));
    const size_t number = x.size() == size_t{4} * mappings[0].ioShapes[0].dims.back() ? 0 : 1;
    const BufferDimensions dims = dims_of(mappings, number, "rest");
    std::vector<QBuffer> buffers(mappings.size());
    std::vector<char> y(bytes_of(dims.back()));
    buffers[0].buf = reinterpret_cast<uint8_t*>(x.data());
    buffers[0].size = x.size();
    buffers.back().buf = reinterpret_cast<uint8_t*>(y.data());
    buffers.back().size = y.size();
    // What the dimensions leave out may be anything.
    buffers[1].size = n % 2 == 0 ? 0 : 4;
    buffers[1].type = QBUFFER_TYPE_DMABUF;
    buffers[1].handle = static_cast<uint64_t>(-1);
    client::need(handle->setBufferDimensions(dims), "setBufferDimensions");
    client::need(handle->setBuffers(buffers), "setBuffers");
    client::need(set->submit(handle, n), "submit");
    client::need(set->getCompletedId(handle, n), "getCompletedId");
    client::write_output(argv[2], n, 0, y.data(), y.size());
  }
  // Dimensions that are no specialization are refused before anything runs.
  BufferDimensions wrong = dims_of(mappings, 0, "rest");
  wrong[0].second.back() += 1;
  std::vector<QBuffer> buffers = handle->getBuffers();
  client::need(handle->setBufferDimensions(wrong), "setBufferDimensions");
  client::need(set->submit(handle) == QS_INVAL, "dimensions that are not allowed");
  client::need(set->putCompleted(handle), "putCompleted");
  return 0;
}
