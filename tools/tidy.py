"""Runs clang-tidy-16 over the sources of a build, several sources in one run.

usage: tidy.py [-j JOBS] <build folder> [pattern...]

A source is checked where one of the patterns (regular expressions) is found in its path. Most of
the time of a run goes to the headers, so sources that are compiled alike are included by one file,
which is checked in their place (about a quarter of the time). Where that file
does not compile, or the compiler warns about it, its sources are checked in two halves, in the end
each alone. Prints each finding once, as it is found. Exits with 1 where there are findings, with 2 where a run ends
without an answer.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

TIDY = "clang-tidy-16"
TOGETHER = 12  # More sources take more memory (1 GB for 12) and gain little.
OUTPUT = re.compile(r" -o \S+ -c \S+$")
FINDING = re.compile(r"^\S+:\d+:\d+: (?:error|warning): .*\[([^\]]*)\]$", re.M)
# What the compiler itself says about sources that were not written to be compiled together.
COMPILER = re.compile(r"clang-diagnostic-(?!thread-safety)")


def sources(build, patterns):
    """The source of each entry of the build's compile commands, as {path: entry}."""
    entries = json.loads((build / "compile_commands.json").read_text())
    built = str(build) + os.sep
    return {
        entry["file"]: entry
        for entry in entries
        if not entry["file"].startswith(built) and any(re.search(pattern, entry["file"]) for pattern in patterns)
    }


def groups(entries):
    """Lists of sources that can be checked in one run; neighbours share most headers."""
    alike = collections.defaultdict(list)
    for path, entry in sorted(entries.items()):
        alike[OUTPUT.sub("", entry["command"])].append(path)
    for paths in alike.values():
        runs = -(-len(paths) // TOGETHER)
        for run in range(runs):
            yield paths[run * len(paths) // runs : (run + 1) * len(paths) // runs]


class Tidy:
    """One call of this program: what it checks and what was found."""

    def __init__(self, build, entries):
        self.entries = entries
        self.scratch = build / "tidy"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.numbers = iter(range(sys.maxsize))
        self.findings = set()  # A finding in a header comes once for each run.
        self.lock = threading.Lock()

    def check(self, paths):
        """Checks sources in one run; returns whether clang-tidy gave an answer."""
        folder = self.scratch / str(next(self.numbers))
        folder.mkdir(parents=True, exist_ok=True)
        entry = self.entries[paths[0]]
        source = paths[0]
        if len(paths) > 1:
            source = str(folder / "together.cpp")
            lines = (f'#include "{path}" // NOLINT(bugprone-suspicious-include)\n' for path in paths)
            pathlib.Path(source).write_text("".join(lines))
        command = OUTPUT.sub("", entry["command"]) + f" -o /dev/null -c {source}"
        commands = [{"directory": entry["directory"], "command": command, "file": source}]
        (folder / "compile_commands.json").write_text(json.dumps(commands))
        # The rules lie above the sources, not above the build; sources that are included are headers to clang-tidy.
        root = pathlib.Path(__file__).resolve().parent.parent
        ours = f"^{re.escape(str(root))}/(include/corelane|src|apps|benchmarks|examples|tests)/"
        done = subprocess.run(
            [TIDY, "-quiet", "-p", folder, f"--config-file={root}/.clang-tidy", f"--header-filter={ours}", source],
            capture_output=True,
            text=True,
            check=False,
        )
        found = list(FINDING.finditer(done.stdout))
        if len(paths) > 1 and (any(COMPILER.search(one[1]) for one in found) or (done.returncode and not found)):
            half = len(paths) // 2
            first, second = self.check(paths[:half]), self.check(paths[half:])
            return first and second
        if done.returncode and not found:
            print(f"tidy: {TIDY} ended with {done.returncode} on {source}:", file=sys.stderr)
            print(done.stdout, done.stderr, sep="", file=sys.stderr)
            return False
        with self.lock:
            for one, following in zip(found, [*found[1:], None]):
                if one[0] not in self.findings:
                    print(done.stdout[one.start() : following.start() if following else None], end="", flush=True)
                self.findings.add(one[0])
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("patterns", nargs="*", default=[""])
    given = parser.parse_args()
    entries = sources(given.build.resolve(), given.patterns)
    if not entries:
        wanted = " or ".join(given.patterns)
        print(f"tidy: no source matches {wanted}: give a part of the path of a .cpp", file=sys.stderr)
        return 2
    tidy = Tidy(given.build.resolve(), entries)
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        answered = all(list(pool.map(tidy.check, groups(entries))))
    print(f"{len(entries)} sources, {len(tidy.findings)} findings")
    return 2 if not answered else 1 if tidy.findings else 0


if __name__ == "__main__":
    sys.exit(main())
