/// The object runtime's C++ classes, `qaic::rt`: C++17 or later, inline over the function table of
/// libQAic.so, which the first call finds (QAicApiLibrary.hpp). A program links threads and the
/// dynamic loader alone.
///
/// Objects are made by a `Factory` and held by shared pointers (`shContext`, ...). They can be
/// neither copied nor moved, and keep what they were made of alive. A factory throws
/// `CoreExceptionInit`; other methods give a QStatus, or throw `CoreExceptionRuntime` where they
/// return a value. All methods may be called from any thread, except those of InferenceHandle,
/// ExecObj and InferenceVector, which have one user at a time.
#pragma once

#include "QAicApi.h"
#include "qaicapihpp/QAicApiContext.hpp"
#include "qaicapihpp/QAicApiDataTypes.hpp"
#include "qaicapihpp/QAicApiExceptions.hpp"
#include "qaicapihpp/QAicApiExecObj.hpp"
#include "qaicapihpp/QAicApiFileWriter.hpp"
#include "qaicapihpp/QAicApiInferenceBenchmarkSet.hpp"
#include "qaicapihpp/QAicApiInferenceHandle.hpp"
#include "qaicapihpp/QAicApiInferenceSet.hpp"
#include "qaicapihpp/QAicApiInferenceVector.hpp"
#include "qaicapihpp/QAicApiLibrary.hpp"
#include "qaicapihpp/QAicApiLogger.hpp"
#include "qaicapihpp/QAicApiProfiling.hpp"
#include "qaicapihpp/QAicApiProgram.hpp"
#include "qaicapihpp/QAicApiProgramGroup.hpp"
#include "qaicapihpp/QAicApiQpc.hpp"
#include "qaicapihpp/QAicApiQueue.hpp"
#include "qaicapihpp/QAicApiUtil.hpp"
