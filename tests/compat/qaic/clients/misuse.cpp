/// Wrong arguments, wrong states, and objects in use: each is a code or an exception of its family
/// with one line that says why, and changes nothing.
#include <climits>

#include "QAicApi.hpp"
#include "client_support.h"

namespace {

using namespace qaic::rt;  // NOLINT(google-build-using-namespace)

/// The factory throws, with this code and a reason of one line.
void refused(QStatus status, const char* what, const std::function<void()>& make) {
  try {
    make();
  } catch (const qaic::Exception& e) {
    const std::string text = e.what();
    if (e.status() != status)
      std::fprintf(stderr, "%s: status %d: %s\n", what, static_cast<int>(e.status()), e.what());
    client::need(e.status() == status, what);
    client::need(text.size() > 20 && text.find('\n') == std::string::npos, what);
    return;
  }
  client::need(false, what);
}

void contexts() {
  const QAicContextProperties_t undefined = 0x100;
  refused(QS_INVAL, "an undefined bit", [&] { Context::Factory(&undefined, {0}); });
  refused(QS_INVAL, "no device", [&] { Context::Factory(nullptr, {}); });
  refused(QS_INVAL, "a device twice", [&] { Context::Factory(nullptr, {0, 0}); });
  refused(QS_NODEV, "a device that is not there", [&] { Context::Factory(nullptr, {9}); });
}

void containers(const std::string& folder) {
  refused(QS_ERROR, "a missing file", [&] { Qpc::Factory(folder + "/missing"); });
  refused(QS_ERROR, "a missing file", [&] { QpcFile(folder, "missing").load(); });
  refused(QS_INVAL, "null", [&] { Qpc::Factory(nullptr, 10); });
  const std::vector<uint8_t> text(100, 'x');
  refused(QS_INVAL, "no container", [&] { Qpc::Factory(text.data(), text.size()); });
  const std::vector<uint8_t> vendors{0x7c, 0xcd, 0xa1, 0x00, 0, 0, 0, 0};
  refused(QS_UNSUPPORTED, "the vendor's", [&] { Qpc::Factory(vendors.data(), vendors.size()); });
  QpcFile file(folder);
  file.load();
  std::vector<uint8_t> damaged(file.data(), file.data() + file.size());
  damaged[damaged.size() / 2] ^= 1;
  try {
    Qpc::Factory(damaged.data(), damaged.size());
  } catch (const qaic::ExceptionInit& e) {
    client::need(e.status() == QS_DATA_CRC_ERROR || e.status() == QS_INVAL, "a flipped bit");
  }
  const auto qpc = Qpc::Factory(folder);
  refused(QS_INVAL, "a program that is not there", [&] { qpc->getBufferMappingsV2(1); });
  refused(QS_INVAL, "a program that is not there", [&] { qpc->getBufferMappingsDma(7); });
  QData data{};
  client::need(qpc->getIoDescriptor(&data, 3) == QS_INVAL, "a program that is not there");
  client::need(qpc->getIoDescriptor(nullptr) == QS_INVAL, "null");
}

void programs(const shContext& context, const shQpc& qpc, const client::Buffers& memory) {
  refused(QS_INVAL, "a null context", [&] { Program::Factory(nullptr, 0, "p", qpc); });
  refused(QS_INVAL, "a null Qpc", [&] { Program::Factory(context, 0, "p", nullptr); });
  refused(QS_NODEV, "another device", [&] { Program::Factory(context, 3, "p", qpc); });
  QAicProgramProperties properties{};
  properties.devMapping = "0:1";
  refused(QS_UNSUPPORTED, "a mapping",
          [&] { Program::Factory(context, 0, "p", qpc, &properties); });
  QAicQueueProperties threads{};
  threads.numThreadsPerQueue = 0;
  refused(QS_INVAL, "no thread", [&] { Queue::Factory(context, 0, &threads); });
  refused(QS_INVAL, "a null program", [&] { ExecObj::Factory(context, nullptr); });

  const auto program = Program::Factory(context, 0, "p", qpc);
  const QAicExecObjProperties manual = 0;
  const auto object = ExecObj::Factory(context, program, &manual);
  const auto queue = Queue::Factory(context, 0);
  client::need(queue->enqueue(nullptr) == QS_INVAL, "a null object");
  client::need(queue->enqueue(object) == QS_INVAL, "no buffers");
  client::need(object->waitForCompletion() == QS_INVAL, "nothing was enqueued");
  std::vector<QBuffer> buffers = memory.all();
  client::need(object->setData(buffers), "setData");
  client::need(queue->enqueue(object) == QS_INVAL, "a program that is not active");
  buffers[0].size -= 4;
  client::need(object->setData(buffers) == QS_INVAL, "a short buffer");
  buffers[0].size += 8;
  client::need(object->setData(buffers) == QS_INVAL, "a long buffer");
  buffers[0] = memory.all()[0];
  buffers[0].type = QBUFFER_TYPE_PMEM;
  client::need(object->setData(buffers) == QS_UNSUPPORTED, "PMEM");
  buffers[0].type = QBUFFER_TYPE_DMABUF;
  buffers[0].handle = 9999;
  client::need(object->setData(buffers) == QS_BADFD, "a wrong descriptor");
  buffers.pop_back();
  client::need(object->setData(buffers) == QS_INVAL, "too few buffers");
  client::need(object->setData({{99U, memory.all()[0]}}) == QS_INVAL, "a wrong index");
  client::need(object->setData(memory.all(), {{4, {1}}}) == QS_INVAL, "too few dimensions");
  client::need(object->setData(shInferenceVector()) == QS_INVAL, "a null vector");
  std::vector<QBuffer> kept;
  client::need(object->getData(kept), "getData");
  client::need(kept.size() == memory.all().size() && kept[0].buf == memory.all()[0].buf,
               "what was refused changed nothing");
  client::need(program->activate(), "activate");
  client::need(program->unload() == QS_BUSY, "unload while it is active");
  client::need(object->run(), "run");
}

/// The reason of the last failure, without the name in front of it.
std::string reason() {
  const std::string text = library().qaicGetLastErrorText();
  const size_t at = text.find("buffer ");
  return at == std::string::npos ? text : text.substr(at);
}

/// What is no memory that the library takes: the functions that set refuse it as the library does,
/// with its code and its words, and keep what was set.
void kinds_of_memory(const shContext& context, const shQpc& qpc, const shInferenceHandle& handle,
                     const client::Buffers& memory) {
  const auto object = ExecObj::Factory(context, Program::Factory(context, 0, "p", qpc));
  const size_t inputs = memory.inputs().size();
  const auto try_one = [&](size_t at, const QBuffer& wrong, QStatus status, const char* what) {
    std::vector<QBuffer> all = memory.all();
    all[at] = wrong;
    const auto half = all.begin() + static_cast<std::ptrdiff_t>(inputs);
    client::need(object->setData(all) == status, what);
    const std::string words = reason();
    client::need(words.find("buffer " + std::to_string(at)) == 0, words.c_str());
    client::need(handle->setBuffers(all) == status && reason() == words, what);
    const QStatus found = at < inputs ? handle->setInputBuffers({all.begin(), half})
                                      : handle->setOutputBuffers({half, all.end()});
    client::need(found == status && reason() == words, what);
    client::need(handle->getBuffers()[at].buf == memory.all()[at].buf, "it changes nothing");
  };
  for (const size_t at : {size_t{0}, inputs, memory.all().size() - 1}) {
    QBuffer wrong = memory.all()[at];
    wrong.type = QBUFFER_TYPE_PMEM;
    try_one(at, wrong, QS_UNSUPPORTED, "PMEM");
    wrong.type = QBUFFER_TYPE_DMABUF;
    for (const int descriptor : {-1, INT_MIN}) {
      wrong.handle = static_cast<uint64_t>(descriptor);
      try_one(at, wrong, QS_BADFD, "a descriptor below 0");
    }
    wrong.type = static_cast<QBufferType>(77);
    try_one(at, wrong, QS_INVAL, "a type that is none");
  }
}

void sets(const shContext& context, const shQpc& qpc, const client::Buffers& memory) {
  refused(QS_INVAL, "no handle", [&] { InferenceSet::Factory(context, qpc, 0, 0, 1); });
  refused(QS_NOSPC, "too many cores", [&] { InferenceSet::Factory(context, qpc, 0, 1, 500); });
  refused(QS_INVAL, "too few vectors",
          [&] { InferenceSet::Factory(context, qpc, 0, 2, 1, {InferenceVector::Factory(qpc)}); });
  refused(QS_INVAL, "no number",
          [&] { InferenceSet::Factory(context, qpc, std::optional<std::string>("first"), 1, 1); });
  refused(QS_UNSUPPORTED, "several devices",
          [&] { InferenceSet::Factory(context, qpc, std::optional<std::string>("0:1"), 1, 1); });
  const auto set = InferenceSet::Factory(context, qpc, 0, 2, 1);
  shInferenceHandle handle;
  client::need(set->getAvailable(handle), "getAvailable");
  client::need(set->submit(handle, 1) == QS_INVAL, "no buffers");
  client::need(handle->setBuffers({memory.all()[0]}) == QS_INVAL, "too few buffers");
  client::need(std::string(library().qaicGetLastErrorText()) ==
                   "InferenceHandle: 1 entries given for " + std::to_string(memory.all().size()) +
                       " buffers; pass one for each",
               "the reason of what a class refuses");
  client::need(handle->setInputBuffers({}) == QS_INVAL, "no inputs");
  client::need(handle->setOutputBuffers(memory.all()) == QS_INVAL, "too many outputs");
  client::need(handle->setBufferDimensions({{4, {1}}}) == QS_INVAL, "too few dimensions");
  std::vector<QBuffer> buffers = memory.all();
  buffers[0].size = 3;
  client::need(handle->setBuffers(buffers) == QS_INVAL, "a short buffer");
  client::need(handle->setBuffers(shInferenceVector()) == QS_INVAL, "a null vector");
  client::need(handle->setBuffers(memory.all()), "setBuffers");
  kinds_of_memory(context, qpc, handle, memory);
  client::need(set->submit(handle, 1), "submit");
  // From another thread, which is not its owner.
  std::thread([&] {
    client::need(set->submit(handle, 2) == QS_BUSY, "submit in flight");
    client::need(handle->setInputBuffers(memory.inputs()) == QS_BUSY, "setInputBuffers in flight");
    client::need(set->putCompleted(handle) == QS_INVAL, "putCompleted in flight");
  }).join();
  client::need(set->getCompletedId(handle, 1), "getCompletedId");
  client::need(handle->getId() == 1, "the id is as it was");
  client::need(set->getCompletedId(handle, 1) == QS_INVAL && handle == nullptr, "collected twice");
  client::need(set->submit(shInferenceVector()) == QS_INVAL, "a null vector");
}

}  // namespace

int main(int, char** argv) {
  contexts();
  containers(argv[1]);
  const auto context = Context::Factory(nullptr, {0});
  const auto qpc = Qpc::Factory(argv[1]);
  client::Buffers memory(qpc->getBufferMappings(), argv[1], 0);
  programs(context, qpc, memory);
  sets(context, qpc, memory);
  return 0;
}
