/// The open runtime, step by step: load, activate, run, write the outputs with a FileWriter.
#include <sys/resource.h>

#include "QAicOpenRtApi.hpp"
#include "QAicOpenRtExecObj.hpp"
#include "QAicOpenRtFileWriter.hpp"
#include "QAicOpenRtInferenceVector.hpp"
#include "client_support.h"

int main(int, char** argv) {
  const std::string folder = argv[1];
  try {
    qaic::openrt::Util util;
    std::vector<QID> devices;
    client::need(util.getDeviceIds(devices), "getDeviceIds");
    QDevInfo device{};
    client::need(util.getDeviceInfo(devices.at(0), device), "getDeviceInfo");
    client::need(device.devStatus == QDevStatus::QDS_READY, "the device is ready");
    QResourceInfo resources{};
    client::need(util.getResourceInfo(devices[0], resources), "getResourceInfo");

    QAicContextProperties properties = 0x00;
    auto context = qaic::openrt::Context::Factory(&properties, devices);
    client::need(context->setLogLevel(QL_INFO), "setLogLevel");
    auto qpc = qaic::openrt::Qpc::Factory(folder);
    const BufferMappings& mappings = qpc->getBufferMappings();
    QAicProgramProperties program_properties;
    qaic::openrt::Program::initProperties(program_properties);
    auto program =
        qaic::openrt::Program::Factory(context, devices[0], "steps", qpc, &program_properties);
    client::need(!program->isLoaded() && !program->isActivated(), "not loaded yet");
    client::need(program->load(), "load");
    client::need(program->isLoaded(), "loaded");
    client::need(program->activate(), "activate");
    client::need(program->isActivated(), "activated");
    program->setId(42);
    client::need(program->getProgramInfo().userDefinedProgramID == 42, "the user's id");

    qaic::openrt::FileWriter writer;
    client::need(writer.setOutputPath(argv[2]), "setOutputPath");
    {
      auto exec_obj = qaic::openrt::ExecObj::Factory(context, program);
      client::need(exec_obj->run() == QS_INVAL, "run without buffers");
      for (unsigned n = 0; n < client::kInferences; ++n) {
        client::Buffers buffers(mappings, folder, n);
        client::need(exec_obj->setData(buffers.all()), "setData");
        client::need(exec_obj->run(), "run");
        client::need(writer.writeExecObjData(exec_obj, mappings, n, false), "writeExecObjData");
        rlimit before{};
        getrlimit(RLIMIT_FSIZE, &before);
        const rlimit one_byte{1, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &one_byte);
        client::need(writer.writeExecObjData(exec_obj, mappings, n, false, "-cut") == QS_ERROR,
                     "a file beyond RLIMIT_FSIZE");
        setrlimit(RLIMIT_FSIZE, &before);
      }
      client::need(program->deactivate() == QS_BUSY, "an execution object lives");
    }
    client::need(program->getInferenceCompleteCount() == client::kInferences, "the count");
    client::need(program->deactivate(), "deactivate");
    client::need(program->unload(), "unload");
    client::need(!program->isLoaded(), "unloaded");
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
  return 0;
}
