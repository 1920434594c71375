"""Starts an unmodified llama.cpp's own llama-bench, with the plugin and without it."""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "ggml"))
import debian_host  # noqa: E402
import plugged  # noqa: E402

THREADS = 2
INTERESTING = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8",
               "asimd", "asimddp", "i8mm", "bf16")


class WrongRun(Exception):
    """A run whose figures would mean nothing."""


@dataclasses.dataclass(frozen=True)
class Rival:
    """The host's CPU backend in one of its variants; `limit`: what the NPU library is held to beside it."""
    variant: str
    folder: pathlib.Path
    limit: dict


def isa():
    """What of this machine's instructions says how fast products are."""
    found = re.search(r"^(?:flags|Features)\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    flags = set(found.group(1).split()) if found else set()
    return [name for name in INTERESTING if name in flags]


def environment(ours, limit):
    """For a process with the plugin, or, where not `ours`, without it."""
    return limit if ours else {"GGML_BACKEND_PATH": None}


def picked_variant(host):
    """The variant of the host's CPU backend that it takes here; raises where it does not take the plugin."""
    done = plugged.run([*host.command("llama-bench"), "--list-devices"], host.folder())
    if not done.loaded():
        raise debian_host.Unavailable(f"ggml {host.version()} does not take the plugin: {' '.join(done.told())}")
    found = re.search(r"loaded CPU backend from .*/libggml-cpu-(\w+)\.so", done.log)
    return found.group(1) if found else "the only one"


def rivals(host, scratch):
    """The CPU backend as the host picks it; where that knows BF16 or AMX, also the one that stops at VNNI, against an
    NPU library that is held to the same instructions."""
    picked = picked_variant(host)
    found = [Rival(picked, host.folder(), {})]
    plain = host.folder() / "libggml-cpu-icelake.so"
    if picked != "icelake" and plain.exists() and "avx512_vnni" in isa():
        folder = scratch / "icelake"
        folder.mkdir()
        (folder / plain.name).symlink_to(plain)
        found.append(Rival("icelake", folder, {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"}))
    return found


def command(host, model, ours, *options):
    device = ["-dev", "RKNN", "-ngl", "99"] if ours else ["-dev", "none"]
    return [*host.command("llama-bench"), "-m", model, "-t", str(THREADS), *device, "-o", "jsonl", *options]


def run(host, rival, model, ours, *options):
    """One process. Its rows of figures, and all that it said."""
    done = plugged.run(command(host, model, ours, *options), rival.folder, **environment(ours, rival.limit))
    if done.code != 0:
        raise WrongRun(f"llama-bench ended with {done.code}: {done.log[-500:]}")
    rows = [json.loads(line) for line in done.text.splitlines()]
    # A host says nothing of a plugin that it did not load, and the plugin computes on the CPU what fails.
    if ours and not (done.loaded() and rows[0]["devices"] == "RKNN" and done.stats["products"]["failed"] == 0):
        raise WrongRun(f"not all was computed on the NPU: {done.stats}; {done.log[-500:]}")
    return rows, done


def rollup(pid):
    """Bytes by kind; a page that others have, too, counts in part."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()[1:]
    values = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    return {"all": values["Pss"], "file": values["Pss_File"], "objects": values["Pss_Shmem"],
            "anonymous": values["Pss_Anon"]}


def memory(host, rival, model, ours, load_mode):
    """What a process holds in the midst of generating, after prompts; and the most pages that it had until then."""
    words = command(host, model, ours, "-fa", "1", "-p", "512", "-n", "32", "-r", "2", "-lm", load_mode, "-v",
                    "--progress")
    variables = {**os.environ, "GGML_BACKEND_PATH": plugged.Built.plugin, "GGML_RKNN_LIBRARY": plugged.Built.library}
    if not ours:
        del variables["GGML_BACKEND_PATH"]
    held = {}
    buffers = {True: 0.0, False: 0.0}  # Ours, the host's.
    with subprocess.Popen(list(map(str, words)), cwd=rival.folder, env=variables, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        for line in process.stderr:
            if size := re.search(r"(\S+) model buffer size = +([\d.]+) MiB", line):
                buffers[size.group(1) == "RKNN"] += float(size.group(2)) * 2 ** 20
            if "generation run 2/2" in line:
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
                held = {**rollup(process.pid), "peak_resident": int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024}
    if process.returncode != 0 or not held or ours != (buffers[True] > 0):
        raise WrongRun(f"llama-bench ended with {process.returncode}, with weights in buffers {buffers}")
    return {**held, "weights_in_our_buffers": round(buffers[True]), "weights_in_others": round(buffers[False])}
