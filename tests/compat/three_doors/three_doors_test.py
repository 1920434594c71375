"""One process with librknnrt.so, libQAic.so and the Python package, on one device: all three are right.

python three_doors_test.py CORELANE LIBRKNNRT LIBQAIC
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

# One text, one device, for all doors of the process.
DEVICE = "virtual:rk3588"
os.environ.update(CORELANE_DEVICE=DEVICE, CORELANE_QAIC_DEVICES=DEVICE)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

import corelane as ort  # noqa: E402

CORELANE, RKNN, QAIC = sys.argv[1:4]
SIZE = 64
RUNS = 40


class Buffer(ctypes.Structure):
    """QBuffer."""

    _fields_ = [("size", ctypes.c_size_t), ("buf", ctypes.c_void_p), ("handle", ctypes.c_uint64),
                ("offset", ctypes.c_uint32), ("type", ctypes.c_uint32)]


class RknnInput(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint32), ("buf", ctypes.c_void_p), ("size", ctypes.c_uint32),
                ("pass_through", ctypes.c_uint8), ("type", ctypes.c_int), ("fmt", ctypes.c_int)]


class RknnOutput(ctypes.Structure):
    _fields_ = [("want_float", ctypes.c_uint8), ("is_prealloc", ctypes.c_uint8), ("index", ctypes.c_uint32),
                ("buf", ctypes.c_void_p), ("size", ctypes.c_uint32)]


def checked(function, *arguments):
    code = function(*arguments)
    if code != 0:
        raise RuntimeError(f"{function.__name__}: {code}")


class Rknn:
    """y = Relu(x) through the RKNN C API."""

    def __init__(self, model):
        self.api = ctypes.CDLL(RKNN)
        self.context = ctypes.c_uint64()
        data = model.read_bytes()
        checked(self.api.rknn_init, ctypes.byref(self.context), data, len(data), 0, None)

    def run(self, x):
        given = RknnInput(buf=x.ctypes.data, size=x.nbytes, type=0, fmt=3)
        checked(self.api.rknn_inputs_set, self.context, 1, ctypes.byref(given))
        checked(self.api.rknn_run, self.context, None)
        found = RknnOutput(want_float=1)
        checked(self.api.rknn_outputs_get, self.context, 1, ctypes.byref(found), None)
        result = np.frombuffer(ctypes.string_at(found.buf, found.size), np.float32)
        checked(self.api.rknn_outputs_release, self.context, 1, ctypes.byref(found))
        return result

    def close(self):
        checked(self.api.rknn_destroy, self.context)


class Qaic:
    """y = Relu(x) through the object runtime's C API."""

    def __init__(self, container):
        self.api = ctypes.CDLL(QAIC)
        self.context, self.qpc, self.program, self.object, self.queue = (ctypes.c_void_p() for _ in range(5))
        device = ctypes.c_int32(0)
        none = [None] * 4
        checked(self.api.qaicCreateContext, ctypes.byref(self.context), None, 1, ctypes.byref(device), *none)
        checked(self.api.qaicOpenQpcFile, ctypes.byref(self.qpc), str(container / "programqpc.bin").encode())
        checked(self.api.qaicCreateProgram, self.context, ctypes.byref(self.program), None, 0, b"relu", self.qpc)
        checked(self.api.qaicRunActivationCmd, self.program, 0)
        checked(self.api.qaicCreateExecObj, self.context, ctypes.byref(self.object), None, self.program, *none[:3])
        checked(self.api.qaicCreateQueue, self.context, ctypes.byref(self.queue), None, 0)

    def run(self, x):
        y = np.zeros(SIZE, np.float32)
        buffers = (Buffer * 2)(*(Buffer(size=v.nbytes, buf=v.ctypes.data) for v in (x, y)))
        checked(self.api.qaicExecObjSetData, self.object, 2, buffers)
        checked(self.api.qaicEnqueueExecObj, self.queue, self.object, None)
        checked(self.api.qaicExecObjWaitForCompletion, self.object, ctypes.c_uint64(60_000_000))
        return y

    def cores(self):
        """(all, free) of the device."""
        info = (ctypes.c_uint8 * 256)()
        checked(self.api.qaicGetResourceInfo, 0, info)
        return info[26], info[27]  # nspTotal, nspFree.

    def close(self):
        checked(self.api.qaicReleaseExecObj, self.object)
        checked(self.api.qaicRunActivationCmd, self.program, 1)
        for release in (self.api.qaicReleaseProgram, self.program), (self.api.qaicCloseQpc, self.qpc), \
                (self.api.qaicReleaseQueue, self.queue), (self.api.qaicReleaseContext, self.context):
            checked(*release)


class Session:
    """y = Relu(x) through the Python package."""

    def __init__(self, model):
        self.session = ort.InferenceSession(str(model))

    def run(self, x):
        return self.session.run(None, {"x": x})[0]

    def close(self):
        del self.session


class ThreeDoors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "relu.onnx"
        value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [SIZE]) for n in "xy"]
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), self.model)
        subprocess.run([CORELANE, "compile", self.model, "--target", "aic100", "-o", self.folder], check=True,
                       capture_output=True, timeout=60)

    def test_all_three_are_right_at_the_same_time(self):
        qaic = Qaic(self.folder)
        total, free = qaic.cores()
        self.assertEqual(3, total)  # Those of the RKNN chip: it is the same device.
        self.assertLessEqual(free, total)
        doors = [Rknn(self.model), qaic, Session(self.model)]
        wrong = []

        def work(door, seed):
            random = np.random.default_rng(seed)
            try:
                for _ in range(RUNS):
                    x = random.standard_normal(SIZE, np.float32)
                    if not np.array_equal(door.run(x), np.maximum(x, 0)):
                        wrong.append(f"{type(door).__name__} is wrong")
            except Exception as failure:  # A thread's failure is the test's.
                wrong.append(f"{type(door).__name__}: {failure}")

        threads = [threading.Thread(target=work, args=(door, seed)) for seed, door in enumerate(doors)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)
        maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
        for library in ("libcorelane.so", "libopenvino.so"):
            files = {line.split()[-1] for line in maps.splitlines() if f"/{library}" in line}
            self.assertEqual(1, len(files), files)  # One runtime and one engine for all.
        for door in doors:
            door.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
