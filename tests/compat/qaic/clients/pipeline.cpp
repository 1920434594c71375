/// A stage of a media pipeline: programs, queues and execution objects by hand, three in flight.
#include "QAicApi.hpp"
#include "client_support.h"

namespace {

using namespace qaic::rt;  // NOLINT(google-build-using-namespace)

void log_line(QLogLevel level, const char* text) {
  if (level >= QL_ERROR) std::cerr << text << std::endl;
}

void on_error(QAicContextID, const char* text, QAicErrorType, const void*, size_t, void*) {
  std::cerr << text << std::endl;
}

class Stage {
 public:
  explicit Stage(const std::string& folder) : folder_(folder) {
    Util utils;
    utils.checkLibraryVersion();
    std::vector<QID> ids;
    if (utils.getDeviceIds(ids) != QS_SUCCESS || ids.empty())
      throw CoreExceptionRuntime("no device");
    QDevInfo info;
    utils.getDeviceInfo(ids[0], info);
    std::cout << info.pciInfo.classname << ", " << info.pciInfo.vendorname << ", "
              << info.pciInfo.devicename << std::endl;
    context_ = Context::Factory(nullptr, ids, log_line, on_error);
    context_->setLogLevel(QL_ERROR);
    qpc_ = Qpc::Factory(folder);
    QAicProgramProperties_t program_properties;
    Program::initProperties(program_properties);
    program_properties.SubmitRetryTimeoutMs = 60000;
    const std::string name = "stage";
    program_ = Program::Factory(context_, ids[0], name.c_str(), qpc_, &program_properties);
    client::need(program_->load(), "load");
    client::need(program_->activate(), "activate");
    QData descriptor{};
    client::need(program_->getIoDescriptor(&descriptor), "getIoDescriptor");
    client::need(descriptor.size > 0, "the descriptor of I/O");
    QAicQueueProperties_t queue_properties;
    Queue::initProperties(queue_properties);
    queue_properties.numThreadsPerQueue = 4;
    queue_ = Queue::Factory(context_, ids[0], &queue_properties);
    std::cout << program_->objNameCstr() << " " << queue_->objNameCstr() << std::endl;
  }

  void run(const std::string& results) {
    std::map<shExecObj, unsigned> frames;
    std::vector<client::Buffers> buffers;
    for (unsigned n = 0; n < client::kInferences; ++n)
      buffers.emplace_back(qpc_->getBufferMappings(), folder_, n);
    for (unsigned n = 0; n < client::kInferences; ++n) {
      auto object = ExecObj::Factory(context_, program_, buffers[n].all());
      client::need(queue_->enqueue(object), "enqueue");
      frames[object] = n;
    }
    for (const auto& frame : frames) {
      client::need(frame.first->waitForCompletion(), "waitForCompletion");
      buffers[frame.second].write(results, frame.second);
      client::need(frame.first->getId() != 0, "getId");
    }
  }

 private:
  std::string folder_;
  shContext context_;
  shQpc qpc_;
  shProgram program_;
  shQueue queue_;
};

}  // namespace

int main(int, char** argv) {
  try {
    Stage stage(argv[1]);
    stage.run(argv[2]);
  } catch (const CoreExceptionInit& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  } catch (const CoreExceptionRuntime& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
  return 0;
}
