#!/usr/bin/env python3
"""The ggml plugin against the CPU backend of the same host: an unmodified llama.cpp's llama-bench, a prompt of 512
tokens and generation, flash attention on for both.

One model with random weights, in F16, Q8_0 and Q4_0. First the plugin's products of that type are compared with the
CPU's, by the host's own test. Each round then starts three processes in random order: ours, the CPU alone, and the CPU
alone again as the A/A control; figures are medians of per-round ratios of speed with a bootstrap interval. Where the
host picks a CPU backend with BF16 or AMX, all is measured a second time against the one that stops at VNNI, with the
NPU library held to the same. Exit status 3: the host cannot be had here, and why.
"""
import argparse
import os
import pathlib
import random
import sys
import tempfile

import numpy as np

import llama_bench
from ratio import interval, verdict, write

import debian_host  # On the path that llama_bench adds.
import make_model
import plugged

# Least speed relative to the CPU's, by type.
PROMPT = {"f16": 1.4, "q8_0": 3.0, "q4_0": 2.0}
GENERATION = 0.95
LOST = 0.10  # Share of the prompt's time that conversions may take.
TESTS = {"prompt 512": ("-p", "512", "-n", "0"), "generation 64": ("-p", "0", "-n", "64")}
SKIPPED = 3


def say(text):
    print(text, file=sys.stderr, flush=True)


def compare_answers(host, rival, kind):
    """The host's own comparison of products of this type on the NPU and on its CPU."""
    done = plugged.run([*host.command("test-backend-ops"), "test", "-b", "RKNN", "-o", "MUL_MAT", "-p",
                        f"type_a={kind},type_b=f32,m=16,"], rival.folder, plugged.OpsDone, **rival.limit)
    if done.code != 0 or not done.listed() or done.passed < 30 or done.passed != done.compared or "FAIL" in done.text:
        raise llama_bench.WrongRun(f"{kind}: answers differ: {done.passed} of {done.compared} cases passed\n"
                                   + done.text[-500:])
    return done.passed


def processor_seconds():
    """Of all processes, and of those that this one has waited for. What a virtual machine is kept from counts, too."""
    numbers = pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, interrupts, soft, stolen = map(int, numbers[:8])
    spent = os.times()
    return np.array([(user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK"),
                     spent.children_user + spent.children_system, spent.elapsed * os.cpu_count()])


def measure(host, rival, model, options, rounds):
    """Tokens a second [side][round] of ours, the CPU alone, and that again; of each round, ours' statistics; the share
    of the processors that other programs took."""
    speeds, stats, begin = [[], [], []], [], processor_seconds()
    for _ in range(rounds):
        for side in random.sample(range(3), 3):
            rows, done = llama_bench.run(host, rival, model, side == 0, "-fa", "1", "-r", "1", *options)
            speeds[side].append(rows[0]["avg_ts"])
            if side == 0:
                stats.append({"offloaded": done.stats["offloaded"]["weights"], **done.stats["microseconds"],
                              "timed": rows[0]["avg_ns"] / 1e3})
    everyone, children, there_was = processor_seconds() - begin
    return np.array(speeds), stats, max(0.0, (everyone - children) / there_was)


def compare(name, speeds, stats, others, target):
    rng = np.random.default_rng(1)
    ratio, control = interval(speeds[0] / speeds[1], rng), interval(speeds[2] / speeds[1], rng)
    word = verdict(ratio[1], ratio[2], target, at_most=False)
    ours, rival = (float(np.median(times)) for times in speeds[:2])
    on_npu = sum(one["offloaded"] > 0 for one in stats)
    say(f"{name:<44} {ratio[0]:.3f} [{ratio[1]:.3f}, {ratio[2]:.3f}]  A/A {control[0]:.3f} "
        f"[{control[1]:.3f}, {control[2]:.3f}]  >= {target:.2f}: {word}  ({ours:.1f} / {rival:.1f} t/s, "
        f"{on_npu} of {len(stats)} on the NPU, others took {others:.0%})")
    return {"name": name, "ratio": ratio[0], "low": ratio[1], "high": ratio[2], "control": control[0],
            "control_low": control[1], "control_high": control[2], "target": target, "at_most": False,
            "verdict": word, "ours_tokens_per_second": ours, "rival_tokens_per_second": rival,
            "rounds": len(stats), "rounds_on_the_npu": on_npu,
            "others_share_of_processors": others}


def lost(name, stats):
    """The share of a prompt that converting rows and results takes. A process computes two: to warm up, and timed."""
    parts = {part: np.array([one[part] / 2 for one in stats]) for part in ("convert", "finish")}
    prompt = np.array([one["timed"] for one in stats])
    share = interval((parts["convert"] + parts["finish"]) / prompt, np.random.default_rng(1))
    word = verdict(share[1], share[2], LOST, at_most=True)
    say(f"{name:<44} {share[0]:.3f} [{share[1]:.3f}, {share[2]:.3f}]  <= {LOST:.2f}: {word}")
    figures = {f"{part}_ms": float(np.median(times)) / 1e3 for part, times in {**parts, "prompt": prompt}.items()}
    return {"name": name, "share": share[0], "share_low": share[1], "share_high": share[2], "target": LOST,
            "verdict": word, **figures}


def flash_attention(host, rival, kind, model):
    """What `-fa auto` comes to: the host leaves flash attention out where the layer's device lacks it."""
    found = {"name": f"{kind} / {rival.variant}, -fa auto, prompt 512"}
    for side, ours in (("ours", True), ("rival", False)):
        rows, done = llama_bench.run(host, rival, model, ours, "-fa", "auto", "-r", "3", "-v", *TESTS["prompt 512"])
        found[f"{side}_tokens_per_second"] = rows[0]["avg_ts"]
        found[f"{side}_flash_attention"] = "Flash Attention not supported" not in done.log
    say("{name:<44} {ours_tokens_per_second:.1f} / {rival_tokens_per_second:.1f} t/s, flash attention "
        "{ours_flash_attention} / {rival_flash_attention}".format(**found))
    return found


def memory(host, rival, kind, model):
    for name, mode in (("CPU alone", "mmap"), ("ours, mmap", "mmap"), ("ours, no mmap", "none")):
        held = llama_bench.memory(host, rival, model, name.startswith("ours"), mode)
        say(f"{kind} {name:<20} MB: " + ", ".join(f"{what} {size / 1e6:.0f}" for what, size in held.items()))
        yield {"name": f"{kind}, {name}", **held}


def one_type(host, rivals, kind, rounds, report):
    model = make_model.made(kind)
    for rival in rivals:
        name = f"{kind} / {rival.variant}"
        report["compared"][name] = compare_answers(host, rival, kind)
        for test, options in TESTS.items():
            speeds, stats, others = measure(host, rival, model, options, rounds)
            prompt = test.startswith("prompt")
            if prompt and not all(one["offloaded"] for one in stats):
                raise llama_bench.WrongRun(f"{name}: a prompt was not computed on the NPU: {stats}")
            target = PROMPT[kind] if prompt else GENERATION
            report["ratios"].append(compare(f"{name}, {test}", speeds, stats, others, target))
            if prompt:
                report["lost"].append(lost(f"{name}, conversions / prompt", stats))
    report["flash_attention_auto"].append(flash_attention(host, rivals[0], kind, model))
    report["memory"] += memory(host, rivals[0], kind, model)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--models-dir", help="not used: its models are made")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=PROMPT, help="one of the types")
    parser.add_argument("--out", default="")
    a = parser.parse_args()
    plugged.Built.plugin = str((a.build / "lib/libggml-rknn.so").resolve())
    plugged.Built.library = str((a.build / "lib/librknnrt.so").resolve())
    with tempfile.TemporaryDirectory() as scratch:
        try:
            host = debian_host.fetch(plugged.CACHE / "debian")
            rivals = llama_bench.rivals(host, pathlib.Path(scratch))
        except debian_host.Unavailable as why:
            say(f"SKIP ggml: Debian's {debian_host.SUITE}, whose llama.cpp is measured, cannot be had: {why}")
            return SKIPPED
        report = {"benchmark": "ggml", "ggml": host.version(), "isa": llama_bench.isa(), "threads": llama_bench.THREADS,
                  "rivals": [{"variant": rival.variant, "ours_limited_by": rival.limit} for rival in rivals],
                  "weights": make_model.SHAPE.multiplied(), "compared": {}, "ratios": [], "lost": [],
                  "flash_attention_auto": [], "memory": []}
        say(f"ggml {host.version()}, CPU backends {', '.join(rival.variant for rival in rivals)}, on a machine with "
            + " ".join(report["isa"]))
        try:
            for kind in [a.only] if a.only else PROMPT:
                one_type(host, rivals, kind, a.rounds, report)
        except llama_bench.WrongRun as why:
            say(f"ggml: {why}")
            return 1
    write(report, a.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
