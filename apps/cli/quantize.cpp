#include "cli/quantize.h"

#include "cli/command.h"
#include "corelane/base/file.h"

namespace corelane::cli {
namespace {

constexpr std::string_view kNeeds =
    "--int8 needs a Python with Corelane's wheel and `pip install onnxruntime onnx pillow` (the "
    "wheel's extra 'quantize'): --python or CORELANE_PYTHON";

/// What corelane/rknn_toolkit/int8.py reads.
Json request_of(const std::string& model, const ImportOptions& import, const QuantizeArguments& a) {
  Json request{{"model", std::filesystem::absolute(model).string()},
               {"dataset", a.dataset},
               {"calibration", a.algorithm == "kl_divergence" ? "entropy" : "minmax"},
               {"per_layer", a.per_layer},
               {"bgr", a.bgr},
               {"operators", a.operators},
               {"dims", import.dims},
               {"mean", import.mean},
               {"std", import.std},
               {"data_root", import.external_data_root},
               {"strict_links", import.strict_links}};
  for (const auto& [name, shape] : import.input_shapes)
    request["input_shapes"][name] = shape.dims();
  for (const auto& set : import.shape_sets) {
    Json shapes = Json::array();
    for (const auto& shape : set) shapes.push_back(shape.dims());
    request["shape_sets"].push_back(std::move(shapes));
  }
  return request;
}

/// The request's text. A path may be any bytes, JSON is UTF-8.
Result<std::string> text_of(const Json& request) {
  for (const auto& [key, value] : request.items()) {
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    // What was replaced does not come back as it was.
    if (Json::parse(text) == value) continue;
    return error(Code::kInvalidArgument,
                 "--int8: {} {} is not UTF-8, and the quantizer takes UTF-8 only: rename it", key,
                 text);
  }
  return request.dump();
}

Result<Json> answer_in(const std::filesystem::path& folder, const std::string& python, int code) {
  if (!is_file(folder / "answer.json")) {
    return error(Code::kNotFound,
                 "'{}' could not run the quantizer (exit code {}; its message is above); {}",
                 python, code, kNeeds);
  }
  CORELANE_ASSIGN(auto bytes, read_file(folder / "answer.json"));
  const auto answer = Json::parse(as_string_view(bytes), nullptr, false);
  if (!answer.is_object()) return error(Code::kInternal, "answer.json is not an object");
  if (answer.contains("error"))
    return error(Code::kInvalidArgument, "--int8: {}", answer.at("error").get<std::string>());
  return answer;
}

}  // namespace

Result<QuantizedModel> quantize_model(const std::string& model, const ImportOptions& import,
                                      const QuantizeArguments& arguments) {
  CORELANE_ASSIGN(auto folder, TemporaryFolder::make());
  const std::string path = (folder.path() / "quantized.onnx").string();
  const auto request_path = folder.path() / "request.json";
  Json request = request_of(model, import, arguments);
  request["output"] = path;
  CORELANE_ASSIGN(const std::string text, text_of(request));
  CORELANE_TRY(write_file_atomic(request_path, as_byte_span(text)));
  const std::string python = find_python(arguments.python);
  CORELANE_ASSIGN(
      const int code,
      run_python({python, "-m", "corelane.rknn_toolkit.int8", request_path.string()}, kNeeds));
  CORELANE_ASSIGN(const auto answer, answer_in(folder.path(), python, code));
  return QuantizedModel{std::move(folder), path,
                        answer.at("warnings").get<std::vector<std::string>>(),
                        answer.at("custom_operators").get<std::vector<std::string>>()};
}

}  // namespace corelane::cli
