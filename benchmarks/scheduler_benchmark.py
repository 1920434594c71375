#!/usr/bin/env python3
"""The batch scheduler: its decisions under virtual time, and a pipeline in one process on the wall clock.

W1, a device that sleeps 4 + n ms for n items (8 at most), in open loop at shares of its capacity of 667 requests a
second: ours, ours again as the A/A control, and omniback through its Python interface, each in a process of its own,
on the same arrivals, in random order in each round. Beside them stands the ideal, the simulator's figures for these
arrivals. W2, dense layers, against OpenVINO's AUTO_BATCH: scheduler_dense_benchmark.cpp. Identity, an idle pipeline,
and instructions per request, counted by callgrind. All of it is of the transport class "in process".

Rounds in which a client of ours made its calls more than 1 ms late (99 of 100) say more of the machine than of the
scheduler: they are counted as void, and a verdict rests on the others, three at least.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from ratio import interval, verdict, write

HERE = pathlib.Path(__file__).parent
PEERS = HERE.parent / ".cache" / "scheduler-peers"
CAPACITY = 8e3 / 12
LOADS = (0.10, 0.25, 0.50, 0.75, 0.90, 1.20)
FIGURES = ("p50", "p95", "p99", "lag_p99", "mean_batch")
SKIPPED = 3


def say(text):
    print(text, file=sys.stderr, flush=True)


class Bench:
    """The programs, and a folder for what passes between them."""

    def __init__(self, build, folder):
        self.programs = build / "bin"
        self.folder = pathlib.Path(folder)
        self.peer_problem = None

    def run(self, program, *options):
        """The report of one of our programs."""
        out = self.folder / "report.json"
        out.unlink(missing_ok=True)
        subprocess.run([self.programs / program, *map(str, options), "--out", out], check=True)
        return json.loads(out.read_text())

    def ours(self, arrivals, *options):
        return self.run("scheduler_benchmark", "--part", "load", "--arrivals", arrivals, *options)

    def ideal(self, arrivals):
        return self.run("scheduler_simulation_benchmark", "--arrivals", arrivals)

    def omniback(self, arrivals):
        """None where it cannot be had; `peer_problem` says why."""
        if self.peer_problem:
            return None
        out = self.folder / "peer.json"
        done = subprocess.run([sys.executable, HERE / "scheduler_peer.py", "--arrivals", arrivals, "--out", out],
                              env={**os.environ, "PYTHONPATH": str(PEERS)}, capture_output=True, text=True)
        if done.returncode == SKIPPED:
            self.peer_problem = done.stderr.strip().splitlines()[-1]
            say(f"the peer is left out: {self.peer_problem}")
            return None
        if done.returncode != 0:
            raise RuntimeError("omniback failed:\n" + done.stderr[-2000:])
        return json.loads(out.read_text())

    def arrivals(self, per_second, seconds, seed):
        """A file of a Poisson process' times in nanoseconds."""
        rng = random.Random(seed)
        path = self.folder / "arrivals.txt"
        now, lines = 0.0, []
        for _ in range(max(20, int(per_second * seconds))):
            now += rng.expovariate(per_second)
            lines.append(str(int(now * 1e9)))
        path.write_text("\n".join(lines) + "\n")
        return path


def medians(reports):
    return {figure: float(np.median([r[figure] for r in reports])) for figure in FIGURES if figure in reports[0]}


def nearer(load, rounds):
    """How much further from the ideal ours is than the peer, in ms of p50; the control is ours against ours."""
    valid = [r for r in rounds if max(r["ours"]["lag_p99"], r["control"]["lag_p99"]) <= 1.0]
    used = valid if len(valid) >= 3 else rounds
    away = {side: np.array([abs(r[side]["p50"] - r["ideal"]["p50"]) for r in used])
            for side in ("ours", "control", "omniback")}
    rng = np.random.default_rng(1)
    more = interval(away["ours"] - away["omniback"], rng)
    control = interval(away["ours"] - away["control"], rng)
    word = verdict(more[1], more[2], 0.0, at_most=True)
    if not 0.25 <= load <= 0.90:
        word = "not asked"
    elif used is not valid:
        word = "void"
    return {"name": f"W1 at {load:.0%}: distance of p50 from the ideal, ours less omniback's, ms", "difference": more,
            "control": control, "ours_ms": float(np.median(away["ours"])),
            "omniback_ms": float(np.median(away["omniback"])), "target": 0.0, "valid_rounds": len(valid),
            "verdict": word}


def at_load(bench, load, rounds, seconds):
    """One rate of W1: every contender in every round."""
    seen = []
    for number in range(rounds):
        arrivals = bench.arrivals(CAPACITY * load, seconds, 1000 * number + int(100 * load))
        one = {"ideal": bench.ideal(arrivals)}
        sides = {"ours": bench.ours, "control": bench.ours, "omniback": bench.omniback}
        for side in random.sample(list(sides), len(sides)):
            one[side] = sides[side](arrivals)
        seen.append(one)
    entry = {"load": load, "per_second": CAPACITY * load, "rounds": seen}
    for side in ("ideal", "ours", "control", "omniback"):
        if seen[0][side] is not None:
            entry[side] = medians([r[side] for r in seen])
            figures = "  ".join(f"{name} {entry[side][name]:.2f}" for name in entry[side])
            say(f"W1 at {load:>4.0%}, {side:<9} {figures}")
    if seen[0]["omniback"] is not None:
        entry["nearer"] = nearer(load, seen)
        say("    {name}: {difference[0]:+.2f} [{difference[1]:+.2f}, {difference[2]:+.2f}]  A/A {control[0]:+.2f}  "
            "{valid_rounds} valid rounds: {verdict}".format(**entry["nearer"]))
    return entry


def overload(bench, rounds, seconds):
    """W1 at 800/s: answers within 30 ms, a second, with that limit and without one."""
    share = {"limit": [], "fifo": []}
    late = 0
    for number in range(rounds):
        arrivals = bench.arrivals(800, seconds, 77 + number)
        span = int(arrivals.read_text().split()[-1]) / 1e9
        limited, fifo = bench.ours(arrivals, "--limit", 30), bench.ours(arrivals)
        share["limit"].append(limited["in_time"] / span / CAPACITY)
        late += limited["count"] - limited["in_time"]
        share["fifo"].append(fifo["in_time"] / span / CAPACITY)
    entry = {side: float(np.median(values)) for side, values in share.items()} | {"late": late}
    say("W1 at 800/s on the wall clock, answers within 30 ms as a share of the capacity: {limit:.3f} with the limit "
        "({late} later by the client's clock), {fifo:.3f} without".format(**entry))
    return entry


def instructions(bench):
    """Of the whole process for one more request; None without valgrind."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        say("instructions are not counted: valgrind is not installed (./dev setup bench)")
        return None
    counted = []
    for requests in (1000, 5000):
        done = subprocess.run([valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null",
                               bench.programs / "scheduler_benchmark", "--part", "count", "--requests", str(requests),
                               "--out", "/dev/null"], capture_output=True, text=True, check=True)
        counted.append(int(re.search(r"Collected : (\d+)", done.stderr)[1]))
    each = (counted[1] - counted[0]) / 4000
    say(f"Identity, one client: {each:.0f} instructions a request")
    return each


def plot(report, path):
    """Latency over rate: W1 against the ideal and omniback, W2 against AUTO_BATCH."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    colours = {"ideal": "#888888", "ours": "#3a9b5c", "omniback": "#c0392b"}
    below = [e for e in report["w1"] if e["load"] < 1]
    for side, colour in colours.items():
        for which, style in (("p50", "-"), ("p99", "--")):
            points = [(e["per_second"], e[side][which]) for e in below if side in e]
            if points:
                left.plot(*zip(*points), style, color=colour, marker="o", ms=3, label=f"{side} {which}")
    left.set_title("W1: a call takes 4 + n ms, 8 items at most")
    for i, colour in enumerate(("#3a9b5c", "#2a6fdb", "#c0392b")):
        rates = report["w2"]["rates"] if report["w2"] else []
        for which, style in (("p50", "-"), ("p99", "--")):
            points = [(e["per_second"], e["sides"][i][which]) for e in rates]
            if points:
                right.plot(*zip(*points), style, color=colour, marker="o", ms=3,
                           label=f"{rates[0]['sides'][i]['side']} {which}")
    right.set_title("W2: eight dense layers of 1024 x 1024, one thread")
    for axes in (left, right):
        axes.set_yscale("log")
        axes.set_xlabel("requests a second")
        axes.set_ylabel("latency, ms")
        axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--models-dir", help="not used")
    parser.add_argument("--rounds", type=int, default=5, help="below 3: of a second each, for a first look")
    parser.add_argument("--out", default="", help="the report; the plot goes beside it, with the suffix .png")
    a = parser.parse_args()
    seconds = 4 if a.rounds >= 3 else 1
    report = {"benchmark": "scheduler", "transport": "in process", "seconds": seconds,
              "load_average_before": os.getloadavg()}
    with tempfile.TemporaryDirectory(prefix="corelane-bench-") as folder:
        bench = Bench(a.build, folder)
        report["simulation"] = bench.run("scheduler_simulation_benchmark")
        report["w1"] = [at_load(bench, load, a.rounds, seconds) for load in LOADS]
        report["overload"] = overload(bench, a.rounds, seconds)
        dense = "scheduler_dense_benchmark"
        report["w2"] = None
        if (bench.programs / dense).exists():
            report["w2"] = bench.run(dense, "--rounds", a.rounds, "--seconds", seconds)
        report["identity"] = bench.run("scheduler_benchmark", "--part", "identity", "--rounds", 3 * a.rounds)
        report["idle"] = bench.run("scheduler_benchmark", "--part", "idle", "--seconds", 10)
        report["instructions_per_request"] = instructions(bench)
        report["peer_problem"] = bench.peer_problem
    report["load_average_after"] = os.getloadavg()
    say("load average: {:.1f} before, {:.1f} after".format(report["load_average_before"][0],
                                                           report["load_average_after"][0]))
    if a.out:
        plot(report, pathlib.Path(a.out).with_suffix(".png"))
    write(report, a.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
