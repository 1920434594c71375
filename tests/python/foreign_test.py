"""Objects of the real onnxruntime where one of Corelane's is meant, and options that nobody can mean."""
import gc
import unittest

import numpy as np
import onnxruntime as real
from onnx import helper, numpy_helper

import corelane as ort
from corelane._ort.settings import RUN_ENTRIES
from python_support import NPU, Callbacks, X, Y, model_of, relu_model, session


class Foreign(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.strict = ort.InferenceSession(relu_model((1, 4)))
        cls.lenient = session("virtual:rk3588")

    def test_run_options_are_read(self):
        options = real.RunOptions()
        for made in (self.strict, self.lenient):
            np.testing.assert_array_equal(made.run(None, {"x": X}, options)[0], Y)
        options.add_run_config_entry("ztu_modelrt_dispatch_batch", "true")
        rows = np.concatenate([X, -X, X])
        np.testing.assert_array_equal(self.lenient.run(None, {"x": rows}, options)[0], np.maximum(rows, 0))
        options = real.RunOptions()
        options.add_run_config_entry("corelane.priority", "many")
        with self.assertRaises(RuntimeError) as caught:
            self.strict.run(None, {"x": X}, options)
        self.assertIn("corelane.priority", str(caught.exception))

    def test_termination_by_run_options(self):
        options = real.RunOptions()
        options.terminate = True
        for call in (lambda: self.strict.run(None, {"x": X}, options),
                     lambda: self.lenient.submit(None, {"x": X}, options).result(),
                     lambda: self.lenient.run_async(None, {"x": X}, print, None, options)):
            with self.assertRaises(RuntimeError):
                call()

    def test_session_options_are_read(self):
        options = real.SessionOptions()
        options.intra_op_num_threads = 3
        options.graph_optimization_level = real.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.execution_mode = real.ExecutionMode.ORT_PARALLEL
        options.logid = "name"
        options.add_session_config_entry("corelane.device", "null:generic:4")
        made = ort.InferenceSession(relu_model(), options)
        kept = made.get_session_options()
        self.assertEqual(made.device()["cores"], 4)
        self.assertEqual((kept.intra_op_num_threads, kept.logid), (3, "name"))
        self.assertIs(kept.graph_optimization_level, ort.GraphOptimizationLevel.ORT_ENABLE_BASIC)
        self.assertIs(kept.execution_mode, ort.ExecutionMode.ORT_PARALLEL)
        with self.assertRaises(TypeError):
            ort.InferenceSession(relu_model(), object())

    def test_enumerations_are_taken_by_name(self):
        options = ort.SessionOptions()
        options.graph_optimization_level = real.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.assertIs(options.graph_optimization_level, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
        with self.assertRaises(TypeError):
            options.graph_optimization_level = real.ExecutionMode.ORT_PARALLEL

    def test_values_are_read_where_they_lie(self):
        given = X.copy()
        value = real.OrtValue.ortvalue_from_numpy(given)
        for feed in ({"x": value}, {"x": value._ortvalue}):
            np.testing.assert_array_equal(self.strict.run(None, feed)[0], Y)
            np.testing.assert_array_equal(self.strict.run_with_ort_values(None, feed)[0].numpy(), Y)
        binding = self.strict.io_binding()
        binding.bind_ortvalue_input("x", value)
        target = real.OrtValue.ortvalue_from_shape_and_type([1, 4], np.float32)
        binding.bind_ortvalue_output("y", target)
        self.strict.run_with_iobinding(binding)
        np.testing.assert_array_equal(target.numpy(), Y)
        given[:] = 9
        self.strict.run_with_iobinding(binding)
        np.testing.assert_array_equal(target.numpy(), given)
        with self.assertRaises(TypeError):
            binding.bind_ortvalue_input("x", object())

    def test_values_live_as_long_as_they_are_bound(self):
        binding = self.lenient.io_binding()
        binding.bind_ortvalue_input("x", real.OrtValue.ortvalue_from_numpy(X.copy()))
        binding.bind_output("y")
        gc.collect()
        self.lenient.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y)

    def test_initializers(self):
        model = model_of([helper.make_node("Mul", ["x", "W"], ["y"])], [("x", (4,))], [("y", (4,))],
                         initializer=[numpy_helper.from_array(np.ones(4, np.float32), "W")])
        options = ort.SessionOptions()
        options.add_initializer("W", real.OrtValue.ortvalue_from_numpy(X[0].copy()))
        made = ort.InferenceSession(model, options)
        np.testing.assert_array_equal(made.run(None, {"x": X[0]})[0], X[0] * X[0])


class Options(unittest.TestCase):
    def test_user_data_is_optional_with_an_rknn_provider(self):
        calls = Callbacks()
        session("virtual:rk3588").run_async(None, {"x": X}, calls)
        self.assertTrue(calls.wait(1))
        self.assertEqual((calls.entries[0][1], calls.entries[0][2]), (None, ""))
        with self.assertRaises(TypeError) as caught:
            ort.InferenceSession(relu_model()).run_async(None, {"x": X}, calls)
        self.assertIn("user_data", str(caught.exception))

    def test_misspelt_run_options_are_refused(self):
        strict, lenient = ort.InferenceSession(relu_model((1, 4))), session("virtual:rk3588")
        for key in ("corelane.timeout", "ztu_modelrt_dispatch_bach", "corelane.priorty"):
            for refused in (lambda: ort.RunOptions().add_run_config_entry(key, "1"),
                            lambda: strict.run(None, {"x": X}, {key: 1}),
                            lambda: lenient.run_async(None, {"x": X}, print, run_options={key: 1})):
                with self.assertRaises(RuntimeError) as caught:
                    refused()
                for name in (key, *RUN_ENTRIES):
                    self.assertIn(name, str(caught.exception))
        options = ort.RunOptions()
        options.add_run_config_entry("timeout_ms", "1")
        with self.assertRaises(RuntimeError) as caught:
            lenient.run(None, {"x": X}, options)
        self.assertIn("unknown run option 'timeout_ms'", str(caught.exception))
        strict.run(None, {"x": X}, options)  # onnxruntime takes any.
        for value in ("maybe", "2"):
            with self.assertRaises(RuntimeError):
                options.add_run_config_entry("ztu_modelrt_dispatch_batch", value)

    def test_entries_of_onnxruntime_are_taken(self):
        lenient = session("virtual:rk3588")
        for key in ("memory.enable_memory_arena_shrinkage", "gpu_graph_id",
                    "disable_synchronize_execution_providers", "qnn.htp_perf_mode"):
            lenient.run(None, {"x": X}, {key: "1", "ztu_modelrt_dispatch_batch": None})

    def test_one_thing_by_two_names_is_refused(self):
        made = session("null:rk3588")
        with self.assertRaises(TypeError) as caught:
            ort.InferenceSession(relu_model(), weights_from=made, use_weight_from=made)
        self.assertIn("two names", str(caught.exception))
        options = ort.SessionOptions()
        options.add_session_config_entry("corelane.device", "null:rk3588")
        with self.assertRaises(RuntimeError) as caught:
            ort.InferenceSession(relu_model(), options, [(NPU, {"device": "null:rk3566"})])
        self.assertIn("device is given by SessionOptions and by the provider's options", str(caught.exception))
        options = ort.SessionOptions()
        options.add_custom_operator("Mine", print)
        with self.assertRaises(RuntimeError):
            ort.InferenceSession(relu_model(), options, [(NPU, {"custom_operators": {"Mine": print}})])


if __name__ == "__main__":
    unittest.main()
