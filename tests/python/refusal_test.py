"""Refusals of the first engine give the true reason, and what they propose works as they say it."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import corelane as ort
from python_support import model_of

LONG = TensorProto.INT64
os.environ["CORELANE_DEVICE"] = "virtual:rk3588?engine=openvino"  # The other engine takes most of these models.


def refusal(model, **options):
    """The text of what the session of a model is refused with."""
    try:
        made(model, **options)
    except ort.capi.onnxruntime_pybind11_state.InvalidGraph as error:
        return str(error)
    raise AssertionError("the model was taken")


def made(model, operators=(), dims=()):
    options = ort.SessionOptions()
    for name, function in dict(operators).items():
        options.add_custom_operator(name, function)
    for name, size in dict(dims).items():
        options.add_free_dimension_override_by_name(name, size)
    return ort.InferenceSession(model, options)


def tree_model(batch):
    """Class 1 where the first feature is above 0.5."""
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", name="tree", nodes_treeids=[0] * 3,
        nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.5, 0.0, 0.0], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], class_treeids=[0, 0],
        class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[1.0, 1.0], classlabels_int64s=[0, 1],
        post_transform="NONE")
    return model_of([node], [("x", (batch, 2))], [("label", (batch,), LONG), ("scores", (batch, 2))])


def tree(x, nodes_featureids, nodes_modes, nodes_values, nodes_truenodeids, nodes_falsenodeids, class_nodeids,
         class_ids, **_):
    """One tree by its attributes, node 0 its root."""
    scores = np.zeros((len(x), max(class_ids) + 1), np.float32)
    for row, sample in enumerate(x):
        node = 0
        while nodes_modes[node] == "BRANCH_LEQ":
            low = sample[nodes_featureids[node]] <= nodes_values[node]
            node = (nodes_truenodeids if low else nodes_falsenodeids)[node]
        scores[row, class_ids[class_nodeids.index(node)]] = 1
    return scores.argmax(1), scores


class MissingOperators(unittest.TestCase):
    def test_the_reason_is_the_operator_not_the_open_dimensions(self):
        for batch in ("N", None, 2):
            text = refusal(tree_model(batch))
            for part in ("operator 'ai.onnx.ml.TreeEnsembleClassifier'", "(node 'tree')", "has no such operator",
                         "--custom-op ai.onnx.ml.TreeEnsembleClassifier", "custom_operators"):
                self.assertIn(part, text)
            for other in ("open dimensions", "--dim", "add_free_dimension"):
                self.assertNotIn(other, text)

    def test_a_tree_operator_is_computed_with_its_attributes(self):
        x = np.array([[0, 1], [1, 0], [0.7, 3]], np.float32)
        for batch in ("N", None, 3):
            session = made(tree_model(batch), {"ai.onnx.ml.TreeEnsembleClassifier": tree})
            label, scores = session.run(None, {"x": x})
            np.testing.assert_array_equal(label, [0, 1, 1])
            np.testing.assert_array_equal(scores, [[1, 0], [0, 1], [0, 1]])

    def test_the_command_line_takes_the_operator_that_the_message_names(self):
        tool = Path(ort.__file__).parents[2] / "bin/corelane"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "tree.onnx")
            path.write_bytes(tree_model("N"))
            words = [str(tool), "compile", str(path), "-o", str(path.with_suffix(".rknn"))]
            done = subprocess.run([*words, "--custom-op", "ai.onnx.ml.TreeEnsembleClassifier"], capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_operator_of_several_outputs_is_computed(self):
        node = helper.make_node("Halves", ["x"], ["a", "b"], name="halves", domain="mine", at=2, words=["p", "q"])
        model = model_of([node], [("x", ("N", 4))], [("a", ("N", 2)), ("b", ("N", 2))])
        text = refusal(model)
        for part in ("mine.Halves", "--custom-op mine.Halves", "custom_operators"):
            self.assertIn(part, text)
        given = []
        session = made(model, {"mine.Halves": lambda x, **attributes: given.append(attributes)
                               or (x[:, :attributes["at"]], x[:, attributes["at"]:])})
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        first, second = session.run(None, {"x": x})
        np.testing.assert_array_equal(np.concatenate([first, second], 1), x)
        self.assertEqual(given, [{"at": 2, "words": ["p", "q"]}])


class OpenDimensions(unittest.TestCase):
    def test_one_without_a_name_is_fixed_by_input_and_axis(self):
        nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]),
                 helper.make_node("ReduceMean", ["r"], ["y"], axes=[1], keepdims=0)]
        model = model_of(nodes, [("x", (None, 4)), ("s", (None,), LONG)], [("y", ("A",))])
        text = refusal(model)
        for part in ("x [?, 4], s [?]", "'x[0]'", "INPUT[AXIS]", "compile --dim x[0]=SIZE"):
            self.assertIn(part, text)
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        session = made(model, dims={"x[0]": 2, "s[0]": 2, "x[7]": 1})  # One that nothing has is ignored.
        self.assertEqual([i.shape for i in session.get_inputs()], [[2, 4], [2]])
        np.testing.assert_array_equal(session.run(None, {"x": x, "s": np.array([4, 2])})[0], x.reshape(4, 2).mean(1))


class ValuesOfInputs(unittest.TestCase):
    @staticmethod
    def model(constant):
        """The mean over the last axis of one of two networks whose results differ in rank; `mode` chooses."""
        def one_of(name, shape):
            node = helper.make_node("Reshape", ["x", f"{name}_shape"], [name])
            value = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            return helper.make_graph([node], name, [], [value],
                                     [numpy_helper.from_array(np.array(shape), f"{name}_shape")])

        nodes = [helper.make_node("Equal", ["mode", "one"], ["chosen"]),
                 helper.make_node("If", ["chosen"], ["r"], name="choice", then_branch=one_of("flat", [2, 6]),
                                  else_branch=one_of("deep", [2, 2, 3])),
                 helper.make_node("ReduceMean", ["r"], ["y"], axes=[-1], keepdims=0)]
        constants = {"one": 1, **({"mode": 1} if constant else {})}
        return model_of(nodes, [("x", (2, 6))] + ([] if constant else [("mode", (), LONG)]), [("y", (2,))],
                        initializer=[numpy_helper.from_array(np.array(v), k) for k, v in constants.items()])

    def test_an_input_that_decides_a_rank_becomes_a_constant(self):
        text = refusal(self.model(constant=False))
        for part in ("If", "choice", "export the model with that value as a constant"):
            self.assertIn(part, text)
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        np.testing.assert_array_equal(made(self.model(constant=True)).run(None, {"x": x})[0], x.mean(1))


class LargeFiles(unittest.TestCase):
    def test_a_file_that_is_too_large_is_refused_as_that(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "large.onnx")
            with path.open("wb") as file:
                file.write(tree_model(1))
                file.truncate(2200 << 20)  # Holes: nothing of it lies on the disk.
            text = refusal(str(path))
        for part in ("too large", "2306867200 bytes", "2147483647", "external data"):
            self.assertIn(part, text)

    def test_its_weights_as_external_data_are_taken(self):
        import onnx
        weight = numpy_helper.from_array(np.arange(2048, dtype=np.float32), "w")
        model = onnx.load_from_string(model_of([helper.make_node("Add", ["x", "w"], ["y"])], [("x", (2048,))],
                                               [("y", (2048,))], initializer=[weight]))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.onnx")
            onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=0)
            y, = ort.InferenceSession(str(path)).run(None, {"x": np.zeros(2048, np.float32)})
        np.testing.assert_array_equal(y, np.arange(2048))


if __name__ == "__main__":
    unittest.main()
