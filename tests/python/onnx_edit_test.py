"""rknn.utils.onnx_edit: models with inputs and outputs of other shapes, against their originals."""
import unittest

import numpy as np
from onnx import helper

from corelane.rknn_toolkit.onnx_edit import Equation, onnx_edit
from python_support import child, model_of
from rknn_support import Case, reference


class Equations(unittest.TestCase):
    def test_forms(self):
        for text, shape, after in (
                ("a,b,c->a,b,1,c", (2, 3, 4), [2, 3, 1, 4]), ("a,b,c,d,e->a,bce,d,1", (2, 3, 4, 5, 6), [2, 72, 5, 1]),
                ("a,b,c,d->a,d,b,c", (2, 3, 4, 5), [2, 5, 3, 4]), ("a,b,c,d->d,acb,1", (2, 3, 4, 5), [5, 24, 1]),
                ("a, bc, de, f [b=2,d=4] -> ab,fe,dc,1", (2, 6, 8, 5), [4, 10, 12, 1]),
                ("a,1,c->ca", (2, 1, 3), [6]), ("a,b,->b,a", (2, 3), [3, 2])):
            with self.subTest(text):
                equation = Equation("x", text, shape)
                self.assertEqual(equation.after, after)
                array = np.arange(np.prod(shape)).reshape(shape)
                changed = equation.applied(array)
                self.assertEqual(list(changed.shape), after)
                self.assertEqual(sorted(changed.ravel()), sorted(array.ravel()))
                for kind, numbers in equation.steps(backwards=True):
                    changed = changed.reshape(numbers) if kind == "Reshape" else changed.transpose(numbers)
                np.testing.assert_array_equal(changed, array)

    def test_what_is_no_equation_is_named(self):
        for text, shape, part in (
                ("a,b", (2, 3), "->"), ("a,2->2,a", (2, 2), "letters"), ("a,b->a", (2, 3), "each letter"),
                ("a,a->a,a", (2, 2), "once"), ("a,b,c->c,b,a", (2, 3), "[2, 3]"), ("ab->a,b", (6,), "[a=2]"),
                ("ab[a=4]->a,b", (6,), "does not fit"), ("a,1->a", (2, 3), "does not fit"),
                ("a[b=2]->a", (2,), "'b=2'"), ("a,,b->a,b", (2, 3), "empty")):
            with self.subTest(text), self.assertRaises(ValueError) as caught:
                Equation("x", text, shape)
            self.assertIn(part, str(caught.exception))


class Models(Case):
    """y = Relu(k + 1) of [2, 3, 4], and z = k."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        nodes = [helper.make_node("Relu", ["k"], ["r"]), helper.make_node("Neg", ["r"], ["y"]),
                 helper.make_node("Abs", ["y"], ["z"])]
        cls.model = cls.save("m.onnx", model_of(nodes, [("k", (2, 3, 4))], [("y", (2, 3, 4)), ("z", (2, 3, 4))]))
        cls.k = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)

    def test_ends_have_the_shapes_of_the_right_side(self):
        target = self.path("edited.onnx")
        self.assertEqual(onnx_edit(model=self.model, export_path=target, inputs_transform={"k": "a,b,c->1,ac,b"},
                                   outputs_transform={"y": "a,b,c->c,b,1,a", "z": "a,bd,c[d=3]->ac,bd"}), 0)
        y, z = reference(self.model, self.k)
        given = self.k.transpose(0, 2, 1).reshape(1, 8, 3)
        found = reference(target, given)
        np.testing.assert_array_equal(found[0], y.transpose(2, 1, 0).reshape(4, 3, 1, 2))
        np.testing.assert_array_equal(found[1], z.transpose(0, 2, 1).reshape(8, 3))

    def test_a_calibration_set_goes_along(self):
        np.save(self.path("k.npy"), self.k)
        dataset = self.save("set.txt", b"k.npy\n")
        self.assertEqual(onnx_edit(self.model, self.path("with_set.onnx"), {"k": "a,b,c->c,a,b"}, dataset=dataset), 0)
        with open(self.path("dataset_for_with_set.txt"), encoding="utf-8") as file:
            written = np.load(file.read().strip())
        np.testing.assert_array_equal(written, self.k.transpose(2, 0, 1))

    def test_what_does_not_fit_is_named(self):
        target = self.path("none.onnx")
        for words, text in ((("none.onnx", target), "none.onnx"), ((self.model, target, {"x": "a->a"}), "'k'"),
                            ((self.model, target, {"k": "a->a"}), "[2, 3, 4]")):
            self.refused(-1, lambda: onnx_edit(*words), text)


class Alias(unittest.TestCase):
    def test_modules_of_the_originals_names(self):
        done = child("""
            import corelane.alias
            corelane.alias.install("rknn")
            from rknn.utils import onnx_edit
            from rknn.utils.onnx_edit import onnx_edit as same
            from rknn.api.custom_op import get_node_attr
            from rknn.api.rknn import RKNN
            import rknn, rknn.api
            assert onnx_edit is same and RKNN is rknn.api.RKNN
            edited = os.environ["RELU_MODEL"] + ".edited"
            assert onnx_edit(os.environ["RELU_MODEL"], edited, {"x": "a,b->b,a"}) == 0
            assert ort.InferenceSession(edited).get_inputs()[0].shape == [4, 1]
            tool = RKNN()
            for name in ("caffe", "tensorflow", "tflite", "darknet", "pytorch"):
                assert getattr(tool, "load_" + name)("model", inputs=["x"]) == -1
            from rknn.utils.grq import grq_quantize
            assert grq_quantize("model", "set.json", "out", group=32) is False
            corelane.alias.uninstall("rknn")
            assert not [name for name in sys.modules if name.split(".")[0] == "rknn"]
        """)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 6, lines)
        for line in lines[:5]:
            self.assertIn("convert the model to ONNX", line)
        self.assertIn("not served; export the float model to ONNX", lines[5])


if __name__ == "__main__":
    unittest.main()
