"""A Python process with another openvino release and a virtual NPU: both keep working.

usage: two_engines_test.py <probe library> <folder of the second openvino>
"""

import ctypes
import pathlib
import subprocess
import sys

SKIP = 77
ORDERS = ("other,ours,other,ours", "ours,other,ours,other", "import,ours,other,ours")


class Ours:
    """The virtual NPU, through the probe."""

    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        self.lib.probe_open.restype = ctypes.c_void_p
        self.lib.probe_open.argtypes = [ctypes.c_char_p]
        self.lib.probe_run.argtypes = [ctypes.c_void_p] + [ctypes.POINTER(ctypes.c_float)] * 2
        self.handle = self.lib.probe_open(b"virtual:generic:2")
        assert self.handle, "the virtual NPU could not be opened"

    def relu(self, values):
        x = (ctypes.c_float * 16)(*values)
        y = (ctypes.c_float * 16)()
        assert self.lib.probe_run(self.handle, x, y) == 0, "the inference failed"
        return list(y)


class Other:
    """The second openvino, through its Python package."""

    def __init__(self, openvino):
        import numpy

        self.numpy = numpy
        opset = __import__("openvino.opset8", fromlist=["parameter"])
        x = opset.parameter([1, 16], numpy.float32, name="x")
        model = openvino.Model([opset.relu(x)], [x], "relu")
        self.compiled = openvino.Core().compile_model(model, "CPU")

    def relu(self, values):
        x = self.numpy.array([values], dtype=self.numpy.float32)
        return [float(v) for v in self.compiled([x])[0][0]]


def loaded_engines():
    """Files named libopenvino.so.* that are mapped into this process."""
    maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
    return {line.split()[-1] for line in maps.splitlines() if "/libopenvino.so" in line}


def run_order(order, library, folder):
    """One process: the steps of `order`, each engine made at its first step."""
    sys.path.insert(0, folder)
    import openvino

    assert openvino.__file__.startswith(folder), openvino.__file__
    made = {}
    values = [float(i - 8) for i in range(16)]
    expected = [max(v, 0.0) for v in values]
    for step in order.split(","):
        if step == "import":
            continue
        if step not in made:
            made[step] = Ours(library) if step == "ours" else Other(openvino)
        for _ in range(20):
            got = made[step].relu(values)
            assert got == expected, f"{step}: {got}"
    engines = loaded_engines()
    assert len(engines) == 2, f"expected two engines in the process, found {sorted(engines)}"


def main():
    library, folder = sys.argv[1], str(pathlib.Path(sys.argv[2]).resolve())
    if len(sys.argv) > 3:
        run_order(sys.argv[3], library, folder)
        return 0
    if not pathlib.Path(folder, "openvino", "__init__.py").exists():
        print(f"skipped: no second openvino in {folder}; requirements/compat.txt says how to install it")
        return SKIP
    for order in ORDERS:
        subprocess.run([sys.executable, __file__, library, folder, order], check=True, timeout=120)
        print(f"ok: {order}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
