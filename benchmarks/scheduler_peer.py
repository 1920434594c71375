#!/usr/bin/env python3
"""omniback through its Python interface on W1, in open loop: a backend written in Python that sleeps 4 + n ms for a
call of n items, 8 at most, one instance. Called by scheduler_benchmark.py, with omniback on PYTHONPATH.

Each client thread takes the next arrival, sleeps until then and calls the pipeline, as the clients of
scheduler_benchmark.cpp do; each answer is compared. Exit status 3: omniback cannot be imported here, and why.
"""
import argparse
import ctypes
import json
import pathlib
import sys
import threading
import time

SKIPPED = 3
PR_SET_TIMERSLACK = 29


class Sleeper:
    """W1's device."""

    batches = 0
    items = 0

    def forward(self, requests):
        Sleeper.batches += 1
        Sleeper.items += len(requests)
        time.sleep((4 + len(requests)) / 1e3)
        for request in requests:
            request["result"] = request["data"]

    def min(self):
        return 1

    def max(self):
        return 8


def open_loop(pipeline, arrivals, clients):
    """Latencies from the intended arrival, and how late the calls were made, in ms."""
    latencies, lags = [0.0] * len(arrivals), [0.0] * len(arrivals)
    numbers = iter(range(len(arrivals)))
    wrong = []
    begin = time.monotonic() + 0.05

    def client():
        for i in numbers:  # One step of this iterator is atomic.
            intended = begin + arrivals[i] / 1e9
            time.sleep(max(0.0, intended - time.monotonic()))
            lags[i] = (time.monotonic() - intended) * 1e3
            request = {"data": i}
            pipeline(request)
            latencies[i] = (time.monotonic() - intended) * 1e3
            if request.get("result") != i:
                wrong.append(i)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise RuntimeError(f"{len(wrong)} answers differ")
    return latencies, lags


def percentile(values, part):
    """As percentiles.h: the smallest that at least this part does not exceed."""
    values = sorted(values)
    return values[max(1, -int(-part * len(values) // 1)) - 1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arrivals", required=True, type=pathlib.Path, help="nanoseconds, one a line")
    parser.add_argument("--clients", type=int, default=256)
    parser.add_argument("--timeout", type=int, default=2, help="batching_timeout in ms, whole")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    a = parser.parse_args()
    try:
        import omniback
    except (ImportError, OSError) as problem:
        print(f"omniback cannot be imported: {problem}", file=sys.stderr)
        return SKIPPED
    # What libraries start inherits it: timers are as precise for the peer as for ours.
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    omniback.register("Sleeper", Sleeper)
    pipeline = omniback.pipe({"w1": {"backend": "Sleeper", "instance_num": "1",
                                     "batching_timeout": str(a.timeout)}})
    for i in range(5):
        request = {"data": i}
        pipeline(request)
        if request.get("result") != i:
            raise RuntimeError("answers differ")
    Sleeper.batches = Sleeper.items = 0
    arrivals = [int(line) for line in a.arrivals.read_text().split()]
    latencies, lags = open_loop(pipeline, arrivals, a.clients)
    a.out.write_text(json.dumps({
        "count": len(latencies), "p50": percentile(latencies, 0.5), "p95": percentile(latencies, 0.95),
        "p99": percentile(latencies, 0.99), "max": max(latencies), "failed": 0,
        "lag_p99": percentile(lags, 0.99), "mean_batch": Sleeper.items / Sleeper.batches}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
