"""The declarations of ONNX Runtime's C interface (src/drivers/virtual/ort) against the header that Debian's
development release has: position and prototype of each function, and each value.

usage: ort_header.py fetch FOLDER      unpacks the package libonnxruntime-dev there (status 3: not to be had here)
       ort_header.py check FOLDER COMPILER SOURCES      status 77 where there is no header
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "ggml"))
import debian_host  # noqa: E402  It knows how to reach the development release.

UNAVAILABLE, SKIPPED = 3, 77


def header(folder):
    return next(iter(sorted(folder.glob("root/usr/include/**/onnxruntime_c_api.h"))), None)


def fetch(folder):
    if header(folder):
        return 0
    try:
        state = folder / "apt"
        state.mkdir(parents=True, exist_ok=True)
        source = f"deb [signed-by={debian_host.KEYS}] {debian_host.mirror()} {debian_host.SUITE} main\n"
        (state / "sources.list").write_text(source, encoding="utf-8")
        debian_host.apt(state, "update", "--error-on=any")
        debian_host.apt(state, "download", "libonnxruntime-dev", cwd=state / "packages")
    except debian_host.Unavailable as problem:
        print(f"the header of ONNX Runtime cannot be had: {problem}", file=sys.stderr)
        return UNAVAILABLE
    for package in (state / "packages").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
    return 0 if header(folder) else UNAVAILABLE


def program(sources, found):
    """Asserts at compile time: the list's lines with the header's own types, the places of a custom operator's
    functions, and the values of our enumerations, but for those that are newer than the header."""
    api = (sources / "src/drivers/virtual/ort/ort_api.h").read_text(encoding="utf-8")
    values = re.findall(r"^\s+(?:enum .*\{ )?([A-Z]\w+) = (\d+)", api, re.MULTILINE)
    values += re.findall(r"[{,] (\w+) = (\d+)", api)
    known = set(re.findall(r"\w+", found.read_text(encoding="utf-8")))
    values = [(name, value) for name, value in values if name in known]
    lines = ["#include <cstddef>", "#include <type_traits>", '#include "onnxruntime_c_api.h"',
             "template <class Found, class Result, class... Parameters>",
             "constexpr bool is_same = std::is_same_v<Found, Result (*)(Parameters...)> ||",
             "                         std::is_same_v<Found, Result (*)(Parameters...) noexcept>;",
             "#define CORELANE_ORT_ENTRY(position, name, ...) \\",
             "  static_assert(offsetof(OrtApi, name) == position * sizeof(void*), #name); \\",
             "  static_assert(is_same<decltype(OrtApi::name), __VA_ARGS__>, #name);",
             '#include "drivers/virtual/ort/ort_entries.inc"']
    lines += [f"static_assert(static_cast<int>({name}) == {value});" for name, value in dict(values).items()]
    operator = re.search(r"struct OrtCustomOp \{(.*?)\n\};", api, re.DOTALL).group(1)
    lines += [f"static_assert(offsetof(OrtCustomOp, {name}) == {place} * sizeof(void*));"
              for place, name in enumerate(["version", *re.findall(r"\(\*(\w+)\)\(", operator)])]
    return "\n".join(lines) + "\n", len(values)


def check(folder, compiler, sources):
    found = header(folder)
    if not found:
        print(f"skipped: no header in {folder}; ./dev setup test fetches it from Debian's development release")
        return SKIPPED
    text, values = program(sources, found)
    if values < 10:
        sys.exit(f"only {values} values were read from ort_api.h: the pattern no longer fits")
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wno-ignored-attributes", "-x", "c++",
                           "-I", found.parent, "-I", sources / "src", "-"], input=text, text=True, check=False)
    return done.returncode


if __name__ == "__main__":
    mode, where, *rest = sys.argv[1:]
    where = pathlib.Path(where).resolve()  # apt takes a relative path as one below its own folders.
    sys.exit(fetch(where) if mode == "fetch" else
             check(where, rest[0], pathlib.Path(rest[1])))
