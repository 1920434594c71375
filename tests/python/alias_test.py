"""corelane.alias: Corelane under the names of other packages, in processes of their own."""
import os
import tempfile
import unittest

from python_support import child

# A program for boards, as it is found in public: nothing in it knows of Corelane.
LITE_PROGRAM = """
import os, sys
import numpy as np
from rknnlite.api import RKNNLite
rknn_lite = RKNNLite()
if rknn_lite.load_rknn(os.environ["RELU_MODEL"]) != 0 or rknn_lite.init_runtime() != 0:
    sys.exit("failed")
print(rknn_lite.inference(inputs=[np.array([[-1, 2, -3, 4]], np.float32)])[0].tolist(), sys.argv[1:])
rknn_lite.release()
"""
TOOLKIT_PROGRAM = """
import os, sys
from rknn.api import RKNN
rknn = RKNN(verbose=False)
rknn.config(target_platform='rk3588')
assert rknn.load_onnx(model=os.environ["RELU_MODEL"]) == 0
assert rknn.build(do_quantization=False) == 0
assert rknn.export_rknn(sys.argv[1]) == 0
rknn.release()
"""
ASYNC_PROGRAM = """
import os, threading
import numpy as np
import ztu_somemodelruntime_ez_rknn_async as ort
options = ort.make_provider_options(schedule=[0, 1, 2], threads_per_core=2)
session = ort.InferenceSession(os.environ["RELU_MODEL"], provider_options=options)
assert session.get_providers()[0] == "RKNPU2ExecutionProvider", session.get_providers()
assert session.get_provider_options()["RKNPU2ExecutionProvider"]["schedule"] == "0,1,2"
done, results = threading.Event(), []
def callback(outputs, user_data, error):
    results.append((outputs[0].tolist(), user_data, error))
    done.set()
session.run_async(None, {"x": np.array([[-1, 2, -3, 4]], np.int8)}, callback)
assert done.wait(60)
print(results, session.run(["y"], {"x": np.ones((1, 4), np.uint8)})[0].dtype)
"""


class Alias(unittest.TestCase):
    def run_program(self, program, *switch, expected="", env=None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            with open(os.path.join(folder, "beside.py"), "w", encoding="utf-8") as file:
                file.write("HERE = True\n")
            words = [w.replace("PROGRAM", path).replace("FOLDER", folder) for w in switch]
            code = "import subprocess\n" + (
                f"sys.exit(subprocess.run([sys.executable, '-m', 'corelane.alias', *{words!r}]).returncode)")
            done = child(code, env=env)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, expected)
            return sorted(os.listdir(folder))

    def test_rknnlite(self):
        self.run_program(LITE_PROGRAM, "--as", "rknnlite", "PROGRAM", "a", "-b",
                         expected="[[0.0, 2.0, 0.0, 4.0]] ['a', '-b']\n")

    def test_names_from_the_environment(self):
        self.run_program(LITE_PROGRAM, "PROGRAM", expected="[[0.0, 2.0, 0.0, 4.0]] []\n",
                         env={"CORELANE_ALIAS": "rknn, rknnlite"})

    def test_rknn(self):
        files = self.run_program(TOOLKIT_PROGRAM, "--as", "rknn", "PROGRAM", "FOLDER/made.rknn")
        self.assertIn("made.rknn", files)

    def test_asynchronous_session(self):
        self.run_program(ASYNC_PROGRAM, "--as", "ztu_somemodelruntime_ez_rknn_async", "PROGRAM",
                         expected="[([[0.0, 2.0, 0.0, 4.0]], None, '')] float32\n")

    def test_onnxruntime_is_the_default_and_modules_run_too(self):
        program = "import beside, onnxruntime, sys; print(onnxruntime.__name__, __name__, sys.argv[1:])"
        self.run_program(program, "PROGRAM", "x", expected="corelane __main__ ['x']\n")
        self.run_program("", "-m", "platform", expected=__import__("platform").platform() + "\n")

    def test_misuse_of_the_command(self):
        for words, text in (("[]", "usage"), ("['--as']", "usage"), ("['-x', 'y']", "usage"),
                            ("['--as', 'numpy', 'p.py']", "'numpy' is not an alias; there are onnxruntime")):
            done = child(f"from corelane import alias\nalias._run({words})")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)

    def test_a_program_that_is_not_there_is_one_line(self):
        for words, status, text in ((["/nowhere/program.py"], 2, "'/nowhere/program.py' cannot be read: No such file"),
                                    (["-m", "nowhere.module"], 1, "no module named 'nowhere.module'"),
                                    (["-m", "email"], 1, "no module named 'email' that can be run")):
            done = child(f"from corelane import alias\nalias._run({words})")
            self.assertEqual(done.returncode, status)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(f"corelane.alias: {text}", done.stderr)

    def test_a_program_shows_its_own_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "program.py"), "w", encoding="utf-8") as file:
                file.write("import nowhere.module\n")
            for words in ([os.path.join(folder, "program.py")], ["-m", "program"]):
                done = child(f"sys.path.insert(0, {folder!r})\nfrom corelane import alias\nalias._run({words})")
                self.assertEqual(done.returncode, 1)
                self.assertIn("ModuleNotFoundError: No module named 'nowhere'", done.stderr)

    def test_help_is_the_usage(self):
        done = child("from corelane import alias\nalias._run(['--help'])")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("usage: python -m corelane.alias"))

    def test_install_and_uninstall(self):
        done = child("""
            import corelane, corelane.alias as alias, pickle
            import corelane.rknnlite, corelane.rknn_toolkit
            sys.modules["rknn"] = real = type(sys)("rknn")
            try:
                alias.install("onnxruntime", "rknn")
                print("not refused")
            except RuntimeError as problem:
                assert "rknn is imported already" in str(problem)
            assert not alias.installed() and "onnxruntime" not in sys.modules
            alias.install()
            alias.install("onnxruntime", "rknnlite")
            alias.install("rknn", force=True)
            assert alias.installed("rknn") and alias.installed("onnxruntime") and alias.installed()
            import onnxruntime, rknnlite.api, rknn.api
            from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
            assert onnxruntime is corelane and rknn.api is corelane.rknn_toolkit
            assert rknnlite.api.RKNNLite is corelane.rknnlite.RKNNLite
            alias.uninstall("rknn")
            assert sys.modules["rknn"] is real and "rknn.api" not in sys.modules
            assert alias.installed("rknnlite") and not alias.installed("rknn")
            alias.uninstall()
            assert not alias.installed()
            assert "rknnlite" not in sys.modules and "onnxruntime" not in sys.modules
            alias.install(True)
            assert alias.installed("onnxruntime")
            try:
                alias.install("nope")
            except ValueError as problem:
                assert "there are onnxruntime, rknnlite" in str(problem)
            else:
                print("not refused")
            """)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_what_corelane_lacks_comes_from_an_installed_onnxruntime(self):
        done = child("""
            import corelane.alias
            corelane.alias.install()
            import onnxruntime
            from onnxruntime.quantization import QuantType, quantize_dynamic
            from onnxruntime.quantization.shape_inference import quant_pre_process
            import onnxruntime.tools, onnxruntime.transformers, onnxruntime.datasets
            import onnxruntime.quantization.calibrate
            assert onnxruntime is ort and onnxruntime.quantization.calibrate.onnxruntime is ort
            import tempfile
            folder = tempfile.mkdtemp()
            quant_pre_process(os.environ["RELU_MODEL"], folder + "/a.onnx", skip_symbolic_shape=True)
            quantize_dynamic(folder + "/a.onnx", folder + "/b.onnx", weight_type=QuantType.QUInt8)
            print(onnxruntime.InferenceSession(folder + "/b.onnx").run(None, {"x": X})[0].tolist())
            from onnxruntime.capi._pybind_state import quantize_matmul_4bits  # As its quantizers do.
            assert callable(quantize_matmul_4bits)
            from onnxruntime.capi import onnxruntime_pybind11_state as state
            assert state is corelane.capi.onnxruntime_pybind11_state
            try:
                import onnxruntime.nothing_of_that_name
            except ModuleNotFoundError as problem:
                assert problem.name == "onnxruntime.nothing_of_that_name", problem
            corelane.alias.uninstall()
            left = [n for n in sys.modules if n.startswith("onnxruntime")]
            assert left == ["onnxruntime.capi.onnxruntime_pybind11_state"], left
            assert not hasattr(ort, "quantization")
            import onnxruntime.quantization
            assert onnxruntime is not ort and onnxruntime.quantization.calibrate.onnxruntime is onnxruntime
            value = onnxruntime.OrtValue.ortvalue_from_numpy(X)
            print(onnxruntime.InferenceSession(os.environ["RELU_MODEL"]).run(None, {"x": value})[0].tolist())
            """)
        self.assertEqual((done.returncode, done.stdout), (0, "[[1.0, 1.0, 1.0, 1.0]]\n" * 2), done.stderr)

    def test_what_corelane_lacks_is_said_where_onnxruntime_is_not_installed(self):
        done = child("""
            import corelane.alias
            corelane.alias.install()
            sys.path[:] = [p for p in sys.path if not os.path.isdir(os.path.join(p, "onnxruntime"))]
            for name in ("quantization", "tools", "transformers", "datasets"):
                try:
                    __import__("onnxruntime." + name)
                except ModuleNotFoundError as problem:
                    assert "pip install onnxruntime" in str(problem), problem
                else:
                    print("imported", name)
            for missing in (lambda: ort.AdapterFormat(), lambda: ort.capi._pybind_state.quantize_matmul_4bits):
                try:
                    missing()
                except ModuleNotFoundError as problem:
                    assert "pip install onnxruntime" in str(problem), problem
                else:
                    print("not refused")
            """)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_calibration_needs_the_real_onnxruntime(self):
        done = child("""
            import corelane.alias
            corelane.alias.install("onnxruntime", "rknn")
            from rknn.api import RKNN
            import tempfile
            kept = tempfile.TemporaryDirectory()
            folder = kept.name
            np.save(folder + "/x.npy", X)
            open(folder + "/set.txt", "w").write("x.npy")
            rknn = RKNN()
            rknn.load_onnx(os.environ["RELU_MODEL"])
            print(rknn.build(dataset=folder + "/set.txt"))
            corelane.alias.uninstall("onnxruntime")
            print(rknn.build(dataset=folder + "/set.txt"))
            """)
        self.assertEqual((done.returncode, done.stdout), (0, "-1\n0\n"), done.stderr)
        self.assertIn("corelane.alias.uninstall", done.stderr)


if __name__ == "__main__":
    unittest.main()
