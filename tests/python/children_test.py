"""Processes that a program under corelane.alias starts have the alias, too, and sessions go to them."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from python_support import PATIENCE, child, relu_model

# Workers as programs have them, below the usual guard: what the main module does there, children do not do.
POOLS = """
import concurrent.futures, multiprocessing, os, sys
def work(path):
    import numpy as np
    import onnxruntime
    session = onnxruntime.InferenceSession(path)
    return onnxruntime.__name__, session.run(None, {"x": np.array([[-1, 2, -3, 4]], np.float32)})[0].tolist()
def use(session):
    import numpy as np
    return type(session).__module__.split(".")[0], session.run(None, {"x": np.ones((1, 4), np.float32)})[0].tolist()
def nested(path):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, (path,))
def refused(session):
    try:
        use(session)
    except RuntimeError as problem:
        print("spawn" in str(problem), flush=True)
def main():
    import onnxruntime
    path = os.environ["RELU_MODEL"]
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(work, [path] * 2))
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            print(pool.submit(work, path).result(), pool.submit(use, onnxruntime.InferenceSession(path)).result())
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        print(pool.submit(nested, path).result())
    worker = multiprocessing.get_context("fork").Process(target=refused, args=(onnxruntime.InferenceSession(path),))
    sys.stdout.flush()
    worker.start()
    worker.join()
"""
GUARD = "if __name__ == '__main__':\n    main()\n"
INSTALLING = "if __name__ == '__main__':\n    import corelane.alias\n    corelane.alias.install()\n    main()\n"
RUN = ("corelane", [[0.0, 2.0, 0.0, 4.0]])
ONES = ("corelane", [[1.0] * 4])
PRINTED = "".join(f"{method} {[RUN] * 2}\n{RUN} {ONES}\n" for method in ("spawn", "forkserver")) + f"{RUN}\nTrue\n"
NAME_OF = "[sys.executable, '-c', 'import onnxruntime; print(onnxruntime.__name__)']"


class Folder(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = Path(kept.name)
        (self.folder / "relu.onnx").write_bytes(relu_model())

    def program(self, text, *words, path=()):
        """Its standard output, run in a folder that has nothing else."""
        (self.folder / "program.py").write_text(text, encoding="utf-8")
        paths = [p for p in (*map(str, path), os.environ.get("PYTHONPATH", "")) if p]
        # Where the package is installed there is none, and an empty one is not to be told from that.
        python_path = {"PYTHONPATH": os.pathsep.join(paths)} if paths else {}
        done = subprocess.run([sys.executable, *words, "program.py"], cwd=self.folder, capture_output=True, text=True,
                              timeout=2 * PATIENCE, check=False,
                              env={**os.environ, **python_path, "RELU_MODEL": str(self.folder / "relu.onnx")})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout


class Children(Folder):
    def test_pools_of_a_program_under_the_alias(self):
        self.assertEqual(self.program(POOLS + GUARD, "-m", "corelane.alias"), PRINTED)

    def test_pools_of_a_program_that_installs_the_alias_in_its_main_process(self):
        self.assertEqual(self.program(POOLS + INSTALLING), PRINTED)

    def test_every_name_goes_along_and_goes_again(self):
        self.assertEqual(self.program(f"""
import os, subprocess, sys
import corelane.alias
before = dict(os.environ)
corelane.alias.install("onnxruntime", "rknnlite", "rknn")
def run(words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
code = "import rknn.api.rknn, rknnlite.api, sys; print(rknn.api.__name__, rknnlite.api.__name__, sys.path[0] == '')"
print(run([sys.executable, "-c", code]))
quiet = "import sys; print([n for n in sys.modules if n.startswith(('corelane', 'numpy', 'onnxruntime'))])"
print(run([sys.executable, "-c", quiet]))
print(run({NAME_OF}))
child = "import corelane.alias as a; a.uninstall('onnxruntime'); import onnxruntime, rknn; print(onnxruntime.__name__)"
print(run([sys.executable, "-c", child]))
corelane.alias.uninstall("onnxruntime")
print(run({NAME_OF}))
corelane.alias.uninstall()
print(dict(os.environ) == before)
corelane.alias.install(children=False)
print(dict(os.environ) == before)
"""), "corelane.rknn_toolkit corelane.rknnlite True\n[]\ncorelane\nonnxruntime\nonnxruntime\nTrue\nTrue\n")

    def test_the_sitecustomize_of_before_runs_and_imports_as_before(self):
        (self.folder / "own").mkdir()
        (self.folder / "own" / "sitecustomize.py").write_text("import os\nos.environ['SEEN'] = 'seen'\n")
        self.assertEqual(self.program(f"""
import os, subprocess, sys
import corelane.alias
corelane.alias.install()
del os.environ["SEEN"]
code = ("import os, sys, sitecustomize; print(os.environ['SEEN'], sitecustomize.__file__); "
        "print([p for p in sys.path if 'corelane' in os.path.basename(os.path.dirname(p))])")
print(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout, end="")
print(subprocess.run({NAME_OF}, check=True, capture_output=True, text=True).stdout, end="")
""", path=[self.folder / "own"]), f"seen {self.folder}/own/sitecustomize.py\n[]\ncorelane\n")

    def test_another_python_keeps_its_own_modules(self):
        self.assertEqual(self.program(f"""
import os, subprocess, sys
import corelane.alias
corelane.alias.install()
os.environ["CORELANE_ALIAS_CHILDREN"] = "cpython-36:onnxruntime"
print(subprocess.run({NAME_OF}, check=True, capture_output=True, text=True).stdout, end="")
"""), "onnxruntime\n")


class Pickle(Folder):
    def test_a_session_made_from_a_path_is_made_anew_with_its_options(self):
        self.assertEqual(self.program("""
import os, pickle, copy
import numpy as np
import corelane, corelane.ez_rknn_async
os.chdir(os.path.dirname(os.environ["RELU_MODEL"]))
X = np.array([[-1, 2, -3, 4]], np.float32)
options = corelane.SessionOptions()
options.intra_op_num_threads = 1
options.add_free_dimension_override_by_name("N", 1)
for module, kind in ((corelane, {}), (corelane, {"providers": corelane.get_available_providers()}),
                     (corelane.ez_rknn_async, {"provider_options": {"schedule": [0, 1], "output_form": "float"}})):
    made = module.InferenceSession("relu.onnx", options, **kind)
    data = pickle.dumps(made)
    made.close()
    os.chdir("/")
    again = pickle.loads(data)
    os.chdir(os.path.dirname(os.environ["RELU_MODEL"]))
    assert type(again) is type(made) and again.get_providers() == made.get_providers()
    assert again.get_provider_options() == made.get_provider_options()
    assert again.get_inputs()[0].shape == [1, 4], again.get_inputs()[0].shape
    print(again.run(None, {"x": X})[0].tolist())
    assert copy.deepcopy(again) is not again and copy.copy(again)._native is again._native
class Named(corelane.InferenceSession):
    def __init__(self, name):
        self.name = name
        super().__init__(name + ".onnx")
        self.more = [1]
again = pickle.loads(pickle.dumps(Named("relu")))
print(again.name, again.more, again.run(None, {"x": X})[0].tolist())
"""), "[[0.0, 2.0, 0.0, 4.0]]\n" * 3 + "relu [1] [[0.0, 2.0, 0.0, 4.0]]\n")

    def test_a_session_made_from_bytes_is_refused_with_the_way_out(self):
        done = child("""
            import pickle
            s = ort.InferenceSession(open(os.environ["RELU_MODEL"], "rb").read())
            for way in (pickle.dumps, __import__("copy").deepcopy):
                try:
                    way(s)
                except TypeError as problem:
                    print("made from bytes" in str(problem) and "path" in str(problem))
            """)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "True\nTrue\n", ""))


if __name__ == "__main__":
    unittest.main()
