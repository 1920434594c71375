"""The demo of docs/vendor-demos.md, built as the page says, finds the squares of pictures whose answers are known.

python vendor_demo_try.py PREFIX SOURCE_TREE

The page's commands run in a folder that holds `examples`, a model and pictures; PREFIX is an installed tree.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

# In pixels of a picture of 192x96; in the model's 64x64 each is one cell of 8x8.
SQUARES = {0: (48, 24, 72, 48), 1: (120, 48, 144, 72)}
COLOURS = {0: (255, 0, 0), 1: (0, 0, 255)}


def save_model(path):
    """Class 0 where a cell is red, class 1 where it is blue; boxes of one cell."""
    def constant(name, value):
        return numpy_helper.from_array(np.asarray(value, np.float32), name)

    mix = 24 * np.array([[1, -1, -1], [-1, -1, 1]], np.float32).reshape(2, 3, 1, 1)
    nodes = [helper.make_node("AveragePool", ["images"], ["cells"], kernel_shape=[8, 8], strides=[8, 8]),
             helper.make_node("Conv", ["cells", "mix", "offset"], ["logits"]),
             helper.make_node("Sigmoid", ["logits"], ["scores"]),
             helper.make_node("Conv", ["cells", "nothing", "half"], ["distances"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in
              (("images", [1, 3, 64, 64]), ("scores", [1, 2, 8, 8]), ("distances", [1, 4, 8, 8]))]
    graph = helper.make_graph(nodes, "squares", values[:1], values[1:],
                              [constant("mix", mix), constant("offset", [-12, -12]),
                               constant("nothing", np.zeros((4, 3, 1, 1))), constant("half", [0.5] * 4)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def save_pictures(folder):
    pixels = np.full((96, 192, 3), 100, np.uint8)
    for label, (left, top, right, bottom) in SQUARES.items():
        pixels[top:bottom, left:right] = COLOURS[label]
    Image.fromarray(pixels).save(folder / "squares.png")
    Image.fromarray(pixels).save(folder / "squares.jpg", quality=95, subsampling=0)
    fitted = np.full((64, 64, 3), 114, np.uint8)  # What the model is given: calibration needs its kind.
    fitted[16:48] = np.asarray(Image.fromarray(pixels).resize((64, 32), Image.Resampling.BOX))
    Image.fromarray(fitted).save(folder / "fitted.png")
    (folder / "list.txt").write_text("fitted.png\n")


class VendorDemo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(kept.cleanup)
        cls.folder = pathlib.Path(kept.name)
        (cls.folder / "examples").symlink_to(SOURCE / "examples")
        save_model(cls.folder / "squares.onnx")
        save_pictures(cls.folder)
        page = (SOURCE / "docs/vendor-demos.md").read_text(encoding="utf-8")
        cls.said = [cls.start("bash", "-ec", block) for block in re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)]

    @classmethod
    def start(cls, *command):
        done = subprocess.run([str(c) for c in command], cwd=cls.folder, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PREFIX": str(PREFIX)})
        if done.returncode:
            raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def check(self, text):
        """Each square once, its sides within a pixel."""
        boxes = re.findall(r"class (\d) at \(([^)]*)\) ([\d.]+)", text)
        self.assertEqual(len(boxes), len(SQUARES), text)
        for label, sides, score in boxes:
            np.testing.assert_allclose(np.array(sides.split(), float), SQUARES[int(label)], atol=1)
            self.assertGreater(float(score), 0.9)
        self.assertEqual({int(b[0]) for b in boxes}, set(SQUARES))

    def test_the_commands_of_the_page_find_the_squares(self):
        self.assertEqual(len(self.said), 3)
        copied, bound = self.said[2].split("input 64x64")[1:]
        self.check(copied)
        self.check(bound)

    def test_both_builds_find_the_squares_in_both_kinds_of_picture(self):
        for program in PROGRAMS:
            for picture in ("squares.png", "squares.jpg"):
                for words in ((), ("--io-mem",)):
                    with self.subTest(program=program, picture=picture, words=words):
                        self.check(self.start(program, "squares.rknn", picture, *words))

    def test_int8_models_give_int8_outputs_and_the_same_squares(self):
        self.start(PREFIX / "bin/corelane", "compile", "squares.onnx", "-o", "int8.rknn", "--mean", "0,0,0", "--std",
                   "255,255,255", "--int8", "--dataset", "list.txt", "--python", sys.executable)
        for words in ((), ("--io-mem",)):
            with self.subTest(words=words):
                text = self.start(PROGRAMS[0], "int8.rknn", "squares.png", *words)
                self.assertIn("outputs INT8", text)
                self.check(text)

    def test_a_model_that_is_missing_and_a_picture_that_is_broken_are_named(self):
        for model, picture in (("nowhere.rknn", "squares.png"), ("squares.rknn", "list.txt")):
            done = subprocess.run([PROGRAMS[0], model, picture], cwd=self.folder, capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertTrue("rknn_init" in done.stderr or "list.txt" in done.stderr, done.stderr)


if __name__ == "__main__":
    PREFIX, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    PROGRAMS = ("./vendor_demo", "./build-demo/vendor_demo")
    unittest.main(argv=sys.argv[:1])
