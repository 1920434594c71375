"""The structure of the tree, held against the rules of docs/architecture.md.

usage: structure.py [root]

Each check is a function from a Tree to its violations, one line each, that name the file and what is
allowed. structure_test.py feeds every check a tree that breaks it. Standard library only.
"""

import re
import statistics
import sys
from pathlib import Path

import code_shape
from code_shape import strip
from rooms import ROOMS

CODE = (".h", ".hpp", ".inc", ".cpp", ".cc", ".c")
SCRIPTS = (".py", ".cmake")
SKIPPED = re.compile(r"^(build|build-.*|out|\.git|\.venv|\.cache|__pycache__)$")
GENERATED = re.compile(r"(\.pb|_generated)\.h$|^(QAicTypes|QAicApi|qaic_ours)\.h$|^qaic(rt)?_table\.inc$")
BESIDE = re.compile(r"_(test|benchmark|fuzz)$")

# Floors, lowest first. A unit is a folder of a floor; `drivers/*`, `adapters/*` and `apps/*` hold one
# unit for each subfolder.
FLOORS = {"base": 1, "tensor": 2, "dispatch": 2, "program": 3, "onnx": 4, "device": 4, "lanes": 5,
          "drivers": 6, "runtime": 6, "session": 7, "scheduler": 7, "edge": 8, "adapters": 9, "apps": 10}
SPLIT = ("drivers", "adapters", "apps")
# What the units of a split floor share lies below them.
SHARED = {"drivers/chips": 5.5, "adapters/interpreter": 8.5, "apps/common": 9.5}
# Headers that a foreign API is spoken by stand below everything; check_foreign says who may take them.
SPOKEN = ("include/rknn/", "include/qaic/")
# The face for drivers, inside the tree or outside, is the device's second public folder.
FACES = {"driver": "device"}
UMBRELLA = (7.5, "library")  # src/*.cpp and include/corelane/*.h: the shared library of floors 1 to 7.

# The room of runtime in which programs meet the device: it makes an executable of an image.
MEETING = "src/runtime/program/"
MODEL = {"program", "onnx"}
TRACE = "corelane/runtime/trace.h"

MAX_LINES = 800
MAX_MEDIAN = 160
MAX_CHAIN = 9
MAX_ROOM = 45  # Files of one folder, tests included.
MAX_FUNCTION = 60  # Lines, from the opening brace to the closing one.
MAX_FIELDS = 25
MAX_SOURCES = 3

# Foreign APIs: their names and headers, and the folders that may use them.
FOREIGN = (
    ("RKNN", r"\b(rknn_\w+|RKNN_\w+)\b", r"^rknn_\w+\.h$",
     ("src/adapters/rknn/", "src/drivers/rknn/", "src/adapters/ggml/", "include/rknn/", "examples/rknn")),
    ("QAic", r"\b(qaic::\w+|QAic\w+|QID|qaicrt\w*)\b", r"^(QAic\w*|qaic/.*)\.hp*$",
     ("src/adapters/qaic/", "src/adapters/qaic_python/", "include/qaic/", "examples/qaic")),
    ("ggml", r"\b(ggml_\w+|GGML_\w+)\b", r"^ggml[\w-]*\.h$", ("src/adapters/ggml/",)),
    ("Python", r"\b(PyObject|Py_\w+|nanobind::|pybind11::)", r"^(Python\.h|nanobind/.*|pybind11/.*)$",
     ("src/adapters/interpreter/", "src/adapters/python/", "src/adapters/qaic_python/", "python/")),
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
    rest[0] = FACES.get(rest[0], rest[0])
    if rest[0] not in FLOORS:
        return (None, rest[0])
    if rest[0] in SPLIT and len(rest) > 2:
        floor = SHARED.get("/".join(rest[:2]), FLOORS[rest[0]])
        return (floor, "/".join(rest[:2]))
    return (FLOORS[rest[0]], rest[0])


def check_floors(tree):
    """Rule 1: includes go down; neighbours on one floor do not meet."""
    for path in tree.code:
        mine = unit_of(path)
        if mine is None:
            continue
        if mine[0] is None:
            yield f"{path}: '{mine[1]}' is not a floor; floors are {', '.join(FLOORS)}"
            continue
        for mark, name, target in tree.includes[path]:
            theirs = unit_of(target) if target else None
            if target and theirs is None:
                yield f"{path}: includes {target}, which is outside the house"
            elif target is None and mark == '"' and not GENERATED.search(name):
                yield f'{path}: "{name}" is not in the tree; write it from include/ or src/'
            elif theirs and theirs[1] != mine[1] and (theirs[0] is None or theirs[0] >= mine[0]):
                yield f"{path}: floor {mine[0]} ({mine[1]}) includes {target} of floor {theirs[0]} ({theirs[1]})"


def check_rooms(tree):
    """Rule 1: what each room may include is the list in rooms.py, in full."""
    used = {}
    for path in tree.code:
        mine = unit_of(path)
        if mine is None or mine[0] is None or mine == UMBRELLA:
            continue
        room = mine[1] if mine[1] in ROOMS else mine[1].split("/")[0] + "/*"
        allowed = ROOMS.get(room, "").split()
        for _, _, target in tree.includes[path]:
            theirs = unit_of(target) if target else None
            if not theirs or theirs[1] == mine[1] or theirs == UMBRELLA or theirs[0] == 0:
                continue
            if theirs[1] not in allowed:
                yield (f"{path}: includes {target}; {room} may include {', '.join(allowed) or 'nothing'} "
                       "(tests/structure/rooms.py)")
            used.setdefault(room, set()).add(theirs[1])


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


# Words of one vendor or of one foreign API, which stop in the driver or adapter that speaks it. In code and in
# literals: messages are for users of every door. `.rknn` is the suffix of program files.
VENDOR_WORD = re.compile(r"(?i)(?<!\.)rknn|rockchip|\bqaic|ztu_|ezrknn|ggml")
VENDOR_HOMES = ("src/adapters/", "src/drivers/rknn/", "include/rknn/", "include/qaic/", "apps/", "examples/")
# "RKNN" are the first four bytes of a program file, as docs/formats/program-file.md says.
VENDOR_EXCEPTIONS = {"src/program/program_format.h": '"RKNN"'}


def check_words(tree):
    """Rule 3: no vendor's word below its adapter or driver, in names, literals and messages."""
    for path in tree.product:
        if path.startswith(VENDOR_HOMES) or "/testing/" in path:
            continue
        code = code_shape.without_comments(tree.texts[path])
        for number, row in enumerate(code.split("\n"), 1):
            row = row.replace(VENDOR_EXCEPTIONS.get(path, "\0"), "")
            match = VENDOR_WORD.search(row)
            if match:
                yield f"{path}:{number}: says {match.group(0)}, a word of one vendor; it stops in its adapter or driver"


def check_contract(tree):
    """Rule 3: the device contract stands on base and tensor; programs and devices meet in one room."""
    meeting = {}
    for path in tree.code:
        unit = unit_of(path)
        if unit is None or BESIDE.search(Path(path).stem):
            continue
        units = {unit_of(t)[1] for _, _, t in tree.includes[path] if t and unit_of(t)}
        if unit[1] == "device" and units - {"base", "tensor", "device"}:
            yield (f"{path}: the device contract includes {sorted(units - {'base', 'tensor', 'device'})}; "
                   "allowed: base, tensor")
        if unit[1].startswith("drivers") and units & MODEL:
            yield f"{path}: a driver includes {sorted(units & MODEL)}; executables reach it as opaque images"
        if unit[1] == "runtime" and "device" in units and units & MODEL and path.startswith("src/") \
                and not path.startswith(MEETING):
            yield f"{path}: includes {sorted(units & MODEL)} and device, which meet in {MEETING} only"
        # A trace is a format of records: a file that writes one drives no device.
        units_run = {unit_of(t)[1] for _, name, t in tree.includes[path] if t and unit_of(t) and name != TRACE}
        if unit[1] == "scheduler" and "/testing/" not in path and units_run & {"runtime", "device"}:
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


PACKAGE_IMPORT = re.compile(r'\bimport\w*\s*\(\s*"corelane\b')
NATIVE = ("src/adapters/interpreter/", "src/adapters/python/", "src/adapters/qaic_python/")
PACKAGE_ROOM = re.compile(r"^python/corelane/(_\w+)/")


def check_package(tree):
    """The native module takes what it needs of its Python package from connect(), and imports nothing of it;
    the package's rooms (folders with an underscore) do not know each other."""
    rooms = {m.group(1) for m in map(PACKAGE_ROOM.match, tree.texts) if m}
    for path, text in sorted(tree.texts.items()):
        room = PACKAGE_ROOM.match(path)
        if path.startswith(NATIVE) and PACKAGE_IMPORT.search(text):
            yield f"{path}: imports the package that imports it; it is to be given to connect()"
        elif room and path.endswith(".py"):
            imported = " ".join(re.findall(r"^\s*(?:from|import)\s.*", text, re.M))
            for other in sorted(rooms - {room.group(1)}):
                if re.search(rf"\b{other}\b", imported):
                    yield f"{path}: imports {other}, a room beside it; share by a module above both"


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
        yield f"CMakeLists.txt: CORELANE_DRIVERS names {name}, but src/drivers/{name} is not a driver"
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


def check_adapters(tree):
    """An API is one folder and one name in the list CORELANE_ADAPTERS."""
    found = re.search(r"^set\(CORELANE_ADAPTERS\s+([^)]*?)\s+CACHE\b", tree.texts.get("CMakeLists.txt", ""), re.M)
    listed = set(found.group(1).split()) if found else set()
    folders = {m.group(1) for m in (re.fullmatch(r"src/adapters/(\w+)/CMakeLists\.txt", p) for p in tree.texts) if m}
    for name in sorted(folders ^ listed):
        yield f"src/adapters/{name}: one of the folder and its name in CORELANE_ADAPTERS is missing"
    for path, text in sorted(tree.texts.items()):
        if path.startswith(("cmake/", "CMakeLists.txt", "src/CMakeLists.txt", "src/adapters/CMakeLists.txt")):
            bare = re.sub(r"#.*|set\(CORELANE_ADAPTERS[^\n]*", "", text)
            for name in sorted(folders):
                if re.search(rf"\badapters/{name}\b|add_subdirectory\(\s*{name}\s*\)", bare):
                    yield f"{path}: knows the adapter {name}; only its folder and CORELANE_ADAPTERS may"


# Doors whose API speaks of chips, the file that writes programs for them, and the folder of what the drivers share.
CHIP_HOMES = ("src/drivers/", "src/adapters/rknn/", "src/adapters/qaic/", "apps/cli/compile_target.h")
CHIP_ROWS = re.compile(r'\{"(\w+)",\s*\d+,\s*[\d\']+\}')
FILE_ROWS = re.compile(r"\.files\s*=\s*\{(.*?)\};", re.S)


def check_rows(tree):
    """Rule 5: what a driver brings as rows, its chips and the kinds of its files, stands in its folder alone."""
    rows = {}
    for path, text in tree.texts.items():
        if path.startswith("src/drivers/") and path.endswith(CODE):
            for chip in CHIP_ROWS.findall(text):
                rows[chip] = (re.compile(rf"\b{chip}\b"), "a chip of")
            for files in FILE_ROWS.findall(text):
                for kind in re.findall(r'\{"(\w+)"', files):
                    rows[f'"{kind}"'] = (re.compile(rf'"{kind}"'), "a kind of file of")
    for path in tree.product:
        if path.startswith(CHIP_HOMES) or "/testing/" in path:
            continue
        code = code_shape.without_comments(tree.texts[path])
        for name, (pattern, what) in sorted(rows.items()):
            match = pattern.search(code)
            if match:
                line = code.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: names {name}, {what} a driver; it stands in src/drivers"


def include_graph(tree):
    return {p: sorted({t for _, _, t in tree.includes[p] if t and t != p}) for p in tree.code}


def check_cycles(tree):
    """Rule 9: no cycle of includes or of Python imports, and in the house no chain of more than MAX_CHAIN includes."""
    graph = {**include_graph(tree), **code_shape.python_imports(tree.texts, "python/corelane/")}
    depth, state, cycles = {}, {}, []

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

    for path in graph:
        chain = visit(path, [])
        if len(chain) - 1 > MAX_CHAIN and unit_of(path) and not path.endswith((".h", ".py")):
            yield f"{path}: a chain of {len(chain) - 1} includes, at most {MAX_CHAIN}: {' -> '.join(chain)}"
    for cycle in cycles:
        yield f"cycle: {cycle}"


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


def check_room_sizes(tree):
    """Rule 10: a room that has outgrown a glance gets rooms of its own."""
    rooms = {}
    for path in tree.code:
        if path.startswith(("src/", "include/", "apps/")):
            rooms.setdefault(Path(path).parent.as_posix(), []).append(path)
    for room, files in sorted(rooms.items()):
        if len(files) > MAX_ROOM:
            yield f"{room}: {len(files)} files, at most {MAX_ROOM}; give a subject a folder of its own"


def check_functions(tree):
    """Rule 10: a function is read at a glance."""
    for path in tree.product:
        for name, line, lines in code_shape.functions(tree.texts[path]):
            if lines > MAX_FUNCTION:
                yield f"{path}:{line}: {name} has {lines} lines, at most {MAX_FUNCTION}"


def check_classes(tree):
    """Rule 10: a class has at most MAX_SOURCES sources and MAX_FIELDS fields, or a comment above it that
    says why ("Fields:" or "Sources:")."""
    homes = {}
    for path in tree.product:
        if path.endswith(".cpp"):
            for name in set(re.findall(r"^(?!\s)[^\n;{}()]*?\b(\w+)::~?\w+\(", strip(tree.texts[path]), re.M)):
                homes.setdefault((unit_of(path)[1], name), set()).add(path)
    for path in tree.product:
        rows = tree.texts[path].split("\n")
        for name, line, count in code_shape.fields(tree.texts[path]):
            above = line - 2
            while above >= 0 and rows[above].lstrip().startswith(("//", "template")):
                above -= 1
            reason = "\n".join(rows[above + 1:line])
            if count > MAX_FIELDS and "Fields:" not in reason:
                yield f"{path}:{line}: {name} has {count} fields, at most {MAX_FIELDS}"
            sources = homes.get((unit_of(path)[1], name), ())
            if path.endswith(".h") and len(sources) > MAX_SOURCES and "Sources:" not in reason:
                yield (f"{path}:{line}: {name} has {len(sources)} sources, at most {MAX_SOURCES}: "
                       f"{', '.join(sorted(sources))}")


def check_comments(tree):
    """Each public function has a comment of its own, those of the foreign APIs too."""
    for path in tree.code:
        if path.startswith(("include/corelane/", *SPOKEN)):
            for name, line in code_shape.uncommented(tree.texts[path]):
                yield f"{path}:{line}: {name} has no comment of its own: what, units, errors, thread rule"


RANK = re.compile(r"^\s*(k\w+)\s*=\s*(\w+)", re.M)
# Clients of a public API that stand in the tree and include nothing of the house, base/sync.h neither.
OUTSIDERS = ("src/adapters/ggml/", "include/qaic/")
BARE_MUTEX = re.compile(r"\bstd::(?:recursive_|shared_|timed_)*mutex\s+\w+")


def check_locks(tree):
    """Rule 11: each mutex has a rank, and docs/locks.md lists each rank; a bare std::mutex stands in
    base/sync.h alone, and with clients of a public API."""
    page, ranks = tree.texts.get("docs/locks.md", ""), tree.texts.get("src/base/lock_rank.h", "")
    for name, _ in RANK.findall(strip(ranks)):
        if f"`{name}`" not in page:
            yield f"docs/locks.md: does not list {name} of src/base/lock_rank.h"
    used = " ".join(tree.texts[p] for p in tree.product)
    for name, _ in RANK.findall(strip(ranks)):
        if f"LockRank::{name}" not in used.replace(ranks, ""):
            yield f"src/base/lock_rank.h: no mutex has the rank {name}"
    for path in tree.product:
        if path.startswith("src/") and path != "src/base/sync.h" and "/testing/" not in path \
                and not path.startswith(OUTSIDERS):
            for match in BARE_MUTEX.finditer(strip(tree.texts[path])):
                line = strip(tree.texts[path]).count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: {match.group(0)}: take a Mutex of base/sync.h, with its rank"


ENVIRONMENT = re.compile(r"\b(?:secure_)?getenv\s*\(")
ENVIRONMENT_HOME = "src/base/trust/secure_environment.h"


def check_environment(tree):
    """A program with more rights than its user takes nothing from the environment: the library reads it in one
    place, by secure_getenv(); what includes nothing of the house calls that itself."""
    for path in tree.product:
        if not path.startswith(("src/", "include/", "apps/")) or path == ENVIRONMENT_HOME or "/testing/" in path:
            continue
        for match in ENVIRONMENT.finditer(strip(tree.texts[path])):
            if match.group(0).startswith("secure_") and path.startswith((*OUTSIDERS, "apps/")):
                continue
            line = strip(tree.texts[path]).count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {match.group(0)}...): call environment() of {ENVIRONMENT_HOME}"


WALK = re.compile(r"^### ([a-z])\. .*?\(at most (\d+) files\)\n(.*?)(?=^##|\Z)", re.M | re.S)
STEP = re.compile(r"^(\d+)\. `([^`]+)` in `([^`]+)`", re.M)


def body_of(tree, path, name):
    """What function `name` of a file does, without its own head, or None."""
    text, short = tree.texts.get(path, ""), name.split("::")[-1]
    if path.endswith(".py"):
        found = re.search(rf"^( *)(?:async )?def {short}\(.*?(?=^\1\S|\Z)", text, re.M | re.S)
        return found.group(0).split(":\n", 1)[-1] if found else None
    rows = strip(text).split("\n")
    bodies = ["\n".join(rows[line - 1:line - 1 + lines]) for found, line, lines in code_shape.functions(text)
              if found.split("::")[-1] == short and ("::" not in name or found.endswith(name) or "::" not in found)]
    return "\n".join(body.partition("{")[2] for body in bodies) or None


def check_walks(tree):
    """The walks of docs/architecture.md: each step is a function of the file that it names, and calls the
    next one; a walk goes through no more files than it promises. A step 1 begins a new chain of calls."""
    page = "docs/architecture.md"
    walks = WALK.findall(tree.texts.get(page, ""))
    if "src/adapters/rknn" in " ".join(tree.code) and len(walks) < 3:
        yield f"{page}: {len(walks)} walks, 3 are promised"
    for letter, limit, text in walks:
        steps = STEP.findall(text)
        files = {path for _, _, path in steps}
        if len(files) > int(limit):
            yield f"{page}: walk {letter} goes through {len(files)} files, at most {limit} are promised"
        for at, (_, name, path) in enumerate(steps):
            body = body_of(tree, path, name)
            if body is None:
                yield f"{page}: walk {letter}: {path} has no function {name}"
            elif at + 1 < len(steps) and steps[at + 1][0] != "1" \
                    and not re.search(rf"\b{re.escape(steps[at + 1][1].split('::')[-1])}\b\s*[(<]", body):
                yield f"{page}: walk {letter}: {name} in {path} does not call {steps[at + 1][1]}"


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
    """Files are snake_case (`-inl` is Highway's mark of a file it includes again), those of clients'
    headers excepted, and nothing names a machine or a registry."""
    for path in tree.code:
        if not path.startswith(SPOKEN) and not re.fullmatch(r"[a-z][a-z0-9_]*(-inl)?", Path(path).stem):
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


CHECKS = (check_floors, check_rooms, check_foreign, check_contract, check_engine, check_package, check_drivers,
          check_adapters, check_rows, check_words, check_cycles, check_sizes, check_room_sizes, check_functions,
          check_classes, check_comments, check_locks, check_environment, check_walks, check_stems,
          check_names, check_headers)


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
