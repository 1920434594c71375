"""build(do_quantization=True) of corelane.rknn_toolkit: int8 programs of real models, and their datasets."""
import os
import sys
import textwrap
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from corelane import _native
from corelane.rknn_toolkit import RKNN
from cpu_support import NEEDS_EXACT_SUMS
from python_support import PATIENCE, X, child, model_of, relu_model
from rknn_support import (MEAN, STD, ToolkitCase, cosine, detection, layout, normalised, orientation, page,
                          reference)


class Int8(ToolkitCase):
    def check(self, model, height, width, likeness, **config):
        """The program against onnxruntime on the same quantized network: as near to it as onnxruntime is to
        itself without optimisations, which round elsewhere; and as near to the float model as it is. On CPUs with
        AMX onnxruntime rounds alike in both, so that no farther from the float model serves, too."""
        rknn = self.built(model, self.pictures(height, width), mean_values=[MEAN], std_values=[STD],
                          load={"input_size_list": [[1, 3, height, width]]}, **config)
        path = self.exported(rknn, "q.rknn")
        self.assertLess(os.path.getsize(path), 0.4 * os.path.getsize(model))
        network = self.save("q.onnx", _native.network(path))
        self.assertEqual(rknn.init_runtime(), 0)
        answers = []
        for turns in (0, 1):
            pixels = page(height, width, turns)
            x = normalised(pixels)
            rows = zip(rknn.inference([pixels]), reference(network, x),
                       reference(network, x, optimised=False), reference(model, x),
                       _native.describe(path)["outputs"])
            for found, same, plain, exact, described in rows:
                step = described["quant"]["scales"][0] if described["quant"] else 1 / 255
                allowed = 1.5 * self.share(same, plain, step) + 0.02
                if self.distance(found, exact) > 1.1 * self.distance(same, exact):
                    self.assertLessEqual(self.share(found, same, step), allowed)
                self.assertGreaterEqual(cosine(found, exact), cosine(same, exact) - 0.02)
                self.assertGreaterEqual(cosine(found, exact), likeness)
                answers.append((found, exact))
        return answers

    @staticmethod
    def distance(one, other):
        return float(np.abs(one - other).mean())

    @staticmethod
    def share(one, other, step):
        """Of elements that are more than a step apart."""
        return float((np.abs(one - other) > 1.5 * step).mean())

    def test_orientation_keeps_its_answers(self):
        for found, exact in self.check(orientation(), 224, 224, 0.999, quantized_dtype="w8a8"):
            self.assertEqual(found.argmax(), exact.argmax())

    def test_weights_have_scales_by_channel_or_by_layer(self):
        weights = np.arange(1, 13, dtype=np.float32).reshape(4, 3, 1, 1)
        model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], [("x", (1, 3, 8, 8))],
                         [("y", (1, 4, 8, 8))], initializer=[numpy_helper.from_array(weights, "w")])
        np.save(self.path("x.npy"), np.linspace(-1, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8))
        dataset = self.save("x.txt", b"x.npy\n")
        for method, scales in (("channel", 4), ("layer", 1)):
            path = self.exported(self.built(model, dataset, quantized_method=method), "w.rknn")
            network = onnx.load_model_from_string(_native.network(path))
            found = {t.name: numpy_helper.to_array(t).size for t in network.graph.initializer}
            self.assertEqual(found["w_scale"], scales, found)

    @NEEDS_EXACT_SUMS
    def test_layout(self):
        # Its scores lose much by these ranges, in onnxruntime as here: only nearness to it is asked for.
        self.check(layout(), 800, 608, 0)

    @NEEDS_EXACT_SUMS
    def test_text_detection_of_an_old_operator_set(self):
        self.check(detection(), 320, 320, 0.99)

    def test_dataset_is_needed_and_checked(self):
        model = relu_model((1, 3, 8, 8))
        rknn = RKNN()
        rknn.load_onnx(model)
        self.refused(-1, lambda: rknn.build(do_quantization=True), "dataset")
        self.refused(-1, lambda: rknn.build(dataset=self.path("none.txt")), "none.txt")
        for content, text in ((b"", "no line"), (b"missing.png\n", "missing.png"),
                              (b"bad.npy\n", "does not fit"), (b"text.txt\n", "neither a picture"),
                              (b"names.npy\n", "numbers")):
            np.save(self.path("bad.npy"), np.zeros((1, 3, 5, 5), np.float32))
            np.save(self.path("names.npy"), np.array(["a"]))
            self.save("text.txt", b"no picture")
            dataset = self.save("set.txt", content)
            with self.subTest(text):
                self.refused(-1, lambda: rknn.build(dataset=dataset), text)
        self.refused(-1, lambda: rknn.export_rknn(self.path("x.rknn")), "build()")

    def test_a_picture_of_16_bits_calibrates_as_its_8_bits_and_a_cut_off_one_is_named(self):
        from PIL import Image
        grey = page(16, 12)[0, :, :, 0]
        Image.fromarray(grey).save(self.path("grey.png"))
        Image.fromarray(grey.astype(np.uint16) * 257).save(self.path("deep.png"))
        with open(self.path("grey.png"), "rb") as file:
            self.save("cut.png", file.read()[:-30])
        model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], [("x", (1, 1, 16, 12))],
                         [("y", (1, 1, 16, 12))],
                         initializer=[helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 1, 1], [0.5])])
        scales = []
        for name in ("grey.png", "deep.png"):
            rknn = self.built(model, self.save("one.txt", f"{name}\n".encode()))
            scales.append(_native.describe(self.exported(rknn, "c.rknn"))["inputs"][0]["quant"]["scales"])
        self.assertEqual(scales[0], scales[1])
        self.refused(-1, lambda: rknn.build(dataset=self.save("one.txt", b"cut.png\n")), "cut.png")

    def test_arrays_and_pictures_calibrate_alike(self):
        """One picture as .png, as N, H, W, C and as N, C, H, W in .npy: the same program."""
        from PIL import Image
        pixels = page(16, 12)
        Image.fromarray(pixels[0]).save(self.path("a.png"))
        np.save(self.path("b.npy"), pixels)
        np.save(self.path("c.npy"), pixels.transpose(0, 3, 1, 2))
        np.save(self.path("d.npy"), pixels[0])
        model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], [("x", (1, 3, 16, 12))],
                         [("y", (1, 2, 16, 12))], initializer=[helper.make_tensor(
                             "w", TensorProto.FLOAT, [2, 3, 1, 1], [0.5, -1, 0.25, 1, 2, -0.5])])
        scales = {}
        for name in ("a.png", "b.npy", "c.npy", "d.npy"):
            rknn = self.built(model, self.save("one.txt", f"{name}\n".encode()), mean_values=[MEAN],
                              std_values=[STD])
            path = self.exported(rknn, "c.rknn")
            scales[name] = [entry["quant"]["scales"] for part in ("inputs", "outputs")
                            for entry in _native.describe(path)[part]]
        self.assertEqual(len(scales["a.png"]), 2)
        for name, found in scales.items():
            self.assertEqual(found, scales["a.png"], name)

    def test_channels_of_pictures_are_swapped_on_demand(self):
        from PIL import Image
        Image.fromarray(np.full((8, 8, 3), (10, 20, 250), np.uint8)).save(self.path("blue.png"))
        dataset = self.save("blue.txt", b"blue.png\n")
        node = helper.make_node("Slice", ["x", "from", "to", "axis"], ["y"])
        constants = [helper.make_tensor(name, TensorProto.INT64, [1], [value])
                     for name, value in (("from", 0), ("to", 1), ("axis", 1))]
        convolution = helper.make_node("Conv", ["y", "w"], ["z"])
        constants.append(helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 1, 1], [1]))
        model = model_of([node, convolution], [("x", (1, 3, 8, 8))], [("z", (1, 1, 8, 8))],
                         initializer=constants)
        for swap, first_channel in ((False, 10), (True, 250)):
            path = self.exported(self.built(model, dataset, quant_img_RGB2BGR=swap), "swap.rknn")
            scale = _native.describe(path)["outputs"][0]["quant"]["scales"][0]
            self.assertAlmostEqual(scale * 255, first_channel, delta=0.01 * first_channel)

    def test_two_inputs_a_line(self):
        model = model_of([helper.make_node("Add", ["a", "b"], ["y"])], [("a", (1, 4)), ("b", (1, 4))],
                         [("y", (1, 4))])
        np.save(self.path("a.npy"), np.array([[-1, 0, 1, 2]], np.float32))
        np.save(self.path("b.npy"), np.array([[1, 5, 1, -2]], np.float32))
        rknn = self.built(model, self.save("two.txt", b"a.npy b.npy\n"))
        self.assertEqual(rknn.init_runtime(), 0)
        found = rknn.inference([np.load(self.path("a.npy")), np.load(self.path("b.npy"))])[0]
        np.testing.assert_allclose(found, [[0, 5, 2, 0]], atol=0.05)
        rknn.load_onnx(model)
        self.refused(-1, lambda: rknn.build(dataset=self.save("one.txt", b"a.npy\n")), "line 1", "2 inputs")

    def test_builds_in_two_threads_leave_stdout_alone(self):
        model = model_of([helper.make_node("Add", ["a", "a"], ["y"])], [("a", (1, 4))], [("y", (1, 4))])
        np.save(self.path("a.npy"), X)
        dataset, before = self.save("a.txt", b"a.npy\n"), sys.stdout
        with ThreadPoolExecutor(2) as executor:
            for done in [executor.submit(self.built, model, dataset) for _ in range(4)]:
                self.assertEqual(done.result(PATIENCE).init_runtime(), 0)
        self.assertIs(sys.stdout, before)

    def test_kl_divergence(self):
        rknn = self.built(orientation(), self.pictures(224, 224), mean_values=[MEAN], std_values=[STD],
                          quantized_algorithm="kl_divergence")
        self.assertEqual(rknn.init_runtime(), 0)
        found = rknn.inference([page(224, 224)])[0]
        self.assertEqual(found.argmax(), reference(orientation(), normalised(page(224, 224)))[0].argmax())

    def test_extra_is_named_where_it_is_absent(self):
        code = """
        import sys, logging
        sys.modules[MISSING] = None
        from corelane.rknn_toolkit import RKNN
        np.save("one.npy", X)
        open("set.txt", "w").write("one.npy")
        rknn = RKNN()
        assert rknn.load_onnx(os.environ["RELU_MODEL"]) == 0
        assert rknn.build(dataset="set.txt") == -1
        assert rknn.build(do_quantization=False) == 0
        """
        for missing in ("onnxruntime", "onnx"):
            start = f"import os; os.chdir({self.folder!r}); MISSING = {missing!r}\n"
            done = child(start + textwrap.dedent(code))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("pip install onnxruntime onnx pillow", done.stderr)
            self.assertIn(missing, done.stderr)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
