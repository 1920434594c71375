#include "page_pipeline.h"

#include <fmt/format.h>

#include <array>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "work_queue.h"

namespace page_reader {
namespace {

using corelane::Code;
using corelane::Context;
using corelane::error;
using corelane::Result;
using corelane::Status;
using Json = nlohmann::json;

/// Inferences of a page, and of each of its lines.
constexpr std::size_t kPageModels = 3;
constexpr std::size_t kLineModels = 2;
/// For the progress bar, as long as a page's lines are not known.
constexpr std::size_t kUsualLines = 12;

/// Output `index` as floats, with its shape.
struct Floats {
  std::span<const float> values;
  corelane::Shape shape;
};
Result<Floats> floats(const Context& context, std::size_t index) {
  CORELANE_ASSIGN(const corelane::TensorView view, context.output(index));
  if (view.dtype != corelane::DType::kF32) {
    return error(Code::kUnsupportedModel, "output {} is {}, f32 is expected", index,
                 corelane::dtype_name(view.dtype));
  }
  return Floats{{static_cast<const float*>(view.data), view.shape.elements().value_or(0)},
                view.shape};
}

/// The listing under "character" in a model's metadata: labels or alphabet.
Result<std::string> listing(const LoadedModel& model) {
  const auto& metadata = model.program.description().metadata;
  const auto found = metadata.find("character");
  if (found == metadata.end() || found->second.empty()) {
    return error(Code::kUnsupportedModel,
                 "'{}' has no metadata entry 'character', where its classes are expected",
                 model.onnx.string());
  }
  return found->second;
}

Status check_classes(const LoadedModel& model, std::size_t output, std::size_t expected) {
  const auto& outputs = model.program.description().outputs;
  if (output >= outputs.size() || outputs[output].desc.shape.rank() == 0) {
    return error(Code::kUnsupportedModel, "'{}' has {} outputs, more are expected",
                 model.onnx.string(), outputs.size());
  }
  const corelane::Shape& shape = outputs[output].desc.shape;
  const std::int64_t classes = shape[shape.rank() - 1];
  if (classes == corelane::Shape::kOpen || classes == static_cast<std::int64_t>(expected))
    return {};
  return error(Code::kUnsupportedModel, "'{}' has {} classes, its metadata lists {}",
               model.onnx.string(), classes, expected);
}

Json to_json(const Box& box) { return {box.left, box.top, box.right, box.bottom}; }

Json to_json(const Quad& quad) {
  Json points = Json::array();
  for (const Point& p : quad) points.push_back({p.x, p.y});
  return points;
}

}  // namespace

/// One reading of one page: what is known so far, and the next work that follows from it.
class PageReader::Reading {
 public:
  /// `finished` is called when the last inference of the page has been taken.
  Reading(PageReader& reader, WorkQueue& queue, const Picture& page, std::uint32_t number,
          TensorDump* dump, std::function<void()> finished)
      : reader_(reader),
        queue_(queue),
        number_(number),
        dump_(dump),
        finished_(std::move(finished)),
        page_(page) {}

  void begin() {
    begin_ = corelane::real_clock()->now();
    push(
        Role::kOrientation, number_, [this] { return orientation_input(page_); },
        [this](Context& context) { return take_orientation(context); });
  }

  /// How many inferences the page takes: a guess until its lines are found.
  std::size_t expected() const { return kPageModels + kLineModels * lines_.value_or(kUsualLines); }

  /// Once, after the end.
  PageResult result() {
    std::erase_if(result_.lines, [](const TextLine& line) {
      return line.text.text.find_first_not_of(' ') == std::string::npos ||
             line.text.score < kMinTextScore;
    });
    return std::move(result_);
  }

 private:
  void push(Role role, std::uint32_t item, std::function<ModelInput()> input,
            std::function<Status(Context&)> take) {
    const LoadedModel& model = (*reader_.models_)[index_of(role)];
    Work work;
    work.role = role;
    work.item = item;
    work.fill = [this, &model, item, input = std::move(input)](Context& context) -> Status {
      CORELANE_TRY(feed(context, input()));
      return dump_ == nullptr ? Status() : dump_->input(model, item, context);
    };
    work.take = [this, take = std::move(take)](Context& context) -> Status {
      CORELANE_TRY(take(context));
      if (--pending_ == 0) finish();
      return {};
    };
    ++pending_;
    queue_.push(std::move(work));
  }

  void finish() {
    result_.time = corelane::real_clock()->now() - begin_;
    result_.width = page_.width();
    result_.height = page_.height();
    page_ = {};
    finished_();
  }

  Status dump(Role role, std::uint32_t item, const Context& context, const Json& decoded) {
    if (dump_ == nullptr) return {};
    return dump_->outputs((*reader_.models_)[index_of(role)], item, context, decoded.dump());
  }

  Status take_orientation(Context& context) {
    CORELANE_ASSIGN(const Floats out, floats(context, 0));
    result_.orientation = read_orientation(out.values);
    CORELANE_TRY(
        dump(Role::kOrientation, number_, context, {{"degrees", result_.orientation.degrees}}));
    page_ = turn(page_, result_.orientation.quarters_back());
    push(
        Role::kDetection, number_, [this] { return detector_input(page_); },
        [this](Context& c) { return take_detection(c); });
    push(
        Role::kLayout, number_, [this] { return layout_input(page_); },
        [this](Context& c) { return take_layout(c); });
    return {};
  }

  Status take_layout(Context& context) {
    // Four heads, finest first: all score maps, then all distance maps.
    constexpr std::array<int, 4> kStrides{8, 16, 32, 64};
    std::array<LayoutHead, 4> heads;
    std::size_t bins = 0;
    for (std::size_t i = 0; i < heads.size(); ++i) {
      CORELANE_ASSIGN(const Floats scores, floats(context, i));
      CORELANE_ASSIGN(const Floats distances, floats(context, i + heads.size()));
      heads[i] = {kStrides[i], scores.values, distances.values};
      bins = static_cast<std::size_t>(distances.shape[distances.shape.rank() - 1]) / 4;
    }
    result_.regions =
        find_regions(heads, reader_.labels_.size(), bins, page_.width(), page_.height());
    Json decoded = Json::array();
    for (const Region& r : result_.regions)
      decoded.push_back({{"label", reader_.labels_[static_cast<std::size_t>(r.label)]},
                         {"score", r.score},
                         {"box", to_json(r.box)}});
    return dump(Role::kLayout, number_, context,
                {{"page", {page_.width(), page_.height()}}, {"regions", decoded}});
  }

  Status take_detection(Context& context) {
    CORELANE_ASSIGN(const Floats map, floats(context, 0));
    if (map.shape.rank() != 4)
      return error(Code::kUnsupportedModel,
                   "the detection map has shape {}, [1, 1, H, W] is expected",
                   map.shape.to_string());
    const std::vector<TextBox> boxes =
        find_text(map.values, static_cast<int>(map.shape[3]), static_cast<int>(map.shape[2]),
                  {page_.width(), page_.height()});
    Json decoded = Json::array();
    for (const TextBox& box : boxes)
      decoded.push_back({{"quad", to_json(box.quad)}, {"score", box.score}});
    CORELANE_TRY(dump(Role::kDetection, number_, context,
                      {{"page", {page_.width(), page_.height()}}, {"boxes", decoded}}));
    lines_ = boxes.size();
    result_.lines.resize(boxes.size());
    pictures_.resize(boxes.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      result_.lines[i].box = boxes[i];
      push_direction(i);
    }
    return {};
  }

  void push_direction(std::size_t i) {
    push(
        Role::kDirection, static_cast<std::uint32_t>(i),
        [this, i] {
          pictures_[i] = cut_out(page_, result_.lines[i].box.quad);
          return direction_input(pictures_[i]);
        },
        [this, i](Context& context) { return take_direction(context, i); });
  }

  Status take_direction(Context& context, std::size_t i) {
    CORELANE_ASSIGN(const Floats out, floats(context, 0));
    Direction& direction = result_.lines[i].direction;
    direction = read_direction(out.values);
    const auto item = static_cast<std::uint32_t>(i);
    CORELANE_TRY(dump(Role::kDirection, item, context, {{"degrees", direction.degrees}}));
    if (direction.upside_down) pictures_[i] = turn(pictures_[i], 2);
    push(
        Role::kRecognition, item, [this, i] { return recognizer_input(pictures_[i]); },
        [this, i](Context& c) { return take_recognition(c, i); });
    return {};
  }

  Status take_recognition(Context& context, std::size_t i) {
    CORELANE_ASSIGN(const Floats out, floats(context, 0));
    if (out.shape.rank() != 3 ||
        out.shape[2] != static_cast<std::int64_t>(reader_.alphabet_.size())) {
      return error(Code::kUnsupportedModel,
                   "recognition gave shape {}, [1, steps, {}] is expected by its alphabet",
                   out.shape.to_string(), reader_.alphabet_.size());
    }
    RecognizedText& text = result_.lines[i].text;
    text = decode_ctc(out.values, static_cast<std::size_t>(out.shape[1]), reader_.alphabet_);
    pictures_[i] = {};
    return dump(Role::kRecognition, static_cast<std::uint32_t>(i), context,
                {{"text", text.text}, {"score", text.score}});
  }

  PageReader& reader_;
  WorkQueue& queue_;
  const std::uint32_t number_;
  TensorDump* const dump_;
  const std::function<void()> finished_;
  corelane::TimePoint begin_{};
  std::optional<std::size_t> lines_;  ///< How many, once they are found.
  std::size_t pending_ = 0;           ///< Inferences pushed and not taken.
  Picture page_;                      ///< Upright once the orientation is known.
  std::vector<Picture> pictures_;     ///< Of the lines.
  PageResult result_;
};

Result<PageReader> PageReader::create(ModelSet& models) {
  PageReader reader(models);
  CORELANE_ASSIGN(const std::string classes, listing(models[index_of(Role::kLayout)]));
  reader.labels_ = split_labels(classes);
  CORELANE_ASSIGN(const std::string characters, listing(models[index_of(Role::kRecognition)]));
  reader.alphabet_ = Alphabet(characters);
  CORELANE_TRY(check_classes(models[index_of(Role::kLayout)], 7, std::size_t{4} * 8));
  CORELANE_TRY(check_classes(models[index_of(Role::kLayout)], 0, reader.labels_.size()));
  CORELANE_TRY(check_classes(models[index_of(Role::kRecognition)], 0, reader.alphabet_.size()));
  CORELANE_TRY(check_classes(models[index_of(Role::kOrientation)], 0, 4));
  CORELANE_TRY(check_classes(models[index_of(Role::kDirection)], 0, 2));
  return reader;
}

Result<std::vector<PageResult>> PageReader::read(const Picture& page, const Options& options) {
  WorkQueue queue(*models_);
  std::deque<Reading> readings;  // Works hold references to them.
  std::size_t done = 0;
  const std::function<void()> begin_next = [&] {
    if (readings.size() >= options.times) return;
    const auto number = static_cast<std::uint32_t>(readings.size());
    readings.emplace_back(*this, queue, page, number, number == 0 ? options.dump : nullptr,
                          begin_next);
    readings.back().begin();
  };
  queue.on_progress([&] {
    ++done;
    std::size_t expected = (options.times - readings.size()) * readings.front().expected();
    for (const Reading& reading : readings) expected += reading.expected();
    if (options.on_progress) options.on_progress(done, expected);
  });
  for (std::size_t i = 0; i < options.in_flight; ++i) begin_next();
  CORELANE_TRY(queue.run());
  std::vector<PageResult> results;
  for (Reading& reading : readings) results.push_back(reading.result());
  return results;
}

}  // namespace page_reader
