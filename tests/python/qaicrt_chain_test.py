"""corelane.qaicrt: a network that was cut into parts, on a device each."""
import os
import unittest

os.environ.setdefault("CORELANE_QAIC_DEVICES", "virtual:aic100?name=first;virtual:aic100?name=second")

import numpy as np  # noqa: E402

from corelane import qaicrt  # noqa: E402
from corelane.qaicrt import QStatus  # noqa: E402
from qaicrt_support import compiled, model_of  # noqa: E402

OK = QStatus.QS_SUCCESS


def cut_container() -> str:
    """half = relu(x); y = half + half, of f32 [1, 4], cut at `half`."""
    from onnx import helper
    return compiled(model_of([helper.make_node("Relu", ["x"], ["half"]),
                              helper.make_node("Add", ["half", "half"], ["y"])],
                             [("x", (1, 4))], [("y", (1, 4))]), "--cut", "half")


class Chains(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context = qaicrt.Context([0, 1])
        cls.qpc = qaicrt.Qpc(cut_container())
        cls.x = np.array([[-1, 2, -3, 4]], np.float32)
        cls.y = np.array([[0, 4, 0, 8]], np.float32)

    def ok(self, status):
        self.assertEqual(status, OK, qaicrt.lastErrorText())

    def test_an_execution_object_runs_on_the_devices_of_the_mapping(self):
        for mapping in ("0:1", "1:0", ""):
            properties = qaicrt.QAicProgramProperties()
            qaicrt.Program.initProperties(properties)
            properties.devMapping = mapping
            program = qaicrt.Program(self.context, 0, self.qpc, properties)
            out = np.zeros((1, 4), np.float32)
            self.ok(qaicrt.ExecObj(self.context, program).run([self.x, out]))
            np.testing.assert_array_equal(out, self.y)

    def test_a_set_takes_its_devices_as_a_list(self):
        inferences = qaicrt.InferenceSet(self.context, self.qpc, [0, 1], 2, 1)
        out = np.zeros((1, 4), np.float32)
        status, handle = inferences.getAvailable()
        self.ok(status)
        self.ok(handle.setBuffers([self.x, out]))
        self.ok(inferences.submit(handle, 7))
        status, handle = inferences.getCompletedId(7)
        self.ok(status)
        np.testing.assert_array_equal(out, self.y)
        self.ok(inferences.putCompleted(handle))

    def test_a_mapping_of_another_length_is_refused(self):
        properties = qaicrt.QAicProgramProperties()
        qaicrt.Program.initProperties(properties)
        properties.devMapping = "0"
        with self.assertRaises(Exception) as caught:
            qaicrt.Program(self.context, 0, self.qpc, properties)
        self.assertEqual(caught.exception.status, QStatus.QS_INVAL)
        self.assertIn("2 parts", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
