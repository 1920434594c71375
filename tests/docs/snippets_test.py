"""Compiles and runs the code blocks of README.md and docs/, in a folder that holds what they name.

usage: snippets_test.py <repository> <build folder> <C++ compiler>

A block is taken as it stands. What it leaves open (its input arrays, the loop around an `await`) is in CONTEXT,
by page and language, in the order of the blocks. A block without an entry fails the test.
"""

import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

ROOT = BUILD = COMPILER = None

PIXELS = """std::vector<float> pixels(3 * 224 * 224, 0.5F);
  const corelane::TensorView view{pixels.data(), pixels.size() * 4, corelane::DType::kF32,
                                  corelane::Shape{1, 3, 224, 224}, {}, {}};"""
PROGRAMS = '#include "corelane/runtime/program.h"\nusing namespace corelane;\n'
SETS = '#include "corelane/runtime/inference_set.h"\n' + PROGRAMS
SCHEDULER = ('#include "corelane/scheduler/scheduler.h"\n#include "corelane/tensor/tensor.h"\n'
             "using namespace corelane;\nusing namespace corelane::scheduler;\n")
REQUESTS = ('  Tensor pixels = Tensor::allocate("x", DType::kF32, Shape{1, 3, 224, 224}).value();\n'
            "  std::fill_n(static_cast<float*>(pixels.data.get()), 3 * 224 * 224, 0.5F);\n")
ARRAYS = "import numpy as np\narray = frame = np.full((1, 3, 224, 224), 0.5, np.float32)\n"

# What stands around each block: (before, after), or None for a whole program.
CONTEXT = {
    ("README.md", "cpp"): [
        None,
        (f"int main() {{\n  {PIXELS}\n", "\n  return outputs && later.get() && session.close().ok() ? 0 : 1;\n}\n"),
    ],
    ("docs/apis/session.md", "cpp"): [
        ("int main() {\n  " + PIXELS.replace("view{", "view_of_my_pixels{"),
         "\n  return outputs.size() == 1 && later.get() && session.close().ok() ? 0 : 1;\n}\n"),
    ],
    ("docs/apis/sets.md", "cpp"): [
        ("int main() {\n  " + PIXELS.replace("view{", "view_of_my_pixels{"),
         "\n  return status.ok() && scores.size == 4000 && set.figures().available == 4 ? 0 : 1;\n}\n"),
        (SETS + 'int main() {\n  corelane::LoadOptions load;\n  load.device = "virtual:generic:16";\n'
         '  auto program = Program::load("model.onnx", load).value();\n',
         "\n  return InferenceSet::create(program, options).value().figures().available == 40 ? 0 : 1;\n}\n"),
        ('#include "corelane/device/observer.h"\n' + SETS + "int main() {\n  std::vector<corelane::Duration> waits;\n"
         '  auto set = InferenceSet::create(Program::load("model.onnx").value(), {}).value();\n',
         "\n  if (!set.submit(set.acquire().value()).ok() || !set.release(set.collect().value()).ok()) return 1;\n"
         "  return observation->flush() && waits.size() == 1 ? 0 : 1;\n}\n"),
    ],
    ("docs/apis/scheduler.md", "cpp"): [
        ("int main() {\n" + REQUESTS, "\n  return status.ok() && scores.shape == Shape{1, 1000} ? 0 : 1;\n}\n"),
        ("#include <atomic>\n" + SCHEDULER + "int main() {\n" + REQUESTS
         + '  auto pipeline = Pipeline::create({{"backend", "TensorrtTensor"}, {"model", "model.onnx"}}).value();\n'
         "  std::atomic<RequestState> last = RequestState::kWaiting;\n  Tensor scores;\n",
         "\n  pipeline = {};\n  return status.ok() && last == RequestState::kDone && scores.size == 4000 ? 0 : 1;\n"
         "}\n"),
        (SCHEDULER + "int main() {\n",
         "\n  Dict request{{kData, 21}};\n  return added.ok() && pipeline.run(request).ok() &&\n"
         "                 std::any_cast<int>(request.at(kResult)) == 42 ? 0 : 1;\n}\n"),
    ],
    ("docs/apis/activations.md", "cpp"): [
        ('int main() {\n  corelane::LoadOptions on_16_cores;\n  on_16_cores.device = "virtual:generic:16";\n',
         "\n  return status.ok() && activation.cores().count() == 4 ? 0 : 1;\n}\n"),
        ('#include "corelane/runtime/activation.h"\n' + PROGRAMS
         + 'int main() {\n  auto program = Program::load("model.onnx").value();\n',
         "\n  return Activation::create(program, detector) && Activation::create(program, reader) ? 0 : 1;\n}\n"),
    ],
    ("docs/apis/object-runtime-classes.md", "cpp"): [
        ("int main() {\n  std::vector<float> x(3 * 224 * 224, 0.5F), y(1000);\n"
         "  const size_t bytes_in = x.size() * 4, bytes_out = y.size() * 4;\n"
         "  auto* in = reinterpret_cast<uint8_t*>(x.data());\n"
         "  auto* out = reinterpret_cast<uint8_t*>(y.data());\n",
         "\n  return y[0] != 0 && handle == nullptr ? 0 : 1;\n}\n"),
    ],
    ("README.md", "python"): [(ARRAYS, "assert outputs[0].shape == (1, 1000)\n")],
    ("docs/apis/python.md", "python"): [
        (ARRAYS, "assert outputs[0].shape == (1, 1000)\n"),
        ("import corelane as ort\nimport numpy as np\n",
         "array = np.full((1, 3), 2, np.float32)\nassert (session.run(None, {'x': array})[0] == 6).all()\n"),
    ],
    ("docs/apis/object-runtime-python.md", "python"): [
        ("", "assert y.shape == (1, 1000) and (y != 0).all()\n"),
        ("from corelane import qaicrt\ncontext, qpc = qaicrt.Context(), qaicrt.Qpc('folder')\n"
         "program = qaicrt.Program(context, None, qpc)\n",
         "assert completed == 1000 and batch == 1 and rate > 0 and microseconds > 0\n"
         "assert qaicrt.QS_SUCCESS == profile.stop() == stream.stop() == stream.flushReports()\n"),
    ],
    ("docs/apis/rknn-python.md", "python"): [
        ("import numpy as np\npicture = np.zeros((1, 224, 224, 3), np.uint8)\n",
         "assert outputs[0].shape == (1, 1000)\n"),
        ("", "import rknnlite.api, rknn.api\n"),
    ],
}
# Models that a block finds under the name `model.onnx`, where it is not the usual one.
MODEL = {
    ("docs/apis/python.md", "python", 1): "scaled.onnx",
    ("docs/apis/session.md", "cpp", 0): "images.onnx",
    ("docs/apis/scheduler.md", "cpp", 0): "open.onnx",
}
# Commands of the shell blocks that run here: those of the command line tool, on the same files.
COMMAND = re.compile(r"^(?:CORELANE_\w+=\S+ )*corelane .*$", re.M)


def blocks(page, language):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def make_files(folder):
    """model.onnx (x [1,3,224,224] to 1,000 scores), scaled.onnx (a custom operator), picture and data set."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from PIL import Image

    def save(name, nodes, shape, out, constants=(), x="x"):
        graph = helper.make_graph(nodes, "snippet", [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)], list(constants))
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), Path(folder, name))

    weights = numpy.random.default_rng(1).normal(size=(3, 1000)).astype(numpy.float32)
    for name, x in (("model.onnx", "x"), ("images.onnx", "images")):
        nodes = [helper.make_node("GlobalAveragePool", [x], ["mean"]), helper.make_node("Flatten", ["mean"], ["flat"]),
                 helper.make_node("MatMul", ["flat", "w"], ["y"])]
        save(name, nodes, [1, 3, 224, 224], [1, 1000], [numpy_helper.from_array(weights, "w")], x)
    # What most exporters write, and what the README's commands are tried on too.
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["mean"]), helper.make_node("Flatten", ["mean"], ["flat"]),
             helper.make_node("MatMul", ["flat", "w"], ["y"])]
    save("open.onnx", nodes, ["batch", 3, 224, 224], ["batch", 1000], [numpy_helper.from_array(weights, "w")])
    save("scaled.onnx", [helper.make_node("Scale", ["x"], ["y"], domain="my.domain", factor=3.0)], [1, 3], [1, 3])
    Image.new("RGB", (224, 224), (200, 100, 50)).save(Path(folder, "picture.png"))
    Path(folder, "dataset.txt").write_text("picture.png\n", encoding="utf-8")


def python_program(before, block, after):
    if re.search(r"\bawait\b", block):
        # What stands after the block belongs to its function too.
        body = textwrap.indent(block + after, "    ")
        return f"{before}import asyncio\n\nasync def main():\n{body}\nasyncio.run(main())\n"
    return before + block + after


def cpp_program(before, block, after):
    heads = re.findall(r"^(?:#include|using namespace) .*$", block, re.M)
    rest = re.sub(r"^(?:#include|using namespace) .*\n", "", block, flags=re.M)
    return "#include <algorithm>\n#include <vector>\n" + "\n".join(heads) + "\n" + before + rest + after


class Snippets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        make_files(cls.folder.name)
        cls.run_in_folder([BUILD / "bin" / "corelane", "compile", "model.onnx", "-o", "model.rknn"])
        cls.run_in_folder([BUILD / "bin" / "corelane", "compile", "model.onnx", "--target", "aic100", "-o", "folder"])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def run_in_folder(cls, command, **more):
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "LD_LIBRARY_PATH": str(BUILD / "lib"),
                       "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=cls.folder.name, env=environment, capture_output=True, text=True,
                              timeout=300, **more)
        if done.returncode:
            raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done.stdout

    def each(self, language):
        pages = ["README.md", *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md"))]
        for page in pages:
            found = blocks(page, language)
            known = CONTEXT.get((page, language), [])
            self.assertEqual(len(known), len(found), f"{page}: each {language} block needs its place in CONTEXT")
            for number, (block, around) in enumerate(zip(found, known)):
                with self.subTest(page=page, block=number):
                    yield page, number, block, around

    def test_cpp_blocks_compile_and_run(self):
        for page, number, block, around in self.each("cpp"):
            block = block.replace("model.onnx", MODEL.get((page, "cpp", number), "model.onnx"))
            program = block if around is None else cpp_program(around[0], block, around[1])
            name = Path(self.folder.name, f"snippet_{number}")
            name.with_suffix(".cpp").write_text(program, encoding="utf-8")
            self.run_in_folder([COMPILER, "-std=c++20", "-Wall", "-Werror", "-Wno-unused-variable", "-O0",
                                f"-I{ROOT / 'include'}", f"-I{ROOT / 'include/qaic'}",
                                f"-I{BUILD / 'include/qaic'}", f"{name}.cpp", "-o", str(name), f"-L{BUILD / 'lib'}",
                                "-lcorelane", "-lfmt"])
            self.run_in_folder([str(name)])

    def test_python_blocks_run(self):
        for page, number, block, around in self.each("python"):
            name = MODEL.get((page, "python", number), "model.onnx")
            program = python_program(around[0], block.replace("model.onnx", name), around[1])
            self.run_in_folder([sys.executable, "-c", program])

    def test_commands_of_the_readme_run(self):
        commands = COMMAND.findall("\n".join(blocks("README.md", "sh")))
        self.assertGreaterEqual(len(commands), 6)
        for model in ("model.onnx", "open.onnx"):
            for command in commands:
                with self.subTest(command=command, model=model):
                    self.run_in_folder(["bash", "-c", command.replace("model.onnx", model)])


if __name__ == "__main__":
    ROOT, BUILD, COMPILER = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    unittest.main(argv=sys.argv[:1])
