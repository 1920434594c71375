"""The structure of the tree, held against the rules of docs/architecture.md.

usage: structure.py [root]

Each check is a function from a Tree to its violations, one line each, that name the file and what is
allowed. structure_test.py feeds every check a tree that breaks it. Standard library only.
"""

import re
import statistics
import sys
from pathlib import Path

CODE = (".h", ".hpp", ".cpp", ".cc", ".c")
SCRIPTS = (".py", ".cmake")
SKIPPED = re.compile(r"^(build|build-.*|out|\.git|\.venv|\.cache|__pycache__)$")
GENERATED = re.compile(r"(\.pb|_generated)\.h$")
BESIDE = re.compile(r"_(test|benchmark|fuzz)$")

# Floors, lowest first. A unit is a folder of a floor; `drivers/*`, `adapters/*` and `apps/*` hold one
# unit for each subfolder. What the programs share lies below the programs.
FLOORS = {"base": 1, "tensor": 2, "dispatch": 2, "program": 3, "onnx": 4, "device": 4, "lanes": 5,
          "drivers": 6, "runtime": 6, "session": 7, "scheduler": 7, "edge": 8, "adapters": 9, "apps": 10}
SPLIT = ("drivers", "adapters", "apps")
# Headers that a foreign API is spoken by stand below everything; check_foreign says who may take them.
SPOKEN = ("include/rknn/",)
UMBRELLA = (7.5, "library")  # src/*.cpp and include/corelane/*.h: the shared library of floors 1 to 7.

# The room of runtime in which programs meet the device: it makes an executable of an image.
MEETING = "src/runtime/program/"
MODEL = {"program", "onnx"}

MAX_LINES = 800
MAX_MEDIAN = 160
MAX_CHAIN = 10

# Foreign APIs: their names and headers, and the folders that may use them.
FOREIGN = (
    ("RKNN", r"\b(rknn_\w+|RKNN_\w+)\b", r"^rknn_\w+\.h$",
     ("src/adapters/rknn/", "src/drivers/rknn/", "src/adapters/ggml/", "include/rknn/", "examples/rknn")),
    ("QAic", r"\b(qaic::\w+|QAic\w+|QID|qaicrt\w*)\b", r"^(QAic\w*|qaic/.*)\.hp*$", ("src/adapters/qaic/",)),
    ("ggml", r"\b(ggml_\w+|GGML_\w+)\b", r"^ggml[\w-]*\.h$", ("src/adapters/ggml/",)),
    ("Python", r"\b(PyObject|Py_\w+|nanobind::|pybind11::)", r"^(Python\.h|nanobind/.*|pybind11/.*)$",
     ("src/adapters/python/", "python/")),
)
ENGINE_INCLUDE = re.compile(r"^(openvino/|dnnl|oneapi/dnnl|tbb/|oneapi/tbb)")
ENGINE_NAME = re.compile(r"\b(ov::\w|dnnl::\w|dnnl_\w|tbb::\w)")
ENGINE_LINK = re.compile(r"\b(openvino::|OpenVINO|dnnl\b|DNNL::|TBB::)")
ENGINE_HOME = "src/drivers/virtual/"
DOORS = ("include/", "src/", "apps/", "examples/", "python/")

# Places that only exist on one machine, and registries: in pieces, so that this file is clean itself.
MACHINE = [re.compile(p) for p in (
    r"(?<![\w.])/" + r"work(?![\w-])", r"(?<![\w)\]])\." + r"library\b", r"(?<![\w.])/" + r"root/",
    r"py" + r"pi\.org", r"python" + r"hosted\.org", r"deb\." + r"debian\.org")]


def strip(text):
    """The code of a C++ text: comments and the contents of literals are gone, line ends stay."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                       re.S)
    return token.sub(lambda m: "\n" * m.group(0).count("\n") if m.group(0)[0] == "/" else '""', text)


class Tree:
    def __init__(self, root):
        self.root = Path(root)
        self.texts = {}
        for path in self._paths():
            try:
                self.texts[path] = (self.root / path).read_text(encoding="utf-8")
            except (UnicodeDecodeError, OSError):
                continue  # Pictures and dangling links have no structure.
        self.code = [p for p in sorted(self.texts) if p.endswith(CODE)]
        self.product = [p for p in self.code if p.startswith(("include/", "src/", "apps/"))
                        and not BESIDE.search(Path(p).stem)]
        self.includes = {p: self._includes(p) for p in self.code}

    def _paths(self):
        found, folders = [], [self.root]
        while folders:
            for entry in folders.pop().iterdir():
                if SKIPPED.match(entry.name):
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    folders.append(entry)
                elif entry.is_file():
                    found.append(entry.relative_to(self.root).as_posix())
        return found

    def _includes(self, path):
        """(name as written, file of the tree or None) of each include."""
        here = Path(path).parent.as_posix()
        # A program's own folders are on its include path too.
        roots = ["include", *(s.rstrip("/") for s in SPOKEN), "src", here, "apps", path.split("/")[0], "."]
        result = []
        for mark, name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]',
                                     self.texts[path], re.M):
            targets = [f"{r}/{name}" if r != "." else name for r in roots]
            result.append((mark, name, next((t for t in targets if t in self.texts), None)))
        return result


def unit_of(path):
    """(floor, unit) of a file of the house; None for tests, benchmarks and examples."""
    parts = path.split("/")
    if path.startswith(SPOKEN):
        return (0, "/".join(parts[:2]))
    if path.startswith("include/corelane/"):
        rest = parts[2:]
    elif parts[0] == "src":
        rest = parts[1:]
    elif parts[0] == "apps":
        rest = parts
    else:
        return None
    if len(rest) == 1:
        return UMBRELLA
    if rest[0] not in FLOORS:
        return (None, rest[0])
    if rest[0] in SPLIT and len(rest) > 2:
        floor = 9.5 if rest[:2] == ["apps", "common"] else FLOORS[rest[0]]
        return (floor, "/".join(rest[:2]))
    return (FLOORS[rest[0]], rest[0])


def check_floors(tree):
    """Rule 1: includes go down; neighbours on one floor do not meet."""
    for path in tree.code:
        mine = unit_of(path)
        if mine is None:
            continue
        if mine[0] is None:
            yield f"{path}: '{mine[1]}' is no floor; floors are {', '.join(FLOORS)}"
            continue
        for mark, name, target in tree.includes[path]:
            theirs = unit_of(target) if target else None
            if target and theirs is None:
                yield f"{path}: includes {target}, which is outside the house"
            elif target is None and mark == '"' and not GENERATED.search(name):
                yield f'{path}: "{name}" is not in the tree; write it from include/ or src/'
            elif theirs and theirs[1] != mine[1] and (theirs[0] is None or theirs[0] >= mine[0]):
                yield f"{path}: floor {mine[0]} ({mine[1]}) includes {target} of floor {theirs[0]} ({theirs[1]})"


def check_foreign(tree):
    """Rule 2: foreign names and headers stop in their adapter."""
    for path in tree.code:
        if not path.startswith(DOORS[:-1]):
            continue
        code = re.sub(r"^[ \t]*#[ \t]*include[^\n]*", "", strip(tree.texts[path]), flags=re.M)
        for api, names, headers, homes in FOREIGN:
            if path.startswith(homes):
                continue
            for _, name, _ in tree.includes[path]:
                if re.search(headers, name):
                    yield f"{path}: includes {name}; {api} stops in {', '.join(homes)}"
            for match in re.finditer(names, code):
                line = code.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: names {match.group(0)}; {api} stops in {', '.join(homes)}"


def check_contract(tree):
    """Rule 3: the device contract stands on base and tensor; programs and devices meet in one room."""
    meeting = {}
    for path in tree.code:
        unit = unit_of(path)
        if unit is None or BESIDE.search(Path(path).stem):
            continue
        units = {unit_of(t)[1] for _, _, t in tree.includes[path] if t and unit_of(t)}
        if unit[1] == "device" and units - {"base", "tensor", "device"}:
            yield f"{path}: the device contract includes {sorted(units - {'base', 'tensor', 'device'})}; allowed: base, tensor"
        if unit[1].startswith("drivers") and units & MODEL:
            yield f"{path}: a driver includes {sorted(units & MODEL)}; executables reach it as opaque images"
        if unit[1] == "runtime" and "device" in units and units & MODEL and path.startswith("src/") \
                and not path.startswith(MEETING):
            yield f"{path}: includes {sorted(units & MODEL)} and device, which meet in {MEETING} only"
        if unit[1] == "scheduler" and units & {"runtime", "device"}:
            meeting.setdefault(Path(path).stem, path)
    if len(meeting) > 1:
        yield f"the scheduler meets the NPU in one file, not in {', '.join(sorted(meeting.values()))}"


def check_engine(tree):
    """Rule 4: no door links an engine; it stops in one driver."""
    for path, text in sorted(tree.texts.items()):
        if not path.startswith(DOORS) or path.startswith(ENGINE_HOME):
            continue
        if path.endswith(CODE):
            for _, name, _ in tree.includes[path]:
                if ENGINE_INCLUDE.search(name):
                    yield f"{path}: includes {name}; the engine stops in {ENGINE_HOME}"
            for match in ENGINE_NAME.finditer(strip(text)):
                yield f"{path}: names {match.group(0)}...; the engine stops in {ENGINE_HOME}"
        elif path.endswith(("CMakeLists.txt", ".cmake")):
            for match in ENGINE_LINK.finditer(re.sub(r"#.*", "", text)):
                yield f"{path}: links {match.group(0)}; the engine stops in {ENGINE_HOME}"


def check_drivers(tree):
    """Rule 5: a driver is one folder and one name in the list CORELANE_DRIVERS."""
    lists = re.findall(r"^set\(CORELANE_DRIVERS\s+([^)]*?)\s+CACHE\b", tree.texts.get("CMakeLists.txt", ""),
                       re.M)
    if len(lists) != 1:
        yield f"CMakeLists.txt: {len(lists)} lists set(CORELANE_DRIVERS ... CACHE ...), one is needed"
        return
    listed = lists[0].split()
    for name in {n for n in listed if listed.count(n) > 1}:
        yield f"CMakeLists.txt: CORELANE_DRIVERS names {name} more than once"
    drivers = set()
    for path, text in tree.texts.items():
        match = re.fullmatch(r"src/drivers/(\w+)/CMakeLists\.txt", path)
        if match and re.search(r"^\s*corelane_driver\(", text, re.M):
            drivers.add(match.group(1))
    for name in sorted(drivers - set(listed)):
        yield f"src/drivers/{name}: a driver that CORELANE_DRIVERS does not name"
    for name in sorted(set(listed) - drivers):
        yield f"CMakeLists.txt: CORELANE_DRIVERS names {name}, but src/drivers/{name} is no driver"
    for path, text in sorted(tree.texts.items()):
        if not path.startswith(("src/", "include/", "apps/", "cmake/", "CMakeLists.txt")):
            continue
        bare = re.sub(r"#(?!\s*include).*", "", text) if path.endswith(SCRIPTS + (".txt",)) else \
            re.sub(r"//[^\n]*", "", text)
        for name in sorted(drivers):
            if path.startswith(f"src/drivers/{name}/"):
                continue
            knows = rf"\bdrivers/{name}\b|\b(?:corelane_)?driver_{name}\b"
            if path.startswith("src/drivers/"):  # Elsewhere an adapter may have the same name.
                knows += rf"|add_subdirectory\(\s*{name}\s*\)"
            if re.search(knows, bare):
                yield f"{path}: knows the driver {name}; only its folder and CORELANE_DRIVERS may"


def include_graph(tree):
    return {p: sorted({t for _, _, t in tree.includes[p] if t and t != p}) for p in tree.code}


def check_cycles(tree):
    """Rule 9: no include cycle, and in the house no chain of more than MAX_CHAIN includes."""
    graph, depth, state = include_graph(tree), {}, {}
    cycles = []

    def visit(path, trail):
        if state.get(path) == "open":
            cycles.append(" -> ".join(trail[trail.index(path):] + [path]))
            return []
        if path not in depth:
            state[path] = "open"
            below = max((visit(t, trail + [path]) for t in graph[path]), key=len, default=[])
            state[path] = "done"
            depth[path] = [path] + below
        return depth[path]

    for path in tree.code:
        chain = visit(path, [])
        if len(chain) - 1 > MAX_CHAIN and unit_of(path) and not path.endswith(".h"):
            yield f"{path}: a chain of {len(chain) - 1} includes, at most {MAX_CHAIN}: {' -> '.join(chain)}"
    for cycle in cycles:
        yield f"include cycle: {cycle}"


def check_sizes(tree):
    """Rule 9: no file over MAX_LINES, and a median under MAX_MEDIAN."""
    for path in sorted(tree.texts):
        if path.endswith(CODE + SCRIPTS) or path == "dev":
            lines = len(tree.texts[path].splitlines())
            if lines > MAX_LINES:
                yield f"{path}: {lines} lines, at most {MAX_LINES}"
    if tree.product:
        median = statistics.median(len(tree.texts[p].splitlines()) for p in tree.product)
        if median >= MAX_MEDIAN:
            yield f"the median file of include, src and apps has {median} lines, under {MAX_MEDIAN} are allowed"


def check_stems(tree):
    """Rule 9: a file's stem names one thing in the whole tree."""
    homes = {}
    for path in sorted(tree.texts):
        if not path.endswith(CODE + (".py",)) or Path(path).name in ("__init__.py", "conftest.py"):
            continue
        unit = unit_of(path)
        stem = BESIDE.sub("", Path(path).stem) if unit else Path(path).stem
        home = unit[1] if unit else Path(path).parent.as_posix()
        # A script may carry the name of the program that it drives.
        homes.setdefault((stem, path.endswith(".py")), {}).setdefault(home, path)
    for (stem, _), found in sorted(homes.items()):
        if len(found) > 1:
            yield f"stem '{stem}' is used for {', '.join(sorted(found.values()))}; each needs a name of its own"


def check_names(tree):
    """Files are snake_case (`-inl` is Highway's mark of a file it includes again), and nothing names a
    machine or a registry."""
    for path in tree.code:
        if not re.fullmatch(r"[a-z][a-z0-9_]*(-inl)?", Path(path).stem):
            yield f"{path}: file names are snake_case"
    for path, text in sorted(tree.texts.items()):
        for pattern in MACHINE:
            match = pattern.search(text)
            if match:
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: names {match.group(0)}, which exists on one machine or is a registry"


def check_headers(tree):
    """A public header opens with what it means, and is included once."""
    for path in tree.code:
        if path.startswith("include/corelane/"):
            text = tree.texts[path]
            if not text.startswith(("///", "/**")):
                yield f"{path}: opens with a doc comment (///): meaning, thread rule, lifetime"
            if "#pragma once" not in text:
                yield f"{path}: lacks #pragma once"


CHECKS = (check_floors, check_foreign, check_contract, check_engine, check_drivers, check_cycles,
          check_sizes, check_stems, check_names, check_headers)


def main(root):
    tree = Tree(root)
    if not tree.code:
        print(f"structure: no source below {root}", file=sys.stderr)
        return 2
    bad = 0
    for check in CHECKS:
        for violation in check(tree):
            print(f"{check.__name__[len('check_'):]}: {violation}")
            bad += 1
    lines = sorted(len(tree.texts[p].splitlines()) for p in tree.product)
    print(f"structure: {len(lines)} product files, {sum(lines)} lines, median {statistics.median(lines)}, "
          f"largest {lines[-1]}; {bad} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
