// A C face over the runtime for benchmarks/ort_benchmark.py: ours and ONNX Runtime in one process.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "corelane/runtime/program.h"
#include "harness.h"

namespace {
struct Handle {
  corelane::Context context;
  std::string error;
};
}  // namespace

extern "C" {

/// Opens a model with one f32 input at a static shape; null on failure (text on stderr).
CORELANE_API void* clb_open(const char* path, const std::int64_t* dims, std::size_t rank,
                            float* input) {
  corelane::LoadOptions options;
  options.cache = false;
  auto program = corelane::Program::load(path, options);
  if (!program) {
    std::fprintf(stderr, "%s\n", program.error().to_string().c_str());
    return nullptr;
  }
  auto context = program->new_context();
  if (!context) return nullptr;
  const corelane::Shape shape(std::vector<std::int64_t>(dims, dims + rank));
  if (!context->set_input_shapes({shape}).ok()) return nullptr;
  const auto bytes = *shape.elements() * sizeof(float);
  if (!context->bind_input(0, {input, bytes, corelane::DType::kF32, shape, {}, {}}).ok())
    return nullptr;
  return new Handle{std::move(*context), {}};
}

/// Runs for about `seconds`; the number of inferences, 0 on failure.
CORELANE_API std::uint64_t clb_run(void* handle, double seconds) {
  auto& h = *static_cast<Handle*>(handle);
  bool ok = true;
  const auto n =
      corelane::bench::run_for(corelane::Duration(static_cast<std::int64_t>(seconds * 1e9)), 1,
                               [&] { ok = ok && h.context.run().ok(); });
  return ok ? static_cast<std::uint64_t>(n) : 0;
}

/// Copies output 0; the number of floats, 0 on failure or when `capacity` is too small.
CORELANE_API std::size_t clb_output(void* handle, float* out, std::size_t capacity) {
  auto view = static_cast<Handle*>(handle)->context.output(0);
  if (!view || view->dtype != corelane::DType::kF32) return 0;
  const auto n = view->shape.elements().value_or(0);
  if (n > capacity) return 0;
  std::memcpy(out, view->data, n * sizeof(float));
  return n;
}

CORELANE_API void clb_close(void* handle) { delete static_cast<Handle*>(handle); }
}
