#!/usr/bin/env python3
"""The virtual NPU with the engine that it chooses, against onnxruntime, over the models of installed packages.

One core and one thread on both sides, run() from Python, the same inputs; answers are compared first. The session
has run for a while before it is measured, so that its engines have been timed. Beside each ratio stands the A/A
control, a second onnxruntime session. Load and first run are measured apart, each in a new session without a cache,
in turns: in this process, whose heap is large and warm by then, and in new ones, which have opened their library for
another model before. A model that onnxruntime itself does not run with made inputs is named and left out. Models of
one network (same operators, same inputs, other weights) are measured each; a second median counts them once. With
--fixed, every model with open dimensions is measured once more with the dimensions of its inputs fixed, on both sides.

With --all-cores, other figures instead: sessions of the defaults on both sides, which use all cores for a call that is
alone, and ours of one core beside them.
"""
import argparse
import functools
import hashlib
import itertools
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort

from memory_benchmark import tiny_network
from python_session import SPIN, agree, compare, measure, median_call, ort_session, our_session, settle
from ratio import interval, verdict, write

# Sizes of open dimensions after the first one, by a part of the model's path; elsewhere SIZE.
SIZES = {"det": (3, 640, 640), "rec": (3, 48, 320), "cls": (3, 48, 192), "orientation": (3, 224, 224),
         "layout_cdla": (3, 800, 608), "nmp": (43844, 1), "silero": (512,), "swift_f0": (16000,)}
SIZE = 64
SHAPES = {"state": (2, 1, 128)}  # By an input's name: what voice detectors carry from call to call.
# Values of inputs that choose what a network does, by their names: a rate and two frequencies, in Hz.
VALUES = {"sr": 16000, "fmin": 50, "fmax": 2000}
PACKAGES = pathlib.Path(__file__).resolve().parent.parent / ".cache" / "packages"
MOST_BYTES = 200 << 20
WARM_UP = 2.5  # Seconds in which a session finds its engine.
FIRST_RUNS = 9
NEW_PROCESSES = 5


def models(folders):
    """Path and a short name, without copies of one file."""
    seen = set()
    for folder in folders:
        for path in sorted(folder.rglob("*.onnx")):
            content = path.read_bytes() if path.stat().st_size < MOST_BYTES else b""
            if len(content) < 2000 or "backend/test/data/node" in str(path) or content in seen:
                continue
            seen.add(content)
            yield path, str(path.relative_to(folder))


def shape_of(value, path):
    if value.name in SHAPES:
        return SHAPES[value.name]
    place = f"{path.parent.name}/{path.name}"
    sizes = next((sizes for part, sizes in SIZES.items() if part in place), ())

    def size(i, dim):
        if isinstance(dim, int) and dim > 0:
            return dim
        if i == 0 or "batch" in str(dim).lower():
            return 1
        return sizes[i - 1] if i <= len(sizes) else SIZE

    return [size(i, dim) for i, dim in enumerate(value.shape)]


def feed_of(session, path):
    rng = np.random.default_rng(7)
    feed = {}
    for value in session.get_inputs():
        kind = value.type.removeprefix("tensor(").removesuffix(")")
        shape = shape_of(value, path)
        if value.name in VALUES:
            feed[value.name] = np.full(shape, VALUES[value.name], {"float": np.float32}.get(kind, kind))
        elif kind in ("float", "double", "float16"):
            feed[value.name] = rng.uniform(-1, 1, shape).astype({"float": np.float32, "double": np.float64}.get(
                kind, np.float16))
        else:
            feed[value.name] = np.ones(shape, {"bool": np.bool_}.get(kind, kind))
    return feed


def network_of(path):
    """The same text for models that have the same operators in the same order, and the same inputs."""
    def operators(graph):
        return [(node.op_type, [operators(a.g) for a in node.attribute if a.HasField("g")]) for node in graph.node]

    graph = onnx.load(path, load_external_data=False).graph
    text = repr((operators(graph), [value.type.SerializeToString() for value in graph.input]))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def fixed(path, feed):
    """The model, with the dimensions of its inputs as `feed` has them."""
    model = onnx.load(path)
    for value in model.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, np.shape(feed.get(value.name, ())), strict=False):
            dim.dim_value = size
    return model.SerializeToString()


def first_runs(make, feed):
    """Seconds of load and first run."""
    begin = time.perf_counter()
    make().run(None, feed)
    return time.perf_counter() - begin


def in_turns(seconds, sides, rounds):
    """seconds(side) of both sides, round by round; each is first in every other round."""
    return [[*map(seconds, sides)] if i % 2 else [*map(seconds, sides[::-1])][::-1] for i in range(rounds)]


def first_of_this_process(package, side, model, feed_file):
    """Prints the seconds of load and first run; `side`: ours or theirs."""
    sys.path.insert(0, package)
    if side == "ours":
        import corelane
        make = functools.partial(our_session, corelane, threads=1, device="virtual:generic:1")
    else:
        make = functools.partial(ort_session, threads=1)
    make(tiny_network()).run(None, {"x": np.zeros((1, 16), np.float32)})
    with np.load(feed_file) as stored:
        feed = dict(stored)
    print(first_runs(lambda: make(model), feed))


def in_new_processes(package, model, feed):
    """Seconds of load and first run in new processes, ours and onnxruntime's in turns."""
    with tempfile.NamedTemporaryFile(suffix=".npz") as feed_file:
        np.savez(feed_file, **feed)
        feed_file.flush()

        def seconds(side):
            command = [sys.executable, __file__, "--package", package, "--first", side, model, feed_file.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{side}, in a new process: {done.stderr[-2000:]}")
            return float(done.stdout.split()[-1])

        return in_turns(seconds, ("ours", "theirs"), NEW_PROCESSES)


def one_model(corelane, package, path, name, rounds, fix=False):
    """A row of the report; None for a model that `fix` would not change."""
    model = str(path)
    plain = ort_session(model, 1)
    feed = feed_of(plain, path)
    is_open = any(not isinstance(dim, int) or dim <= 0 for value in plain.get_inputs() for dim in value.shape)
    if fix and not is_open:
        return None
    if fix:
        model = fixed(path, feed)
        plain = ort_session(model, 1)
    again = ort_session(model, 1)
    reference = plain.run(None, feed)
    ours = our_session(corelane, model, threads=1, device="virtual:generic:1")
    error = agree(name, ours.run(None, feed), reference)
    settle(ours, feed, WARM_UP)
    begin = time.perf_counter()
    plain.run(None, feed)
    latency = time.perf_counter() - begin
    agree(name, ours.run(None, feed), reference)  # On the engine that it has chosen.
    sides = [median_call(lambda s=s: s.run(None, feed)) for s in (ours, plain, again)]
    t = measure(sides, rounds, min(0.5, max(0.01, 2 * latency)))
    row = compare(f"{name}: run / onnxruntime", t[0], {"1 thread": t[1]}, {"1 thread": t[2]}, 1.03)
    row.update(max_relative_difference=error, network=network_of(path), open_dimensions=is_open and not fix)
    makers = (lambda: our_session(corelane, model, threads=1, device="virtual:generic:1"),
              lambda: ort_session(model, 1))
    row["first_runs"] = in_turns(lambda make: first_runs(make, feed), makers, FIRST_RUNS)
    if not fix:
        row["new_processes"] = in_new_processes(package, model, feed)
    return row


def on_all_cores(corelane, path, name, rounds):
    """A row of the report of --all-cores."""
    model = str(path)
    plain, again = ort_session(model, 0), ort_session(model, 0)
    feed = feed_of(plain, path)
    ours, one = our_session(corelane, model), our_session(corelane, model, threads=1)
    error = agree(name, ours.run(None, feed), plain.run(None, feed))
    for session in (ours, one):
        settle(session, feed, 2 * WARM_UP)  # Which number of cores is quicker is found after the engine.
    agree(name, ours.run(None, feed), plain.run(None, feed))
    begin = time.perf_counter()
    one.run(None, feed)
    latency = time.perf_counter() - begin
    t = measure([median_call(lambda s=s: s.run(None, feed), SPIN if s in (plain, again) else 0.0)
                 for s in (ours, plain, again, one)], rounds, min(0.5, max(0.03, 2 * latency)))
    row = compare(f"{name}: run / onnxruntime, defaults", t[0], {"defaults": t[1]}, {"defaults": t[2]}, 1.03)
    row.update(max_relative_difference=error, one_core_ratio=statistics.median(t[0] / t[3]))
    print(f"{'':<58} {row['one_core_ratio']:.3f} of the time of our session of one core", file=sys.stderr, flush=True)
    return row


def at_most_one(name, middle, low, high):
    """The row of a report for a median that should be at most 1."""
    held = verdict(low, high, 1.0, at_most=True)
    print(f"{name:<64} {middle:.3f} [{low:.3f}, {high:.3f}]  <= 1.00: {held}", file=sys.stderr)
    return {"name": name, "ratio": middle, "low": low, "high": high, "target": 1.0, "at_most": True, "verdict": held}


def medians_of(figures):
    """The rows of a report for the medians of `figures` (name -> ratios). The interval is that of models like these."""
    rng = np.random.default_rng(1)
    return [at_most_one(name, *interval(np.array(ratios), rng)) for name, ratios in figures.items()]


def median_ratio(rounds):
    """Of one model's rounds of (ours, theirs), in the last two axes."""
    return np.median(rounds[..., 0] / rounds[..., 1], axis=-1)


def median_of_rounds(name, rounds):
    """The row for the median over these very models. `rounds`: for each model the times of (ours, theirs). The
    interval is that of the measurement: each model's rounds are drawn anew."""
    rng = np.random.default_rng(1)
    rounds = np.array(rounds)
    count = rounds.shape[1]
    drawn = sorted(float(np.median(median_ratio(rounds[np.arange(len(rounds))[:, None],
                                                       rng.integers(count, size=(len(rounds), count))])))
                   for _ in range(2000))
    return at_most_one(name, float(np.median(median_ratio(rounds))), drawn[50], drawn[1949])


def summary_of_all_cores(rows):
    return medians_of({f"median of {len(rows)} models: run / onnxruntime, defaults": [row["ratio"] for row in rows],
                       f"median of {len(rows)} models: all cores / one, ours": [row["one_core_ratio"] for row in rows]})


def summary_of(rows):
    """The medians over all models, and the one in which models of one network count once."""
    alike = {}
    for row in rows:
        alike.setdefault((row["network"], row["open_dimensions"]), []).append(row["ratio"])
    counts = f"{len(rows)} models ({sum(row['open_dimensions'] for row in rows)} open)"
    summary = medians_of({
        f"median of {counts}: run / onnxruntime": [row["ratio"] for row in rows],
        f"median of {len(alike)} networks: run / onnxruntime": [statistics.median(r) for r in alike.values()]})
    for key, where in (("first_runs", ""), ("new_processes", " in a new process")):
        rounds = [row[key] for row in rows if key in row]
        if rounds:
            name = f"median of {counts}: load and first run{where} / onnxruntime"
            summary += medians_of({f"{name}, models like these": median_ratio(np.array(rounds))})
            summary.append(median_of_rounds(f"{name}, these models", rounds))
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True, help="the folder that holds the package corelane")
    parser.add_argument("--models-dir", default=str(pathlib.Path(np.__file__).parent.parent))
    parser.add_argument("--more-models", action="append", default=[], help="another folder with packages, beside "
                        "the one of ./dev setup test")
    parser.add_argument("--fixed", action="store_true", help="also with the open dimensions fixed")
    parser.add_argument("--all-cores", action="store_true", help="the defaults on both sides, on all cores")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="parts of models' paths, commas between them")
    parser.add_argument("--first", nargs=3, metavar=("SIDE", "MODEL", "FEED"), help="used by itself: time one load and "
                        "first run in this process")
    parser.add_argument("--out", default="")
    a = parser.parse_args()
    if a.first:
        first_of_this_process(a.package, *a.first)
        return 0
    if a.fixed and a.all_cores:
        parser.error("--fixed and --all-cores are measured apart")
    sys.path.insert(0, a.package)
    import corelane

    rows, left_out = [], {}
    folders = [pathlib.Path(a.models_dir), PACKAGES, *map(pathlib.Path, a.more_models)]
    for (path, name), fix in itertools.product(models(folders), (False, True) if a.fixed else (False,)):
        if not any(part in name for part in a.only.split(",")):
            continue
        name += ", fixed" if fix else ""
        try:
            row = on_all_cores(corelane, path, name, a.rounds) if a.all_cores else one_model(
                corelane, a.package, path, name, a.rounds, fix)
            rows += [row] if row else []
        except (ort.capi.onnxruntime_pybind11_state.Fail, ort.capi.onnxruntime_pybind11_state.InvalidArgument,
                ort.capi.onnxruntime_pybind11_state.RuntimeException, RuntimeError, TypeError) as problem:
            left_out[name] = str(problem).splitlines()[0][:300]
            print(f"{name}: left out: {left_out[name]}", file=sys.stderr, flush=True)
    if not rows:
        print("no model was measured: run ./dev setup bench", file=sys.stderr)
        return 1
    write({"benchmark": "engines", "onnxruntime": ort.__version__, "onnx": onnx.__version__,
           "ratios": rows + (summary_of_all_cores if a.all_cores else summary_of)(rows),
           "left_out": left_out}, a.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
