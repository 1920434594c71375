"""corelane.qaicrt has every name of the contract's section (b), and its stub those that it has."""
import ast
import enum
import unittest
from pathlib import Path

import corelane
from corelane import QAicApi_pb2, qaicrt
from names_test import declared, public

# By class: the methods that the API has. What is missing here stands in docs/compatibility.md, with the reason.
NAMES = {
    "Context": "findDevice setLogLevel getLogLevel getId objName objNameCstr",
    "Qpc": "getInfo getBufferMappings getBufferMappingsV2 getBufferMappingsDma getIoDescriptor buffer size",
    "QpcFile": "load getBuffer data size",
    "DataBuffer": "allocate dataPtr shrinkBuffer release",
    "BufferMapping": "bufferName index ioType size isPartialBufferAllowed dataType",
    "BufferMappingV2": "bufferMapping ioShapes",
    "BufferShape": "dims dataType",
    "BufferIdentifiers": "getBufferIdentifierVec getBufferSizeDimensionPair",
    "Program": "load unload activate deactivate isLoaded isActivated getProgramInfo getAicProgramInfo setId getId "
               "getInferenceCompleteCount getBufferMappings getIoDescriptor initProperties objName "
               "createSlicingSpecHandle",
    "ExecObj": "setData setDataWithSlices getData run waitForCompletion getId setId objName setCovering "
               "getSpecialization getStates resetState setState copyState",
    "Queue": "enqueue initProperties objName",
    "ProgramGroup": "addProgram enable disable setTurn getTurnFigures initProperties objName",
    "QAicProgramGroupProperties": "protocolSelect enableOversubscription",
    "InferenceVector": "getVector setBuffers setInputBuffers setOutputBuffers loadFromFileSet",
    "InferenceHandle": "setBuffers setInputBuffers setOutputBuffers getBuffers setBufferDimensions execObj id",
    "InferenceSet": "submit getAvailable getCompleted getCompletedId putCompleted waitForCompletion "
                    "getAicProgramInfoV2 getProgram setCovering getSpecialization getStates resetState setState "
                    "copyState",
    "InferenceBenchmarkSet": "enable disable run runForDuration getLastRunStats getInfCompleted setLiveReporting "
                             "setCompletionCallback setOperatorStatsCallback objName",
    "InferenceBenchmarkStats": "infCompleted infPerSec totalTimeUs batchSize",
    "ProfilingHandle": "start stop",
    "StreamProfilingHandle": "start stop addProgram removeProgram flushReports",
    "Util": "getDeviceIds getDeviceInfo getResourceInfo getPerformanceInfo getAicVersion checkLibraryVersion "
            "lockDevice",
    "FileWriter": "setOutputPath writeExecObjData",
    "QpcInfo": "program constants",
    "QpcProgramInfo": "bufferMappings bufferMappingsDma name programIndex numCores size batchSize numSemaphores "
                      "numMcids reqMem",
    "QpcConstantsInfo": "name constantsIndex size",
    "QBuffer": "size buf handle offset type",
    "QIDList": "append",
    "BufferDimensionsVecRef": "append",
    "QAicProgramProperties": "selectMask SubmitNumRetries SubmitRetryTimeoutMs dataPathTimeoutMs devMapping",
    "QAicQueueProperties": "properties numThreadsPerQueue",
    "InferenceSetProperties": "programProperties queueProperties name id",
}
# By enumeration: how many values it has, and one of them.
ENUMS = {"QStatus": (15, "QS_DATA_CRC_ERROR", 12), "QLogLevel": (4, "QL_ERROR", 3),
         "QBufferType": (4, "QBUFFER_TYPE_DMABUF", 1), "QDevStatus": (3, "QDS_ERROR", 2),
         "BufferIoTypeEnum": (4, "BUFFER_IO_TYPE_OUTPUT", 2), "BufferDataTypeEnum": (13, "BUFFER_DATA_TYPE_INT8", 8),
         "QAicErrorType": (13, "QIAC_ERROR_EVENT_RUNTIME", 0x601),
         "QAicProgramStatus": (6, "QIAC_PROGRAM_ACTIVATE_ERROR", 102),
         "QAicProfilingType": (4, "QAIC_PROFILING_TYPE_DEVICE_KPI", 3),
         "QAicProfilingSamplingRate": (5, "QAIC_PROFILING_SAMPLING_RATE_SIXTEENTH", 4),
         "QAicProfilingReportingRate": (4, "QAIC_PROFILING_REPORTING_RATE_4000_MS", 3),
         "QAicProgramActivationCmd": (4, "QAIC_PROGRAM_CMD_DEACTIVATE_FULL", 1),
         "QAicExecObjPropertiesBitfields": (2, "QAIC_EXECOBJ_PROPERTIES_AUTO_LOAD_ACTIVATE", 4)}
EXCEPTIONS = ("ExceptionInit", "ExceptionRuntime", "ExceptionNullPtr", "CoreExceptionInit", "CoreExceptionRuntime",
              "CoreExceptionNullPtr")
# Of section (b), and not there; each is a row of the table.
MISSING = {"Context": ("get",), "Qpc": ("get",)}
TABLE = Path(__file__).parents[2] / "docs" / "compatibility.md"


class Names(unittest.TestCase):
    def test_every_class_has_the_methods_of_the_api(self):
        for name, methods in NAMES.items():
            with self.subTest(name=name):
                made = getattr(qaicrt, name)
                self.assertEqual([m for m in methods.split() if not hasattr(made, m)], [])

    def test_enumerations_have_their_values_in_the_module_too(self):
        for name, (count, member, value) in ENUMS.items():
            with self.subTest(name=name):
                made = getattr(qaicrt, name)
                self.assertTrue(issubclass(made, enum.IntEnum))
                self.assertEqual((len(made), made[member], getattr(qaicrt, member)), (count, value, value))

    def test_exceptions_have_a_status(self):
        for name in EXCEPTIONS:
            self.assertTrue(issubclass(getattr(qaicrt, name), qaicrt.QAicException))
        self.assertEqual(qaicrt.QAicException.status, qaicrt.QS_ERROR)

    def test_what_is_missing_stands_in_the_table(self):
        table = TABLE.read_text(encoding="utf-8").partition("### Python: `corelane.qaicrt`")[2].partition("\n## ")[0]
        for name, methods in MISSING.items():
            for method in methods:
                with self.subTest(name=name, method=method):
                    self.assertFalse(hasattr(getattr(qaicrt, name) if name else qaicrt, method))
                    self.assertIn(f"`{name}.{method}`" if name else f"`{method}`", table)

    def test_the_schema_has_the_names_of_clients(self):
        for name in ("FLOAT_TYPE", "FLOAT_16_TYPE", "INT8_Q_TYPE", "UINT8_Q_TYPE", "INT16_Q_TYPE", "INT32_Q_TYPE",
                     "INT32_I_TYPE", "INT64_I_TYPE", "INT8_TYPE", "BUFFER_IO_TYPE_INPUT", "BUFFER_IO_TYPE_OUTPUT",
                     "IoDesc", "IoSet", "IoBinding", "DmaBuf", "AllowedShape", "TensorShape", "DESCRIPTOR"):
            self.assertTrue(hasattr(QAicApi_pb2, name), name)

    def test_the_stub_names_what_the_module_has(self):
        path = Path(corelane.__file__).parent / "qaicrt.pyi"
        stub = declared(ast.parse(path.read_text(encoding="utf-8")).body)
        self.assertEqual(public(dir(qaicrt)), set(stub))
        for name, body in stub.items():
            made = getattr(qaicrt, name)
            if not body or issubclass(made, (Exception, enum.Enum)):
                continue
            with self.subTest(name=name):
                self.assertEqual(public(dir(made)), set(declared(body)))
        for name, made in vars(qaicrt).items():
            if isinstance(made, type) and issubclass(made, enum.Enum) and made.__name__ == name:
                self.assertEqual(set(made.__members__) - set(declared(stub[name])), set(), name)


if __name__ == "__main__":
    unittest.main()
