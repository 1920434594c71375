/// Keeps the pointer of each handle and submits it again after putCompleted, without getAvailable.
#include "QAicApi.hpp"
#include "client_support.h"

int main(int, char** argv) {
  const std::string folder = argv[1];
  auto context = qaic::rt::Context::Factory(nullptr, {0});
  auto qpc = qaic::rt::Qpc::Factory(folder);
  // No device: the set takes the first one with room.
  auto set = qaic::rt::InferenceSet::Factory(context, qpc, std::nullopt, client::kInferences, 1);
  std::vector<qaic::rt::shInferenceHandle> kept(client::kInferences);
  for (auto& handle : kept) client::need(set->getAvailable(handle), "getAvailable");
  std::vector<client::Buffers> buffers;
  for (unsigned n = 0; n < kept.size(); ++n)
    buffers.emplace_back(qpc->getBufferMappings(), folder, n);
  for (unsigned round = 0; round < 3; ++round) {
    for (unsigned n = 0; n < kept.size(); ++n) {
      client::need(kept[n]->setBuffers(buffers[n].all()), "setBuffers");
      client::need(set->submit(kept[n], n + 10), "submit a kept handle");
    }
    for (unsigned n = 0; n < kept.size(); ++n) {
      qaic::rt::shInferenceHandle done;
      client::need(set->getCompletedId(done, n + 10), "getCompletedId");
      client::need(done == kept[n], "the same pointer");
      client::need(set->putCompleted(kept[n]), "putCompleted");
    }
  }
  for (unsigned n = 0; n < kept.size(); ++n) buffers[n].write(argv[2], n);
  // Now all are available: misuse is a code, and changes nothing.
  client::need(set->putCompleted(kept[0]) == QS_INVAL, "putCompleted twice");
  client::need(set->putCompleted(nullptr) == QS_INVAL, "putCompleted of null");
  client::need(set->submit(qaic::rt::shInferenceHandle()) == QS_INVAL, "submit of null");
  auto other = qaic::rt::InferenceSet::Factory(context, qpc, 0, 1, 1);
  client::need(other->submit(kept[0]) == QS_INVAL, "submit to another set");
  qaic::rt::shInferenceHandle none;
  client::need(set->getCompletedId(none, 77) == QS_INVAL, "an id that was never submitted");
  client::need(set->getCompleted(none) == QS_INVAL, "nothing in flight");
  return 0;
}
