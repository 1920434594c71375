"""One process with librknnrt.so, libQAic.so and the Python package, on one device: all three are right, and
share its cores.

Who ran where is read from the device's records, which the Python package has of all doors.

python three_doors_test.py CORELANE LIBRKNNRT LIBQAIC
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

# One text, one device, for all doors of the process.
DEVICE = "virtual:rk3588"
os.environ.update(CORELANE_DEVICE=DEVICE, CORELANE_QAIC_DEVICES=DEVICE)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

import corelane as ort  # noqa: E402

CORELANE, RKNN, QAIC = sys.argv[1:4]
SIZE = 64
RUNS = 40
CORES = 3  # Of DEVICE.
NO_SPACE = 7  # QS_NOSPC.
PATIENCE = 60  # Seconds; a failure takes so long, nothing else.
X = np.linspace(-1, 1, SIZE, dtype=np.float32)


class Buffer(ctypes.Structure):
    """QBuffer."""

    _fields_ = [("size", ctypes.c_size_t), ("buf", ctypes.c_void_p), ("handle", ctypes.c_uint64),
                ("offset", ctypes.c_uint32), ("type", ctypes.c_uint32)]


class RknnInput(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint32), ("buf", ctypes.c_void_p), ("size", ctypes.c_uint32),
                ("pass_through", ctypes.c_uint8), ("type", ctypes.c_int), ("fmt", ctypes.c_int)]


class RknnOutput(ctypes.Structure):
    _fields_ = [("want_float", ctypes.c_uint8), ("is_prealloc", ctypes.c_uint8), ("index", ctypes.c_uint32),
                ("buf", ctypes.c_void_p), ("size", ctypes.c_uint32)]


def checked(function, *arguments):
    code = function(*arguments)
    if code != 0:
        raise RuntimeError(f"{function.__name__}: {code}")


class Rknn:
    """y = Relu(x) through the RKNN C API."""

    def __init__(self, model):
        self.api = ctypes.CDLL(RKNN)
        self.context = ctypes.c_uint64()
        data = model.read_bytes()
        checked(self.api.rknn_init, ctypes.byref(self.context), data, len(data), 0, None)

    def on(self, core):
        """The same, on this core alone."""
        checked(self.api.rknn_set_core_mask, self.context, 1 << core)
        return self

    def run(self, x):
        given = RknnInput(buf=x.ctypes.data, size=x.nbytes, type=0, fmt=3)
        checked(self.api.rknn_inputs_set, self.context, 1, ctypes.byref(given))
        checked(self.api.rknn_run, self.context, None)
        found = RknnOutput(want_float=1)
        checked(self.api.rknn_outputs_get, self.context, 1, ctypes.byref(found), None)
        result = np.frombuffer(ctypes.string_at(found.buf, found.size), np.float32)
        checked(self.api.rknn_outputs_release, self.context, 1, ctypes.byref(found))
        return result

    def close(self):
        checked(self.api.rknn_destroy, self.context)


class Qaic:
    """y = Relu(x) through the object runtime's C API."""

    def __init__(self, container):
        self.api = ctypes.CDLL(QAIC)
        self.context, self.qpc, self.program, self.object, self.queue = (ctypes.c_void_p() for _ in range(5))
        device = ctypes.c_int32(0)
        none = [None] * 4
        checked(self.api.qaicCreateContext, ctypes.byref(self.context), None, 1, ctypes.byref(device), *none)
        checked(self.api.qaicOpenQpcFile, ctypes.byref(self.qpc), str(container / "programqpc.bin").encode())
        checked(self.api.qaicCreateProgram, self.context, ctypes.byref(self.program), None, 0, b"relu", self.qpc)
        checked(self.api.qaicCreateExecObj, self.context, ctypes.byref(self.object), None, self.program, *none[:3])
        checked(self.api.qaicCreateQueue, self.context, ctypes.byref(self.queue), None, 0)

    def activate(self):
        """Takes a core for itself."""
        checked(self.api.qaicRunActivationCmd, self.program, 0)
        return self

    def release(self):
        """Deactivates the program, which gives the core back."""
        checked(self.api.qaicReleaseExecObj, self.object)
        checked(self.api.qaicRunActivationCmd, self.program, 1)

    def run(self, x):
        y = np.zeros(SIZE, np.float32)
        buffers = (Buffer * 2)(*(Buffer(size=v.nbytes, buf=v.ctypes.data) for v in (x, y)))
        checked(self.api.qaicExecObjSetData, self.object, 2, buffers)
        checked(self.api.qaicEnqueueExecObj, self.queue, self.object, None)
        checked(self.api.qaicExecObjWaitForCompletion, self.object, ctypes.c_uint64(60_000_000))
        return y

    def cores(self):
        """(all, free) of the device."""
        info = (ctypes.c_uint8 * 256)()
        checked(self.api.qaicGetResourceInfo, 0, info)
        return info[26], info[27]  # nspTotal, nspFree.

    def close(self):
        for release in (self.api.qaicReleaseProgram, self.program), (self.api.qaicCloseQpc, self.qpc), \
                (self.api.qaicReleaseQueue, self.queue), (self.api.qaicReleaseContext, self.context):
            checked(*release)


class Session:
    """y = Relu(x) through the Python package."""

    def __init__(self, model, **options):
        if not options:
            self.session = ort.InferenceSession(str(model))
            return
        self.session = ort.InferenceSession(str(model), providers=["RKNPU2ExecutionProvider"],
                                            provider_options=[ort.make_provider_options(**options)])

    def run(self, x):
        return self.session.run(None, {"x": x})[0]

    def close(self):
        del self.session


class Records:
    """The device's records of jobs, of whichever door, in the order of their start."""

    def __init__(self, model):
        self.session = ort.InferenceSession(str(model))
        self.clear()

    def clear(self):
        for size in 0, 4096:
            self.session.set_trace(size)

    def read(self):
        return sorted(self.session.read_trace(), key=lambda record: record["started_ns"])

    def core_of(self, door):
        """The one core on which the door's next run is."""
        before = len(self.read())
        np.testing.assert_array_equal(door.run(X), np.maximum(X, 0))
        found = self.read()[before:]
        if len(found) != 1 or found[0]["core_bits"].bit_count() != 1:
            raise RuntimeError(f"one run of {type(door).__name__} left {found}")
        return found[0]["core_bits"].bit_length() - 1


def of_one_node(path, operator, domain=""):
    """A model of one operator on SIZE floats."""
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [SIZE]) for n in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], domain=domain)], "g", value[:1], value[1:])
    opsets = [helper.make_opsetid("", 13), *([helper.make_opsetid(domain, 1)] if domain else [])]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


class ThreeDoors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = of_one_node(self.folder / "relu.onnx", "Relu")
        subprocess.run([CORELANE, "compile", self.model, "--target", "aic100", "-o", self.folder], check=True,
                       capture_output=True, timeout=60)
        self.records = Records(self.model)

    def test_all_three_are_right_at_the_same_time(self):
        qaic = Qaic(self.folder).activate()
        self.assertEqual((CORES, CORES - 1), qaic.cores())  # Those of the RKNN chip: it is the same device.
        held = self.records.core_of(qaic)
        self.records.clear()
        doors = [Rknn(self.model), qaic, Session(self.model)]
        wrong = []

        def work(door, seed):
            random = np.random.default_rng(seed)
            try:
                for _ in range(RUNS):
                    x = random.standard_normal(SIZE, np.float32)
                    if not np.array_equal(door.run(x), np.maximum(x, 0)):
                        wrong.append(f"{type(door).__name__} is wrong")
            except Exception as failure:  # A thread's failure is the test's.
                wrong.append(f"{type(door).__name__}: {failure}")

        threads = [threading.Thread(target=work, args=(door, seed)) for seed, door in enumerate(doors)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)
        # One device has run them all: those of the activation on its core, and no other there.
        bits = [record["core_bits"] for record in self.records.read()]
        self.assertEqual(3 * RUNS, len(bits))
        self.assertEqual(RUNS, bits.count(1 << held))
        self.assertEqual(RUNS, sum(bit >> held & 1 for bit in bits))
        maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
        for library in ("libcorelane.so", "libopenvino.so"):
            files = {line.split()[-1] for line in maps.splitlines() if f"/{library}" in line}
            self.assertEqual(1, len(files), files)  # One runtime and one engine for all.
        qaic.release()
        for door in doors:
            door.close()

    def test_an_activation_takes_its_core_from_the_others(self):
        qaic, rknn = Qaic(self.folder), Rknn(self.model)
        sessions = [Session(self.model, schedule=[core]) for core in range(CORES)]
        for core in range(CORES):
            self.assertEqual([core] * 2, [self.records.core_of(door) for door in (rknn.on(core), sessions[core])])
        self.assertEqual((CORES, CORES), qaic.cores())
        held = self.records.core_of(qaic.activate())
        self.assertEqual((CORES, CORES - 1), qaic.cores())
        for core in range(CORES):
            for door in rknn.on(core), sessions[core]:
                if core != held:
                    self.assertEqual(core, self.records.core_of(door))
                    continue
                before = len(self.records.read())
                self.assert_refused(door)
                self.assertEqual(before, len(self.records.read()))
        self.assertEqual(held, self.records.core_of(qaic))
        qaic.release()
        self.assertEqual((CORES, CORES), qaic.cores())
        self.assertEqual([held] * 2, [self.records.core_of(door) for door in (rknn.on(held), sessions[held])])
        for door in [qaic, rknn, *sessions]:
            door.close()

    def test_the_last_core_is_everybodys_last(self):
        others = [Rknn(self.model), Session(self.model)]
        doors = [Qaic(self.folder) for _ in range(CORES + 1)]
        held = [self.records.core_of(door.activate()) for door in doors[:CORES]]
        self.assertEqual(list(range(CORES)), sorted(held))
        self.assertEqual((CORES, 0), doors[0].cores())
        with self.assertRaisesRegex(RuntimeError, f"qaicRunActivationCmd: {NO_SPACE}"):
            doors[CORES].activate()
        for door in others:
            self.assert_refused(door)
        doors[1].release()
        self.assertEqual([held[1]] * 2, [self.records.core_of(door) for door in others])
        self.assertEqual(held[1], self.records.core_of(doors[CORES].activate()))
        for door in others:
            self.assert_refused(door)
        for door in doors[0], doors[2], doors[CORES]:
            door.release()
        for door in [*doors, *others]:
            door.close()

    def test_those_who_wait_for_one_core_have_it_by_turns(self):
        qaic = Qaic(self.folder).activate()
        held = self.records.core_of(qaic)
        core, free = (held + 1) % CORES, (held + 2) % CORES
        entered, opened = threading.Event(), threading.Event()

        def hold(x):
            entered.set()
            opened.wait(PATIENCE)
            return np.maximum(x, 0)

        gate = Session(of_one_node(self.folder / "gate.onnx", "Gate", "my"), schedule=[core],
                       custom_operators={"Gate": hold})
        doors = [door for _ in range(3) for door in (Rknn(self.model).on(core), Session(self.model, schedule=[core]))]
        probe = Session(self.model, schedule=[free])
        self.assertEqual([core] * 6 + [free], [self.records.core_of(door) for door in [*doors, probe]])
        self.records.clear()
        results = []
        threads = [threading.Thread(target=lambda door=door: results.append(door.run(X))) for door in [gate, *doors]]
        threads[0].start()
        self.assertTrue(entered.wait(PATIENCE))
        for number, thread in enumerate(threads[1:], 1):
            thread.start()
            self.await_line(probe, number)
        np.testing.assert_array_equal(qaic.run(X), np.maximum(X, 0))  # Its core goes on.
        opened.set()
        for thread in threads:
            thread.join()
        self.assertEqual(7, len(results))
        for result in results:
            np.testing.assert_array_equal(result, np.maximum(X, 0))
        jobs = [record for record in self.records.read() if record["core_bits"] == 1 << core]
        self.assertEqual(7, len(jobs))
        # They came by turns, each after the one before was in the line, and so they had the core.
        self.assertEqual(jobs, sorted(jobs, key=lambda record: record["queued_ns"]))
        for one, following in zip(jobs, jobs[1:]):
            self.assertLessEqual(one["ended_ns"], following["started_ns"])
        qaic.release()
        for door in [qaic, gate, probe, *doors]:
            door.close()

    def assert_refused(self, door):
        """The core that its run needs is held."""
        with self.assertRaisesRegex(RuntimeError, "rknn_run: -1|other executables hold cores exclusively"):
            door.run(X)

    def await_line(self, probe, length):
        """Until so many jobs wait for cores of the device, as a job on another core finds."""
        end = time.monotonic() + PATIENCE
        depth = None
        while depth != length:
            self.assertLess(time.monotonic(), end, f"{depth} jobs wait, not {length}")
            probe.run(X)
            depth = max(self.records.read(), key=lambda record: record["queued_ns"])["queue_depth"]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
