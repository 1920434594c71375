"""Programs of the object runtime's clients give ONNX Runtime's results.

python qaic_clients_test.py CORELANE LIBRARY CLIENTS CLANG++ INCLUDES...

Models are made here and compiled with `corelane compile --target aic100`; each client runs its inferences on
files with inputs and writes its outputs, which are compared.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

CORELANE, LIBRARY, CLIENTS = (pathlib.Path(word) for word in sys.argv[1:4])
CLANGXX, INCLUDES = sys.argv[4], [f"-I{folder}" for folder in sys.argv[5:]]
INFERENCES = 4


def model(nodes, inputs, outputs):
    """An ONNX model of opset 17; inputs and outputs as (name, type, shape)."""
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def pair_model():
    """Two inputs, two outputs."""
    shape = [2, 3]
    return model([helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Mul", ["a", "b"], ["product"]),
                  helper.make_node("Softmax", ["product"], ["layer/scores"])],
                 [("a", TensorProto.FLOAT, shape), ("b", TensorProto.FLOAT, shape)],
                 [("sum", TensorProto.FLOAT, shape), ("layer/scores", TensorProto.FLOAT, shape)])


def shapes_model():
    """y = 2 x + rest, of any width."""
    shape = [1, "n"]
    return model([helper.make_node("Add", ["x", "x"], ["twice"]), helper.make_node("Add", ["twice", "rest"], ["y"])],
                 [("x", TensorProto.FLOAT, shape), ("rest", TensorProto.FLOAT, shape)],
                 [("y", TensorProto.FLOAT, shape)])


def layer_model():
    """A matrix product with 64 x 64 weights."""
    weights = np.arange(4096, dtype=np.float32).reshape(64, 64)
    return model([helper.make_node("Constant", [], ["w"], value=onnx.numpy_helper.from_array(weights)),
                  helper.make_node("MatMul", ["x", "w"], ["y"])],
                 [("x", TensorProto.FLOAT, [1, 64])], [("y", TensorProto.FLOAT, [1, 64])])


def typed_model():
    """An input of each of several types."""
    types = {"i64": TensorProto.INT64, "i32": TensorProto.INT32, "u8": TensorProto.UINT8, "i8": TensorProto.INT8}
    casts = [helper.make_node("Cast", [name], [f"{name}_f"], to=TensorProto.FLOAT) for name in types]
    total = helper.make_node("Sum", [f"{name}_f" for name in types], ["total"])
    return model([*casts, total], [(name, kind, [1, 2]) for name, kind in types.items()],
                 [("total", TensorProto.FLOAT, [1, 2])])


def run(command, **environment):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, **environment})


class Container:
    """A compiled model, inputs of its inferences, and what ONNX Runtime makes of them."""

    def __init__(self, folder, made, values, *options):
        """`values(n)`: the inputs of inference n by name; an input of None is left out, and counts as zeros."""
        self.folder = folder
        folder.mkdir()
        onnx.save(made, folder / "model.onnx")
        done = run([CORELANE, "compile", folder / "model.onnx", "--target", "aic100", "-o", folder, *options])
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        session = ort.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
        self.outputs = []
        for n in range(INFERENCES):
            given = values(n)
            size = next(iter(given.values()))
            for place, value in enumerate(given.values()):
                if value is not None:
                    value.tofile(folder / f"in-{n}-{place}.bin")
            self.outputs.append(session.run(None, {name: np.zeros_like(size) if value is None else value
                                                   for name, value in given.items()}))


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        random = np.random.default_rng(1)

        def real(*shape):
            return random.standard_normal(shape, np.float32)

        cls.pair = Container(cls.folder / "pair", pair_model(), lambda n: {"a": real(2, 3), "b": real(2, 3)})
        cls.shapes = Container(cls.folder / "shapes", shapes_model(),
                               lambda n: {"x": real(1, (4, 8)[n % 2]), "rest": None},
                               "--shape-set", "1,4;1,4", "--shape-set", "1,8;1,8", "--partial", "rest")

    def client(self, name, *arguments, **environment):
        program = name if isinstance(name, pathlib.Path) else CLIENTS / f"qaic_client_{name}"
        done = run([program, *arguments], **environment)
        self.assertEqual(0, done.returncode, f"{name}: {done.stdout}{done.stderr}")
        return done.stdout

    def check(self, name, container, **environment):
        """The client runs every inference of the container with ONNX Runtime's results."""
        results = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        said = self.client(name, container.folder, results, **(environment or {"QAIC_LIB": str(LIBRARY)}))
        for n, outputs in enumerate(container.outputs):
            for place, wanted in enumerate(outputs):
                found = np.fromfile(results / f"out-{n}-{place}.bin", wanted.dtype).reshape(wanted.shape)
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, err_msg=f"{name} {n} {place}")
        return said

    def test_blocking_loop(self):
        self.check("blocking_loop", self.pair)

    def test_library_by_its_soname(self):
        self.check("blocking_loop", self.pair, LD_LIBRARY_PATH=str(LIBRARY.parent), QAIC_LIB="")

    def test_one_thread_submits_and_another_collects_by_id(self):
        self.check("two_threads", self.pair)

    def test_many_threads_lose_nothing_and_mix_nothing_up(self):
        self.client("many_threads", self.pair.folder, QAIC_LIB=str(LIBRARY))

    def test_callbacks_that_hold_throw_and_call(self):
        self.client("callbacks", self.pair.folder, QAIC_LIB=str(LIBRARY))

    def test_misuse_is_a_code_or_an_exception_with_its_reason(self):
        self.client("misuse", self.pair.folder, QAIC_LIB=str(LIBRARY))

    def test_outputs_that_are_asked_for_too_early_are_reported(self):
        results = tempfile.mkdtemp(dir=self.folder)
        for by, caller in (("handle", "InferenceHandle::getBuffers"), ("vector", "InferenceVector::getVector"),
                           ("object", "qaicExecObjGetIoBuffers"), ("writer", "qaicExecObjGetIoBuffers"),
                           ("in_time", None)):
            with self.subTest(by=by):
                # The client does read what is being written: a data race.
                quiet = os.environ.get("TSAN_OPTIONS", "") + ":report_bugs=0"
                done = run([CLIENTS / "qaic_client_early_reads", self.pair.folder, results, by],
                           QAIC_LIB=str(LIBRARY), CORELANE_QAIC_CHECK="1", TSAN_OPTIONS=quiet)
                self.assertEqual(0, done.returncode, done.stderr)
                reports = [line for line in done.stderr.splitlines() if "check:" in line]
                self.assertEqual(0 if caller is None else 1, len(reports), reports)
                for line in reports:
                    self.assertRegex(line, f"check: outputs read before completion: buffer 2 .*caused by {caller} "
                                           r"\(call \d+, from qaic_client_early_reads\+0x")

    def test_programs_that_read_in_time_are_not_reported(self):
        results = tempfile.mkdtemp(dir=self.folder)
        for name in ("blocking_loop", "two_threads", "kept_handles", "dmabuf", "factory_options", "events", "pipeline",
                     "benchmark_harness", "table_client", "set_controls", "vector_sources", "openrt_steps"):
            with self.subTest(client=name):
                done = run([CLIENTS / f"qaic_client_{name}", self.pair.folder, results], QAIC_LIB=str(LIBRARY),
                           CORELANE_QAIC_CHECK="1")
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertNotIn("read before completion", done.stderr)

    def test_programs_of_a_group(self):
        self.check("program_group", self.pair)

    @unittest.skipIf(CLANGXX.endswith("NOTFOUND"), "clang is not installed")
    def test_client_of_another_compiler(self):
        source = pathlib.Path(__file__).parent / "clients/blocking_loop.cpp"
        made = self.folder / "qaic_client_clang"
        # Of another standard library, too, where it is installed.
        for library in (["-stdlib=libc++"], []):
            done = run([CLANGXX, "-std=c++20", *library, *INCLUDES, source, "-o", made, "-lpthread", "-ldl"])
            if done.returncode == 0:
                break
        self.assertEqual(0, done.returncode, done.stderr)
        self.check(made, self.pair)

    def test_descriptor_by_the_schema(self):
        said = self.client("descriptor", self.pair.folder, QAIC_LIB=str(LIBRARY))
        self.assertEqual(["0 a in float [2,3] 24", "1 b in float [2,3] 24", "2 sum out float [2,3] 24",
                          "3 layer/scores out float [2,3] 24"], said.splitlines())
        said = self.client("descriptor", self.shapes.folder, QAIC_LIB=str(LIBRARY))
        self.assertEqual(["1 4 1 4 1 4", "1 8 1 8 1 8"], [row.strip() for row in said.splitlines()[3:]])

    def test_kept_handles_are_submitted_again(self):
        self.check("kept_handles", self.pair)

    def test_dimensions_of_the_caller_and_an_input_left_out(self):
        self.check("own_dims", self.shapes)

    def test_slices(self):
        self.check("slices", self.pair)

    def test_dmabuf(self):
        self.check("dmabuf", self.pair)

    def test_factories_with_all_arguments_and_with_none(self):
        self.check("factory_options", self.pair)

    def test_events_and_their_callbacks(self):
        self.check("events", self.pair)

    def test_pipeline_of_execution_objects(self):
        self.check("pipeline", self.pair)

    def test_benchmark_harness_over_the_c_functions(self):
        self.check("benchmark_harness", self.pair)

    def test_table_in_c11(self):
        self.check("table_client", self.pair)

    def test_controls_of_a_set(self):
        self.check("set_controls", self.pair)

    def test_error_handler_on_a_device_that_is_lost(self):
        said = self.check("error_handler", self.pair, QAIC_LIB=str(LIBRARY),
                          CORELANE_FAULTS="lost=0.05,lost_ms=20,seed=3")
        self.assertRegex(said, r"errors [1-9]\d* failed [1-9]\d* of 100")

    def test_vector_sources_of_the_open_runtime(self):
        self.check("vector_sources", self.pair)

    def test_open_runtime_step_by_step(self):
        results = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        self.client("openrt_steps", self.pair.folder, results, QAIC_LIB=str(LIBRARY))
        for n, outputs in enumerate(self.pair.outputs):
            for name, wanted in zip(("sum", "layer_scores"), outputs):
                found = np.fromfile(results / f"{name}-inf-{n}.bin", np.float32).reshape(wanted.shape)
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)

    def test_statements_in_each_namespace_and_standard(self):
        layer, parts = self.folder / "layer.onnx", self.folder / "parts"
        onnx.save(layer_model(), layer)
        done = run([CORELANE, "compile", self.pair.folder / "model.onnx", layer, "--target", "aic100", "--cores", "2",
                    "-o", parts])
        self.assertEqual(0, done.returncode, done.stderr)
        done = run([CORELANE, "compile", self.pair.folder / "model.onnx", "--target", "aic100", "--cut", "product",
                    "-o", self.folder / "cut"])
        self.assertEqual(0, done.returncode, done.stderr)
        programs = sorted(CLIENTS.glob("qaic_client_statements_*"))
        self.assertEqual(4, len(programs))

        def start(program):
            scratch = tempfile.mkdtemp(dir=self.folder)
            return run([program, self.folder, scratch], QAIC_LIB=str(LIBRARY))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for program, done in zip(programs, pool.map(start, programs)):
                with self.subTest(program=program.name):
                    failed = [line for line in done.stdout.splitlines() if line.startswith("failed ")]
                    self.assertEqual(0, done.returncode, f"{failed}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
                    self.assertGreaterEqual(done.stdout.count("run "), 26)

    def test_data_types_of_a_container(self):
        folder = self.folder / "typed"
        Container(folder, typed_model(), lambda n: {"i64": np.ones((1, 2), np.int64), "i32": np.ones((1, 2), np.int32),
                                                    "u8": np.ones((1, 2), np.uint8), "i8": np.ones((1, 2), np.int8)})
        said = self.client("data_types", folder, QAIC_LIB=str(LIBRARY))
        self.assertEqual(["program 0 batch 1 inputs 4", "0 i64 int64 16", "1 i32 int32 8", "2 u8 uint8 2",
                          "3 i8 int8 2", "4 total float 8"], said.splitlines())

    def test_missing_library_and_another_library(self):
        other = next(LIBRARY.parent.glob("libcorelane.so.*"))
        self.client("library_search", other, LIBRARY)

    def test_clients_link_threads_and_the_loader_alone(self):
        for path in sorted(CLIENTS.glob("qaic_client_*")):
            needed = run(["readelf", "-d", path]).stdout
            with self.subTest(client=path.name):
                self.assertEqual("benchmark_harness" in path.name, "libQAic" in needed)
                self.assertNotIn("libcorelane", needed)


class Tables(unittest.TestCase):
    """The tables of the documents name tests that are there."""

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(__file__).resolve().parents[3]
        sources = [path for room in ("adapters/qaic", "edge") for path in (cls.root / "src" / room).rglob("*_test.cpp")]
        found = [re.findall(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", path.read_text(encoding="utf-8"), re.M)
                 for path in sources]
        cls.c_tests = {f"{suite}.{name}" for one in found for suite, name in one}
        cls.listed = run([CLIENTS / "qaic_client_statements_rt_17", "--list"]).stdout.split()
        cls.clients = {path.stem for path in (cls.root / "tests/compat/qaic/clients").glob("*.c*")}

    def rows(self, page, heading):
        """The cells of each row of the table below a heading."""
        text = (self.root / "docs/apis" / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
        rows = re.findall(r"^\| (.+) \|$", text.split("\n## ")[0], re.M)
        return [row.split(" | ") for row in rows[1:]]

    def check_row(self, row, c_cell, class_cell):
        in_c = re.findall(r"`([^`]+)`", c_cell)
        classes = re.findall(r"`([^`]+)`", class_cell)
        self.assertTrue(in_c and classes, row)
        for name in in_c:
            suite, _, case = name.removeprefix("Grid/").partition(".")
            there = any(test.startswith(f"{suite}.") for test in self.c_tests)
            self.assertTrue(there if case in ("", "*") else name in self.c_tests, f"no C test {name}")
        for name in classes:
            self.assertTrue(name in self.listed or name in self.clients, f"no test of the classes {name}")
        return classes

    def test_each_promise_has_tests_of_both_surfaces(self):
        rows = self.rows("object-runtime-tests.md", "Promises")
        self.assertEqual([str(number) for number in range(1, 32)], [row[0] for row in rows])
        named = []
        for number, promise, in_c, classes in rows:
            names = self.check_row(promise, in_c, classes)
            self.assertTrue(any(name.startswith(f"statement_{int(number):02}_") for name in names), promise)
            named += names
        statements = [name for name in self.listed if name.startswith("statement_")]
        self.assertEqual(sorted(statements), sorted(name for name in named if name in self.listed))

    def test_each_decision_has_tests_of_both_surfaces(self):
        rows = self.rows("object-runtime.md", "Decisions")
        self.assertGreaterEqual(len(rows), 20)
        named = set()
        for question, _, in_c, classes in rows:
            named.update(self.check_row(question, in_c, classes))
        others = {name for name in self.listed if not name.startswith("statement_")}
        self.assertEqual(set(), others - named)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
