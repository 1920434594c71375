"""What the tests of the Python package share: small models, sessions, and processes of their own."""
import ast
import contextlib
import gc
import io
import os
import subprocess
import sys
import tempfile
import textwrap
import threading

import numpy as np

NPU = "RKNPU2ExecutionProvider"
X = np.array([[-1, 2, -3, 4]], np.float32)
Y = np.maximum(X, 0)
PATIENCE = 60  # Seconds after which something hangs.


def model_of(nodes, inputs, outputs, **graph_parts):
    """Bytes of a model; inputs and outputs are (name, shape) or (name, shape, element type)."""
    from onnx import TensorProto, helper  # Slow to import, and most child processes need none of it.

    def values(rows):
        return [helper.make_tensor_value_info(name, kind[0] if kind else TensorProto.FLOAT, list(shape))
                for name, shape, *kind in rows]

    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), **graph_parts)
    domains = {node.domain for node in nodes} - {""}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]
                              + [helper.make_opsetid(domain, 1) for domain in domains],
                              ir_version=8, producer_name="p")
    return model.SerializeToString()


def relu_model(shape=("N", 4), kind=1, name="x"):
    """Bytes of a model y = Relu(x)."""
    from onnx import helper
    return model_of([helper.make_node("Relu", [name], ["y"])], [(name, shape, kind)], [("y", shape, kind)])


def session(device="virtual:rk3588", shape=(1, 4), model=None, **options):
    """A session by the rules of RKNN users."""
    import corelane
    return corelane.InferenceSession(relu_model(shape) if model is None else model, providers=[NPU],
                                     provider_options=[{"device": device, **options}])


def threads():
    """Threads of this process, those of the library included."""
    gc.collect()
    return len(os.listdir("/proc/self/task"))


class Callbacks:
    """What was called back, in order."""

    def __init__(self):
        self.entries, self._changed = [], threading.Condition()

    def __call__(self, outputs, user_data, error):
        with self._changed:
            self.entries.append((outputs, user_data, error))
            self._changed.notify_all()

    def wait(self, count):
        """Waits for so many; False when they do not come."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.entries) >= count, PATIENCE)

    def tags(self):
        with self._changed:
            return [user_data for _, user_data, _ in self.entries]


_PREAMBLE = """
import sys, time, threading, os, signal, gc
import numpy as np
import corelane as ort
X = np.ones((1, 4), np.float32)
def session(device, **options):
    return ort.InferenceSession(os.environ["RELU_MODEL"], providers=["RKNPU2ExecutionProvider"],
                                provider_options=[{"device": device, **options}])
"""


def child(code, timeout=PATIENCE, env=None, preamble=_PREAMBLE):
    """Runs Python code in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "relu.onnx")
        with open(path, "wb") as file:
            file.write(relu_model((1, 4)))
        return subprocess.run([sys.executable, "-c", preamble + textwrap.dedent(code)], capture_output=True,
                              text=True, timeout=timeout, check=False,
                              env={**os.environ, "RELU_MODEL": path, **(env or {})})


def children(codes, timeout=PATIENCE):
    """Runs each code in a fork of one process that has imported the package and nothing more; each ends
    as an interpreter does. Gives (exit code, stdout, stderr) of each."""
    forked = """
import tempfile
files = [(tempfile.TemporaryFile(), tempfile.TemporaryFile()) for _ in CODES]
pids = []
for (out, err), code in zip(files, CODES):
    pid = os.fork()
    if pid == 0:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        break
    pids.append(pid)
else:
    for pid, (out, err) in zip(pids, files):
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        err.seek(0)
        print(repr((code, out.read().decode(), err.read().decode())))
    sys.stdout.flush()
    os._exit(0)
exec(compile(code, "child", "exec"))
"""
    codes = [textwrap.dedent(code) for code in codes]
    done = child(f"CODES = {codes!r}\n{forked}", timeout)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"exit {done.returncode}: {done.stderr}")
    return [ast.literal_eval(line) for line in done.stdout.splitlines()]


@contextlib.contextmanager
def standard_error():
    """What this process writes to file descriptor 2 meanwhile, by read() on the value given."""
    sys.stderr.flush()
    before = os.dup(2)
    text = io.StringIO()
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield text
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            text.write(file.read().decode())
            text.seek(0)
