#include "program/description_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "corelane/tensor/value_type.h"
#include "program/testing/random_program.h"

namespace corelane {
namespace {

using ::testing::HasSubstr;

ProgramDescription good() {
  ProgramDescription d;
  IoEntry in;
  in.desc.name = "image";
  in.desc.dtype = DType::kF32;
  in.desc.shape = Shape{1, 3, Shape::kOpen, 224};
  in.desc.dim_names = {"", "", "height", ""};
  in.mean = {1, 2, 3};
  in.std = {4};
  in.quant_dtype = DType::kI8;
  in.quant = Quant::affine(0.5F, -3);
  in.preferred_layout = LayoutKind::kNHWC;
  IoEntry out;
  out.desc.name = "scores";
  out.desc.dtype = DType::kF32;
  out.desc.shape = Shape{1, 1000};
  d.inputs = {in};
  d.outputs = {out};
  d.shape_sets = {{Shape{1, 3, 32, 224}}, {Shape{1, 3, 64, 224}}};
  d.custom_operators = {{"MyOp", "", 1}, {"MyOp", "mine", 1}};
  return d;
}

TEST(CheckDescription, AcceptsAConsistentOne) {
  const Status s = check_description(good());
  EXPECT_TRUE(s.ok()) << s.to_string();
}

/// good() without what values exclude, with an input of strings.
ProgramDescription of_strings() {
  ProgramDescription d = good();
  d.shape_sets.clear();
  IoEntry words;
  words.desc.name = "words";
  words.desc.dtype = words.reported_dtype = DType::kU8;
  words.desc.shape = Shape{Shape::kOpen};
  words.desc.value = parse_value_type("tensor(string)").value();
  words.desc.value.shape = Shape{Shape::kOpen, 2};
  d.inputs.push_back(words);
  return d;
}

TEST(CheckDescription, ValuesAreBytesAndNoMore) {
  EXPECT_TRUE(check_description(of_strings()).ok());
  const std::function<void(ProgramDescription&)> wrong[] = {
      [](auto& d) { d.inputs[1].desc.dtype = DType::kI8; },
      [](auto& d) { d.inputs[1].desc.shape = Shape{4}; },
      [](auto& d) {
        d.inputs[1].desc.shape = Shape{Shape::kOpen, Shape::kOpen};
      },
      [](auto& d) { d.inputs[1].reported_dtype = DType::kF16; },
      [](auto& d) { d.inputs[1].partial_allowed = true; },
      [](auto& d) { d.inputs[1].desc.dim_names = {"n"}; },
      [](auto& d) { d.inputs[1].desc.value.dim_names = {"n"}; },
      [](auto& d) { d.inputs[1].desc.value.shape = Shape{-2}; },
      [](auto& d) { d.inputs[1].desc.value.element = DType::kUndefined; },
      [](auto& d) {
        d.inputs[1].desc.value.layers.resize(kMaxValueLayers + 1, {ValueKind::kSequence, {}});
      },
      [](auto& d) { d.batch = 2; },
      [](auto& d) {
        d.shape_sets = {{Shape{1, 3, 32, 224}, Shape{8}}};
      },
  };
  int number = 0;
  for (const auto& lie : wrong) {
    ProgramDescription d = of_strings();
    lie(d);
    EXPECT_EQ(check_description(d).code(), Code::kInvalidArgument) << number;
    ++number;
  }
}

TEST(CheckDescription, AcceptsEveryRandomOne) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Status s = check_description(testing::RandomProgram(seed).description());
    ASSERT_TRUE(s.ok()) << seed << ": " << s.to_string();
  }
}

struct Lie {
  const char* name;
  std::function<void(ProgramDescription&)> tell;
  const char* words;  ///< Part of the message.
};

// Printed by name, not as bytes.
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

class ALie : public ::testing::TestWithParam<Lie> {};

TEST_P(ALie, IsRefusedByName) {
  ProgramDescription d = good();
  GetParam().tell(d);
  const Status s = check_description(d);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_THAT(s.to_string(), HasSubstr(GetParam().words));
}

/// One input of open rows, and its sizes.
ProgramDescription batched(std::uint32_t low, std::uint32_t high) {
  ProgramDescription d = good();
  d.inputs.resize(1);
  d.inputs[0] = {};
  d.inputs[0].desc.name = "rows";
  d.inputs[0].desc.dtype = DType::kF32;
  d.inputs[0].desc.shape = Shape{Shape::kOpen, 3};
  d.shape_sets.clear();
  d.batch = 1;
  d.batch_range = BatchRange{low, high};
  return d;
}

TEST(DescriptionCheck, ABatchRangeOfOpenRowsIsGood) {
  EXPECT_TRUE(check_description(batched(1, 1)).ok());
  EXPECT_TRUE(check_description(batched(2, kMostBatch)).ok());
}

/// "next" f32 [2, ?] is "h" [2, 3] of the next run.
ProgramDescription keeping() {
  ProgramDescription d = good();
  d.shape_sets.clear();
  IoEntry entry;
  entry.desc.name = "h";
  entry.desc.dtype = entry.reported_dtype = DType::kF32;
  entry.desc.shape = Shape{2, 3};
  d.inputs.push_back(entry);
  entry.desc.name = "next";
  entry.desc.shape = Shape{2, Shape::kOpen};
  d.outputs.push_back(entry);
  d.states = {{"next", "h"}};
  return d;
}

TEST(DescriptionCheck, AStateOfOneFormIsGood) {
  const Status s = check_description(keeping());
  EXPECT_TRUE(s.ok()) << s.to_string();
}

const float kInf = std::numeric_limits<float>::infinity();

const std::vector<Lie>& lies() {
  using D = ProgramDescription;
  static const std::vector<Lie> all = {
      {"NoOutput", [](D& d) { d.outputs.clear(); }, "no output"},
      {"PartialOutput", [](D& d) { d.outputs[0].partial_allowed = true; }, "partial"},
      {"ZeroBatch", [](D& d) { d.batch = 0; }, "batch"},
      {"ZeroBatchInARange", [](D& d) { d = batched(0, 4); }, "batch range 0 to 4"},
      {"BatchRangeInDisorder", [](D& d) { d = batched(4, 3); }, "batch range 4 to 3"},
      {"HugeBatchRange", [](D& d) { d = batched(1, 1025); }, "batch range 1 to 1025"},
      {"BatchRangeWithABatch",
       [](D& d) {
         d = batched(1, 4);
         d.batch = 2;
       },
       "with batch 2"},
      {"BatchRangeWithShapeSets",
       [](D& d) {
         d = batched(1, 4);
         d.shape_sets = {{{1, 3}}};
       },
       "1 shape sets"},
      {"BatchRangeOfFixedInputs",
       [](D& d) {
         d = batched(1, 4);
         d.inputs[0].desc.shape[0] = 4;
       },
       "no input has an open dimension 0"},
      {"BatchRangeWithAnotherOpenDimension",
       [](D& d) {
         d = batched(1, 4);
         d.inputs[0].desc.shape[1] = Shape::kOpen;
       },
       "leaves dimension 1 open"},
      {"StateOfNoOutput",
       [](D& d) {
         d = keeping();
         d.states[0].output = "gone";
       },
       "state 'gone=h': there is no output 'gone'; the outputs are "},
      {"StateOfNoInput",
       [](D& d) {
         d = keeping();
         d.states[0].input = "gone";
       },
       "there is no input 'gone'; the inputs are "},
      {"StateOfTwoTypes",
       [](D& d) {
         d = keeping();
         d.inputs.back().desc.dtype = DType::kF16;
       },
       "both need one element type"},
      {"StateOfTwoShapes",
       [](D& d) {
         d = keeping();
         d.inputs.back().desc.shape = Shape{3, 3};
       },
       "the output is [2, ?], the input is [3, 3]; both need the same dimensions"},
      {"StateOfTwoRanks",
       [](D& d) {
         d = keeping();
         d.inputs.back().desc.shape = Shape{2, 3, 1};
       },
       "both need the same dimensions"},
      {"StateTwice",
       [](D& d) {
         d = keeping();
         d.states.push_back(d.states[0]);
       },
       "output 'next' is in a state already"},
      {"StateOfOneInputTwice",
       [](D& d) {
         d = keeping();
         d.outputs.push_back(d.outputs.back());
         d.outputs.back().desc.name = "again";
         d.states.push_back({"again", "h"});
       },
       "input 'h' is in a state already"},
      {"StateWithABatchRange",
       [](D& d) {
         d = batched(1, 4);
         d.states = {{"scores", "rows"}};
       },
       "a batch range with 1 states"},
      {"ZeroCores", [](D& d) { d.cores = 0; }, "0 cores"},
      {"ManyCores", [](D& d) { d.cores = 65; }, "65 cores"},
      {"LongCustomString", [](D& d) { d.custom_string.assign(1025, 'x'); }, "1025"},
      {"NoName", [](D& d) { d.inputs[0].desc.name.clear(); }, "no name"},
      {"TwoInputsOfOneName",
       [](D& d) {
         d.shape_sets.clear();
         d.inputs.push_back(d.inputs[0]);
       },
       "two inputs are named 'image'"},
      {"TwoOutputsOfOneName", [](D& d) { d.outputs.push_back(d.outputs[0]); }, "two outputs"},
      {"TooManyInputs", [](D& d) { d.inputs.resize(4097); }, "4097 inputs"},
      {"RankSeventeen",
       [](D& d) { d.outputs[0].desc.shape = Shape(std::vector<std::int64_t>(17, 1)); }, "rank 17"},
      {"DimensionBelowOpen", [](D& d) { d.outputs[0].desc.shape[0] = -2; }, "dimension of -2"},
      {"UndefinedType", [](D& d) { d.outputs[0].desc.dtype = DType::kUndefined; }, "element type"},
      {"UnknownType", [](D& d) { d.outputs[0].desc.dtype = static_cast<DType>(25); }, "25"},
      {"UnknownReportedType", [](D& d) { d.outputs[0].reported_dtype = static_cast<DType>(99); },
       "99"},
      {"OverflowingSize",
       [](D& d) {
         d.outputs[0].desc.shape = Shape{INT64_MAX, INT64_MAX};
       },
       "scores"},
      {"SomeDimNames", [](D& d) { d.inputs[0].desc.dim_names.pop_back(); }, "3 dimension names"},
      {"UnknownLayout", [](D& d) { d.inputs[0].desc.layout.kind = static_cast<LayoutKind>(3); },
       "layout 3"},
      {"LayoutOfRankTwo", [](D& d) { d.outputs[0].desc.layout.kind = LayoutKind::kNHWC; },
       "four dimensions"},
      {"StrideOfRankTwo", [](D& d) { d.outputs[0].desc.layout.w_stride = 1024; },
       "four dimensions"},
      {"BlocksWithoutSize", [](D& d) { d.inputs[0].desc.layout.kind = LayoutKind::kNC1HWC2; },
       "c2 0"},
      {"PlainWithBlocks", [](D& d) { d.inputs[0].desc.layout.c2 = 8; }, "c2 8"},
      {"RowStrideBelowWidth",
       [](D& d) {
         d.shape_sets.clear();
         d.inputs[0].desc.shape = Shape{1, 3, 8, 8};
         d.inputs[0].desc.layout.w_stride = 4;
       },
       "w_stride 4"},
      {"UnknownPreferredLayout",
       [](D& d) { d.inputs[0].preferred_layout = static_cast<LayoutKind>(9); }, "layout 9"},
      {"UnknownQuant", [](D& d) { d.inputs[0].desc.quant.kind = static_cast<QuantKind>(3); },
       "image"},
      {"AxisBelowMinusOne", [](D& d) { d.inputs[0].quant.axis = -2; }, "axis -2"},
      {"ScalesOfNoQuant", [](D& d) { d.outputs[0].quant.scales = {1}; }, "another kind"},
      {"FractionOfAffine", [](D& d) { d.inputs[0].quant.fl = 1; }, "another kind"},
      {"NegativeScale", [](D& d) { d.inputs[0].quant.scales[0] = -1; }, "scale -1"},
      {"ScalesForNoAxis",
       [](D& d) {
         d.inputs[0].quant.scales = {1, 2};
       },
       "image"},
      {"QuantWithoutType", [](D& d) { d.inputs[0].quant_dtype = DType::kUndefined; },
       "no integer type"},
      {"TypeWithoutQuant", [](D& d) { d.inputs[0].quant = Quant::none(); }, "offered as i8"},
      {"FloatAtTheBoundary", [](D& d) { d.inputs[0].quant_dtype = DType::kF32; }, "offered as f32"},
      {"ZeroPointOutsideTheType", [](D& d) { d.inputs[0].quant.zero_points[0] = 128; },
       "-128 to 127"},
      {"MeanOfAnOutput", [](D& d) { d.outputs[0].mean = {1}; }, "only inputs"},
      {"MeanOfTwoForThreeChannels",
       [](D& d) {
         d.inputs[0].mean = {1, 2};
       },
       "3 channels"},
      {"InfiniteMean", [](D& d) { d.inputs[0].mean[0] = kInf; }, "inf"},
      {"ZeroStd", [](D& d) { d.inputs[0].std[0] = 0; }, "other than 0"},
      {"ShapeSetOfNoInputs", [](D& d) { d.shape_sets[1].clear(); }, "shape set 1"},
      {"ShapeSetOfAnotherShape",
       [](D& d) {
         d.shape_sets[0][0] = Shape{1, 4, 32, 224};
       },
       "[1, 4, 32, 224]"},
      {"ShapeSetThatStaysOpen", [](D& d) { d.shape_sets[0][0] = d.inputs[0].desc.shape; },
       "shape set 0"},
      {"ShapeSetThatOverflows",
       [](D& d) {
         d.shape_sets[0][0] = Shape{1, 3, INT64_MAX, 224};
       },
       "shape set 0"},
      {"OperatorWithoutType", [](D& d) { d.custom_operators[0].type.clear(); }, "no type"},
      {"OperatorTwice", [](D& d) { d.custom_operators[1].domain.clear(); }, "twice"},
      {"UnknownFinding",
       [](D& d) {
         d.findings.push_back({static_cast<ImportFinding::Kind>(2), "n", "o", "t"});
       },
       "kind 2"},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(CheckDescription, ALie, ::testing::ValuesIn(lies()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace corelane
