/// Looks at a container without a device: a switch over the data type without a default, and the
/// figures of its programs.
#include "QAicApi.hpp"
#include "client_support.h"
#include "qaicapihpp/QAicApiDataTypes.hpp"

namespace {

const char* name_of(QAicBufferDataTypeEnum type) {
  switch (type) {
    case BUFFER_DATA_TYPE_FLOAT:
      return "float";
    case BUFFER_DATA_TYPE_FLOAT16:
      return "float16";
    case BUFFER_DATA_TYPE_INT8Q:
      return "int8q";
    case BUFFER_DATA_TYPE_UINT8Q:
      return "uint8q";
    case BUFFER_DATA_TYPE_INT16Q:
      return "int16q";
    case BUFFER_DATA_TYPE_INT32Q:
      return "int32q";
    case BUFFER_DATA_TYPE_INT32I:
      return "int32";
    case BUFFER_DATA_TYPE_INT64I:
      return "int64";
    case BUFFER_DATA_TYPE_INT8:
      return "int8";
    case BUFFER_DATA_TYPE_INVAL:
      return "none";
  }
  // Names that came later.
  if (type == BUFFER_DATA_TYPE_UINT8) return "uint8";
  if (type == BUFFER_DATA_TYPE_BFLOAT16) return "bfloat16";
  return type == BUFFER_DATA_TYPE_FLOAT64C ? "complex" : "unknown";
}

}  // namespace

int main(int, char** argv) {
  qaic::rt::QpcFile file(argv[1]);
  client::need(file.load(), "load");
  client::need(file.size() == file.getBuffer().size && file.data() != nullptr, "the file's bytes");
  const auto qpc = qaic::rt::Qpc::Factory(file.data(), file.size());
  client::need(qpc->buffer() == file.data() && qpc->size() == file.size(), "the caller's bytes");
  // A copy outlives the bytes that it was made of.
  auto bytes = std::make_unique<std::vector<uint8_t>>(file.data(), file.data() + file.size());
  const auto copy = qaic::rt::Qpc::Factory(bytes->data(), bytes->size(), true);
  bytes = nullptr;
  client::need(copy->size() == file.size() &&
                   std::equal(file.data(), file.data() + file.size(), copy->buffer()),
               "the copy's bytes");
  const auto opened = qaic::rt::Qpc::Factory(argv[1]);
  client::need(std::equal(file.data(), file.data() + file.size(), opened->buffer()),
               "the bytes of a file");
  const qaic::rt::shQpcInfo info = qpc->getInfo();
  for (const auto& program : info->program)
    std::cout << "program " << program.programIndex << " batch " << program.batchSize << " inputs "
              << std::count_if(program.bufferMappings.begin(), program.bufferMappings.end(),
                               [](const auto& m) { return m.ioType == BUFFER_IO_TYPE_INPUT; })
              << std::endl;
  for (const auto& mapping : qpc->getBufferMappings())
    std::cout << mapping.index << " " << mapping.bufferName << " " << name_of(mapping.dataType)
              << " " << mapping.size << std::endl;
  const qaic::rt::BufferMapping none;
  client::need(none.ioType == BUFFER_IO_TYPE_INVAL && none.dataType == BUFFER_DATA_TYPE_INVAL,
               "a mapping that stands for none");
  try {
    qpc->getBufferMappings(9);
    return 1;
  } catch (const qaic::rt::CoreExceptionRuntime& e) {
    client::need(e.status() == QS_INVAL, "a program that is not there");
  }
  return 0;
}
