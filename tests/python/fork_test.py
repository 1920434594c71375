"""Forks: what is of the parent fails in the child at once, and the virtual NPU says how to start workers."""
import unittest

from python_support import child

# A network for which the engine itself is used, whatever of it could run without.
_ENGINE = """
from onnx import TensorProto, helper, numpy_helper
def engine_session():
    w = numpy_helper.from_array(np.full((256, 256), 0.01, np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Erf", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 256])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 256])], [w])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return ort.InferenceSession(model.SerializeToString())
def use():
    s = engine_session()
    s.run(None, {"x": np.ones((8, 256), np.float32)})
    s.close()
def in_child(function):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            function()
            os._exit(7)
        except RuntimeError as error:
            os._exit(8 if "spawn" in str(error) and "dimension" not in str(error) else 9)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


class Fork(unittest.TestCase):
    def prints(self, code, expected):
        result = child(_ENGINE + code)
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", expected))

    def test_child_of_a_parent_that_used_the_virtual_npu_is_refused(self):
        self.prints("use()\nprint(in_child(use))\nuse()\n", "8\n")

    def test_so_is_one_of_a_parent_that_has_not_timed_its_engines(self):
        # It begins on the second engine; the child ran on the first one, until the parent had opened that too.
        self.prints("""
os.environ["CORELANE_TIME_ENGINES"] = "1"
for _ in range(2):
    use()
    print(in_child(use))
""", "8\n8\n")

    def test_child_made_before_the_first_session_uses_the_virtual_npu(self):
        self.prints("print(in_child(use))\nuse()\n", "7\n")

    def test_workers_that_are_spawned_use_the_virtual_npu(self):
        self.prints("""
use()
import subprocess
code = "import corelane, os; corelane.InferenceSession(os.environ['RELU_MODEL']); print('made')"
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout, end="")
""", "made\n")

    def test_waits_end_in_the_child(self):
        self.prints("""
s = session("null:rk3588?a=600s", schedule=[0])
s.run_pipeline(X)
f = s.submit(None, {"x": X})
print(in_child(f.result), in_child(s.flush), in_child(s.statistics), f.done(), s.closed)
sys.stdout.flush()
os._exit(0)
""", "8 8 7 False False\n")


if __name__ == "__main__":
    unittest.main()
