/// Asks for buffers while an inference that writes to them was not collected, each time by another
/// method, which the checking mode reports; or ("in_time") only before and after, by all of them.
#include "QAicApi.hpp"
#include "client_support.h"

namespace {

using namespace qaic::rt;  // NOLINT(google-build-using-namespace)

struct Objects {
  explicit Objects(const std::string& folder)
      : context(Context::Factory(nullptr, {0})),
        qpc(Qpc::Factory(folder)),
        vector(InferenceVector::Factory(qpc)),
        set(InferenceSet::Factory(context, qpc, 0, 1, 1)),
        program(Program::Factory(context, 0, "p", qpc)),
        object(ExecObj::Factory(context, program)),
        queue(Queue::Factory(context, 0)) {
    client::need(set->getAvailable(handle), "getAvailable");
    client::need(handle->setBuffers(vector), "setBuffers");
    client::need(object->setData(vector), "setData");
  }
  shContext context;
  shQpc qpc;
  shInferenceVector vector;
  shInferenceSet set;
  shProgram program;
  shExecObj object;
  shQueue queue;
  shInferenceHandle handle;
  FileWriter writer;
};

/// Asks once by each of the methods in `by`.
void ask(Objects& o, const std::string& by, const char* results) {
  std::vector<QBuffer> found;
  if (by == "handle" || by == "in_time") found = o.handle->getBuffers();
  if (by == "vector" || by == "in_time") found = o.vector->getVector();
  if (by == "object" || by == "in_time") client::need(o.object->getData(found), "getData");
  if (by != "writer" && by != "in_time") return;
  client::need(o.writer.setOutputPath(results), "setOutputPath");
  client::need(
      o.writer.writeExecObjData(o.object, o.qpc->getBufferMappings(), 0, /*verbose=*/false),
      "writeExecObjData");
}

}  // namespace

int main(int, char** argv) {
  Objects o(argv[1]);
  const std::string by = argv[3];
  const bool in_time = by == "in_time";
  if (in_time) ask(o, by, argv[2]);
  // The handle's and the object's inferences write to the same vector, one after another.
  for (unsigned n = 0; n < client::kInferences; ++n) {
    client::need(o.set->submit(o.handle, n), "submit");
    if (n == 0 && by == "handle") ask(o, by, argv[2]);
    client::need(o.set->getCompletedId(o.handle, n), "getCompletedId");
    if (in_time) ask(o, by, argv[2]);
    client::need(o.queue->enqueue(o.object), "enqueue");
    if (n == 0 && !in_time && by != "handle") ask(o, by, argv[2]);
    client::need(o.object->waitForCompletion(), "waitForCompletion");
    if (in_time) ask(o, by, argv[2]);
    client::need(o.object->run(), "run");
    if (in_time) ask(o, by, argv[2]);
  }
  client::need(o.set->submit(o.handle, 9), "submit");
  client::need(o.set->waitForCompletion(), "waitForCompletion");
  if (in_time) ask(o, by, argv[2]);
  client::need(o.set->getCompleted(o.handle), "getCompleted");
  client::need(o.set->putCompleted(o.handle), "putCompleted");
  return 0;
}
