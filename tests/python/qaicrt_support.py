"""What the tests of corelane.qaicrt share: containers of small networks, and programs in processes of their own."""
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np

from python_support import PATIENCE, model_of, relu_model

X = np.array([[-1, 2, -3, 4]], np.float32)
Y = np.maximum(X, 0)
CLI = os.environ.get("CORELANE_CLI", "")


def container(model, **options) -> str:
    """A folder with the container of a model; it stays until the process ends."""
    import corelane
    folder = tempfile.TemporaryDirectory()
    _folders.append(folder)
    corelane.compile(model, Path(folder.name, "programqpc.bin"), **options)
    return folder.name


def compiled(model: bytes, *options: str) -> str:
    """As container(), by the command line, which has options that Python lacks."""
    folder = tempfile.TemporaryDirectory()
    _folders.append(folder)
    path = Path(folder.name, "model.onnx")
    path.write_bytes(model)
    subprocess.run([CLI, "compile", path, "--target", "aic100", "-o", folder.name, *options], check=True,
                   capture_output=True, timeout=PATIENCE)
    return folder.name


_folders: list[tempfile.TemporaryDirectory] = []


def relu() -> str:
    """x: f32 [1, 4] -> y."""
    return container(relu_model((1, 4)))


def pair_model() -> bytes:
    """a, b: f32 [2, 3] -> their sum, "layer/product"."""
    from onnx import helper
    return model_of([helper.make_node("Add", ["a", "b"], ["sum"]),
                     helper.make_node("Mul", ["a", "b"], ["layer/product"])],
                    [("a", (2, 3)), ("b", (2, 3))], [("sum", (2, 3)), ("layer/product", (2, 3))])


def partial_container() -> str:
    """y = 2 x + rest of width 4 or 8, where `rest` may be left out."""
    from onnx import helper
    return compiled(model_of([helper.make_node("Add", ["x", "x"], ["twice"]),
                              helper.make_node("Add", ["twice", "rest"], ["y"])],
                             [("x", (1, "n")), ("rest", (1, "n"))], [("y", (1, "n"))]),
                    "--shape-set", "1,4;1,4", "--shape-set", "1,8;1,8", "--partial", "rest")


def state_container() -> str:
    """next = x + h, y = 2 next, of f32 [1, 4]; `next` is the `h` of the next run."""
    from onnx import helper
    return container(model_of([helper.make_node("Add", ["x", "h"], ["next"]),
                               helper.make_node("Add", ["next", "next"], ["y"])],
                              [("x", (1, 4)), ("h", (1, 4))], [("y", (1, 4)), ("next", (1, 4))]),
                     states={"next": "h"})


_PREAMBLE = """
import gc, os, signal, sys, threading, time
import numpy as np
from corelane import qaicrt
from corelane.qaicrt import *
X = np.array([[-1, 2, -3, 4]], np.float32)
FOLDER = os.environ["RELU_FOLDER"]
def parts(**callbacks):
    context = Context(0, **callbacks)
    qpc = Qpc(FOLDER)
    return context, qpc, Program(context, 0, qpc), Queue(context, 0)
"""


def start(code, devices="null:generic:4?a=1ms", **environment) -> subprocess.Popen:
    """Python code in a process of its own, with these devices."""
    return subprocess.Popen([sys.executable, "-c", _PREAMBLE + textwrap.dedent(code)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "RELU_FOLDER": relu(), "CORELANE_QAIC_DEVICES": devices, **environment})


def program(code, devices="null:generic:4?a=1ms", timeout=PATIENCE, **environment) -> subprocess.CompletedProcess:
    """The same to its end."""
    with start(code, devices, **environment) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
