"""Memory of calls, callbacks and profiles: what onnxruntime and corelane share (see swap_test.py).

python swap_memory_test.py onnxruntime|corelane
"""
import importlib
import json
import sys
import tempfile
import threading
import unittest

import numpy as np

from python_support import relu_model

ENGINE = sys.argv.pop(1) if len(sys.argv) > 1 else "corelane"
ort = importlib.import_module(ENGINE)

X = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)


class SwapMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = ort.InferenceSession(relu_model(), providers=["CPUExecutionProvider"])

    def test_ort_values_in_and_out(self):
        (y,) = self.session.run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(X)})
        self.assertIsInstance(y, ort.OrtValue)
        np.testing.assert_array_equal(y.numpy(), np.maximum(X, 0))

    def test_ort_values_by_shape_and_type(self):
        value = ort.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
        value.update_inplace(X)
        np.testing.assert_array_equal(self.session.run(None, {"x": value})[0], np.maximum(X, 0))
        self.assertEqual((value.element_type(), value.shape(), value.is_tensor(), value.has_value()),
                         (1, [2, 4], True, True))

    def test_outputs_bound_to_ort_values(self):
        into = ort.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
        binding = self.session.io_binding()
        binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(X))
        binding.bind_ortvalue_output("y", into)
        self.session.run_with_iobinding(binding)
        np.testing.assert_array_equal(into.numpy(), np.maximum(X, 0))
        binding.clear_binding_outputs()
        binding.clear_binding_inputs()

    def call_back(self, feed, names=None, options=None):
        said, done = [], threading.Event()

        def callback(*arguments):
            said.append(arguments)
            done.set()

        self.session.run_async(names, feed, callback, 7, options)
        self.assertTrue(done.wait(30))
        return said[0]

    def test_run_async_calls_back(self):
        outputs, data, text = self.call_back({"x": X})
        np.testing.assert_array_equal(outputs[0], np.maximum(X, 0))
        self.assertEqual((data, text), (7, ""))

    def test_run_async_reports_wrong_shapes_by_callback(self):
        outputs, data, text = self.call_back({"x": X[0]})
        self.assertEqual((outputs, data), ([], 7))
        self.assertIn("Invalid rank for input: x Got: 1 Expected: 2", text)

    def test_run_async_reports_other_mistakes_by_callback(self):
        stopped = ort.RunOptions()
        stopped.terminate = True
        for arguments, said in ((({"x": X}, ["q"]), "Invalid output name:"),
                                (({"x": X, "z": X},), "Invalid input name: z"),
                                (({"x": X.astype(np.float64)},), "Actual: (tensor(double))"),
                                (({"x": X}, None, stopped), "terminate flag")):
            outputs, data, text = self.call_back(*arguments)
            self.assertEqual((outputs, data), ([], 7))
            self.assertIn(said, text)
            self.assertNotIn("[ONNXRuntimeError]", text)

    def test_run_async_raises_for_names_at_once(self):
        with self.assertRaises(ValueError):
            self.session.run_async(None, {"z": X}, print, None)

    def test_run_async_needs_user_data(self):
        with self.assertRaises(TypeError):
            self.session.run_async(None, {"x": X}, print)

    def test_binding(self):
        binding = self.session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")
        self.session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], np.maximum(X, 0))
        self.assertEqual(binding.get_outputs()[0].shape(), [2, 4])
        with self.assertRaises(RuntimeError):
            binding.bind_cpu_input("zz", X)

    def test_bound_arrays_are_read_at_each_run(self):
        binding, x = self.session.io_binding(), X.copy()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        x[:] = 9
        self.session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], x)

    def test_binding_writes_to_addresses(self):
        binding = self.session.io_binding()
        into = np.zeros_like(X)
        binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, into.shape, into.ctypes.data)
        self.session.run_with_iobinding(binding)
        np.testing.assert_array_equal(into, np.maximum(X, 0))

    def test_outputs_of_another_shape_or_type_are_left_alone(self):
        fixed = ort.InferenceSession(relu_model((2, 4)), providers=["CPUExecutionProvider"])
        for session in (self.session, fixed):
            for shape, kind in (([3, 4], np.float32), ([1, 4], np.float32), ([8], np.float32),
                                ([4, 2], np.float32), ([2, 4], np.float64), ([2, 4], np.int32)):
                into = np.full(shape, 7, kind)
                for raw in (False, True):
                    binding = session.io_binding()
                    binding.bind_cpu_input("x", X)
                    with self.subTest(shape=shape, kind=kind, raw=raw), self.assertRaises(RuntimeError):
                        if raw:
                            binding.bind_output("y", "cpu", 0, kind, shape, into.ctypes.data)
                        else:
                            binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(into))
                        session.run_with_iobinding(binding)
                    self.assertTrue((into == 7).all())

    def test_what_is_bound_is_what_comes_out(self):
        fixed = ort.InferenceSession(relu_model((2, 4)), providers=["CPUExecutionProvider"])
        for session in (self.session, fixed):
            into = np.zeros_like(X)
            binding = session.io_binding()
            binding.bind_cpu_input("x", X)
            binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(into))
            session.run_with_iobinding(binding)
            self.assertEqual(binding.get_outputs()[0].data_ptr(), into.ctypes.data)
            np.testing.assert_array_equal(into, np.maximum(X, 0))
            binding.bind_output("y")
            into[:] = 7
            session.run_with_iobinding(binding)
            self.assertTrue((into == 7).all())

    def test_binding_takes_no_arrays_for_values(self):
        binding = self.session.io_binding()
        for call in (lambda: binding.bind_ortvalue_input("x", X), lambda: binding.bind_cpu_input("x", None),
                     lambda: binding.bind_ortvalue_output("y", X)):
            with self.assertRaises((TypeError, AttributeError, RuntimeError)):
                call()

    def test_binding_of_another_session(self):
        other = ort.InferenceSession(relu_model(), providers=["CPUExecutionProvider"])
        with self.assertRaises(ValueError):
            self.session.run_with_iobinding(other.io_binding())

    def test_binding_without_outputs(self):
        binding = self.session.io_binding()
        binding.bind_cpu_input("x", X)
        with self.assertRaises(RuntimeError):
            self.session.run_with_iobinding(binding)

    def test_ort_value_shares_memory(self):
        array = X.copy()
        value = ort.OrtValue.ortvalue_from_numpy(array)
        array[0, 0] = 42
        self.assertEqual(value.numpy()[0, 0], 42)
        self.assertEqual((value.element_type(), value.data_type(), value.device_name(), value.shape(),
                          value.tensor_size_in_bytes()), (1, "tensor(float)", "cpu", [2, 4], 32))

    def test_end_profiling_when_off(self):
        self.assertEqual(self.session.end_profiling(), "")

    def test_values_are_updated_by_keyword(self):
        value = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
        value.update_inplace(data=X)
        np.testing.assert_array_equal(value.numpy(), X)
        self.assertIsNotNone(value._ortvalue)

    def test_each_profile_has_its_own_tasks(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ort.SessionOptions()
            options.enable_profiling = True
            options.profile_file_prefix = f"{folder}/p_"
            first, second = (ort.InferenceSession(relu_model(), options, providers=["CPUExecutionProvider"])
                             for _ in range(2))
            counts = []
            for session, calls in ((first, 3), (second, 5), (second, 2)):
                for _ in range(calls):
                    session.run(None, {"x": X})
            for session in (first, second):
                with open(session.end_profiling(), encoding="utf-8") as file:
                    events = json.load(file)
                runs = [e for e in events if e.get("name") == "model_run" or e["name"].startswith("task ")]
                counts.append(len(runs))
                self.assertEqual(session.end_profiling() if ENGINE == "corelane" else "", "")
        self.assertEqual(counts, [3, 7])


if __name__ == "__main__":
    unittest.main()
