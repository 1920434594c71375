"""Names of inputs, files and nodes cannot act on a terminal: control characters are written out in errors and logs."""
import logging
import os
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper

import corelane
from corelane import rknn_toolkit as toolkit

EVIL = "x\n\x1b[2Jy\u202e"
SHOWN = "x\\n\\x1b[2Jy\\xe2\\x80\\xae"


def model() -> bytes:
    """One Relu whose input has a name that clears the screen."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in (EVIL, "y")]
    graph = helper.make_graph([helper.make_node("Relu", [EVIL], ["y"])], "net", value[:1], value[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


class Printable(unittest.TestCase):
    def check(self, text):
        self.assertTrue(SHOWN in str(text) or repr(EVIL)[1:-1] in str(text), repr(str(text)))
        self.assertTrue(str(text).isprintable(), repr(str(text)))

    def test_errors_of_a_session(self):
        session = corelane.InferenceSession(model(), providers=["CPUExecutionProvider"])
        with self.assertRaises(Exception) as missing:
            session.run(None, {})
        self.check(missing.exception)
        with self.assertRaises(Exception) as shape:
            session.run(None, {EVIL: np.zeros((2, 4), np.float32)})
        # Where onnxruntime's words have several lines, they stay.
        self.assertIn(f"for input: {SHOWN} for the following indices\n index: 0 Got: 2", str(shape.exception))
        with self.assertRaises(Exception) as rank:
            session.run(None, {EVIL: np.zeros(4, np.float32)})
        self.check(rank.exception)
        with self.assertRaises(Exception) as binding:
            session.io_binding().bind_cpu_input("no" + EVIL, np.zeros((1, 4), np.float32))
        self.check(binding.exception)

    def test_errors_and_log_of_the_toolkit(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            with open(path, "wb") as file:
                file.write(model())
            rknn = toolkit.RKNN()
            rknn.config(target_platform="rk3588")
            self.assertEqual(rknn.load_onnx(path), 0)
            dataset = os.path.join(folder, EVIL)
            with open(dataset, "wb"):
                pass  # It lists no file.
            with self.assertLogs("corelane.rknn_toolkit", logging.ERROR) as log:
                self.assertNotEqual(rknn.build(do_quantization=True, dataset=dataset), 0)
        self.check(log.records[0].getMessage())

    def test_halves_of_pairs_in_names_of_files(self):
        from corelane._rknn.log import UsageError
        self.assertEqual(str(UsageError("a\udc80b\r")), "a\\udc80b\\r")


if __name__ == "__main__":
    unittest.main()
