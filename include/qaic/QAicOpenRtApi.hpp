/// The open runtime's names: `qaic::openrt` holds the classes of `qaic::rt` (QAicApi.hpp), and its
/// structures also stand in the global namespace.
#pragma once

// What QAicApi.hpp has; these bring the others.
#include "qaicapihpp/QAicApiFileWriter.hpp"
#include "qaicapihpp/QAicApiInferenceBenchmarkSet.hpp"
#include "qaicapihpp/QAicApiProfiling.hpp"
#include "qaicapihpp/QAicApiProgramGroup.hpp"
#include "qaicapihpp/QAicApiUtil.hpp"

namespace qaic::openrt {

using rt::BufferIdentifier;
using rt::BufferIdentifiers;
using rt::Context;
using rt::CoreExceptionInit;
using rt::CoreExceptionNullPtr;
using rt::CoreExceptionRuntime;
using rt::DataBuffer;
using rt::ErrorHandler;
using rt::ExecObj;
using rt::FileWriter;
using rt::InferenceBenchmarkSet;
using rt::InferenceBenchmarkStats;
using rt::InferenceHandle;
using rt::InferenceSet;
using rt::InferenceSetProperties;
using rt::InferenceVector;
using rt::LogCallback;
using rt::Logger;
using rt::ProfilingCallback;
using rt::ProfilingHandle;
using rt::ProfilingProperties;
using rt::Program;
using rt::Qpc;
using rt::QpcFile;
using rt::Queue;
using rt::shContext;
using rt::shExecObj;
using rt::shInferenceBenchmarkSet;
using rt::shInferenceHandle;
using rt::shInferenceSet;
using rt::shInferenceVector;
using rt::shLogger;
using rt::shProfilingHandle;
using rt::shProgram;
using rt::shQpc;
using rt::shQpcFile;
using rt::shQueue;
using rt::shSlicingSpec;
using rt::shStreamProfilingHandle;
using rt::SlicingParameters;
using rt::SlicingSpec;
using rt::StreamProfilingHandle;
using rt::Util;
using rt::UtilFs;

}  // namespace qaic::openrt

using qaic::rt::BufferDimensions;
using qaic::rt::BufferMapping;
using qaic::rt::BufferMappings;
using qaic::rt::ProgramInfo;
using qaic::rt::QpcConstantsInfo;
using qaic::rt::QpcInfo;
using qaic::rt::QpcProgramInfo;
using qaic::rt::shQpcInfo;
