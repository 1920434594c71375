/// Containers: how they are opened, what they say of themselves, who owns their bytes.
#include <sys/stat.h>

#include <filesystem>

#include "statements.h"

namespace statements {

namespace {

template <class T>
constexpr bool kStays = !std::is_copy_constructible_v<T> && !std::is_move_constructible_v<T> &&
                        !std::is_copy_assignable_v<T> && !std::is_move_assignable_v<T>;

std::vector<uint8_t> bytes_of(const std::string& name) {
  const std::vector<char> text = client::read_file(container(name) + "/programqpc.bin");
  return {text.begin(), text.end()};
}

/// One inference with the right result.
void run_pair(const shQpc& qpc) {
  const auto context = Context::Factory(nullptr, {kReal});
  const auto set = InferenceSet::Factory(context, qpc, kReal, 1, 1);
  const Pair pair(3);
  shInferenceHandle handle;
  CORELANE_GIVES(QS_SUCCESS, set->getAvailable(handle));
  CORELANE_GIVES(QS_SUCCESS, handle->setBuffers(pair.buffers()));
  CORELANE_GIVES(QS_SUCCESS, set->submit(handle, 1));
  CORELANE_GIVES(QS_SUCCESS, set->getCompletedId(handle, 1));
  CORELANE_NEED(pair.added());
}

}  // namespace

CORELANE_STATEMENT(statement_01_a_qpc_opens_bytes_and_files_or_throws) {
  static_assert(kStays<Qpc> && !std::is_default_constructible_v<Qpc>);
  const std::vector<uint8_t> bytes = bytes_of("pair");
  const shQpc of_bytes = Qpc::Factory(bytes.data(), bytes.size());
  const shQpc of_file = Qpc::Factory(container("pair"));
  const shQpc of_named = Qpc::Factory(container("pair"), "programqpc.bin");
  for (const shQpc& qpc : {of_bytes, of_file, of_named}) {
    CORELANE_NEED(qpc != nullptr && qpc->size() == bytes.size());
    run_pair(qpc);
  }
  CORELANE_THROWS(CoreExceptionInit, QS_ERROR, Qpc::Factory(container("none")));
  CORELANE_THROWS(CoreExceptionInit, QS_ERROR, Qpc::Factory(container("pair"), "none.bin"));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, Qpc::Factory(nullptr, 8));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, Qpc::Factory(bytes.data(), bytes.size() / 2));
}

CORELANE_STATEMENT(statement_02_a_qpc_file_is_loaded_and_then_has_its_bytes) {
  static_assert(kStays<QpcFile>);
  QpcFile file(container("pair"));
  CORELANE_NEED(file.size() == 0 && file.data() == nullptr);
  CORELANE_NEED(file.load());
  const std::vector<uint8_t> bytes = bytes_of("pair");
  CORELANE_NEED(file.size() == bytes.size());
  CORELANE_NEED(std::equal(bytes.begin(), bytes.end(), file.data()));
  CORELANE_NEED(file.getBuffer().data == file.data() && file.getBuffer().size == file.size());
  run_pair(Qpc::Factory(file.data(), file.size()));
  QpcFile named(container("pair"), "model.onnx");
  CORELANE_NEED(named.load() && named.size() > 0);
  CORELANE_THROWS(CoreExceptionInit, QS_ERROR, QpcFile(container("pair"), "none").load());
  CORELANE_THROWS(CoreExceptionInit, QS_ERROR, QpcFile(container("none")).load());
  CORELANE_THROWS(CoreExceptionInit, QS_ERROR, QpcFile(container(""), "pair").load());
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(container("pair"));
  const bool found = QpcFile("").load() && Qpc::Factory("")->size() == bytes.size();
  std::filesystem::current_path(before);
  CORELANE_NEED(found);
  // A pipe would be waited for.
  static_cast<void>(mkfifo((scratch() + "/pipe").c_str(), 0600));
  CORELANE_THROWS(CoreExceptionInit, QS_ERROR, QpcFile(scratch(), "pipe").load());
}

CORELANE_STATEMENT(statement_03_a_qpc_tells_of_its_programs_by_their_index) {
  const shQpc qpc = Qpc::Factory(container("parts"));
  CORELANE_NEED(qpc->getInfo()->program.size() == 2);
  CORELANE_NEED(qpc->get() != nullptr);
  const std::vector<uint8_t> bytes = bytes_of("parts");
  CORELANE_NEED(qpc->size() == bytes.size());
  CORELANE_NEED(std::equal(bytes.begin(), bytes.end(), qpc->buffer()));
  const auto names = [](const auto& mappings) {
    std::string text;
    for (const auto& mapping : mappings) {
      CORELANE_NEED(&mapping == &mappings[mapping.index]);
      text += mapping.bufferName + (mapping.ioType == BUFFER_IO_TYPE_INPUT ? ">" : "<");
    }
    return text;
  };
  // Inputs first, and the first program where none is named.
  CORELANE_NEED(names(qpc->getBufferMappings()) == "a>b>sum<layer/scores<");
  CORELANE_NEED(names(qpc->getBufferMappings(1)) == "x>y<");
  CORELANE_NEED(names(qpc->getBufferMappingsDma()) == "a>b>sum<layer/scores<");
  CORELANE_NEED(names(qpc->getBufferMappingsDma(1)) == "x>y<");
  CORELANE_NEED(qpc->getBufferMappingsV2(1).at(0).bufferMapping.bufferName == "x");
  QData first{};
  QData second{};
  CORELANE_GIVES(QS_SUCCESS, qpc->getIoDescriptor(&first));
  CORELANE_GIVES(QS_SUCCESS, qpc->getIoDescriptor(&second, 1));
  CORELANE_NEED(first.size > 0 && second.size > 0 && first.data != second.data);
  CORELANE_GIVES(QS_INVAL, qpc->getIoDescriptor(&first, 2));
  CORELANE_THROWS(CoreExceptionRuntime, QS_INVAL, qpc->getBufferMappings(2));
  CORELANE_THROWS(CoreExceptionRuntime, QS_INVAL, qpc->getBufferMappingsDma(2));
  CORELANE_THROWS(CoreExceptionRuntime, QS_INVAL, qpc->getBufferMappingsV2(2));
}

CORELANE_STATEMENT(statement_04_infos_carry_the_figures_of_programs_and_constants) {
  const shQpc qpc = Qpc::Factory(container("parts"));
  const shQpcInfo info = qpc->getInfo();
  for (uint32_t i = 0; i < 2; ++i) {
    const QpcProgramInfo& program = info->program.at(i);
    CORELANE_NEED(program.programIndex == i && !program.name.empty());
    CORELANE_NEED(program.numCores == 2 && program.batchSize == 1);
    CORELANE_NEED(program.size > 0);
    CORELANE_NEED(program.numSemaphores == 0 && program.numMcids == 0);
    CORELANE_NEED(program.bufferMappings.size() == (i == 0 ? 4U : 2U));
    CORELANE_NEED(program.bufferMappingsDma.size() == program.bufferMappings.size());
  }
  CORELANE_NEED(info->program[0].name != info->program[1].name);
  // The second program has a constant of 64 x 64 floats.
  constexpr uint64_t kConstant = uint64_t{64} * 64 * sizeof(float);
  CORELANE_NEED(info->program[0].reqMem >= 4 * 24);
  CORELANE_NEED(info->program[1].reqMem >= kConstant + 2 * 64 * sizeof(float));
  CORELANE_NEED(info->constants.size() == 1);
  const QpcConstantsInfo& constants = info->constants[0];
  CORELANE_NEED(!constants.name.empty() && constants.constantsIndex == 0);
  CORELANE_NEED(constants.size >= kConstant && constants.size < qpc->size());
}

CORELANE_STATEMENT(statement_05_a_mapping_has_all_members_or_is_invalid) {
  const BufferMapping made("x", 3, BUFFER_IO_TYPE_OUTPUT, 40, true, BUFFER_DATA_TYPE_INT64I);
  CORELANE_NEED(made.bufferName == "x" && made.index == 3);
  CORELANE_NEED(made.ioType == BUFFER_IO_TYPE_OUTPUT && made.size == 40);
  CORELANE_NEED(made.isPartialBufferAllowed && made.dataType == BUFFER_DATA_TYPE_INT64I);
  const BufferMapping none;
  CORELANE_NEED(none.bufferName.empty() && none.size == 0 && !none.isPartialBufferAllowed);
  CORELANE_NEED(none.ioType == BUFFER_IO_TYPE_INVAL && none.dataType == BUFFER_DATA_TYPE_INVAL);
  const shQpc qpc = Qpc::Factory(container("shapes"));
  const BufferMapping& x = qpc->getBufferMappings().at(0);
  CORELANE_NEED(x.bufferName == "x" && x.index == 0 && x.ioType == BUFFER_IO_TYPE_INPUT);
  CORELANE_NEED(x.size == 32 && !x.isPartialBufferAllowed);
  CORELANE_NEED(x.dataType == BUFFER_DATA_TYPE_FLOAT);
  CORELANE_NEED(qpc->getBufferMappings().at(1).isPartialBufferAllowed);
  CORELANE_NEED(qpc->getBufferMappings().at(2).ioType == BUFFER_IO_TYPE_OUTPUT);
  static_assert(BUFFER_DATA_TYPE_FLOAT == 0 && BUFFER_DATA_TYPE_FLOAT16 == 1 &&
                BUFFER_DATA_TYPE_INT8Q == 2 && BUFFER_DATA_TYPE_UINT8Q == 3 &&
                BUFFER_DATA_TYPE_INT16Q == 4 && BUFFER_DATA_TYPE_INT32Q == 5 &&
                BUFFER_DATA_TYPE_INT32I == 6 && BUFFER_DATA_TYPE_INT64I == 7 &&
                BUFFER_DATA_TYPE_INT8 == 8 && BUFFER_DATA_TYPE_INVAL == 9);
}

CORELANE_STATEMENT(statement_06_a_copy_and_a_file_own_their_bytes) {
  auto bytes = std::make_unique<std::vector<uint8_t>>(bytes_of("pair"));
  const std::vector<uint8_t> whole = *bytes;
  const std::string path = scratch() + "/programqpc.bin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(whole.data()),
             static_cast<std::streamsize>(whole.size()));
  const shQpc file = Qpc::Factory(scratch());
  const shQpc copy = Qpc::Factory(bytes->data(), bytes->size(), true);
  const shQpc borrowed = Qpc::Factory(whole.data(), whole.size());
  CORELANE_NEED(copy->buffer() != bytes->data() && borrowed->buffer() == whole.data());
  // What the caller had is overwritten, freed and removed.
  std::fill(bytes->begin(), bytes->end(), uint8_t{0x5a});
  bytes = nullptr;
  CORELANE_NEED(qaic_fs::remove(path));
  for (const shQpc& qpc : {file, copy}) {
    CORELANE_NEED(qpc->size() == whole.size());
    CORELANE_NEED(std::equal(whole.begin(), whole.end(), qpc->buffer()));
    run_pair(qpc);
  }
}

}  // namespace statements
