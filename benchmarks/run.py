#!/usr/bin/env python3
"""Runs the benchmarks and plots them: what `./dev bench` calls.

Each report is JSON in the output folder; ratios.png shows every ratio with its interval, its A/A
control and its target. A comparison that cannot run is an error, not left out, but for one whose rival
cannot be had on this machine: it is counted as skipped.
"""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# Name of the report -> command line after the program; quick: fewer rounds for a first look.
PROGRAMS = {
    "small_model": ["small_model_benchmark"],
    "sets": ["sets_benchmark"],
    "object_runtime": ["object_runtime_benchmark"],
    "real_models": ["real_models_benchmark"],
    "load": ["load_benchmark"],
    "batch_forms": ["batch_forms_benchmark"],
    "convert": ["convert_benchmark"],
    "matmul": ["matmul_benchmark"],
    "rknn": ["rknn_benchmark"],
    "session": ["session_benchmark"],
    "session_pressure": ["session_pressure_benchmark"],
    "timeout": ["timeout_benchmark"],
}
# Written in Python: each has its own way to what was built.
SCRIPTS = {"onnxruntime": ("ort_benchmark.py", "--library", "lib/libbench_shim.so"),
           "python_session": ("python_session.py", "--package", "python"),
           "qaicrt": ("qaicrt_benchmark.py", "--package", "python"),
           "ggml": ("ggml_benchmark.py", "--build", ""),
           "engines": ("engines_benchmark.py", "--package", "python"),
           "shape_forms": ("shape_forms_benchmark.py", "--package", "python"),
           "memory": ("memory_benchmark.py", "--package", "python"),
           "scheduler": ("scheduler_benchmark.py", "--build", "")}
SKIPPED = 3  # Exit status of a script that cannot have its rival here, and said why.
ROUNDS = {"small_model": 61, "sets": 31, "object_runtime": 31, "real_models": 31, "load": 15, "batch_forms": 15,
          "convert": 31, "rknn": 31, "matmul": 15, "onnxruntime": 31, "session": 21, "session_pressure": 7,
          "timeout": 31, "python_session": 21, "qaicrt": 41, "ggml": 7, "engines": 15, "shape_forms": 15,
          "memory": 5, "scheduler": 5}


def run(words) -> int:
    print("bench:", " ".join(map(str, words)), file=sys.stderr, flush=True)
    return subprocess.run(list(map(str, words))).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--models-dir", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="15 rounds at most")
    parser.add_argument("--rounds", type=int, help="instead of the report's own number")
    parser.add_argument("--only", choices=[*PROGRAMS, *SCRIPTS], help="one of the reports")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    failed, skipped, reports = [], [], []
    for name in [*PROGRAMS, *SCRIPTS]:
        if a.only and name != a.only:
            continue
        report = a.out / f"{name}.json"
        report.unlink(missing_ok=True)
        rounds = a.rounds or (min(15, ROUNDS[name]) if a.quick else ROUNDS[name])
        options = ["--rounds", rounds, "--out", report]
        if name in SCRIPTS:
            script, option, built = SCRIPTS[name]
            words = [sys.executable, HERE / script, option, a.build / built, "--models-dir", a.models_dir, *options]
        else:
            words = [a.build / "bin" / PROGRAMS[name][0], *options]
            if name in ("real_models", "load", "batch_forms", "rknn", "session"):
                words += ["--models-dir", a.models_dir]
        status = run(words)
        if status == 0 and report.exists():
            reports.append(report)
        elif status == SKIPPED and name in SCRIPTS:
            skipped.append(name)
        else:
            failed.append(name)
    if reports:
        if run([sys.executable, HERE / "plot.py", a.out / "ratios.png", *reports]) != 0:
            failed.append("plot")
    verdicts = [v for r in reports for v in verdicts_of(json.loads(r.read_text()))]
    for name, verdict in verdicts:
        if verdict == "missed":
            print(f"bench: missed: {name}", file=sys.stderr)
    print("bench: reports in", a.out, "; failed:", ", ".join(failed) or "none", "; skipped:",
          ", ".join(skipped) or "none", file=sys.stderr)
    return 1 if failed else 0


def verdicts_of(node):
    if isinstance(node, dict):
        if "verdict" in node:
            yield node.get("name", node.get("model", "?")), node["verdict"]
        for value in node.values():
            yield from verdicts_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from verdicts_of(value)


if __name__ == "__main__":
    sys.exit(main())
