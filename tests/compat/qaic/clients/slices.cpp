/// The pair container row by row: a slice of each input in, a slice of each output out, at the
/// place that a parameter says.
#include "QAicApi.hpp"
#include "client_support.h"

int main(int, char** argv) {
  auto context = qaic::rt::Context::Factory(nullptr, {0});
  auto qpc = qaic::rt::Qpc::Factory(argv[1]);
  auto program = qaic::rt::Program::Factory(context, 0, "rows", qpc);
  auto object = qaic::rt::ExecObj::Factory(context, program);
  const auto& mappings = program->getBufferMappings();
  qaic::rt::shSlicingSpec spec;
  client::need(program->createSlicingSpecHandle("{}", spec) == QS_INVAL, "an empty specification");
  client::need(spec == nullptr, "no specification");
  client::need(program->createSlicingSpecHandle(
                   R"({"BufferSpecs": [{"Name": "a|b|sum|layer/.*", "ElemSize": 4,
                       "DimSpecs": [{"start": "row"}, {"start": 0}]}]})",
                   spec),
               "createSlicingSpecHandle");
  const std::vector<uint32_t> row_dims{1, 3};
  constexpr size_t kRow = 12;
  for (unsigned n = 0; n < client::kInferences; ++n) {
    const client::Buffers whole(mappings, argv[1], n);
    for (int64_t row = 0; row < 2; ++row) {
      std::vector<std::pair<uint32_t, QBuffer>> slices;
      for (uint32_t i = 0; i < mappings.size(); ++i) {
        QBuffer slice{kRow, whole.all()[i].buf + static_cast<size_t>(row) * kRow};
        slices.emplace_back(i, slice);
      }
      const qaic::rt::BufferDimensions dims(slices.size(), {4, row_dims});
      client::need(object->setDataWithSlices(slices, spec, {{"row", 2}}, dims) == QS_INVAL,
                   "a row that is not there");
      client::need(object->setDataWithSlices(slices, spec, {}, dims) == QS_INVAL, "no row");
      client::need(object->setDataWithSlices(slices, nullptr, {{"row", row}}) == QS_INVAL,
                   "no specification given");
      client::need(object->setDataWithSlices(slices, spec, {{"row", row}}, dims),
                   "setDataWithSlices");
      client::need(object->run(), "run");
    }
    whole.write(argv[2], n);
  }
  return 0;
}
