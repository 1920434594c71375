"""corelane.qaicrt: states on the device, slices of buffers, and specializations that cover other dimensions."""
import json
import unittest

import numpy as np

from corelane import qaicrt
from corelane.qaicrt import QStatus
from qaicrt_support import partial_container, state_container

OK = QStatus.QS_SUCCESS


class States(unittest.TestCase):
    """A network whose output `next` = x + h is its input `h` of the next run; y = 2 next."""

    @classmethod
    def setUpClass(cls):
        cls.context = qaicrt.Context()
        cls.qpc = qaicrt.Qpc(state_container())
        cls.places = {mapping.bufferName: mapping.index for mapping in cls.qpc.getBufferMappings()}

    def ok(self, status):
        self.assertEqual(status, OK, qaicrt.lastErrorText())

    def buffers(self, x, y):
        """The state's are left out."""
        given = [qaicrt.QBuffer()] * len(self.places)
        given[self.places["x"]], given[self.places["y"]] = qaicrt.QBuffer(x), qaicrt.QBuffer(y)
        return given

    def check(self, step, of, states, reset, put, copy):
        """`step(x)` gives y; the others are the methods of an object or a set's handle."""
        one = np.ones((1, 4), np.float32)
        for n in range(1, 4):
            np.testing.assert_array_equal(step(one), 2 * n * one)
        status, found = states(*of)
        self.ok(status)
        self.assertEqual([(s.inputIndex, s.outputIndex, s.size, s.inputKept, s.outputKept) for s in found],
                         [(self.places["h"], self.places["next"], 16, True, True)])
        status, data = copy(*of, 0)
        self.ok(status)
        np.testing.assert_array_equal(np.frombuffer(data, np.float32), [3] * 4)
        self.ok(put(*of, 0, np.full(4, 10, np.float32)))
        np.testing.assert_array_equal(step(one), 22 * one)
        self.ok(reset(*of))
        np.testing.assert_array_equal(step(one), 2 * one)
        self.ok(reset(*of, 0))
        np.testing.assert_array_equal(np.frombuffer(copy(*of, 0)[1], np.float32), [0] * 4)
        self.assertEqual(put(*of, 0, bytes(15)), QStatus.QS_INVAL)
        self.assertIn("16", qaicrt.lastErrorText())
        self.assertEqual(put(*of, 1, bytes(16)), QStatus.QS_INVAL)
        self.assertEqual(copy(*of, 1), (QStatus.QS_INVAL, b""))
        self.assertEqual(reset(*of, 7), QStatus.QS_INVAL)
        with self.assertRaises(TypeError):
            put(*of, 0, [1, 2])

    def test_of_an_execution_object(self):
        program = qaicrt.Program(self.context, 0, self.qpc)
        self.ok(program.activate())
        made = qaicrt.ExecObj(self.context, program)
        y = np.empty((1, 4), np.float32)

        def step(x):
            self.ok(made.setData(self.buffers(x, y)))
            self.ok(made.run())
            return y
        self.check(step, (), made.getStates, made.resetState, made.setState, made.copyState)

    def test_of_a_set_by_its_handle(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        status, handle = made.getAvailable()
        self.ok(status)
        y = np.empty((1, 4), np.float32)

        def step(x):
            self.ok(handle.setBuffers(self.buffers(x, y)))
            self.ok(made.submit(handle, 1))
            self.ok(made.getCompletedId(1)[0])
            return y
        self.check(step, (handle,), made.getStates, made.resetState, made.setState, made.copyState)
        self.assertEqual(made.getStates(None)[0], QStatus.QS_INVAL)
        other = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        self.assertEqual(other.resetState(handle), QStatus.QS_INVAL)
        self.assertEqual(other.copyState(handle, 0), (QStatus.QS_INVAL, b""))


class Slices(unittest.TestCase):
    """next = x + h, y = 2 next, of [1, 4], where `next` is the `h` of the next run."""

    SPEC = json.dumps({"BufferSpecs": [{"Name": "h|next", "ElemSize": 4,
                                        "DimSpecs": [{"start": "batch_index"}, {"start": "ctx_start"}]}]})

    def setUp(self):
        context, qpc = qaicrt.Context(), qaicrt.Qpc(state_container())
        self.places = {mapping.bufferName: mapping.index for mapping in qpc.getBufferMappings()}
        self.program = qaicrt.Program(context, None, qpc)
        self.object = qaicrt.ExecObj(context, self.program)
        status, self.spec = self.program.createSlicingSpecHandle(self.SPEC)
        self.ok(status)

    def ok(self, status):
        self.assertEqual(status, OK, qaicrt.lastErrorText())

    def give(self, context_start, **arrays):
        pairs = [(self.places[name], array) for name, array in arrays.items()]
        return self.object.setDataWithSlices(pairs, self.spec, [("batch_index", 0), ("ctx_start", context_start)])

    def test_of_state_on_the_device(self):
        x, y = np.ones((1, 4), np.float32), np.empty((1, 4), np.float32)
        self.ok(self.program.activate())
        status, spec = self.give(1, x=x, y=y, h=np.array([[10, 20]], np.float32))
        self.ok(status)
        self.assertIs(spec, self.spec)
        self.ok(self.object.run())
        np.testing.assert_array_equal(y, [[2, 22, 42, 2]])
        # Another one, elsewhere, into what the run has left: [1, 11, 21, 1].
        self.ok(self.give(3, h=np.array([[5]], np.float32))[0])
        self.ok(self.object.run())
        np.testing.assert_array_equal(y, [[4, 24, 44, 12]])
        # Left out, as clients write it.
        self.ok(self.give(0, h=np.array([]))[0])
        self.ok(self.object.run())
        np.testing.assert_array_equal(y, [[6, 26, 46, 14]])

    def test_of_an_output_before_the_other_buffers_are_set(self):
        x, y, part = np.ones((1, 4), np.float32), np.empty((1, 4), np.float32), np.empty((1, 2), np.float32)
        self.ok(self.give(2, next=part)[0])
        self.assertEqual(self.object.run(), QStatus.QS_INVAL)
        self.assertIn("misses buffer", qaicrt.lastErrorText())
        self.ok(self.object.setData([(self.places["x"], x), (self.places["y"], y)]))
        self.ok(self.object.run())
        np.testing.assert_array_equal(part, [[1, 1]])

    def test_of_outputs(self):
        x, y = np.arange(4, dtype=np.float32).reshape(1, 4), np.empty((1, 4), np.float32)
        part = np.empty((1, 2), np.float32)
        self.ok(self.give(2, x=x, y=y, next=part)[0])
        self.ok(self.object.run())
        np.testing.assert_array_equal(part, [[2, 3]])
        # Bytes cannot be written: the object brings memory as large.
        self.ok(self.give(3, next=bytes(4))[0])
        self.ok(self.object.run())
        status, buffers = self.object.getData()
        self.ok(status)
        self.assertEqual(np.frombuffer(buffers[self.places["next"]], np.float32).tolist(), [3])

    def test_refusals(self):
        status, spec = self.program.createSlicingSpecHandle("{}")
        self.assertEqual((status, spec), (QStatus.QS_INVAL, None))
        self.assertIn("BufferSpecs", qaicrt.lastErrorText())
        x, y = np.ones((1, 4), np.float32), np.empty((1, 4), np.float32)
        for start, array, why in ((3, np.zeros((1, 2), np.float32), "dimension 1 begins at 3"),
                                  (0, np.zeros((1, 2), np.float64), "are given with 8 bytes"),
                                  (0, np.zeros(2, np.float32), "1 dimensions from 2 starts"),
                                  (0, bytes(8), "to the end of each")):
            status, _ = self.give(start, x=x, y=y, h=array)
            self.assertEqual(status, QStatus.QS_INVAL, why)
            self.assertIn(why, qaicrt.lastErrorText())
        status, _ = self.object.setDataWithSlices([(self.places["h"], bytes(4))], self.spec, [("batch_index", 0)])
        self.assertEqual(status, QStatus.QS_INVAL)
        self.assertIn("'ctx_start', which has no value", qaicrt.lastErrorText())
        with self.assertRaises(TypeError):
            self.object.setDataWithSlices([(0, x)], None, [])
        with self.assertRaises(TypeError):
            qaicrt.SlicingSpec()


class Covering(unittest.TestCase):
    """y = 2 x + rest of width 4 or 8, run with width 6, without `rest`."""

    @classmethod
    def setUpClass(cls):
        cls.context = qaicrt.Context()
        cls.qpc = qaicrt.Qpc(partial_container())
        cls.dims = [(4, [1, 6]), (4, [0]), (4, [1, 6])]

    def ok(self, status):
        self.assertEqual(status, OK, qaicrt.lastErrorText())

    def data(self):
        x = np.arange(6, dtype=np.float32).reshape(1, 6)
        return x, qaicrt.QBuffer(), np.empty_like(x)

    def test_of_an_execution_object(self):
        made = qaicrt.ExecObj(self.context, qaicrt.Program(self.context, 0, self.qpc))
        x, rest, y = self.data()
        self.assertEqual(made.setData([x, rest, y], self.dims), QStatus.QS_INVAL)
        self.ok(made.setCovering(True))
        self.ok(made.setData([x, rest, y], self.dims))
        self.assertEqual(made.getSpecialization(), (OK, 1))
        self.ok(made.run())
        np.testing.assert_array_equal(y, 2 * x)
        self.ok(made.setCovering(False))
        self.assertEqual(made.setData([x, rest, y], self.dims), QStatus.QS_INVAL)

    def test_of_a_set_by_its_handle(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        status, handle = made.getAvailable()
        self.ok(status)
        x, rest, y = self.data()
        self.ok(made.setCovering(handle, True))
        self.ok(handle.setBufferDimensions(self.dims))
        self.ok(handle.setBuffers([x, rest, y]))
        self.ok(made.submit(handle, 1))
        self.ok(made.getCompletedId(1)[0])
        np.testing.assert_array_equal(y, 2 * x)
        self.assertEqual(made.getSpecialization(handle), (OK, 1))
        self.assertEqual(made.setCovering(None, True), QStatus.QS_INVAL)
        self.assertEqual(made.getSpecialization(None)[0], QStatus.QS_INVAL)
        # A vector has neither these dimensions nor the covering.
        self.ok(made.putCompleted(handle))
        self.ok(made.submit(qaicrt.InferenceVector(self.qpc), 2))
        self.assertEqual(handle.getBufferDimensions(), [])
        self.ok(made.getCompletedId(2)[0])
        self.ok(handle.setBufferDimensions(self.dims))
        self.assertEqual(handle.setBuffers([x, rest, y]), QStatus.QS_INVAL)


if __name__ == "__main__":
    unittest.main()
