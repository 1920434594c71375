"""corelane.qaicrt: states on the device, and specializations that cover other dimensions."""
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


if __name__ == "__main__":
    unittest.main()
