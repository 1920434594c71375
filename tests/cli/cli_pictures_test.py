"""Pictures and arrays of pixels as inputs of the command line. Run with the path of `corelane`."""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper
from PIL import Image

from cli_support import CliTest, main, small_model, write_png


def two_inputs(path):
    """y = picture + offset, both of batch N."""
    picture = helper.make_tensor_value_info("picture", TensorProto.FLOAT, ["N", 3, 8, 8])
    offset = helper.make_tensor_value_info("offset", TensorProto.FLOAT, ["N", 1, 1, 1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3, 8, 8])
    graph = helper.make_graph([helper.make_node("Add", ["picture", "offset"], ["y"])], "two", [picture, offset], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


class Pictures(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pixels = np.random.default_rng(3).integers(0, 256, (8, 8, 3)).astype(np.uint8)
        write_png(cls.path / "random.png", cls.pixels)

    def compiled(self, name, *words):
        program = self.path / name
        self.ok("compile", self.path / "small.onnx", "-o", program, *words)
        return program

    def result(self, model, *words):
        """The JSON of a run with its elements as an array."""
        out = json.loads(self.ok("run", model, *words, "--values", "--json").stdout)
        output = out["outputs"][0]
        return out, np.array(output["values"], np.float32).reshape(output["shape"])

    def test_pictures_are_resized_and_normalised(self):
        program = self.path / "picture.rknn"
        self.ok("compile", self.path / "fixed.onnx", "-o", program, "--mean", "10,20,30", "--std", "2,2,2")
        write_png(self.path / "flat.png", np.full((16, 16, 3), (50, 60, 70), np.uint8))
        out, y = self.result(program, "-i", self.path / "flat.png")
        np.testing.assert_allclose(y, 21.0)
        steps = " ".join(out["inputs"][0]["steps"])
        for part in ("from 16x16 to 8x8", "mean 10,20,30 std 2,2,2"):
            self.assertIn(part, steps)

    def test_a_picture_is_batch_1_of_an_open_batch(self):
        small_model(self.path / "unnamed.onnx", (None, 3, 8, 8))
        for model in (self.path / "small.onnx", self.path / "unnamed.onnx", self.compiled("open.rknn"),
                      self.compiled("made.rknn", "--precompile")):
            out, y = self.result(model, "-i", self.path / "random.png")
            self.assertEqual(y.shape, (1, 3, 8, 8))
            np.testing.assert_array_equal(y[0], self.pixels.transpose(2, 0, 1).astype(np.float32) + 1)
        # A shape that is given counts, and each sample has the picture.
        _, y = self.result(self.path / "small.onnx", "-i", self.path / "random.png", "--shape", "x=2,3,8,8")
        self.assertEqual(y.shape, (2, 3, 8, 8))

    def test_a_picture_decides_the_batch_of_every_input_of_that_dimension(self):
        two_inputs(self.path / "two.onnx")
        out, y = self.result(self.path / "two.onnx", "-i", self.path / "random.png", "--random")
        self.assertEqual([i["shape"] for i in out["inputs"]], [[1, 3, 8, 8], [1, 1, 1, 1]])
        self.assertEqual(out["inputs"][1]["source"], "random")

    def test_a_picture_decides_no_size(self):
        small_model(self.path / "sizes.onnx", ("N", 3, "H", "W"))
        words = ("run", self.path / "sizes.onnx", "-i", self.path / "random.png")
        self.fails(3, *words, parts=("'x'", "--shape x=1,3,SIZE,SIZE"))
        self.ok(*words, "--shape", "x=1,3,8,8")

    def test_an_array_decides_open_dimensions(self):
        np.save(self.path / "five.npy", np.ones((5, 3, 8, 8), np.float32))
        _, y = self.result(self.path / "small.onnx", "-i", self.path / "five.npy")
        self.assertEqual(y.shape, (5, 3, 8, 8))
        np.save(self.path / "wrong.npy", np.ones((5, 3, 8, 9), np.float32))
        self.fails(3, "run", self.path / "small.onnx", "-i", self.path / "wrong.npy",
                   parts=("[5, 3, 8, 9]", "[?, 3, 8, 8]"))

    def test_the_same_pixels_give_the_same_answer_as_picture_and_as_u8_array(self):
        program = self.compiled("normalised.rknn", "--mean", "10,20,30", "--std", "2,4,8")
        _, expected = self.result(program, "-i", self.path / "random.png")
        np.testing.assert_allclose(
            expected[0], np.maximum((self.pixels.transpose(2, 0, 1) - np.float32([[[10]], [[20]], [[30]]])) /
                                    np.float32([[[2]], [[4]], [[8]]]), 0) + 1, rtol=1e-6)
        for name, array, order in (("hwc", self.pixels, "interleaved"), ("nhwc", self.pixels[None], "interleaved"),
                                   ("nchw", self.pixels.transpose(2, 0, 1)[None].copy(), "planes"),
                                   ("chw", self.pixels.transpose(2, 0, 1).copy(), "planes")):
            np.save(self.path / f"{name}.npy", array)
            out, y = self.result(program, "-i", self.path / f"{name}.npy")
            np.testing.assert_array_equal(y, expected, name)
            steps = " ".join(out["inputs"][0]["steps"])
            for part in ("u8", order, "mean 10,20,30 std 2,4,8"):
                self.assertIn(part, steps, name)

    def test_arrays_of_other_types_are_taken_as_they_are_and_run_says_so(self):
        program = self.compiled("floats.rknn", "--mean", "10,20,30", "--std", "2,2,2")
        x = self.pixels.transpose(2, 0, 1)[None].astype(np.float32)
        np.save(self.path / "floats.npy", x)
        words = ("-i", self.path / "floats.npy")
        out, y = self.result(program, *words)
        np.testing.assert_array_equal(y, x + 1)
        self.assertIn("without mean and std", " ".join(out["inputs"][0]["steps"]))
        line = self.ok("run", program, *words).stdout.splitlines()[0]
        for part in ("input x [1,3,8,8]", "floats.npy", "f32", "without mean and std"):
            self.assertIn(part, line)

    def test_endings_in_capital_letters_are_the_same(self):
        (self.path / "CAMERA.PNG").write_bytes((self.path / "random.png").read_bytes())
        _, y = self.result(self.path / "small.onnx", "-i", self.path / "CAMERA.PNG")
        np.testing.assert_array_equal(y[0], self.pixels.transpose(2, 0, 1).astype(np.float32) + 1)

    def test_a_jpeg_in_cmyk_says_what_to_do(self):
        Image.fromarray(self.pixels).convert("CMYK").save(self.path / "print.jpg")
        self.fails(4, "run", self.path / "small.onnx", "-i", self.path / "print.jpg", parts=("CMYK", "RGB"))

    def test_a_picture_without_mean_and_std_says_so(self):
        line = self.ok("run", self.path / "small.onnx", "-i", self.path / "random.png").stdout.splitlines()[0]
        self.assertIn("0 to 255 (the program has no mean and std)", line)


if __name__ == "__main__":
    main()
