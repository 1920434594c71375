/// What an import makes of a model, as a number.
#pragma once

namespace corelane {

/// Raised with every change of what import_onnx() makes of the same model under the same options:
/// a rewrite added, changed or taken away. It is part of the compile cache's key, so that programs
/// which an earlier build of the same version imported are not served again.
///
///  1  until 2026-11
///  2  8-bit pairs of QuantizeLinear and DequantizeLinear around a Concat
///  3  the model's origin is kept
inline constexpr int kImportRevision = 3;

}  // namespace corelane
