#include "corelane/onnx/import_revision.h"

#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

/// Everything that a program gets of a network, but for texts and versions.
ByteVector made_of(const TestModel& model, const ImportOptions& options = {}) {
  const auto imported = model.import(options);
  EXPECT_TRUE(imported) << imported.error().to_string();
  if (!imported) return {};
  ByteVector all = imported->graph;
  const auto add = [&](const auto& bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); };
  const auto add_text = [&](const std::string& text) {
    for (const char c : text + '\n') all.push_back(static_cast<std::byte>(c));
  };
  add(imported->constants);
  for (const LoweredGraph& form : imported->lowered) {
    add_text(form.tag);
    add(form.graph);
  }
  const ProgramDescription& description = imported->description;
  for (const auto* entries : {&description.inputs, &description.outputs})
    for (const IoEntry& entry : *entries)
      add_text(fmt::format("{} {} {}", entry.desc.name, entry.desc.shape.to_string(),
                           dtype_name(entry.desc.dtype)));
  for (const CustomOperatorDecl& decl : description.custom_operators)
    add_text(fmt::format("{} {} {}", decl.domain, decl.type, decl.nodes));
  return all;
}

/// x -> MyOp -> t -> Relu -> y.
TestModel with_custom_operator(bool described) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.node("MyOp", {"x"}, {"t"}).set_domain("vendor");
  m.node("Relu", {"t"}, {"y"});
  if (described) m.inner("t", {1, 4});
  return m;
}

/// Quantized branches that meet, constants, an open dimension, and sizes that a factor gives.
TestModel with_much() {
  TestModel m;
  m.input("x", {"N", 3, 5, 5}).output("y", {"N", 6, "H", "W"}).output("z", {4, 2});
  m.floats("scale", {}, {0.1}).typed("zero", ::onnx::TensorProto::INT8, {}, {3});
  for (const std::string to : {"a", "b"}) {
    m.node("QuantizeLinear", {"x", "scale", "zero"}, {to + "q"});
    m.node("DequantizeLinear", {to + "q", "scale", "zero"}, {to});
  }
  set_int(m.node("Concat", {"a", "b"}, {"c"}), "axis", 1);
  m.floats("factors", {4}, {1, 1, 1.7, 2.3});
  m.node("Resize", {"c", "", "factors"}, {"y"});
  m.floats("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  m.node("Neg", {"w"}, {"z"});
  return m;
}

/// What a cache keeps under a revision must be what this revision makes.
TEST(ImportRevision, ChangesWithWhatAnImportMakes) {
  ImportOptions all_custom;
  all_custom.custom_operators = {std::string(kEveryCustomOperator)};
  ImportOptions one_sample;
  one_sample.dims["N"] = 1;
  ByteVector made;
  for (const ByteVector& part : {made_of(with_custom_operator(true), all_custom),
                                 made_of(with_custom_operator(false), all_custom),
                                 made_of(with_much()), made_of(with_much(), one_sample)})
    made.insert(made.end(), part.begin(), part.end());
  const std::string known = "6 94c7abfa3b06ea4effbe6840f1c4a06f";
  EXPECT_EQ(fmt::format("{} {}", kImportRevision, content_hash(made)), known)
      << "import_onnx() makes something else of these models, so caches that know them hold "
         "what it no longer makes: raise kImportRevision, or the revision of a lowering where "
         "only its form has changed, and set what is known here";
}

}  // namespace
}  // namespace corelane::onnx
