"""The plugin libggml-rknn.so in the ggml of wheels, whose releases differ in what lies where: it is loaded by ggml's
own function, is listed, and computes a product.

usage: ggml_wheels_test.py <libggml-rknn.so> <librknnrt.so> <C++ compiler> [<unittest arguments>]

Each ggml runs in a process of its own, which is this file again: ggml_wheels_test.py --in <folder of libraries>.
"""
import ctypes
import json
import os
import pathlib
import sys
import unittest

import numpy as np
import plugged

WHEELS = plugged.CACHE / "wheels"
F32, F16, WEIGHTS = 0, 1, 1
TOKENS, COLUMNS, ROWS = 12, 96, 64


class Memory(ctypes.Structure):
    """ggml_init_params: where a context keeps what it describes."""

    _fields_ = [("size", ctypes.c_size_t), ("place", ctypes.c_void_p), ("no_data", ctypes.c_bool)]


class Ggml:
    """Calls functions of a ggml by name; the caller says the type of the result."""

    def __init__(self, folder):
        self.libraries = [ctypes.CDLL(str(folder / f"lib{name}.so.0"), mode=ctypes.RTLD_GLOBAL)
                          for name in ("ggml-base", "ggml-cpu", "ggml")]

    def call(self, name, result, *arguments):
        """Arguments: addresses, or values of ctypes."""
        function = next(getattr(library, name) for library in self.libraries if hasattr(library, name))
        function.restype = result
        function.argtypes = [ctypes.c_void_p if argument is None or isinstance(argument, int) else type(argument)
                             for argument in arguments]
        return function(*arguments)

    def address(self, name, *arguments):
        return self.call(name, ctypes.c_void_p, *arguments)

    def text(self, name, *arguments):
        return self.call(name, ctypes.c_char_p, *arguments).decode()

    def matrix(self, context, kind, columns, rows):
        return self.address("ggml_new_tensor_2d", context, ctypes.c_int(kind), ctypes.c_int64(columns),
                            ctypes.c_int64(rows))

    def devices(self):
        count = self.call("ggml_backend_dev_count", ctypes.c_size_t)
        return [self.text("ggml_backend_dev_name", self.address("ggml_backend_dev_get", ctypes.c_size_t(index)))
                for index in range(count)]


def product_on(ggml, device, weights, activations):
    """activations x weights, transposed as ggml has it, on the device."""
    backend = ggml.address("ggml_backend_dev_init", device, None)
    lasting, passing = (ggml.address("ggml_init", Memory(1 << 20, None, True)) for _ in range(2))
    first = ggml.matrix(lasting, F16, COLUMNS, ROWS)
    buffer = ggml.address("ggml_backend_alloc_ctx_tensors", lasting, backend)
    ggml.call("ggml_backend_buffer_set_usage", None, buffer, ctypes.c_int(WEIGHTS))
    second = ggml.matrix(passing, F32, COLUMNS, TOKENS)
    node = ggml.address("ggml_mul_mat", passing, first, second)
    graph = ggml.address("ggml_new_graph", passing)
    ggml.call("ggml_build_forward_expand", None, graph, node)
    ggml.address("ggml_backend_alloc_ctx_tensors", passing, backend)
    for tensor, values in ((first, weights), (second, activations)):
        ggml.call("ggml_backend_tensor_set", None, tensor, values.ctypes.data, ctypes.c_size_t(0),
                  ctypes.c_size_t(values.nbytes))
    supported = ggml.call("ggml_backend_supports_op", ctypes.c_bool, backend, node)
    status = ggml.call("ggml_backend_graph_compute", ctypes.c_int, backend, graph)
    result = np.zeros((TOKENS, ROWS), np.float32)
    ggml.call("ggml_backend_tensor_get", None, node, result.ctypes.data, ctypes.c_size_t(0),
              ctypes.c_size_t(result.nbytes))
    return supported, status, result


def report(folder):
    """What a ggml does with the plugin, as a JSON line."""
    ggml = Ggml(pathlib.Path(folder))
    found = {"version": ggml.text("ggml_version")}
    ggml.address("ggml_backend_load", ctypes.c_char_p(os.environ["GGML_BACKEND_PATH"].encode()))
    found["devices"] = ggml.devices()
    device = ggml.address("ggml_backend_dev_by_name", ctypes.c_char_p(b"RKNN"))
    if device is not None:
        random = np.random.default_rng(1)
        weights = random.standard_normal((ROWS, COLUMNS)).astype(np.float16)
        activations = random.standard_normal((TOKENS, COLUMNS)).astype(np.float32)
        found["supported"], found["status"], result = product_on(ggml, device, weights, activations)
        expected = activations.astype(np.float16).astype(np.float64) @ weights.astype(np.float64).T
        found["error"] = float(np.abs(result - expected).max())
    print(json.dumps(found))


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not WHEELS.exists():
            plugged.skip(cls, f"{WHEELS} is not there: ./dev ggml fetches it")

    def run_in(self, library):
        folder = next(WHEELS.rglob(library)).parent
        return plugged.run([sys.executable, "-B", __file__, "--in", folder])

    def expect_product(self, library, version):
        done = self.run_in(library)
        self.assertEqual(done.code, 0, done.log)
        self.assertTrue(done.loaded(), done.log)
        found = json.loads(done.text)
        self.assertEqual(found["version"], version)
        self.assertEqual(found["devices"], ["CPU", "RKNN"])
        self.assertTrue(found["supported"])
        self.assertEqual(found["status"], 0)
        self.assertLess(found["error"], 1e-4)
        self.assertEqual(done.stats["products"], {"all": 1, "failed": 0, "conversions": 1})
        self.assertEqual(done.stats["offloaded"]["weights"], 1)

    def test_libggml_python_computes_a_product(self):
        self.expect_product("libggml-base.so.0.20.2", "0.20.2")

    def test_pywhispercpp_computes_a_product(self):
        self.expect_product("libggml-base.so.0.13.1", "0.13.1")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in"]:
        report(sys.argv[2])
    else:
        plugged.main()
