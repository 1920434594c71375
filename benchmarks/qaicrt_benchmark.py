#!/usr/bin/env python3
"""An inference of corelane.qaicrt from Python against InferenceSession.run() of the same package, in one process: a
ReLU of 16 floats on one device each. The rivals are a session without a time limit, and one with the limit that
execution objects have (5 s). Answers are compared first; contenders run in random order in each round; a second session
is the A/A control; figures are medians of per-round ratios of median calls, with a bootstrap interval."""
import argparse
import os
import pathlib
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper

from python_session import compare, measure, median_call
from ratio import write

SHAPE = (1, 16)
TARGET = 1.2


def relu():
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", values[:1], values[1:])
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def session(model, **options):
    import corelane
    return corelane.InferenceSession(model, providers=["RKNPU2ExecutionProvider"], provider_options=[options])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True, help="the folder that holds the package")
    parser.add_argument("--models-dir", help="not used")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--out", default="")
    a = parser.parse_args()
    os.environ["CORELANE_QAIC_DEVICES"] = "virtual:aic100"
    sys.path.insert(0, a.package)
    import corelane
    from corelane import qaicrt
    model = relu()
    x = np.linspace(-1, 1, SHAPE[1], dtype=np.float32).reshape(SHAPE)
    y = np.empty_like(x)
    with tempfile.TemporaryDirectory() as folder:
        corelane.compile(model, pathlib.Path(folder, "programqpc.bin"))
        context, container = qaicrt.Context(0), qaicrt.Qpc(folder)
        program, queue = qaicrt.Program(context, 0, container), qaicrt.Queue(context, 0)
        object_ = qaicrt.ExecObj(context, program)
    if (object_.setData([x, y]), object_.run()) != (0, 0) or not np.array_equal(y, np.maximum(x, 0)):
        raise RuntimeError("the execution object's answer is wrong")
    sessions = [session(model), session(model), session(model, run_timeout_ms="5000")]
    for one in sessions:
        if not np.array_equal(one.run(None, {"x": x})[0], y):
            raise RuntimeError("the session's answer is wrong")

    def enqueue_and_wait():
        queue.enqueue(object_)
        object_.waitForCompletion()

    calls = [object_.run, enqueue_and_wait, lambda: object_.run([x, y])]
    calls += [lambda one=one: one.run(None, {"x": x}) for one in sessions]
    times = measure([median_call(call) for call in calls], a.rounds, 0.02)
    free, again = {"run": times[3]}, {"run": times[4]}
    limited = {"run, 5 s": times[5]}
    report = {"benchmark": "qaicrt", "ratios": [
        compare("ExecObj.run() / InferenceSession.run()", times[0], free, again, TARGET, True),
        compare("the same by a queue: enqueue(), waitForCompletion()", times[1], free, again, TARGET, True),
        compare("ExecObj.run([x, y]), arrays given each time", times[2], free, again, TARGET, True),
        compare("ExecObj.run() / the session's with a limit of 5 s", times[0], limited, limited, TARGET, True)]}
    write(report, a.out)


if __name__ == "__main__":
    main()
