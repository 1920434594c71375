"""What the tests of the command line share: small models, and running `corelane`."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CORELANE = ""


def main():
    """Runs the tests of the calling file; the first argument is the path of `corelane`."""
    global CORELANE
    CORELANE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(module="__main__")


def small_model(path, dims=("N", 3, 8, 8)):
    """y = Relu(x) + 1, softmax-free, with an open batch unless dims say otherwise."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(dims))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, list(dims))
    one = numpy_helper.from_array(np.ones(1, np.float32), "one")  # Raw: may lie in a file.
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"], name="relu"),
         helper.make_node("Add", ["r", "one"], ["y"], name="add")],
        "small", [x], [y], [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)


def write_png(path, pixels):
    """u8 [H, W, 3], without a filter."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def custom_model(path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])
    graph = helper.make_graph([helper.make_node("MyOp", ["x"], ["y"], name="mine", domain="me")],
                              "custom", [x], [y])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("me", 1)],
        ir_version=8)
    onnx.save(model, path)


def run(*words, env=None):
    return subprocess.run([CORELANE, *map(str, words)], capture_output=True, text=True,
                          timeout=120, env={**os.environ, **(env or {})})


class CliTest(unittest.TestCase):
    """Has a folder `path` with small.onnx (open batch) and fixed.onnx."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        small_model(cls.path / "small.onnx")
        small_model(cls.path / "fixed.onnx", (1, 3, 8, 8))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ok(self, *words, **kw):
        result = run(*words, **kw)
        self.assertEqual(result.returncode, 0, f"{words}: {result.stderr}\n{result.stdout}")
        return result

    def fails(self, code, *words, parts=(), **kw):
        """The command ends with `code`, and its message holds each of `parts`."""
        result = run(*words, **kw)
        self.assertEqual(result.returncode, code, f"{words}: {result.stderr}\n{result.stdout}")
        for part in parts:
            self.assertIn(part, result.stderr, f"{words}")
        self.assertNotIn("Traceback", result.stderr)
        return result


def interrupted_leaves_no_folder(test, *words):
    """A command with --python that gets Ctrl-C while Python runs ends with 130, its temporary folder gone."""
    folder = test.path / "temporary"
    folder.mkdir()
    script = test.path / "interrupts.sh"
    script.write_text("#!/bin/sh\nkill -INT 0\n")  # The whole group, as Ctrl-C does.
    script.chmod(0o755)
    done = subprocess.run([CORELANE, *map(str, words), "--python", script], env={**os.environ, "TMPDIR": str(folder)},
                          capture_output=True, text=True, timeout=60, start_new_session=True, check=False)
    test.assertEqual(done.returncode, 130, done.stderr)
    test.assertIn("interrupted", done.stderr)
    test.assertEqual(list(folder.iterdir()), [])
