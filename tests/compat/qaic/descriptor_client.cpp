/// The descriptor of I/O through the installed schema: which tensors there are, where they lie in
/// what is transferred, and which shapes are allowed.
#include <QAicApi.pb.h>

#include "QAicApi.hpp"
#include "client_support.h"

namespace {

const char* name_of(aicapi::bufferIoDataTypeEnum type) {
  switch (type) {
    case aicapi::FLOAT_TYPE:
      return "float";
    case aicapi::FLOAT_16_TYPE:
      return "float16";
    case aicapi::INT64_I_TYPE:
      return "int64";
    default:
      return "other";
  }
}

void print(const aicapi::IoBinding& binding) {
  std::cout << binding.index() << " " << binding.name()
            << (binding.dir() == aicapi::BUFFER_IO_TYPE_INPUT ? " in " : " out ")
            << name_of(binding.type()) << " [";
  for (int i = 0; i < binding.dims_size(); ++i) std::cout << (i > 0 ? "," : "") << binding.dims(i);
  std::cout << "] " << binding.size() << std::endl;
}

}  // namespace

int main(int, char** argv) {
  auto context = qaic::rt::Context::Factory(nullptr, {0});
  auto qpc = qaic::rt::Qpc::Factory(argv[1]);
  auto program = qaic::rt::Program::Factory(context, 0, "descriptor", qpc);
  QData data{};
  client::need(program->getIoDescriptor(&data), "Program::getIoDescriptor");
  aicapi::IoDesc description;
  client::need(description.ParseFromArray(data.data, static_cast<int>(data.size)), "parsing it");
  QData of_qpc{};
  client::need(qpc->getIoDescriptor(&of_qpc), "Qpc::getIoDescriptor");
  client::need(
      of_qpc.size == data.size && std::equal(data.data, data.data + data.size, of_qpc.data),
      "the container's descriptor");
  for (const auto& binding : description.selected_set().bindings()) print(binding);
  for (const auto& set : description.io_sets()) {
    if (set.name() != "dma") continue;
    for (const auto& binding : set.bindings()) {
      const auto& place = binding.dma_buf_info(0);
      const auto& whole = description.dma_buf(static_cast<int>(place.dma_buf_index()));
      client::need(place.dma_offset() + place.dma_size() <= whole.size(), "it lies in its buffer");
      client::need(whole.dir() == binding.dir(), "its direction");
    }
  }
  for (const auto& allowed : description.allowed_shapes()) {
    for (const auto& shape : allowed.shapes())
      for (const auto dim : shape.dims()) std::cout << dim << " ";
    std::cout << std::endl;
  }
  return 0;
}
