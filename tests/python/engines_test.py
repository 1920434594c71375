"""The two engines of the virtual NPU as a Python program meets them: which one computes, and both beside another
onnxruntime in the same process."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

from python_support import PATIENCE, X, Y, model_of, relu_model

import corelane



def tree_model():
    """A decision of two leaves over a tabular row, with a label and a probability for each class."""
    tree = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "probabilities"], domain="ai.onnx.ml",
        classlabels_int64s=[3, 8], post_transform="NONE", nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2],
        nodes_featureids=[1, 0, 0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], nodes_hitrates=[1.0, 1.0, 1.0],
        nodes_missing_value_tracks_true=[0, 0, 0], class_treeids=[0, 0, 0, 0], class_nodeids=[1, 1, 2, 2],
        class_ids=[0, 1, 0, 1], class_weights=[0.9, 0.1, 0.25, 0.75])
    return model_of([tree], [("x", ("N", 3))],
                    [("label", ("N",), TensorProto.INT64), ("probabilities", ("N", 2))])


class Engines(unittest.TestCase):
    def test_a_tree_runs_on_the_second_engine_as_in_the_original(self):
        import onnxruntime
        rows = np.array([[1, 0.5, 2], [0, 0.75, -1], [9, -9, 0]], np.float32)
        session = corelane.InferenceSession(tree_model())
        original = onnxruntime.InferenceSession(tree_model(), providers=["CPUExecutionProvider"])
        for ours, theirs in zip(session.run(None, {"x": rows}), original.run(None, {"x": rows})):
            self.assertEqual(ours.dtype, theirs.dtype)
            np.testing.assert_array_equal(ours, theirs)
        probabilities = np.array([[0.9, 0.1], [0.25, 0.75], [0.9, 0.1]], np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": rows})[1], probabilities)

    def test_each_engine_computes_where_it_is_asked_for(self):
        for engine in ("auto", "openvino", "onnxruntime"):
            session = corelane.InferenceSession(relu_model(), provider_options=[{"engine": engine}],
                                                providers=["RKNPU2ExecutionProvider"])
            np.testing.assert_array_equal(session.run(None, {"x": X})[0], Y)
            self.assertEqual(session.get_provider_options()["RKNPU2ExecutionProvider"]["engine"], engine)

    def test_the_first_engine_refuses_a_tree_by_its_operator(self):
        with self.assertRaisesRegex(Exception, "TreeEnsembleClassifier"):
            corelane.InferenceSession(tree_model(), provider_options=[{"engine": "openvino"}],
                                      providers=["RKNPU2ExecutionProvider"])

    def test_a_session_tells_which_engine_computes_it_and_why(self):
        asked = corelane.InferenceSession(tree_model()).engine()
        self.assertTrue(asked["engine"].startswith("ONNX Runtime"), asked)
        self.assertIn("TreeEnsembleClassifier", asked["why"])
        session = corelane.InferenceSession(relu_model(), provider_options=[{"engine": "openvino"}],
                                            providers=["RKNPU2ExecutionProvider"])
        self.assertEqual(session.engine(), {"engine": session.device()["engine"], "why": ""})

    def test_an_engine_that_is_none_is_an_error_with_those_there_are(self):
        with self.assertRaisesRegex(Exception, "openvino, onnxruntime"):
            corelane.InferenceSession(relu_model(), provider_options=[{"engine": "cuda"}],
                                      providers=["RKNPU2ExecutionProvider"])


class Processes(unittest.TestCase):
    """Each in a process of its own: what is loaded stays loaded."""

    def run_code(self, code):
        with tempfile.TemporaryDirectory() as folder:
            for name, model in (("tree", tree_model()), ("relu", relu_model())):
                (Path(folder) / f"{name}.onnx").write_bytes(model)
            done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True,
                                  timeout=PATIENCE, cwd=folder, env={**os.environ, "CORELANE_CACHE": "0"}, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    ORIGINAL = """
        import onnxruntime
        theirs = onnxruntime.InferenceSession("tree.onnx", providers=["CPUExecutionProvider"])
        first = theirs.run(None, feed)
    """
    SECOND = """
        import corelane
        ours = corelane.InferenceSession("tree.onnx")
        second = ours.run(None, feed)
    """

    def test_it_works_beside_another_onnxruntime_in_both_orders(self):
        begin = "import numpy as np\nfeed = {'x': np.array([[1, 0.5, 2], [0, 0.75, -1]], np.float32)}\n"
        end = """
            for session in (theirs, ours, theirs):
                for a, b, c in zip(first, second, session.run(None, feed)):
                    assert np.array_equal(a, b) and np.array_equal(a, c)
            print("alike")
        """
        parts = [textwrap.dedent(text) for text in (self.ORIGINAL, self.SECOND)]
        for order in (parts, parts[::-1]):
            self.assertEqual(self.run_code(begin + "".join(order) + textwrap.dedent(end)), "alike\n")

    def test_it_works_where_the_process_has_opened_the_same_library_before(self):
        """The environment that the process has made has no thread pools for our sessions."""
        printed = self.run_code("""
            import ctypes, glob, os
            import onnxruntime
            folder = os.path.join(os.path.dirname(onnxruntime.__file__), "capi")
            library = ctypes.CDLL(glob.glob(folder + "/libonnxruntime.so*")[0])
            class Base(ctypes.Structure):
                _fields_ = [("get_api", ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32))]
            library.OrtGetApiBase.restype = ctypes.POINTER(Base)
            table = library.OrtGetApiBase().contents.get_api(17)
            create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p,
                                      ctypes.POINTER(ctypes.c_void_p))(table[3])  # CreateEnv
            environment = ctypes.c_void_p()
            assert create(3, b"test", ctypes.byref(environment)) is None
            import corelane, numpy as np
            session = corelane.InferenceSession("tree.onnx")
            feed = {"x": np.array([[1, 0.5, 2], [0, 0.75, -1]], np.float32)}
            theirs = onnxruntime.InferenceSession("tree.onnx", providers=["CPUExecutionProvider"])
            for _ in range(6):
                for a, b in zip(session.run(None, feed), theirs.run(None, feed), strict=True):
                    assert np.array_equal(a, b)
            print("alike")
        """)
        self.assertEqual(printed, "alike\n")

    def test_it_is_not_opened_where_nothing_needs_it(self):
        printed = self.run_code("""
            import corelane, numpy as np
            npu = dict(providers=["RKNPU2ExecutionProvider"], provider_options=[{"time_engines": False}])
            def opened():
                return "libonnxruntime.so" in open("/proc/self/maps").read()
            relu = corelane.InferenceSession("relu.onnx", **npu)
            for _ in range(20):
                relu.run(None, {"x": np.ones((1, 4), np.float32)})
            before = opened()
            corelane.InferenceSession("tree.onnx")
            print(before, opened())
        """)
        self.assertEqual(printed, "False True\n")


if __name__ == "__main__":
    unittest.main()
