#!/usr/bin/env python3
"""Runs the node tests of the onnx package with sizes and integers that nobody expects.

    sizes_runner.py [--engine auto|openvino|onnxruntime] [--only TEXT] [--every N]

The dimensions of each model's inputs are opened. Then each dimension of each input is 0 once, the
same dimension of all inputs, and each integer input holds 0, -1 and both ends of its type, as do all
of them together. Any answer will do, an error too; what must not come is a signal, or no answer
within 20 seconds. Each model has a process of its own, which goes on after the variant that ended it.
The package is `corelane` of PYTHONPATH.
"""

import argparse
import os
import resource
import signal
import sys
import warnings

import numpy as np

SECONDS = 20
MEMORY = 6 << 30
ENDLESS = {"test_loop11"}  # A Loop makes as many rounds as an input says.


def cases():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return sorted(collect_testcases(None), key=lambda case: case.name)


def opened(model):
    for value in [*model.graph.input, *model.graph.output]:
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{i}"
    return model.SerializeToString()


def without(array, axis):
    shape = list(array.shape)
    if axis < len(shape):
        shape[axis] = 0
    return np.zeros(shape, array.dtype)


def integers(dtype):
    info = np.iinfo(dtype)
    return sorted({0, 1 if info.min == 0 else -1, info.min, info.max})


def variants(inputs):
    """Pairs of what differs and the inputs."""
    def changed(i, value):
        return [value if k == i else x for k, x in enumerate(inputs)]

    for i, x in enumerate(inputs):
        for axis in range(x.ndim):
            yield f"input {i} without elements along {axis}", changed(i, without(x, axis))
    for axis in range(max((x.ndim for x in inputs), default=0)):
        yield f"all without elements along {axis}", [without(x, axis) for x in inputs]
    whole = [i for i, x in enumerate(inputs) if x.dtype.kind in "iu"]
    for i in whole:
        for number in integers(inputs[i].dtype):
            yield f"input {i} is {number}", changed(i, np.full(inputs[i].shape, number, inputs[i].dtype))
    for place in range(4):
        every = list(inputs)
        for i in whole:
            numbers = integers(inputs[i].dtype)
            every[i] = np.full(inputs[i].shape, numbers[min(place, len(numbers) - 1)], inputs[i].dtype)
        if whole:
            yield f"all integers at place {place} of theirs", every
    if len(whole) > 1:
        smallest = list(inputs)
        for k, i in enumerate(whole):
            low = np.iinfo(inputs[i].dtype).min
            smallest[i] = np.full(inputs[i].shape, low if k == 0 or low == 0 else -1, inputs[i].dtype)
        yield "the smallest integer, then -1", smallest


def child(case, inputs, engine, begin, report):
    import corelane

    options = corelane.SessionOptions()
    options.add_session_config_entry("corelane.device", "virtual:generic:1")
    options.add_session_config_entry("corelane.engine", engine)
    session = corelane.InferenceSession(opened(case.model), options)
    names = [value.name for value in session.get_inputs()]
    for number, (text, feed) in enumerate(variants(inputs)):
        if number < begin:
            continue
        os.write(report, f"{number} {text}\n".encode())
        signal.alarm(SECONDS)
        try:
            session.run(None, dict(zip(names, feed)))
        except Exception:  # Any error is an answer.
            pass


def tried(attempt, case, inputs, engine, begin):
    """Numbers and texts of the variants that were tried, and the signal that ended it, or 0."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            attempt(case, inputs, engine, begin, writer)
        except Exception:  # The model is refused.
            pass
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        lines = [line.rstrip().split(" ", 1) for line in pipe]
    status = os.waitpid(pid, 0)[1]
    return lines, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def main(attempt, description):
    """`attempt`: what a process does with a case from a variant on. Returns the exit status."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--engine", default="auto", choices=("auto", "openvino", "onnxruntime"))
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--every", type=int, default=1, help="each N-th case alone")
    arguments = parser.parse_args()
    os.environ |= {"CORELANE_TIME_ENGINES": "0", "CORELANE_STATIC_FORMS": "0", "CORELANE_CACHE": "0"}
    models = refused = runs = ended = 0
    chosen = [c for c in cases() if arguments.only in c.name and c.name not in ENDLESS]
    for case in chosen[:: arguments.every]:
        inputs = case.data_sets[0][0]
        if not all(isinstance(x, np.ndarray) and x.dtype.kind in "fiub" for x in inputs):
            continue
        models += 1
        begin, before = 0, runs
        while True:
            lines, number = tried(attempt, case, list(inputs), arguments.engine, begin)
            runs += len(lines)
            if not number:
                break
            ended += 1
            at = lines[-1] if lines else ("-1", "while it was loaded")
            print(f"{case.name}: {at[1]}: {signal.Signals(number).name}", flush=True)
            if not lines:
                break
            begin = int(at[0]) + 1
        refused += runs == before
    print(f"{models} models, {refused} refused, {runs} runs, {ended} ended by a signal or by time")
    if refused > models // 2:
        sys.exit("most models are refused: nothing was tried")
    return 1 if ended else 0


if __name__ == "__main__":
    sys.exit(main(child, __doc__))
