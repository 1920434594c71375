/// Buffers and inference vectors, properties, time limits.
#include "statements.h"

namespace statements {

namespace {

/// Runs "pair" with these buffers.
QStatus run_with(const std::vector<QBuffer>& buffers) {
  const auto context = Context::Factory(nullptr, {kReal});
  const auto program = Program::Factory(context, kReal, "p", Qpc::Factory(container("pair")));
  const auto object = ExecObj::Factory(context, program);
  const QStatus status = object->setData(buffers);
  return status == QS_SUCCESS ? object->run() : status;
}

std::string file_of(const std::string& name, size_t bytes) {
  const std::string path = scratch() + "/" + name;
  std::ofstream(path, std::ios::binary) << std::string(bytes, '\1');
  return path;
}

/// The same memory with another size.
std::vector<QBuffer> resized(std::vector<QBuffer> buffers, size_t place, size_t size) {
  buffers.at(place).size = size;
  return buffers;
}

}  // namespace

CORELANE_STATEMENT(statement_13_a_buffer_is_an_aggregate_and_without_a_type_memory) {
  static_assert(std::is_aggregate_v<QBuffer>);
  DataBuffer<QBuffer> memory;
  memory.allocate(16);
  CORELANE_GIVES(QS_SUCCESS, memory.shrinkBuffer(4));
  CORELANE_GIVES(QS_INVAL, memory.shrinkBuffer(8));
  DataBuffer<QBuffer> moved(std::move(memory));
  CORELANE_NEED(moved.size() == 4 && moved.dataPtr() != nullptr);
  CORELANE_NEED(memory.size() == 0 &&
                memory.dataPtr() == nullptr);  // NOLINT(bugprone-use-after-move)
  memory = std::move(moved);
  CORELANE_NEED(memory.size() == 4 && moved.size() == 0);  // NOLINT(bugprone-use-after-move)
  const Pair pair(5);
  std::vector<QBuffer> buffers;
  for (const QBuffer& from : pair.buffers()) {
    const QBuffer positional{from.size, from.buf};
    buffers.push_back(positional);
  }
  CORELANE_GIVES(QS_SUCCESS, run_with(buffers));
  CORELANE_NEED(pair.added());
#if __cplusplus >= 202002L
  const Pair named(6);
  for (size_t i = 0; i < buffers.size(); ++i)
    buffers[i] = QBuffer{.size = named.buffers()[i].size, .buf = named.buffers()[i].buf};
  CORELANE_GIVES(QS_SUCCESS, run_with(buffers));
  CORELANE_NEED(named.added());
#endif
  // In memory, handle and offset are not read; a type that was not set is memory.
  const Pair unset(7);
  for (size_t i = 0; i < buffers.size(); ++i) {
    QBuffer buffer;
    CORELANE_NEED(buffer.type == QBUFFER_TYPE_HEAP);
    buffer.size = unset.buffers()[i].size;
    buffer.buf = unset.buffers()[i].buf;
    buffer.handle = 9999;
    buffer.offset = 12345;
    if (i % 2 == 0) buffer.type = QBUFFER_TYPE_INVAL;
    buffers[i] = buffer;
  }
  CORELANE_GIVES(QS_SUCCESS, run_with(buffers));
  CORELANE_NEED(unset.added());
}

CORELANE_STATEMENT(statement_14_a_vector_has_sources_and_takes_buffers_that_fit) {
  const auto shapes = Qpc::Factory(container("shapes"))->getBufferMappings();
  const auto all_are = [](const QBuffer& buffer, int value) {
    return std::all_of(buffer.buf, buffer.buf + buffer.size, [&](int b) { return b == value; });
  };
  const auto zeros = InferenceVector::Factory(shapes, InferenceVector::ZERO_FILL);
  for (const QBuffer& buffer : zeros->getVector()) CORELANE_NEED(all_are(buffer, 0));
  const auto random = InferenceVector::Factory(Qpc::Factory(container("shapes")));
  CORELANE_NEED(!all_are(random->getVector().at(0), 0) && !all_are(random->getVector().at(1), 0));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL,
                  InferenceVector::Factory(shapes, InferenceVector::FILESET));
  // A file for each input, or for each buffer; a shorter one for a partial buffer alone.
  const std::string x = file_of("x.bin", 32);
  const std::string rest = file_of("rest.bin", 12);
  const auto files = InferenceVector::Factory(shapes, {x, rest});
  CORELANE_NEED(all_are(files->getVector().at(0), 1) && files->getVector()[1].size == 12);
  CORELANE_NEED(InferenceVector::Factory(shapes, {x, x, "not read"})->getVector().size() == 3);
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, InferenceVector::Factory(shapes, {x}));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, InferenceVector::Factory(shapes, {x, x, x, x}));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, InferenceVector::Factory(shapes, {rest, x}));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL,
                  InferenceVector::Factory(shapes, {x, file_of("long.bin", 33)}));
  CORELANE_GIVES(QS_INVAL, zeros->loadFromFileSet({x, scratch() + "/none"}));
  CORELANE_GIVES(QS_INVAL, zeros->loadFromFileSet({x, scratch()}));
  CORELANE_NEED(all_are(zeros->getVector()[0], 0));  // Nothing of the first one was read.
  CORELANE_GIVES(QS_SUCCESS, zeros->loadFromFileSet({x, rest}));
  // One that was made with the Qpc knows the smaller shapes.
  const std::vector<QBuffer> inputs(random->getVector().begin(), random->getVector().begin() + 2);
  CORELANE_GIVES(QS_INVAL, zeros->setInputBuffers(resized(inputs, 0, 16)));
  CORELANE_GIVES(QS_SUCCESS, random->setInputBuffers(resized(inputs, 0, 16)));
  CORELANE_GIVES(QS_SUCCESS, random->loadFromFileSet({file_of("small.bin", 16), rest}));
  CORELANE_GIVES(QS_INVAL, random->loadFromFileSet({file_of("odd.bin", 20), rest}));
  CORELANE_NEED(random->getVector()[0].size == 16);
  // The user's memory.
  const Pair pair(2);
  const auto pairs = InferenceVector::Factory(Qpc::Factory(container("pair")));
  std::vector<QBuffer> buffers = pair.buffers();
  CORELANE_GIVES(QS_INVAL, pairs->setInputBuffers({buffers[0]}));
  CORELANE_GIVES(QS_INVAL, pairs->setOutputBuffers(buffers));
  CORELANE_GIVES(QS_INVAL, pairs->setBuffers(resized(buffers, 2, 23)));
  CORELANE_GIVES(QS_INVAL, pairs->setInputBuffers(resized({buffers[0], buffers[1]}, 1, 25)));
  CORELANE_NEED(pairs->getVector()[0].buf != buffers[0].buf);
  CORELANE_GIVES(QS_SUCCESS, pairs->setInputBuffers({buffers[0], buffers[1]}));
  CORELANE_GIVES(QS_SUCCESS, pairs->setOutputBuffers({buffers[2], buffers[3]}));
  CORELANE_NEED(pairs->getVector()[3].buf == buffers[3].buf);
  buffers.push_back(buffers[0]);
  CORELANE_GIVES(QS_INVAL, pairs->setBuffers(buffers));
}

/// Outputs are read from the vector that was submitted.
CORELANE_STATEMENT(statement_14_a_submitted_vector_has_the_outputs_and_is_kept) {
  const SetBench bench(kReal);
  auto vector = InferenceVector::Factory(bench.qpc, InferenceVector::ZERO_FILL);
  auto* const a = reinterpret_cast<float*>(vector->getVector()[0].buf);
  const auto* const sum = reinterpret_cast<const float*>(vector->getVector()[2].buf);
  std::fill(a, a + 6, 1.5F);
  const std::weak_ptr<InferenceVector> watch = vector;
  CORELANE_GIVES(QS_SUCCESS, bench.set->submit(vector, 4));
  vector = nullptr;
  CORELANE_NEED(!watch.expired());
  shInferenceHandle handle;
  CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(handle, 4));
  CORELANE_NEED(std::all_of(sum, sum + 6, [](float value) { return value == 1.5F; }));
}

CORELANE_STATEMENT(statement_24_a_set_has_properties_of_programs_and_queues) {
  const InferenceSetProperties defaults;
  CORELANE_NEED(defaults.programProperties.SubmitNumRetries == 5);
  CORELANE_NEED(defaults.programProperties.SubmitRetryTimeoutMs == 0);
  CORELANE_NEED(defaults.programProperties.devMapping == nullptr);
  CORELANE_NEED(defaults.queueProperties.numThreadsPerQueue == 4);
  CORELANE_NEED(!defaults.name.empty() && defaults.id == 0);
  QAicProgramProperties program{};
  program.SubmitNumRetries = 77;
  Program::initProperties(program);
  CORELANE_NEED(program.SubmitNumRetries == 5 && program.SubmitRetryTimeoutMs == 0);
  QAicQueueProperties queue{};
  queue.numThreadsPerQueue = 9;
  Queue::initProperties(queue);
  CORELANE_NEED(queue.numThreadsPerQueue == 4);

  InferenceSetProperties properties = limit(60000, 1);
  CORELANE_NEED(properties.programProperties.dataPathTimeoutMs == 60000);
  properties.name = "named";
  properties.id = 42;
  properties.queueProperties.numThreadsPerQueue = 1;
  const SetBench bench(kFailing, 1, 1, properties);
  CORELANE_NEED(bench.set->getId() == 42 && bench.set->objName() == "named");
  CORELANE_NEED(bench.set->objNameCstr() == std::string("named"));
  const auto refused = [&](const InferenceSetProperties& wrong) {
    CORELANE_THROWS(CoreExceptionInit, QS_INVAL,
                    InferenceSet::Factory(bench.context, bench.qpc, kFailing, 1, 1, wrong));
  };
  properties.queueProperties.numThreadsPerQueue = 0;
  refused(properties);
  refused(limit(1, 101));
}

CORELANE_STATEMENT(statement_25_an_inference_ends_after_its_timeout_and_retries) {
  const std::pair<uint32_t, uint32_t> limits[] = {{1, 0}, {1, 5}, {5, 1}};
  for (const auto& [timeout_ms, retries] : limits) {
    const SetBench bench(kSlow, 1, 1, limit(timeout_ms, retries));
    const shInferenceHandle handle = bench.take();
    CORELANE_GIVES(QS_SUCCESS, bench.set->submit(handle, 1));
    shInferenceHandle done;
    CORELANE_GIVES(QS_TIMEDOUT, bench.set->getCompletedId(done, 1));
    CORELANE_NEED(done == handle && done->getStatus() == QS_TIMEDOUT);

    const InferenceSetProperties properties = limit(timeout_ms, retries);
    const auto program =
        Program::Factory(bench.context, kSlow, "p", bench.qpc, &properties.programProperties);
    const auto object = ExecObj::Factory(bench.context, program, bench.pairs[0]->buffers());
    CORELANE_GIVES(QS_TIMEDOUT, object->run());
  }
  // A retry of an object waits once more for the inference of 40 ms, and does not begin it anew.
  const auto context = Context::Factory(nullptr, {kLate});
  const auto qpc = Qpc::Factory(container("pair"));
  const Pair pair;
  const InferenceSetProperties waits = limit(30, 100);
  const auto program = Program::Factory(context, kLate, "p", qpc, &waits.programProperties);
  const auto object = ExecObj::Factory(context, program, pair.buffers());
  CORELANE_GIVES(QS_SUCCESS, object->run());
  // 0 stands for the default, which is longer than the inference.
  const SetBench late(kLate, 1, 1, limit(0, 0));
  const shInferenceHandle handle = late.take();
  CORELANE_GIVES(QS_SUCCESS, late.set->submit(handle, 1));
  shInferenceHandle done;
  CORELANE_GIVES(QS_SUCCESS, late.set->getCompletedId(done, 1));
}

CORELANE_STATEMENT(statement_26_a_mapping_of_devices_needs_a_program_for_several) {
  const auto context = Context::Factory(nullptr, {kLeft, kRight});
  const auto qpc = Qpc::Factory(container("pair"));
  InferenceSetProperties properties;
  for (const char* const mapping : {"0:1", "0:1:2:3", "0"}) {
    properties.programProperties.devMapping = mapping;
    CORELANE_THROWS(CoreExceptionInit, QS_UNSUPPORTED,
                    InferenceSet::Factory(context, qpc, kLeft, 1, 1, properties));
    CORELANE_THROWS(CoreExceptionInit, QS_UNSUPPORTED,
                    Program::Factory(context, kLeft, "p", qpc, &properties.programProperties));
  }
  properties.programProperties.devMapping = nullptr;
  CORELANE_NEED(InferenceSet::Factory(context, qpc, kLeft, 1, 1, properties) != nullptr);
}

CORELANE_STATEMENT(statement_26_a_program_that_was_cut_runs_on_the_devices_of_its_mapping) {
  const auto context = Context::Factory(nullptr, {kReal, kLeft, kSecond});
  const auto qpc = Qpc::Factory(container("cut"));
  const std::string mapping = std::to_string(kReal) + ":" + std::to_string(kSecond);
  QAicProgramProperties properties;
  Program::initProperties(properties);
  properties.devMapping = mapping.c_str();
  const auto program = Program::Factory(context, kLeft, "cut", qpc, &properties);
  Pair pair(3);
  const auto object = ExecObj::Factory(context, program, pair.buffers());
  CORELANE_GIVES(QS_SUCCESS, object->run());
  CORELANE_NEED(pair.added());
  const auto set = InferenceSet::Factory(context, qpc, mapping, 2, 1);
  QAicProgramInfoV2 info{};
  CORELANE_GIVES(QS_SUCCESS, set->getAicProgramInfoV2(info));
  CORELANE_NEED(info.numQids == 2 && info.qid[0] == kReal && info.qid[1] == kSecond);
  Pair other(5);
  shInferenceHandle handle, done;
  CORELANE_GIVES(QS_SUCCESS, set->getAvailable(handle));
  CORELANE_GIVES(QS_SUCCESS, handle->setBuffers(other.buffers()));
  CORELANE_GIVES(QS_SUCCESS, set->submit(handle, 1));
  CORELANE_GIVES(QS_SUCCESS, set->getCompleted(done));
  CORELANE_NEED(other.added());
  CORELANE_GIVES(QS_SUCCESS, set->putCompleted(done));
  const std::string twice = std::to_string(kReal) + ":" + std::to_string(kReal);
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, InferenceSet::Factory(context, qpc, twice, 1, 1));
}

}  // namespace statements
