"""Sessions on a librknnrt.so: a stub of the vendor's, whose calls are counted, and Corelane's own.

CORELANE_TEST_LIBRARIES is the folder with librknnrt.so and stub/."""
import ctypes
import gc
import os
import re
import time
import unittest

import numpy as np

import corelane as ort
from corelane.capi.onnxruntime_pybind11_state import InvalidArgument
from python_support import PATIENCE, X, Y, Callbacks, relu_model, session

FOLDER = os.environ["CORELANE_TEST_LIBRARIES"]
IMAGE = b"RKNN\0\0\0\0STUB0001\nin x f32 undef none 0 1 1,4\nout y f32 undef none 0 1 1,4\n"  # y = x + 1


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in (
        "inits", "dups", "destroys", "inputs_sets", "refused_inputs", "runs", "outputs_gets",
        "outputs_releases", "core_masks", "last_mask", "shape_sets", "model_size")
    ] + [("model_sum", ctypes.c_uint64)]


class Stub(unittest.TestCase):
    def open(self, variant="vendor", image=IMAGE, profile="rk3588", **options):
        """A session on the stub, and a function that reads its counters since now."""
        path = os.path.join(FOLDER, "stub", f"libstub_{variant}.so")
        library = ctypes.CDLL(path)
        library.stub_forget()

        def counts():
            now = Counts()
            library.stub_look(ctypes.byref(now))
            return now

        def order():
            text = ctypes.create_string_buffer(256)
            library.stub_order(text, len(text))
            return text.value.decode()

        self.order = order
        name = self.id().rsplit(".", 1)[-1].replace("_", "")
        return session(f"rknn:{profile}?library={path}&name={name}", model=image, **options), counts

    def test_vendor_image_runs(self):
        made, counts = self.open()
        np.testing.assert_array_equal(made.run(None, {"x": X})[0], X + 1)
        self.assertEqual((made.get_inputs()[0].shape, counts().runs), ([1, 4], 1))
        self.assertIn("librknnrt", made.device()["engine"])

    def test_as_many_contexts_are_destroyed_as_made(self):
        # A thread makes its context with its first task: each core has one at least, and one of two
        # threads of a core may do all of its tasks.
        for options, least, most in ((dict(schedule=[0]), 1, 1), (dict(schedule=[2, 0], threads_per_core=2), 2, 4),
                                     (dict(schedule=[0, 1, 2]), 3, 3), (dict(tp_mode="0,1,2"), 1, 1)):
            with self.subTest(**options):
                made, counts = self.open(**options)
                for future in [made.submit(None, {"x": X}) for _ in range(8)]:
                    np.testing.assert_array_equal(future.result(PATIENCE)[0], X + 1)
                made.close()
                del made
                gc.collect()
                now = counts()
                # One init describes the image, one holds it; each context is a duplicate of that.
                self.assertIn(now.dups, range(least, most + 1))
                self.assertEqual((now.inits, now.core_masks), (2, now.dups))
                self.assertEqual((now.destroys, now.runs), (now.inits + now.dups, 8))

    def test_the_drivers_calls_come_in_order(self):
        made, _ = self.open(schedule=[0, 1, 2])
        for future in [made.submit(None, {"x": X}) for _ in range(6)]:
            future.result(PATIENCE)
        made.close()
        del made
        gc.collect()
        # The image is described by one init and held by another; at its first task each core gets a duplicate of
        # that, and its mask before it runs.
        middle, end = re.fullmatch("IXI([DMR]+)(X+)", self.order()).groups()
        self.assertEqual((sorted(middle), len(end)), (list("DDDMMMRRRRRR"), 1 + 3))
        for i in range(1, len(middle)):
            before = middle[:i]
            self.assertGreaterEqual(before.count("D"), before.count("M"))
            self.assertGreaterEqual(before.count("M"), min(before.count("R"), 1))

    def test_independent_contexts(self):
        made, counts = self.open(schedule=[0, 1], disable_dup_context=True)
        for future in [made.submit(None, {"x": X}) for _ in range(2)]:
            future.result(PATIENCE)
        made.close()
        # The thread of a core lets go of what it has run after it has told the caller.
        until = time.monotonic() + PATIENCE
        while counts().destroys < 6 and time.monotonic() < until:
            time.sleep(0.001)
        now = counts()
        self.assertEqual((now.inits, now.dups, now.destroys), (4, 2, 6))

    def test_cores_become_the_mask(self):
        for options, mask in ((dict(schedule=[2]), 4), (dict(tp_mode="0,1"), 3), (dict(tp_mode="0,1,2"), 7),
                              (dict(tp_mode="all"), 0xffff), (dict(tp_mode="auto"), 0)):
            made, counts = self.open(**options)
            made.run(None, {"x": X})
            self.assertEqual(counts().last_mask, mask)

    def test_single_core_chip_is_never_asked_to_choose(self):
        for options in ({}, dict(tp_mode="auto"), dict(tp_mode="0"), dict(schedule=[0])):
            made, counts = self.open("one_core", profile="rk3566", **options)
            np.testing.assert_array_equal(made.run(None, {"x": X})[0], X + 1)
            self.assertEqual(counts().core_masks, 0)
        for options in (dict(tp_mode="0,1"), dict(schedule=[0, 1])):
            with self.assertRaises(RuntimeError):
                self.open("one_core", profile="rk3566", **options)

    def test_chip_that_refuses_the_mask_fails_the_call(self):
        made, _ = self.open("one_core", schedule=[0, 1])
        for _ in range(2):
            with self.assertRaises(RuntimeError) as caught:
                made.run(None, {"x": X})
            self.assertIn("rknn_set_core_mask", str(caught.exception))

    def test_failures_of_the_library_are_those_of_the_task(self):
        made, _ = self.open(image=IMAGE + b"fail rknn_run -2\n", schedule=[0, 1])
        said = Callbacks()
        for i in range(4):
            made.run_async(None, {"x": X}, said, i)
        made.close()
        self.assertEqual(said.tags(), [0, 1, 2, 3])
        self.assertTrue(all(outputs is None and error for outputs, _, error in said.entries))

    def test_failed_runs_read_as_the_drivers(self):
        for code, name in ((-1, "RKNN_ERR_FAIL (-1)"), (-2, "RKNN_ERR_TIMEOUT (-2)"),
                           (-3, "RKNN_ERR_DEVICE_UNAVAILABLE (-3)"), (-4, "RKNN_ERR_MALLOC_FAIL (-4)"),
                           (-5, "RKNN_ERR_PARAM_INVALID (-5)"), (-6, "RKNN_ERR_MODEL_INVALID (-6)"),
                           (-7, "RKNN_ERR_CTX_INVALID (-7)"), (-99, "RKNN_ERR_FAIL (-1)")):
            made, _ = self.open(image=IMAGE + f"fail rknn_run {code}\n".encode())
            binding = made.io_binding()
            binding.bind_cpu_input("x", X)
            binding.bind_output("y")
            calls = {"run": lambda: made.run(None, {"x": X}),
                     "batch": lambda: made.run(None, {"x": X}, {"ztu_modelrt_dispatch_batch": "1"}),
                     "future": lambda: made.submit(None, {"x": X}).result(PATIENCE),
                     "pipeline": lambda: (made.run_pipeline({"x": X}, 1), made.flush()),
                     "binding": lambda: made.run_with_iobinding(binding),
                     "limit": lambda: made.run(None, {"x": X}, {"corelane.timeout_ms": "60000"})}
            for kind, call in calls.items():
                with self.subTest(code=code, call=kind):
                    with self.assertRaises(RuntimeError) as caught:
                        call()
                    self.assertTrue(str(caught.exception).startswith(f"rknn_run failed: {name}: "),
                                    str(caught.exception))
                    # The time limit of the caller is another thing, and so are the caller's arguments.
                    self.assertNotIsInstance(caught.exception, (TimeoutError, ort.Timeout))
                    self.assertNotIsInstance(caught.exception, InvalidArgument)
            said = Callbacks()
            made.run_async(None, {"x": X}, said)
            made.close()
            self.assertTrue(said.entries[0][2].startswith(f"rknn_run failed: {name}: "), said.entries)

    def test_deadlines_do_not_need_the_library(self):
        made, _ = self.open(image=IMAGE + b"slow 300\n")
        with self.assertRaises(TimeoutError):
            made.run(None, {"x": X}, {"corelane.timeout_ms": "20"})


class Ours(unittest.TestCase):
    """Our librknnrt.so in the vendor's place: it takes program files and ONNX models too."""

    @classmethod
    def setUpClass(cls):
        os.environ["CORELANE_RKNN_INNER"] = "virtual:rk3588"
        cls.device = f"rknn:rk3588?library={os.path.join(FOLDER, 'librknnrt.so')}"

    def test_models_give_the_same_as_on_the_virtual_npu(self):
        for model in (relu_model((1, 4)), ort.compile(relu_model((1, 4)))):
            made = session(self.device, model=model, schedule=[0, 1, 2], max_queue_size=16)
            futures = [made.submit(None, {"x": X * i}) for i in range(12)]
            for i, future in enumerate(futures):
                np.testing.assert_array_equal(future.result(PATIENCE)[0], Y * i)
            self.assertEqual(made.statistics()["tasks_by_context"], [4, 4, 4])

    def test_pictures_batches_and_pipelines(self):
        made = session(self.device, shape=(1, 3, 2, 5), layout="nhwc", schedule=[0, 1])
        pixels = np.arange(60, dtype=np.uint8).reshape(2, 2, 5, 3)
        (y,) = made.run(None, {"x": pixels}, {"ztu_modelrt_dispatch_batch": "1"})
        np.testing.assert_array_equal(y, pixels.transpose(0, 3, 1, 2))
        self.assertIsNone(made.run_pipeline(pixels[:1], depth=1))
        np.testing.assert_array_equal(made.run_pipeline(pixels[1:], depth=1)[0], y[:1])

    def test_strict_sessions_too(self):
        options = ort.SessionOptions()
        options.add_session_config_entry("corelane.device", self.device)
        made = ort.InferenceSession(relu_model((1, 4)), options)
        np.testing.assert_array_equal(made.run(None, {"x": X})[0], Y)

    def test_a_library_that_is_not_there_is_named(self):
        with self.assertRaises(RuntimeError) as caught:
            session("rknn:rk3588?library=/nowhere/librknnrt.so")
        self.assertIn("/nowhere/librknnrt.so", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
