"""Sequences of calls of public clients of qaicrt, under the foreign names, in processes of their own.

Written anew after what such clients do: a session over ExecObj that sets its buffers by name, skips some and picks
dimensions, as language models are served; a runner over InferenceSet that hands over bytes and reads outputs
through the handle's object; one that submits vectors and collects each id in a thread of its own.
"""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from python_support import PATIENCE
from qaicrt_support import CLI, partial_container, relu

SESSION = """
import os
import numpy as np
import QAicApi_pb2 as aicapi
import qaicrt

TYPES = {aicapi.FLOAT_TYPE: np.dtype(np.float32), aicapi.FLOAT_16_TYPE: np.dtype(np.float16),
         aicapi.INT8_Q_TYPE: np.dtype(np.int8), aicapi.UINT8_Q_TYPE: np.dtype(np.uint8),
         aicapi.INT16_Q_TYPE: np.dtype(np.int16), aicapi.INT32_Q_TYPE: np.dtype(np.int32),
         aicapi.INT32_I_TYPE: np.dtype(np.int32), aicapi.INT64_I_TYPE: np.dtype(np.int64),
         aicapi.INT8_TYPE: np.dtype(np.int8)}

class Session:
    def __init__(self, path, devices=None, timeout="SubmitRetryTimeoutMs"):
        if devices is not None:
            self.context = qaicrt.Context(qaicrt.QIDList(devices))
            self.queue = qaicrt.Queue(self.context, devices[0])
        else:
            self.context = qaicrt.Context()
            self.queue = qaicrt.Queue(self.context, 0)
        assert self.context.setLogLevel(qaicrt.QLogLevel.QL_DEBUG) == qaicrt.QStatus.QS_SUCCESS
        properties = qaicrt.QAicQueueProperties()
        properties.numThreadsPerQueue = 1
        self.queue.initProperties(properties)
        qpc = qaicrt.Qpc(str(path))
        described = aicapi.IoDesc()
        status, data = qpc.getIoDescriptor()
        assert status == qaicrt.QStatus.QS_SUCCESS
        described.ParseFromString(bytes(data))
        self.shapes = [[(TYPES[s.type].itemsize, list(s.dims)) for s in one.shapes]
                       for one in described.allowed_shapes]
        self.bindings = described.selected_set.bindings
        self.places = {b.name: b.index for b in self.bindings}
        properties = qaicrt.QAicProgramProperties()
        setattr(properties, timeout, 60_000)
        if devices and len(devices) > 1:
            properties.devMapping = ":".join(map(str, devices))
        self.program = qaicrt.Program(self.context, None, qpc, properties)
        assert self.program.load() == qaicrt.QStatus.QS_SUCCESS
        self.activate()
        self.buffers = [qaicrt.QBuffer(bytes(b.size)) for b in self.bindings]
        self.dims = qaicrt.BufferDimensionsVecRef(
            [(TYPES[b.type].itemsize, list(b.dims)) for b in self.bindings])

    def activate(self):
        self.program.activate()
        self.object = qaicrt.ExecObj(self.context, self.program)

    def deactivate(self):
        del self.object
        assert self.program.deactivate() == qaicrt.QStatus.QS_SUCCESS

    def set_buffers(self, arrays):
        for name, array in arrays.items():
            place = self.places[name]
            self.buffers[place] = qaicrt.QBuffer(array.tobytes())
            self.dims[place] = (array.itemsize, array.shape if len(array.shape) > 0 else (1,))

    def run(self, inputs):
        self.set_buffers(inputs)
        if self.object.setData(self.buffers, self.dims) != qaicrt.QStatus.QS_SUCCESS:
            raise MemoryError("setData")
        if self.queue.enqueue(self.object) != qaicrt.QStatus.QS_SUCCESS:
            raise MemoryError("enqueue")
        if self.object.waitForCompletion() != qaicrt.QStatus.QS_SUCCESS:
            raise ValueError([d for (_, d), (_, passed) in zip(self.shapes[0], self.dims) if passed != [0]])
        status, found = self.object.getData()
        assert status == qaicrt.QStatus.QS_SUCCESS
        return {b.name: np.frombuffer(bytes(found[b.index]), TYPES[b.type]).reshape(self.dims[b.index][1])
                for b in self.bindings if b.dir == aicapi.BUFFER_IO_TYPE_OUTPUT and self.buffers[b.index].size}
"""


class Clients(unittest.TestCase):
    def prints(self, code, expected, names="qaicrt,QAicApi_pb2", folder=None):
        with tempfile.TemporaryDirectory() as here:
            path = Path(here, "client.py")
            path.write_text(textwrap.dedent(code), encoding="utf-8")
            done = subprocess.run([sys.executable, "-m", "corelane.alias", "--as", names, path, folder or relu()],
                                  capture_output=True, text=True, timeout=PATIENCE, check=False, env=os.environ)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", expected))

    def test_a_session_over_an_execution_object(self):
        for arguments in ("", ", [0]", ", None, 'dataPathTimeoutMs'"):
            self.prints(SESSION + f"""
import sys
session = Session(sys.argv[1]{arguments})
x = np.array([[-1, 2, -3, 4]], np.float32)
for n in range(3):
    print(session.run({{"x": x + n}})["y"].tolist())
session.deactivate()
session.activate()
print(session.run({{"x": x}})["y"].tolist())
""", "[[0.0, 2.0, 0.0, 4.0]]\n[[0.0, 3.0, 0.0, 5.0]]\n[[1.0, 4.0, 0.0, 6.0]]\n[[0.0, 2.0, 0.0, 4.0]]\n")

    @unittest.skipUnless(CLI, "CORELANE_CLI names no command line tool")
    def test_a_session_with_specializations_that_skips_a_buffer(self):
        self.prints(SESSION + """
import sys
session = Session(sys.argv[1])
session.set_buffers({"rest": np.array([])})
for n in (4, 8, 4):
    session.set_buffers({"y": np.zeros((1, n), np.float32)})
    print(session.run({"x": np.ones((1, n), np.float32)})["y"].tolist())
try:
    session.set_buffers({"y": np.zeros((1, 5), np.float32)})
    session.run({"x": np.ones((1, 5), np.float32)})
except MemoryError as refused:
    print(refused)
""", f"{[[2.0] * 4]}\n{[[2.0] * 8]}\n{[[2.0] * 4]}\nsetData\n", folder=partial_container())

    def test_a_pool_of_objects_with_arrays_by_index(self):
        self.prints("""
            import sys
            import numpy as np
            import qaicrt
            context = qaicrt.Context()
            queue = qaicrt.Queue(context, 0)
            program = qaicrt.Program(context, qpcObj=qaicrt.Qpc(sys.argv[1]))
            assert program.load() == qaicrt.QStatus.QS_SUCCESS
            program.activate()
            pool = [qaicrt.ExecObj(context, program) for _ in range(3)]
            results = [np.empty((1, 4), np.float32) for _ in pool]
            for n, (one, y) in enumerate(zip(pool, results)):
                assert one.setData([(0, np.full((1, 4), n, np.float32)), (1, y)]) == qaicrt.QStatus.QS_SUCCESS
                assert queue.enqueue(one) == qaicrt.QStatus.QS_SUCCESS
            assert all(one.waitForCompletion() == qaicrt.QStatus.QS_SUCCESS for one in pool)
            print([y[0, 0] for y in results] == [0, 1, 2])
            """, "True\n", names="qaicrt")

    def test_a_runner_over_a_set(self):
        self.prints("""
            import sys
            import numpy as np
            import qaicrt
            status, devices = qaicrt.Util().getDeviceIds()
            context = qaicrt.Context(devices)
            context.setLogLevel(qaicrt.QLogLevel.QL_WARN)
            qpc = qaicrt.Qpc(sys.argv[1])
            inferences = qaicrt.InferenceSet(context, qpc, devices[0], 10, 1)
            outputs = [m for m in qpc.getBufferMappings()
                       if m.ioType == qaicrt.BufferIoTypeEnum.BUFFER_IO_TYPE_OUTPUT]
            for number in range(20):
                given = [qaicrt.QBuffer(np.full((1, 4), number, np.float32))]
                given += [qaicrt.QBuffer(np.empty(shape=(m.size,), dtype="uint8")) for m in outputs]
                _, handle = inferences.getAvailable()
                handle.setBuffers(given)
                inferences.submit(handle, number)
                status, handle = inferences.getCompletedId(number)
                status, buffers = handle.execObj().getData()
                found = np.frombuffer(buffers[outputs[0].index], dtype="uint8").view(np.float32)
                inferences.putCompleted(handle)
                assert status == qaicrt.QStatus.QS_SUCCESS and (found == number).all()
            print("done")
            """, "done\n", names="qaicrt")

    def test_vectors_and_a_thread_for_each_id(self):
        self.prints("""
            import sys
            import threading
            import numpy as np
            import qaicrt
            devices = qaicrt.QIDList()
            devices.append(0)
            context = qaicrt.Context(devices)
            qpc = qaicrt.Qpc(sys.argv[1] + "/")
            mappings = qpc.getBufferMappings()
            vector = qaicrt.InferenceVector(mappings)
            for mapping in mappings:
                if mapping.ioType == qaicrt.BufferIoTypeEnum.BUFFER_IO_TYPE_INPUT:
                    vector.getVector()[mapping.index] = qaicrt.QBuffer(np.ones((1, 4), np.float32).tobytes())
            inferences = qaicrt.InferenceSet(context, qpc, devices[0], 4, 2)

            def collect(number):
                status, handle = inferences.getCompletedId(number)
                assert status == qaicrt.QStatus.QS_SUCCESS
                inferences.putCompleted(handle)

            threads = []
            for number in range(100):
                inferences.submit(vector, number)
                threads.append(threading.Thread(target=collect, args=(number,)))
                threads[-1].start()
            for thread in threads:
                thread.join()
            print(inferences.waitForCompletion().name, np.frombuffer(vector.getVector()[1], np.float32).tolist())
            """, "QS_SUCCESS [1.0, 1.0, 1.0, 1.0]\n", names="qaicrt")

    def test_the_schema_without_protobuf_says_what_to_install(self):
        code = ("import sys\nsys.modules['google.protobuf'] = None\n"
                "try:\n    import corelane.QAicApi_pb2\nexcept ImportError as error:\n    print(error)\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("`pip install protobuf`", done.stdout)


if __name__ == "__main__":
    unittest.main()
