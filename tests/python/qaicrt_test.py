"""corelane.qaicrt: the flows of the C++ client programs of tests/compat/qaic, memory, codes and exceptions."""
import contextlib
import gc
import os
import threading
import unittest
import weakref
from pathlib import Path

import numpy as np

from corelane import QAicApi_pb2 as aicapi
from corelane import qaicrt
from corelane.qaicrt import QStatus
from qaicrt_support import CLI, X, Y, container, pair_model, partial_container, relu

OK = QStatus.QS_SUCCESS


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = relu()
        cls.context = qaicrt.Context()
        cls.qpc = qaicrt.Qpc(cls.folder)

    def ok(self, status):
        self.assertEqual(status, OK, qaicrt.lastErrorText())

    def refused(self, status, make, text=""):
        """`make` raises an exception of the module with this code and one line that says why."""
        with self.assertRaises(qaicrt.QAicException) as raised:
            make()
        self.assertEqual(raised.exception.status, status, raised.exception)
        self.assertGreater(len(str(raised.exception)), 20)
        self.assertNotIn("\n", str(raised.exception))
        self.assertIn(text, str(raised.exception))
        return raised.exception

    def program(self, qpc=None, **properties):
        given = qaicrt.QAicProgramProperties()
        for name, value in properties.items():
            setattr(given, name, value)
        return qaicrt.Program(self.context, 0, qpc or self.qpc, given)

    def handle(self, made):
        status, handle = made.getAvailable()
        self.ok(status)
        return handle


class Sets(Case):
    """blocking_loop, two_threads, kept_handles, set_controls, vector_sources, factory_options."""

    def test_a_blocking_loop(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 2, 1)
        for n in range(8):
            x, y = X + n, np.empty_like(X)
            handle = self.handle(made)
            self.ok(handle.setBuffers([x, y]))
            self.ok(made.submit(handle, n))
            status, done = made.getCompletedId(n)
            self.ok(status)
            self.assertEqual((done, done.getId(), done.id, hash(done)), (handle, n, n, hash(handle)))
            np.testing.assert_array_equal(y, np.maximum(x, 0))
            self.ok(made.putCompleted(done))

    def test_one_thread_submits_and_another_collects(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, None, 4, 2)
        outputs = {n: np.empty_like(X) for n in range(200)}

        def collect():
            for _ in outputs:
                status, handle = made.getCompleted(timeout=60)
                self.ok(status)
                self.ok(made.putCompleted(handle))

        collector = threading.Thread(target=collect)
        for n, y in outputs.items():
            handle = self.handle(made)
            self.ok(handle.setBuffers([X * n, y]))
            self.ok(made.submit(handle, n))
            if n == 0:
                collector.start()
        collector.join()
        self.ok(made.waitForCompletion())
        for n, y in outputs.items():
            np.testing.assert_array_equal(y, np.maximum(X * n, 0))

    def test_a_kept_handle_is_submitted_without_being_taken(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        handle, y = self.handle(made), np.empty_like(X)
        self.ok(handle.setBuffers([X, y]))
        for n in range(3):
            y.fill(7)
            self.ok(made.submit(handle, n))
            self.ok(made.getCompletedId(n)[0])
            self.ok(made.putCompleted(handle))
            np.testing.assert_array_equal(y, Y)

    def test_codes_of_wrong_calls(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 2, 1)
        self.assertEqual(made.getCompletedId(5), (QStatus.QS_INVAL, None))
        self.assertEqual(made.getCompleted(), (QStatus.QS_INVAL, None))
        self.assertEqual(made.getCompleted(timeout=0.01), (QStatus.QS_TIMEDOUT, None))
        self.assertEqual(made.putCompleted(None), QStatus.QS_INVAL)
        handle = self.handle(made)
        self.assertEqual(made.submit(handle, 1), QStatus.QS_INVAL)
        self.assertIn("16 bytes are allowed", qaicrt.lastErrorText())
        self.assertEqual(handle.setBuffers([X]), QStatus.QS_INVAL)
        self.assertEqual(handle.setBuffers([X[:, :3].copy(), X.copy()]), QStatus.QS_INVAL)
        self.ok(made.putCompleted(handle))
        self.assertEqual(made.putCompleted(handle), QStatus.QS_INVAL)
        other = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        self.assertEqual(other.submit(handle, 1), QStatus.QS_INVAL)
        self.assertEqual(made.cancel(9), QStatus.QS_INVAL)
        self.ok(made.shutdown())
        self.assertEqual(made.getAvailable(), (QStatus.QS_ERROR, None))

    def test_a_shutdown_ends_waits_of_other_threads(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        kept = self.handle(made)
        found = []
        thread = threading.Thread(target=lambda: found.append(made.getAvailable(timeout=60)))
        thread.start()
        self.ok(made.shutdown())
        thread.join()
        self.assertEqual(found, [(QStatus.QS_ERROR, None)])
        self.assertEqual(kept.getIndex(), 0)

    def test_a_failed_handle_of_a_vector_is_put_back(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        vector = qaicrt.InferenceVector(self.qpc)
        vector.getVector()[0] = qaicrt.QBuffer(b"short")
        self.assertEqual(made.submit(vector, 1), QStatus.QS_INVAL)
        self.assertIn("'x' takes 16 bytes, given 5", qaicrt.lastErrorText())
        self.handle(made)

    def test_a_vector_with_what_is_no_buffer_takes_no_handle(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        vector = qaicrt.InferenceVector(self.qpc)
        vector.getVector()[0] = None
        for _ in range(2):
            self.assertRaises(TypeError, made.submit, vector, 1)
        self.handle(made)

    def test_sources_of_vectors(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 2, 1)
        zeros = qaicrt.InferenceVector(self.qpc, qaicrt.InferenceVector.DataSourceType.ZERO_FILL)
        self.assertEqual(bytes(zeros.getVector()[0]), bytes(16))
        file = Path(container(pair_model()), "x.bin")
        X.tofile(file)
        read = qaicrt.InferenceVector(self.qpc.getBufferMappings(), [str(file)])
        self.assertEqual(bytes(read.getVector()[0]), X.tobytes())
        self.ok(zeros.loadFromFileSet([str(file)]))
        self.assertEqual(bytes(zeros.getVector()[0]), X.tobytes())
        for vector in (zeros, read):
            self.ok(made.submit(vector, 3))
            status, handle = made.getCompletedId(3)
            self.ok(status)
            np.testing.assert_array_equal(np.frombuffer(vector.getVector()[1], np.float32), Y[0])
            self.ok(made.putCompleted(handle))
        self.assertEqual(zeros.setBuffers([X, X, X]), QStatus.QS_INVAL)
        self.ok(zeros.setInputBuffers([X + 1]))
        self.assertEqual(bytes(zeros.getVector()[0]), (X + 1).tobytes())
        self.refused(QStatus.QS_INVAL, lambda: qaicrt.InferenceVector(self.qpc, ["missing.bin"]))

    def test_the_list_of_a_vector_may_be_changed_in_place(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        vector = qaicrt.InferenceVector(self.qpc.getBufferMappings())
        vector.getVector()[0] = qaicrt.QBuffer(X.tobytes())
        vector.getVector()[1] = qaicrt.QBuffer(bytes(16))
        self.ok(made.submit(vector))
        self.ok(made.getCompletedId(0)[0])
        np.testing.assert_array_equal(np.frombuffer(vector.getVector()[1], np.float32), Y[0])

    def test_vectors_that_handles_begin_with(self):
        vectors = [qaicrt.InferenceVector(self.qpc) for _ in range(2)]
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 2, 1, vectors)
        for _ in vectors:
            handle = self.handle(made)
            self.assertEqual(bytes(handle.getBuffers()[0]), bytes(vectors[handle.getIndex()].getVector()[0]))
            self.ok(made.submit(handle, handle.getIndex()))
        self.ok(made.drain())
        self.refused(QStatus.QS_INVAL, lambda: qaicrt.InferenceSet(self.context, self.qpc, 0, 2, 1, vectors[:1]))

    def test_devices_and_properties(self):
        properties = qaicrt.InferenceSetProperties()
        properties.name, properties.id = "mine", 12
        properties.programProperties.dataPathTimeoutMs = 700
        properties.queueProperties.numThreadsPerQueue = 2
        self.assertEqual(properties.programProperties.SubmitRetryTimeoutMs, 700)
        for device in (0, None, "0", [0], qaicrt.QIDList([0])):
            made = qaicrt.InferenceSet(self.context, self.qpc, device, 3, 2, properties=properties)
            self.assertEqual((made.size(), made.getId(), made.objName(), made.objNameCstr()), (6, 12, "mine", "mine"))
            status, info = made.getAicProgramInfoV2()
            self.ok(status)
            self.assertEqual((info.numQids, info.qid[0]), (1, 0))
        for device, code in (([0, 1], QStatus.QS_UNSUPPORTED), ("0:1", QStatus.QS_UNSUPPORTED),
                             ("first", QStatus.QS_INVAL), (7, QStatus.QS_NODEV)):
            self.refused(code, lambda: qaicrt.InferenceSet(self.context, self.qpc, device, 1, 1))
        self.refused(QStatus.QS_INVAL, lambda: qaicrt.InferenceSet(self.context, self.qpc, 0, 0, 1))
        self.refused(QStatus.QS_NOSPC, lambda: qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 500))
        self.assertEqual(qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1, enableProfiling=True).size(), 1)

    def test_parts_of_the_buffers_and_the_descriptor_of_what_is_done(self):
        import select
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        handle, y = self.handle(made), np.empty_like(X)
        self.ok(handle.setInputBuffers([X]))
        self.ok(handle.setOutputBuffers([y]))
        self.assertEqual(handle.setInputBuffers([]), QStatus.QS_INVAL)
        self.assertEqual([b.size for b in handle.getBuffers()], [16, 16])
        self.assertEqual(list(handle.getBufferDimensions()), [])
        self.assertEqual(select.select([made.fd()], [], [], 0)[0], [])
        self.ok(made.submit(handle, 4))
        self.assertEqual(select.select([made.fd()], [], [], 60)[0], [made.fd()])
        self.assertEqual((handle.getStatus(), handle.getErrorText()), (OK, ""))
        self.ok(made.getCompleted()[0])
        np.testing.assert_array_equal(y, Y)


class Objects(Case):
    """pipeline, openrt_steps, own_dims, data_types, misuse."""

    def test_a_pipeline(self):
        util = qaicrt.Util()
        self.ok(util.checkLibraryVersion())
        status, devices = util.getDeviceIds()
        self.ok(status)
        self.assertEqual(list(devices), [0])
        context = qaicrt.Context(devices)
        self.ok(context.setLogLevel(qaicrt.QL_ERROR))
        self.assertEqual(context.getLogLevel(), (OK, qaicrt.QLogLevel.QL_ERROR))
        properties = qaicrt.QAicProgramProperties()
        qaicrt.Program.initProperties(properties)
        self.assertEqual((properties.SubmitNumRetries, properties.devMapping), (5, ""))
        program = qaicrt.Program(context, devices[0], self.qpc, properties, "stage")
        self.assertEqual(program.objName(), "stage")
        self.ok(program.load())
        self.ok(program.activate())
        self.assertTrue(program.isLoaded() and program.isActivated())
        queue = qaicrt.Queue(context, devices[0], qaicrt.QAicQueueProperties())
        frames = []
        for n in range(4):
            y = np.empty_like(X)
            object_ = qaicrt.ExecObj(context, program, [X + n, y])
            self.ok(queue.enqueue(object_))
            frames.append((object_, X + n, y))
        for object_, x, y in frames:
            self.ok(object_.waitForCompletion())
            np.testing.assert_array_equal(y, np.maximum(x, 0))
        self.assertEqual(program.getInferenceCompleteCount(), 4)
        self.assertIs(frames[0][0].getProgram(), program)
        self.assertIs(program.getContext(), context)

    def test_four_forms_of_set_data(self):
        qpc = qaicrt.Qpc(container(pair_model()))
        object_ = qaicrt.ExecObj(self.context, self.program(qpc))
        a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
        total, product = np.empty_like(a), np.empty_like(a)
        self.ok(object_.setData([(0, a)]))
        self.assertEqual(object_.run(), QStatus.QS_INVAL)
        self.assertIn("misses buffer 1 ('b')", qaicrt.lastErrorText())
        self.ok(object_.setData([a, b, total, product]))
        self.ok(object_.run())
        np.testing.assert_array_equal(total, a + b)
        self.ok(object_.setData([(1, b * 3)]))
        self.ok(object_.run())
        np.testing.assert_array_equal(product, a * 3)
        self.ok(object_.setData([a, a, total, product], [(4, [2, 3])] * 4))
        self.ok(object_.run())
        np.testing.assert_array_equal(product, a * a)
        vector = qaicrt.InferenceVector(qpc)
        self.ok(vector.setInputBuffers([a, b]))
        self.ok(object_.setData(vector))
        self.ok(object_.run())
        np.testing.assert_array_equal(np.frombuffer(vector.getVector()[2], np.float32), (a + b).ravel())
        self.ok(object_.run([a, b, total, product]))
        np.testing.assert_array_equal(total, a + b)
        for wrong in ([(9, a)], [(0, b"123")], [(0, a), (1, a[:1].copy())]):
            self.assertEqual(object_.setData(wrong), QStatus.QS_INVAL)
        self.assertEqual(object_.setData([a, b, total, product], [(4, [2, 3])]), QStatus.QS_INVAL)
        status, kept = object_.getData()
        self.ok(status)
        self.assertEqual(kept[2].buf, total.ctypes.data)

    def test_outputs_are_written_to_files(self):
        qpc = qaicrt.Qpc(container(pair_model()))
        program = self.program(qpc)
        a = np.ones((2, 3), np.float32)
        object_ = qaicrt.ExecObj(self.context, program, [a, a, bytes(24), bytes(24)])
        self.ok(object_.run())
        writer = qaicrt.FileWriter()
        self.assertEqual(writer.setOutputPath("/nowhere"), QStatus.QS_ERROR)
        folder = container(pair_model())
        self.ok(writer.setOutputPath(folder))
        self.ok(writer.writeExecObjData(object_, program.getBufferMappings(), 3, False, "-s"))
        np.testing.assert_array_equal(np.fromfile(Path(folder, "layer_product-s-inf-3.bin"), np.float32), a.ravel())

    def test_containers_and_their_infos(self):
        data = Path(self.folder, "programqpc.bin").read_bytes()
        file = qaicrt.QpcFile(self.folder)
        self.assertEqual(file.size(), 0)
        self.assertTrue(file.load())
        self.assertEqual(bytes(file.getBuffer()), data)
        for qpc in (self.qpc, qaicrt.Qpc(Path(self.folder)), qaicrt.Qpc(data), qaicrt.Qpc(bytearray(data), True),
                    qaicrt.Qpc(file.data()), qaicrt.Qpc(self.folder, "programqpc.bin")):
            self.assertEqual((qpc.size(), bytes(qpc.buffer())), (len(data), data))
            info = qpc.getInfo()
            self.assertEqual([m.bufferName for m in info.program[0].bufferMappings], ["x", "y"])
            self.assertEqual((info.program[0].numCores, info.program[0].batchSize), (1, 1))
            x, y = qpc.getBufferMappings()
            self.assertEqual((x.bufferName, x.index, x.ioType, x.size, x.isPartialBufferAllowed, x.dataType),
                             ("x", 0, qaicrt.BufferIoTypeEnum.BUFFER_IO_TYPE_INPUT, 16, False,
                              qaicrt.BUFFER_DATA_TYPE_FLOAT))
            self.assertEqual(y.ioType, qaicrt.BUFFER_IO_TYPE_OUTPUT)
            self.assertEqual(len(qpc.getBufferMappingsDma()), 2)
            both = qpc.getBufferMappingsV2()
            self.assertEqual((both[1].bufferMapping.bufferName, both[1].ioShapes[0].dims), ("y", [1, 4]))
            names = qaicrt.BufferIdentifiers(both)
            self.assertEqual([(i.getBufferName(), i.getBufferIndex()) for i in names.getBufferIdentifierVec()],
                             [("x", 0), ("y", 1)])
            self.assertEqual(list(names.getBufferSizeDimensionPair()), [(4, [1, 4])] * 2)
            described = aicapi.IoDesc.FromString(qpc.getIoDescriptor()[1])
            self.assertEqual([(b.name, b.dir) for b in described.selected_set.bindings],
                             [("x", aicapi.BUFFER_IO_TYPE_INPUT), ("y", aicapi.BUFFER_IO_TYPE_OUTPUT)])

    def test_bytes_of_a_container_are_kept_by_what_is_made_of_it(self):
        class Data(bytearray):
            pass

        data = Data(Path(self.folder, "programqpc.bin").read_bytes())
        gone = weakref.ref(data)
        program = self.program(qaicrt.Qpc(data))
        del data
        gc.collect()
        self.assertIsNotNone(gone())
        y = np.empty_like(X)
        self.ok(qaicrt.ExecObj(self.context, program).run([X, y]))
        np.testing.assert_array_equal(y, Y)
        del program
        gc.collect()
        self.assertIsNone(gone())

    def test_data_buffers(self):
        buffer = qaicrt.DataBuffer()
        buffer.allocate(8)
        buffer.dataPtr()[:] = b"abcdefgh"
        self.assertEqual((buffer.shrinkBuffer(9), buffer.shrinkBuffer(3)), (QStatus.QS_INVAL, OK))
        kept = buffer.getBuffer()
        buffer.release()
        self.assertEqual((bytes(kept), buffer.size()), (b"abc", 0))

    @unittest.skipUnless(CLI, "CORELANE_CLI names no command line tool")
    def test_dimensions_and_a_buffer_that_is_left_out(self):
        qpc = qaicrt.Qpc(partial_container())
        object_ = qaicrt.ExecObj(self.context, self.program(qpc))
        for n in (4, 8, 4):
            x, y = np.arange(n, dtype=np.float32)[None], np.empty((1, n), np.float32)
            dims = qaicrt.BufferDimensionsVecRef([(4, [1, n]), (4, [0]), (4, x.shape)])
            self.ok(object_.setData([x, np.array([]), y], dims))
            self.ok(object_.run())
            np.testing.assert_array_equal(y, 2 * x)
        dims[0] = (4, [1, 5])
        self.assertEqual(object_.setData([np.zeros(5, np.float32), b"", np.zeros(5, np.float32)], dims),
                         QStatus.QS_INVAL)
        self.assertIn("x", qaicrt.lastErrorText())

    def test_a_dmabuf(self):
        fd = os.memfd_create("x")
        try:
            os.write(fd, bytes(64) + X.tobytes())
            y = np.empty_like(X)
            given = qaicrt.QBuffer(size=16, handle=fd, offset=64, type=qaicrt.QBUFFER_TYPE_DMABUF)
            with self.assertRaises(BufferError):
                bytes(given)
            object_ = qaicrt.ExecObj(self.context, self.program())
            self.ok(object_.setData([given, y]))
            self.ok(object_.run())
            np.testing.assert_array_equal(y, Y)
        finally:
            os.close(fd)
        pmem = qaicrt.QBuffer(X, type=qaicrt.QBUFFER_TYPE_PMEM)
        self.assertEqual(object_.setData([pmem, y]), QStatus.QS_UNSUPPORTED)

    def test_buffers_of_the_device(self):
        bits = qaicrt.QAIC_EXECOBJ_PROPERTIES_DEFAULT | qaicrt.QAIC_EXECOBJ_PROPERTIES_ZERO_COPY_BUFFERS
        object_ = qaicrt.ExecObj(self.context, self.program(), properties=bits)
        status, (x, y) = object_.getData()
        self.ok(status)
        np.frombuffer(x, np.float32)[:] = X[0]
        self.ok(object_.run())
        del object_
        gc.collect()
        np.testing.assert_array_equal(np.frombuffer(y, np.float32), Y[0])

    def test_an_object_that_could_not_be_made_leaves_its_program(self):
        program = self.program()
        self.ok(program.load())
        self.assertRaises(TypeError, qaicrt.ExecObj, self.context, program, [1, 2])
        self.refused(QStatus.QS_INVAL, lambda: qaicrt.ExecObj(self.context, program, [b"short", b"short"]))
        self.ok(program.unload())

    def test_misuse_of_objects(self):
        context, qpc = self.context, self.qpc
        for code, make in (
                (QStatus.QS_INVAL, lambda: qaicrt.Context(0, properties=0x100)),
                (QStatus.QS_INVAL, lambda: qaicrt.Context([])),
                (QStatus.QS_INVAL, lambda: qaicrt.Context([0, 0])),
                (QStatus.QS_NODEV, lambda: qaicrt.Context(9)),
                (QStatus.QS_ERROR, lambda: qaicrt.Qpc("/missing")),
                (QStatus.QS_ERROR, lambda: qaicrt.QpcFile("/missing").load()),
                (QStatus.QS_INVAL, lambda: qaicrt.Qpc(b"")),
                (QStatus.QS_INVAL, lambda: qaicrt.Qpc(b"x" * 100)),
                (QStatus.QS_UNSUPPORTED, lambda: qaicrt.Qpc(b"\x7c\xcd\xa1\x00" + bytes(4))),
                (QStatus.QS_INVAL, lambda: qpc.getBufferMappings(1)),
                (QStatus.QS_NODEV, lambda: qaicrt.Program(context, 3, qpc)),
                (QStatus.QS_UNSUPPORTED, lambda: self.program(devMapping="0:1")),
                (QStatus.QS_UNSUPPORTED, lambda: qaicrt.Program(context, [0, 1], qpc)),
                (QStatus.QS_INVAL, lambda: qaicrt.ExecObj(context, self.program(), [X])),
        ):
            self.refused(code, make)
        self.assertEqual(qpc.getIoDescriptor(3), (QStatus.QS_INVAL, b""))
        threads = qaicrt.QAicQueueProperties()
        threads.numThreadsPerQueue = 0
        self.refused(QStatus.QS_INVAL, lambda: qaicrt.Queue(context, 0, threads))
        program = self.program()
        object_ = qaicrt.ExecObj(context, program, properties=0)
        queue = qaicrt.Queue(context)
        self.assertEqual(queue.enqueue(object_), QStatus.QS_INVAL)
        self.assertEqual(object_.waitForCompletion(), QStatus.QS_INVAL)
        self.ok(object_.setData([X, X.copy()]))
        self.assertEqual(queue.enqueue(object_), QStatus.QS_INVAL)
        self.ok(program.activate())
        self.assertEqual(program.unload(), QStatus.QS_BUSY)
        self.ok(object_.run())
        self.assertEqual(qaicrt.Util().lockDevice(0, True), QStatus.QS_UNSUPPORTED)

    def test_exceptions_are_of_their_families(self):
        error = self.refused(QStatus.QS_ERROR, lambda: qaicrt.Qpc("/missing"), "/missing/programqpc.bin")
        self.assertIsInstance(error, qaicrt.CoreExceptionInit)
        self.assertIsInstance(error, qaicrt.ExceptionInit)
        self.assertIsInstance(error, RuntimeError)
        error = self.refused(QStatus.QS_INVAL, lambda: self.qpc.getBufferMappings(7))
        self.assertIsInstance(error, qaicrt.CoreExceptionRuntime)
        self.assertIsInstance(error, qaicrt.ExceptionRuntime)
        self.assertTrue(issubclass(qaicrt.CoreExceptionNullPtr, qaicrt.ExceptionNullPtr))

    def test_arguments_of_other_kinds_are_named(self):
        for what, make in (("a device", lambda: qaicrt.Context("x")),
                           ("a device", lambda: qaicrt.Program(self.context, "0", self.qpc)),
                           ("the source", lambda: qaicrt.InferenceVector(self.qpc, 99))):
            with self.assertRaisesRegex(TypeError, what):
                make()
        with self.assertRaisesRegex(ValueError, "null character"):
            qaicrt.Qpc("/folder\0x")
        self.assertEqual(qaicrt.DataBuffer().shrinkBuffer(5), QStatus.QS_INVAL)
        self.assertIn("DataBuffer", qaicrt.lastErrorText())

    def test_arguments_of_other_kinds_are_type_errors(self):
        for make in (lambda: qaicrt.Context("0"), lambda: qaicrt.Context(log=3), lambda: qaicrt.Qpc(5),
                     lambda: qaicrt.Program(self.context), lambda: qaicrt.Program(None, 0, self.qpc),
                     lambda: qaicrt.ExecObj(self.context, None), lambda: qaicrt.QBuffer(5),
                     lambda: qaicrt.QBuffer("text"), lambda: qaicrt.BufferDimensionsVecRef([3]),
                     lambda: qaicrt.QIDList(["a"]), lambda: qaicrt.InferenceVector(3),
                     lambda: qaicrt.InferenceHandle(), lambda: self.program().load(1)):
            with self.assertRaises(TypeError):
                make()
        with self.assertRaises(ValueError):
            qaicrt.QBuffer(size=5)

    def test_numbers_out_of_range_are_named(self):
        run = qaicrt.ExecObj(self.context, self.program())
        for text, use in (("the place of a buffer is a number from 0 .* not -1", lambda: run.setData([(-1, X)])),
                          ("the number of a device has 32 bits", lambda: qaicrt.Context(2**40)),
                          ("bits of 32", lambda: qaicrt.ExecObj(self.context, self.program(), properties=-1)),
                          ("a QIDList holds numbers of devices", lambda: qaicrt.Context([2**40])),
                          ("a list of BufferMapping", lambda: qaicrt.InferenceVector([3]))):
            with self.subTest(text=text), self.assertRaisesRegex(TypeError, text):
                use()

    def test_objects_whose_init_did_not_run_or_raised_are_type_errors(self):
        class Failed(qaicrt.InferenceVector):
            def __init__(self):
                with contextlib.suppress(qaicrt.CoreExceptionInit):
                    super().__init__([], ["/there is no such file"])

        def made(kind):
            return kind.__new__(kind)

        program = self.program()
        run, a_set = qaicrt.ExecObj(self.context, program), qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        _, handle = a_set.getAvailable()
        for number, use in enumerate((
                lambda: a_set.submit(Failed()), lambda: run.setData(Failed()), lambda: handle.setBuffers(Failed()),
                lambda: a_set.submit(made(qaicrt.InferenceHandle)), lambda: handle == made(qaicrt.InferenceHandle),
                lambda: a_set.putCompleted(made(qaicrt.InferenceHandle)),
                lambda: run.setData([made(qaicrt.QBuffer)] * 2), lambda: qaicrt.InferenceVector(made(qaicrt.Qpc)),
                lambda: handle.setBufferDimensions(made(qaicrt.BufferDimensionsVecRef)),
                lambda: qaicrt.Context(made(qaicrt.QIDList)),
                lambda: qaicrt.InferenceSet(self.context, made(qaicrt.Qpc)),
                lambda: qaicrt.Program(self.context, 0, made(qaicrt.Qpc)),
                lambda: qaicrt.Program(made(qaicrt.Context), 0, self.qpc),
                lambda: qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1, [made(qaicrt.InferenceVector)]),
                lambda: qaicrt.ProfilingHandle(made(qaicrt.Program), 3, print),
                lambda: qaicrt.ProfilingHandle(made(qaicrt.InferenceSet), 3, print),
                lambda: qaicrt.ProfilingHandle(made(qaicrt.InferenceBenchmarkSet), 3, print),
                lambda: made(qaicrt.InferenceSet).getAvailable(), lambda: qaicrt.InferenceSet.getAvailable(5),
                lambda: made(qaicrt.InferenceSet).submit(handle), lambda: qaicrt.InferenceSet.submit(5, handle),
                lambda: run.setDataWithSlices([(0, X)], made(qaicrt.SlicingSpec), []))):
            with self.subTest(use=number), self.assertRaises(TypeError):
                use()
        with self.assertRaisesRegex(TypeError, r"the corelane\.qaicrt\.InferenceVector was not init.* call super"):
            a_set.submit(Failed())
        with self.assertRaises(BufferError):
            memoryview(made(qaicrt.QBuffer))

    def test_memory_that_is_not_contiguous_is_told_in_one_way(self):
        import ml_dtypes
        square = np.zeros((4, 4), np.float32)
        for array in (square[:, 1], square[:, ::2], square[::2], np.zeros((4, 3)).T, np.zeros(8, np.uint8)[::2],
                      np.zeros(8, ml_dtypes.bfloat16)[::2], np.broadcast_to(np.float32(1), (3,))):
            with self.assertRaisesRegex(ValueError, r"memory of the ndarray is not contiguous; pass numpy\.ascontig"):
                qaicrt.QBuffer(array)
        for objects in (np.array([None]), np.zeros(2, [("a", "f4"), ("b", "O")])):
            with self.assertRaisesRegex(TypeError, "the ndarray holds Python objects; pass numbers"):
                qaicrt.QBuffer(objects)


class Memory(Case):
    def test_arrays_are_used_in_place_and_kept(self):
        class Kept(np.ndarray):
            pass

        object_ = qaicrt.ExecObj(self.context, self.program())
        x, y = X.copy().view(Kept), np.empty_like(X).view(Kept)
        gone = weakref.ref(x), weakref.ref(y)
        self.ok(object_.setData([x, y]))
        self.assertEqual([b.buf for b in object_.getData()[1]], [x.ctypes.data, y.ctypes.data])
        x[0, 0] = 9
        del x
        gc.collect()
        self.ok(object_.run())
        self.assertEqual(y[0, 0], 9)
        del y
        gc.collect()
        self.assertTrue(all(one() is not None for one in gone))
        self.ok(object_.setData([X, X.copy()]))
        gc.collect()
        self.assertTrue(all(one() is None for one in gone))

    def test_memory_that_cannot_be_written_is_never_written(self):
        object_ = qaicrt.ExecObj(self.context, self.program())
        zeros, locked = bytes(16), np.zeros_like(X)
        locked.flags.writeable = False
        for output in (zeros, qaicrt.QBuffer(zeros), locked):
            self.ok(object_.setData([X.tobytes(), output]))
            self.ok(object_.run())
            status, buffers = object_.getData()
            self.ok(status)
            self.assertFalse(buffers[1].readonly)
            self.assertEqual(bytes(buffers[1]), Y.tobytes())
        self.assertEqual((zeros, locked.sum()), (bytes(16), 0))

    def test_results_that_are_held_stay_as_they_are(self):
        object_ = qaicrt.ExecObj(self.context, self.program())
        held = []
        for n in range(3):
            self.ok(object_.setData([X + n, bytes(16)]))
            self.ok(object_.run())
            held.append(np.frombuffer(object_.getData()[1][1], np.float32))
        for n, y in enumerate(held):
            np.testing.assert_array_equal(y, np.maximum(X + n, 0)[0])

    def test_memory_of_own_is_used_again(self):
        object_ = qaicrt.ExecObj(self.context, self.program())
        places = set()
        for _ in range(20):
            self.ok(object_.setData([X, bytes(16)]))
            places.add(object_.getData()[1][1].buf)
        self.assertEqual(len(places), 1)

    def test_objects_that_show_memory(self):
        import array
        object_ = qaicrt.ExecObj(self.context, self.program())
        for x in (X, X.tobytes(), bytearray(X.tobytes()), memoryview(X), array.array("f", X[0].tolist()),
                  qaicrt.QBuffer(X), X.view(np.int32), X.astype(np.float32, order="F")):
            y = bytearray(16)
            self.ok(object_.run([x, y]))
            self.assertEqual(bytes(y), Y.tobytes())
        buffer = qaicrt.QBuffer(X)
        self.assertEqual((len(buffer), buffer.size, buffer.handle, buffer.offset, buffer.type, buffer.readonly),
                         (16, 16, 0, 0, qaicrt.QBUFFER_TYPE_HEAP, False))
        self.assertEqual(len(qaicrt.QBuffer()), 0)

    def test_types_without_a_letter_are_memory_too(self):
        import ml_dtypes
        self.assertEqual(bytes(qaicrt.QBuffer(np.ones(2, ml_dtypes.bfloat16))), b"\x80\x3f" * 2)

    def test_a_cycle_through_a_callback_is_collected(self):
        class Client:
            def __init__(self):
                self.context = qaicrt.Context(0, log=self.line)
                self.program = qaicrt.Program(self.context, 0, Case.shared)

            def line(self, level, text):
                pass

        Case.shared = self.qpc
        gone = weakref.ref(Client())
        gc.collect()
        self.assertIsNone(gone())


class Devices(Case):
    def test_figures_of_a_device(self):
        util = qaicrt.Util()
        status, info = util.getDeviceInfo(0)
        self.ok(status)
        self.assertEqual((info.qid, info.devStatus, info.pciInfo.vendorname), (0, qaicrt.QDS_READY, "Corelane"))
        status, resources = util.getResourceInfo(0)
        self.ok(status)
        self.assertEqual((resources.nspTotal, resources.QResourceReservationID), (16, -1))
        self.ok(util.getPerformanceInfo(0)[0])
        self.assertEqual(util.getResourceInfo(9)[0], QStatus.QS_NODEV)
        status, major, minor, _, variant = util.getAicVersion()
        self.assertEqual((status, major, variant), (OK, 10, "corelane"))
        self.assertGreaterEqual(minor, 1)
        self.assertEqual(list(util.getDeviceIds(qaicrt.QAicDeviceType.QAIC_DEVICE_TYPE_DEFAULT)[1]), [0])

    def test_a_device_is_found_where_there_is_room(self):
        self.assertEqual(self.context.findDevice(self.qpc), 0)
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 16)
        self.refused(QStatus.QS_NODEV, lambda: self.context.findDevice(self.qpc))
        program = qaicrt.Program(self.context, None, self.qpc)
        self.assertEqual((program.getQid(), program.activate()), (0, QStatus.QS_NOSPC))
        del made
        self.ok(program.activate())
        self.ok(program.deactivate())

    def test_contexts_of_devices(self):
        for devices in (None, 0, [0], (0,), qaicrt.QIDList([0])):
            context = qaicrt.Context(devices)
            self.assertEqual(list(context.getDevices()), [0])
            self.assertEqual((context.objName(), context.objNameCstr()), ("Context", "Context"))
            self.assertGreater(context.getId(), 0)

    def test_enumerations_are_numbers_and_stand_in_the_module(self):
        self.assertEqual((QStatus.QS_TIMEDOUT, int(qaicrt.QS_DEV_ERROR)), (9, 300))
        self.assertIs(qaicrt.QS_TIMEDOUT, QStatus.QS_TIMEDOUT)
        self.assertIs(qaicrt.QAicBufferIoTypeEnum, qaicrt.BufferIoTypeEnum)
        self.assertEqual(qaicrt.QAicErrorType.QIAC_ERROR_EXECOBJ_RUNTIME, 0x501)
        self.assertEqual(qaicrt.QAicQueuePropertiesBitfields.QAIC_QUEUE_PROPERTIES_DEFAULT, 1)
        self.assertEqual(qaicrt.BUFFER_DATA_TYPE_BFLOAT16, 11)

    def test_programs_of_a_group_run_once_it_is_enabled(self):
        properties = qaicrt.QAicProgramGroupProperties()
        properties.protocolSelect = qaicrt.QAicProgramGroupPropertiesProtocol.QAIC_PROGRAM_GROUP_PROTOCOL_DATA_PATH
        group = qaicrt.ProgramGroup(self.context, 0, "shared", properties)
        programs = [group.addProgram(self.qpc), group.addProgram(self.qpc)]
        turn = qaicrt.QAicProgramGroupTurn()
        turn.weight = 0
        self.assertEqual(group.setTurn(programs[0], turn), QStatus.QS_INVAL)
        turn.weight = 2
        self.ok(group.setTurn(programs[0], turn))
        objects = []
        for program in programs:
            objects.append(qaicrt.ExecObj(self.context, program))
            self.ok(objects[-1].setData([X, np.zeros_like(X)]))
        self.assertEqual(objects[0].run(), QStatus.QS_INVAL)
        self.assertIn("enable the group", qaicrt.lastErrorText())
        self.ok(group.enable())
        for program, made in zip(programs, objects):
            self.assertTrue(program.isActivated())
            self.ok(made.run())
            status, buffers = made.getData()
            np.testing.assert_array_equal(np.frombuffer(buffers[1], np.float32), Y.ravel())
            status, figures = group.getTurnFigures(program)
            self.assertEqual((status, figures.turns), (OK, 1))
        self.ok(group.disable(True, 60_000_000))
        self.assertFalse(programs[0].isActivated())
        self.ok(group.enable())
        self.ok(group.disable(False, 0))
        del group, programs
        self.assertEqual(objects[0].run(), QStatus.QS_INVAL)

    def test_library_that_is_named_is_opened(self):
        from qaicrt_support import program
        done = program("""
            try:
                Context()
            except CoreExceptionInit as error:
                print(error, error.status.name)
            """, QAIC_LIB="/nowhere/libQAic.so")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("QAIC_LIB names '/nowhere/libQAic.so'", done.stdout)
        self.assertIn("QS_ERROR", done.stdout)


if __name__ == "__main__":
    unittest.main()
