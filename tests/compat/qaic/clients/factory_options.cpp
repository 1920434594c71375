/// Factories with every optional argument left out, and with all of them given.
#include "QAicApi.hpp"
#include "client_support.h"

namespace {

using namespace qaic::rt;  // NOLINT(google-build-using-namespace)

void run_one(const shInferenceSet& set, const shQpc& qpc, const std::string& folder,
             const std::string& results, unsigned n) {
  client::Buffers buffers(qpc->getBufferMappings(), folder, n);
  auto vector = InferenceVector::Factory(qpc->getBufferMappings());
  client::need(vector->setBuffers(buffers.all()), "InferenceVector::setBuffers");
  client::need(set->submit(vector), "submit a vector");
  shInferenceHandle handle;
  client::need(set->getCompletedId(handle, 0), "the id that submit takes by default");
  buffers.write(results, n);
  client::need(set->putCompleted(handle), "putCompleted");
}

}  // namespace

int main(int, char** argv) {
  const std::string folder = argv[1];
  constexpr QAicContextProperties_t* NullProp = nullptr;
  auto all = Context::Factory();
  auto context = Context::Factory(NullProp, {0});
  auto qpc = Qpc::Factory(folder);
  auto named = Qpc::Factory(folder, "programqpc.bin");
  client::need(named->size() == qpc->size(), "the same file");
  run_one(InferenceSet::Factory(all, qpc), qpc, folder, argv[2], 0);

  InferenceSetProperties properties;
  properties.name = "the set";
  properties.id = 7;
  properties.programProperties.SubmitNumRetries = 1;
  properties.programProperties.dataPathTimeoutMs = 60000;
  client::need(properties.programProperties.SubmitRetryTimeoutMs == 60000, "both spellings");
  properties.queueProperties.numThreadsPerQueue = 2;
  std::vector<shInferenceVector> vectors;
  for (int i = 0; i < 4; ++i)
    vectors.push_back(InferenceVector::Factory(qpc, InferenceVector::ZERO_FILL));
  auto set = InferenceSet::Factory(context, qpc, std::optional<std::string>("0"), 2, 2, vectors,
                                   &properties, false);
  client::need(set->size() == 4 && set->getId() == 7, "size and id");
  client::need(set->objName() == "the set" && set->objNameCstr() == set->objName(), "the name");
  run_one(set, qpc, folder, argv[2], 1);
  run_one(InferenceSet::Factory(context, qpc, 0, 1, 1, properties), qpc, folder, argv[2], 2);
  run_one(InferenceSet::Factory(context, qpc, std::nullopt, 1, 1, &properties), qpc, folder,
          argv[2], 3);
  QAicProgramInfoV2 info{};
  client::need(set->getAicProgramInfoV2(info), "getAicProgramInfoV2");
  client::need(info.numQids == 1 && info.qid[0] == 0, "the device of the set");
  // What is refused is an exception that says why.
  const auto refused = [&](QStatus status, const std::function<void()>& make) {
    try {
      make();
    } catch (const qaic::ExceptionInit& e) {
      return e.status() == status && !e.msg().empty();
    }
    return false;
  };
  client::need(
      InferenceSet::Factory(context, qpc, 0, 1, 1, {}, nullptr, true)->getProgram() != nullptr,
      "a set that may be profiled has a program");
  client::need(refused(QS_NODEV, [&] { InferenceSet::Factory(context, qpc, 99, 1, 1); }),
               "a device that is not there");
  client::need(refused(QS_INVAL, [&] { InferenceSet::Factory(nullptr, qpc); }), "a null context");
  properties.programProperties.devMapping = "0:1";
  client::need(refused(QS_UNSUPPORTED,
                       [&] { InferenceSet::Factory(context, qpc, 0, 1, 1, &properties, false); }),
               "a mapping for a program of one device");
  return 0;
}
