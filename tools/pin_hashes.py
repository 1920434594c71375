"""Writes the hashes of the files that pip would install into the Python lists of requirements/.

usage: pin_hashes.py [LIST...]      (names such as engine; default: all lists of Python packages)

`./dev setup` installs with --require-hashes: a file that is not the one that was pinned is refused. After the
version of a package is changed in a list, this program asks pip which wheels it would take on each of the
machines below, and writes their hashes under each package. Standard library and pip only.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What ./dev runs on: Debian 12 and 13, Ubuntu 24.04, and what lies between.
PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")
GLIBC = (36, 41)
# Lists whose packages are taken as source distributions.
SOURCES = ("ggml",)
PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s\\]+)", re.M)


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def lists(names):
    """(name, path) of each list of Python packages."""
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        if PIN.search(path.read_text(encoding="utf-8")) and (not names or path.stem in names):
            yield path.stem, path


def platforms(machine, glibc):
    for minor in range(glibc, 4, -1):
        yield f"manylinux_2_{minor}_{machine}"
        yield from {17: [f"manylinux2014_{machine}"], 12: [f"manylinux2010_{machine}"],
                    5: [f"manylinux1_{machine}"]}.get(minor, [])


def report(pins, python, machine, glibc):
    """{(name, version): hash} of the wheels that pip would install there; None where one has none."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "report.json")
        words = [word for name in platforms(machine, glibc) for word in ("--platform", name)]
        result = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps",
             "--only-binary", ":all:", "--python-version", python, *words, "--target", f"{folder}/target",
             "--report", out, *(f"{name}=={version}" for name, version in pins)],
            capture_output=True, text=True, check=False)
        if result.returncode != 0:
            return None
        entries = json.loads(out.read_text(encoding="utf-8"))["install"]
    return {(canonical(entry["metadata"]["name"]), entry["metadata"]["version"]):
            entry["download_info"]["archive_info"]["hash"].partition("=")[2] for entry in entries}


def wheels(pins):
    """{(name, version): set of hashes} over all machines."""
    found = {}
    for python in PYTHONS:
        for machine in MACHINES:
            for glibc in GLIBC:
                together = report(pins, python, machine, glibc)
                parts = [together] if together is not None else [report([pin], python, machine, glibc) for pin in pins]
                for part in parts:
                    for key, digest in (part or {}).items():
                        found.setdefault(key, set()).add(digest)
    return found


def source(name, version):
    """The hash of the source distribution."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
                        "--no-build-isolation", "--dest", folder, f"{name}=={version}"], check=True)
        archive = next(pathlib.Path(folder).iterdir())
        text = subprocess.run([sys.executable, "-m", "pip", "hash", archive], check=True, capture_output=True,
                              text=True).stdout
    return re.search(r"sha256:(\w+)", text).group(1)


def written(text, hashes):
    """The list with these hashes: {(name, version): hashes}."""
    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith("--hash="):
            continue
        found = PIN.match(line)
        if not found:
            lines.append(line)
            continue
        known = sorted(hashes[canonical(found.group(1)), found.group(2)])
        lines.append(" \\\n    ".join([found.group(0), *(f"--hash=sha256:{digest}" for digest in known)]))
    return "\n".join(lines) + "\n"


def main(names):
    pins = {name: PIN.findall(path.read_text(encoding="utf-8")) for name, path in lists(names)}
    # Lists that pin one package in two versions cannot be asked for together.
    together = sorted({pin for name, each in pins.items() if name not in (*SOURCES, "compat") for pin in each})
    hashes = wheels(together) if together else {}
    for name, path in lists(names):
        if name in SOURCES:
            hashes = {**hashes, **{(canonical(n), v): {source(n, v)} for n, v in pins[name]}}
        elif name == "compat":
            hashes = {**hashes, **wheels(pins[name])}
        path.write_text(written(path.read_text(encoding="utf-8"), hashes), encoding="utf-8")
        print(f"requirements/{name}.txt: {len(pins[name])} packages")


if __name__ == "__main__":
    main(sys.argv[1:])
