/// What an import makes of a model, as a number.
#pragma once

namespace corelane {

/// Raised with every change of what import_onnx() makes of the same model under the same options,
/// but for what is lowered for an engine, which has revisions of its own (onnx_lowering.h). It is
/// part of the compile cache's key, so that programs which an earlier build of the same version
/// imported are not served again.
///
///  1  until 2026-11
///  2  8-bit pairs of QuantizeLinear and DequantizeLinear around a Concat
///  3  the model's origin is kept
///  4  the network is kept as given; until then it was lowered for OpenVINO
///  5  sizes of Resize are rounded as floats; a zero that a writer left out is there
///  6  no shape of a custom operator's results is guessed; attributes that it cannot get fail runs
inline constexpr int kImportRevision = 6;

}  // namespace corelane
