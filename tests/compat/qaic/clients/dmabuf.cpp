/// Buffers by descriptor and offset: one memfd holds the inputs and outputs of all inferences.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "QAicApi.hpp"
#include "client_support.h"

int main(int, char** argv) {
  const std::string folder = argv[1];
  auto context = qaic::rt::Context::Factory(nullptr, {0});
  auto qpc = qaic::rt::Qpc::Factory(folder);
  const auto& mappings = qpc->getBufferMappingsDma();
  constexpr size_t kPage = 4096;
  const size_t total = kPage * mappings.size() * client::kInferences;
  const int fd = memfd_create("client", MFD_CLOEXEC);
  client::need(fd >= 0 && ftruncate(fd, static_cast<off_t>(total)) == 0, "memfd_create");
  auto* memory =
      static_cast<char*>(mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  client::need(memory != MAP_FAILED, "mmap");

  auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, 2, 1);
  for (unsigned n = 0; n < client::kInferences; ++n) {
    std::vector<QBuffer> buffers(mappings.size());
    for (size_t i = 0; i < mappings.size(); ++i) {
      buffers[i].type = QBUFFER_TYPE_DMABUF;
      buffers[i].handle = static_cast<uint64_t>(fd);
      buffers[i].offset = static_cast<uint32_t>(kPage * (n * mappings.size() + i));
      buffers[i].size = mappings[i].size;
      if (mappings[i].ioType != BUFFER_IO_TYPE_INPUT) continue;
      const auto bytes = client::read_file(client::input_file(folder, n, i));
      std::memcpy(memory + buffers[i].offset, bytes.data(), bytes.size());
    }
    qaic::rt::shInferenceHandle handle;
    client::need(set->getAvailable(handle), "getAvailable");
    client::need(handle->setBuffers(buffers), "setBuffers");
    client::need(set->submit(handle, n), "submit");
    client::need(set->getCompletedId(handle, n), "getCompletedId");
    size_t output = 0;
    for (size_t i = 0; i < mappings.size(); ++i)
      if (mappings[i].ioType == BUFFER_IO_TYPE_OUTPUT)
        client::write_output(argv[2], n, output++, memory + buffers[i].offset, buffers[i].size);
    client::need(set->putCompleted(handle), "putCompleted");
  }
  munmap(memory, total);
  close(fd);
  return 0;
}
