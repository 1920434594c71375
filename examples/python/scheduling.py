"""Five ways to use three cores, on the same pictures: what runs where, how long, how many a second.

    ./dev python examples/python/scheduling.py [--mode three-cores] [--tasks 48]

The virtual NPU computes on the CPU: with fewer CPU cores than NPU cores the rate does not grow with the
schedule, the shares and the order of tasks are as on the board. --device "null:rk3588?a=20ms" computes
nothing and takes 20 ms a task: there the rates are those of three cores, and the answers are empty.
"""
import statistics
import time

import numpy as np

import corelane as ort
import example_support as support

MODES = {
    # One core does it all.
    "single-core": {"schedule": [0]},
    # Task t runs on schedule[t % 3]: three tasks at once, each on a core of its own.
    "three-cores": {"schedule": [0, 1, 2]},
    # The same on two cores; core 2 stays free for others.
    "two-cores": {"schedule": [0, 1]},
    # One task at a time, on all cores together, where the device can split it: for a short latency.
    "tensor-parallel": {"tp_mode": "all"},
    # Three cores, and submissions spread evenly instead of piling up: one every
    # (average time on a core) / 3.
    "paced": {"schedule": [0, 1, 2], "enable_pacing": True},
}


def measure(model: str, options: dict, inputs: list[np.ndarray]) -> dict:
    """Runs every input once; outputs, seconds from submission to callback, tasks by core, total."""
    outputs: list = [None] * len(inputs)
    took = [0.0] * len(inputs)

    def done(results, user_data, problem) -> None:
        task, begin = user_data
        outputs[task] = problem or results[0]
        took[task] = time.perf_counter() - begin

    with ort.InferenceSession(model, providers=[("RKNPU2ExecutionProvider", options)]) as session:
        name = session.get_inputs()[0].name
        for _ in range(60):  # Each core has compiled, and the average that sets the pace is that of later runs.
            session.run(None, {name: inputs[0]})
        before = session.statistics()["tasks_by_context"]
        start = time.perf_counter()
        for task, x in enumerate(inputs):
            session.run_async(None, {name: x}, done, (task, time.perf_counter()))
        session.close()  # Waits for every callback.
        total = time.perf_counter() - start
        after = session.statistics()
    cores = after["core_of_context"] if "schedule" in options else [options["tp_mode"]]
    tasks = {core: b - a for core, a, b in zip(cores, before, after["tasks_by_context"])}
    return {"outputs": outputs, "took": took, "tasks": tasks, "total": total}


def main() -> None:
    parser = support.options_of(__doc__)
    parser.add_argument("picture", nargs="?", default=support.PAGE, help="PNG or JPEG file of a page")
    parser.add_argument("--model", default=support.ORIENTATION, help="ONNX or program file")
    parser.add_argument("--mode", choices=[*MODES, "all"], default="all")
    parser.add_argument("--tasks", type=support.at_least_one, default=48)
    args = parser.parse_args()
    model, picture = support.located(args.model), support.read_picture(args.picture)
    turned = [support.to_input(np.ascontiguousarray(np.rot90(picture, -k)), 224, 224, support.IMAGENET)
              for k in range(4)]
    inputs = [turned[task % 4] for task in range(args.tasks)]

    print(f"{'mode':16} {'tasks on core':24} {'median':>9} {'longest':>9} {'a second':>9}  turns seen")
    for mode in MODES if args.mode == "all" else [args.mode]:
        found = measure(model, {**MODES[mode], "device": args.device}, inputs)
        failed = next((o for o in found["outputs"] if not isinstance(o, np.ndarray)), None)
        if failed is not None:
            raise support.ExampleError(f"{mode}: {failed}")
        right = sum(int(o[0].argmax()) == task % 4 for task, o in enumerate(found["outputs"]))
        tasks = ", ".join(f"{core}: {count}" for core, count in found["tasks"].items())
        print(f"{mode:16} {tasks:24} {statistics.median(found['took']) * 1e3:6.1f} ms "
              f"{max(found['took']) * 1e3:6.1f} ms {len(inputs) / found['total']:9.1f}  "
              f"{right} of {len(inputs)}")
        if args.check:
            support.check(model, zip(inputs[:4], found["outputs"][:4]), tolerance=2e-5)


if __name__ == "__main__":
    support.run(main)
