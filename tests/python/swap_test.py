"""Behaviour that onnxruntime and corelane share: one file, run once with each.

python swap_test.py onnxruntime|corelane

DIFFERENCES lists what is meant to differ, with the reason; a test named there runs with onnxruntime
only.
"""
import collections
import contextlib
import copy
import importlib
import io
import os
import sys
import tempfile
import threading
import types
import unittest
import warnings

import numpy as np
import onnx

from python_support import model_of, relu_model

ENGINE = sys.argv.pop(1) if len(sys.argv) > 1 else "corelane"
ort = importlib.import_module(ENGINE)
state = importlib.import_module(f"{ENGINE}.capi.onnxruntime_pybind11_state")

DIFFERENCES = {
    "test_bytearray_is_refused": "buffers of bytes are accepted",
    "test_feed_must_be_a_dict": "lists in order and single arrays are accepted",
    "test_exceptions_derive_from_exception_only": "Corelane's are RuntimeErrors too, for code of RKNN users",
    "test_one_thread_session_refuses_run_async": "the threads that run tasks are the device's",
}

X = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)


class Swap(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = ort.InferenceSession(relu_model(), providers=["CPUExecutionProvider"])

    def setUp(self):
        if ENGINE != "onnxruntime" and self._testMethodName in DIFFERENCES:
            self.skipTest(DIFFERENCES[self._testMethodName])

    def refused(self, kind, text, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(text, str(caught.exception))

    def run_with(self, feed, names=None):
        return lambda: self.session.run(names, feed)

    def test_run_gives_the_outputs(self):
        (y,) = self.session.run(None, {"x": X})
        np.testing.assert_array_equal(y, np.maximum(X, 0))
        self.assertEqual(y.dtype, np.float32)
        self.assertTrue(y.flags.writeable)

    def test_empty_list_of_outputs_means_all(self):
        self.assertEqual(len(self.session.run([], {"x": X})), 1)

    def test_outputs_may_repeat(self):
        self.assertEqual(len(self.session.run(["y", "y"], {"x": X})), 2)

    def test_missing_input_names_required_and_given(self):
        self.refused(ValueError, "Required inputs (['x']) are missing from input feed (['z']).",
                     self.run_with({"z": X}))

    def test_extra_input(self):
        self.refused(state.InvalidArgument,
                     "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid input name: z",
                     self.run_with({"x": X, "z": X}))

    def test_wrong_rank(self):
        self.refused(state.InvalidArgument, "Invalid rank for input: x Got: 1 Expected: 2",
                     self.run_with({"x": X[0]}))

    def test_wrong_dimension(self):
        self.refused(state.InvalidArgument, "index: 1 Got: 5 Expected: 4",
                     self.run_with({"x": np.ones((2, 5), np.float32)}))

    def test_wrong_type(self):
        self.refused(state.InvalidArgument, "Actual: (tensor(double)) , expected: (tensor(float))",
                     self.run_with({"x": X.astype(np.float64)}))

    def test_unknown_output(self):
        self.refused(state.InvalidArgument, "Invalid output name:q", self.run_with({"x": X}, ["q"]))

    def test_output_names_as_str(self):
        with self.assertRaises(TypeError):
            self.session.run("y", {"x": X})

    def test_no_such_file(self):
        self.refused(state.NoSuchFile, "NO_SUCHFILE", lambda: ort.InferenceSession("nope.onnx"))

    def test_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(state.InvalidProtobuf, f"Load model from {folder} failed",
                         lambda: ort.InferenceSession(folder))

    def test_an_empty_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "empty.onnx")
            open(path, "wb").close()
            self.refused(state.InvalidArgument, f"Load model from {path} failed:No graph was found in the protobuf.",
                         lambda: ort.InferenceSession(path))

    def test_bad_bytes(self):
        self.refused(state.InvalidProtobuf, "INVALID_PROTOBUF", lambda: ort.InferenceSession(b"garbage"))

    def model_with(self, nodes, weights=()):
        x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [3]) for n in ("x", "y"))
        graph = onnx.helper.make_graph([onnx.helper.make_node(*node) for node in nodes], "g", [x], [y], weights)
        opset = onnx.helper.make_opsetid("", 17)
        return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()

    def test_a_model_whose_graph_is_at_fault(self):
        for nodes in ([("Relu", ["x"], ["y"]), ("Abs", ["x"], ["y"])], [("Relu", ["x"], ["z"])],
                      [("Add", ["x", "b"], ["a"]), ("Relu", ["a"], ["b"]), ("Relu", ["b"], ["y"])]):
            model = self.model_with(nodes)
            self.refused(state.Fail, "FAIL", lambda m=model: ort.InferenceSession(m))

    def test_the_last_of_two_initializers_of_one_name_counts(self):
        weights = [onnx.numpy_helper.from_array(np.array(w, np.float32), "w") for w in ([1, 2, 3], [4, 5, 6])]
        session = ort.InferenceSession(self.model_with([("Add", ["x", "w"], ["y"])], weights))
        (y,) = session.run(None, {"x": np.zeros(3, np.float32)})
        np.testing.assert_array_equal(y, [4, 5, 6])

    def test_empty_bytes(self):
        with self.assertRaises(state.InvalidArgument):
            ort.InferenceSession(b"")

    def test_bytearray_is_refused(self):
        with self.assertRaises(TypeError):
            ort.InferenceSession(bytearray(relu_model()))

    def test_model_of_another_type(self):
        with self.assertRaises(TypeError):
            ort.InferenceSession(3)

    def test_feed_must_be_a_dict(self):
        with self.assertRaises(AttributeError):
            self.session.run(None, [X])

    def test_feed_takes_ort_values_and_lists(self):
        value = ort.OrtValue.ortvalue_from_numpy(X)
        np.testing.assert_array_equal(self.session.run(None, {"x": value})[0], np.maximum(X, 0))
        np.testing.assert_array_equal(self.session.run(None, {"x": [[-1, 2, -3, 4]]})[0], [[0, 2, 0, 4]])

    def test_strides_are_followed(self):
        wide = np.arange(-8, 8, dtype=np.float32).reshape(2, 8)[:, ::2]
        np.testing.assert_array_equal(self.session.run(None, {"x": wide})[0], np.maximum(wide, 0))

    def test_unknown_provider_warns_and_falls_back(self):
        with self.assertWarns(UserWarning):
            session = ort.InferenceSession(relu_model(), providers=["Nope", "CPUExecutionProvider"])
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])

    def test_none_in_a_feed_is_no_value(self):
        model = model_of([onnx.helper.make_node("Mul", ["x", "w"], ["y"])], [("x", ("N", 4)), ("w", (4,))],
                         [("y", ("N", 4))], initializer=[onnx.helper.make_tensor("w", 1, (4,), [1, 2, 3, 4])])
        session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        for feed in ({"x": X, "w": None}, {"x": X, "token_type_ids": None}, {"x": X, "w": np.arange(1, 5, dtype="f4")}):
            np.testing.assert_array_equal(session.run(None, feed)[0], X * [1, 2, 3, 4])
            np.testing.assert_array_equal(self.called_back(session, feed)[0][0], X * [1, 2, 3, 4])
        with self.assertRaises((state.Fail, state.InvalidArgument)):
            session.run(None, {"x": None})
        self.assertEqual(self.called_back(session, {"x": None})[0], [])

    def called_back(self, session, feed):
        """(outputs, user_data, error)"""
        entries, called = [], threading.Event()
        session.run_async(None, feed, lambda *entry: (entries.append(entry), called.set()), None)
        self.assertTrue(called.wait(60))
        return entries[0]

    def test_providers_of_other_builds_can_be_set(self):
        session = ort.InferenceSession(relu_model(), providers=["CPUExecutionProvider"])
        with self.assertWarns(UserWarning):
            session.set_providers(["CUDAExecutionProvider", "CPUExecutionProvider"])
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], np.maximum(X, 0))

    def test_providers_in_a_tuple(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for providers in (("CPUExecutionProvider",), (("CPUExecutionProvider", {}),)):
                session = ort.InferenceSession(relu_model(), providers=providers)
                self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])

    def test_names_of_outputs_may_come_from_an_iterator(self):
        for names in ((name for name in ["y"]), {"y": 1}.keys()):
            np.testing.assert_array_equal(self.session.run(names, {"x": X})[0], np.maximum(X, 0))
        np.testing.assert_array_equal(self.session.run(np.array(["y"]), {"x": X})[0], np.maximum(X, 0))
        self.refused(state.InvalidArgument, "Invalid output name:q",
                     self.run_with({"x": X}, (name for name in ["q"])))

    def test_a_copy_takes_the_bindings_of_its_session(self):
        binding = self.session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")
        copy.copy(self.session).run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], np.maximum(X, 0))

    def test_a_model_without_a_producer_has_none(self):
        model = onnx.load_from_string(relu_model())
        model.producer_name, model.producer_version = "", "9"
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        self.assertEqual(session.get_modelmeta().producer_name, "")

    def test_dimensions_without_a_denotation_have_none(self):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_denotation("", 1)
        session = ort.InferenceSession(relu_model(), options, providers=["CPUExecutionProvider"])
        self.assertEqual(session.get_inputs()[0].shape, ["N", 4])

    def test_halves_of_characters_and_numbers_that_do_not_fit_are_of_another_type(self):
        options = ort.SessionOptions()
        for call in (self.run_with({"x": X}, ["\ud800"]), self.run_with({"x": X, "\ud800": X}),
                     lambda: options.add_free_dimension_override_by_name("N", 2**63),
                     lambda: options.add_free_dimension_override_by_name("\ud800", 2),
                     lambda: options.add_external_initializers_from_files_in_memory(["f"], [b"abcd"], [-2])):
            with self.assertRaises(TypeError):
                call()

    def test_unknown_keywords_are_ignored(self):
        ort.InferenceSession(relu_model(), providers=["CPUExecutionProvider"], foo=1)

    def test_terminate(self):
        options = ort.RunOptions()
        options.terminate = True
        self.refused(state.Fail, "[ONNXRuntimeError] : 1 : FAIL : Exiting due to terminate flag",
                     lambda: self.session.run(None, {"x": X}, options))
        options.terminate = False
        self.session.run(None, {"x": X}, options)

    def test_absent_config_entries(self):
        with self.assertRaises(RuntimeError):
            ort.RunOptions().get_run_config_entry("a")
        with self.assertRaises(RuntimeError):
            ort.SessionOptions().get_session_config_entry("a")

    def test_session_options_are_typed(self):
        options = ort.SessionOptions()
        self.assertEqual(options.intra_op_num_threads, 0)
        self.assertEqual(options.graph_optimization_level, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
        with self.assertRaises(TypeError):
            options.intra_op_num_threads = "a"
        with self.assertRaises(AttributeError):
            options.foo = 1

    def test_descriptions(self):
        (x,) = self.session.get_inputs()
        self.assertEqual((x.name, x.shape, x.type), ("x", ["N", 4], "tensor(float)"))
        meta = self.session.get_modelmeta()
        self.assertEqual((meta.graph_name, meta.producer_name, meta.custom_metadata_map), ("g", "p", {}))
        self.assertEqual((meta.version, meta.domain, meta.description, meta.graph_description),
                         (9223372036854775807, "", "", ""))

    def test_metadata_of_a_model_that_has_all_of_it(self):
        model = onnx.load_from_string(relu_model())
        model.producer_name, model.producer_version, model.domain = "maker", "1.2", "ai.test"
        model.doc_string, model.graph.doc_string, model.model_version = "a model", "a graph", 7
        entry = model.metadata_props.add()
        entry.key, entry.value = "stride", "32"
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        meta = session.get_modelmeta()
        self.assertEqual((meta.producer_name, meta.domain, meta.version, meta.description,
                          meta.graph_description, meta.graph_name, meta.custom_metadata_map),
                         ("maker", "ai.test", 7, "a model", "a graph", "g", {"stride": "32"}))

    def test_options_lists_of_unequal_length_fall_back(self):
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            session = ort.InferenceSession(relu_model(), providers=["CPUExecutionProvider"],
                                           provider_options=[{}, {}])
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        self.assertEqual(session.get_provider_options(), {"CPUExecutionProvider": {}})

    def test_run_options_are_typed(self):
        options = ort.RunOptions()
        self.assertEqual((options.terminate, options.log_severity_level, options.logid), (False, -1, ""))
        with self.assertRaises(TypeError):
            options.log_severity_level = "a"
        options.add_run_config_entry("a", "b")
        self.assertEqual(options.get_run_config_entry("a"), "b")

    def test_session_options_are_kept(self):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 3
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        session = ort.InferenceSession(relu_model(), options, providers=["CPUExecutionProvider"])
        self.assertEqual(session.get_session_options().intra_op_num_threads, 3)
        self.assertEqual(options.get_session_config_entry("session.set_denormal_as_zero"), "1")
        np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], np.maximum(X, 0))

    def test_functions_are_found_in_capi_too(self):
        for name in ("get_available_providers", "get_device", "set_default_logger_severity"):
            self.assertTrue(callable(getattr(state, name)), name)
        self.assertEqual(state.get_available_providers(), ort.get_available_providers())
        with self.assertRaises(AttributeError):
            state.nothing_of_that_name

    def test_nodes_are_readable(self):
        self.assertIn("tensor(float)", str(self.session.get_inputs()[0]))
        self.assertEqual([n.name for n in self.session.get_outputs()], ["y"])

    def test_fixed_dimensions(self):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("N", 2)
        session = ort.InferenceSession(relu_model(), options, providers=["CPUExecutionProvider"])
        self.assertEqual(session.get_inputs()[0].shape, [2, 4])

    def test_fixed_dimensions_that_no_input_has_are_left_out(self):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("Q", 1)
        options.add_free_dimension_override_by_name("N", 2)
        options.add_free_dimension_override_by_name("R", 1)
        session = ort.InferenceSession(relu_model(), options, providers=["CPUExecutionProvider"])
        self.assertEqual(session.get_inputs()[0].shape, [2, 4])

    def test_nodes_cannot_be_changed(self):
        (x,) = self.session.get_inputs()
        with self.assertRaises(AttributeError):
            x.name = "q"
        x.shape.append(3)
        self.assertEqual(self.session.get_inputs()[0].shape, ["N", 4])

    def test_lists_that_do_not_fit(self):
        self.refused(state.InvalidArgument, "index: 1 Got: 3 Expected: 4", self.run_with({"x": [[1, 2, 3]]}))
        for value in ([[1, 2], [3]], [["a"] * 4]):
            self.refused(RuntimeError, "Could not create tensor from given input list",
                         self.run_with({"x": value}))

    def test_scalars_are_lists_of_one(self):
        session = ort.InferenceSession(relu_model(()), providers=["CPUExecutionProvider"])
        self.assertEqual(session.run(None, {"x": [5.0]})[0].item(), 5)

    def test_strings_are_of_another_type(self):
        for value in (np.array([["a"] * 4]), np.array([["a"] * 4], object)):
            self.refused(state.InvalidArgument,
                         "Actual: (tensor(string)) , expected: (tensor(float))", self.run_with({"x": value}))

    def test_mappings_of_any_class(self):
        class Encoding(collections.UserDict):  # As transformers' BatchEncoding.
            pass

        for feed in (collections.UserDict(x=X), types.MappingProxyType({"x": X}), Encoding(x=X),
                     collections.ChainMap({"x": X})):
            np.testing.assert_array_equal(self.session.run(None, feed)[0], np.maximum(X, 0))
        self.refused(ValueError, "Required inputs (['x']) are missing",
                     self.run_with(collections.UserDict(z=X)))

    def test_no_feed_at_all(self):
        with self.assertRaises((TypeError, AttributeError)):
            self.session.run(None, None)

    def test_one_thread_session_refuses_run_async(self):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        with self.assertRaises(state.InvalidArgument):
            ort.InferenceSession(relu_model(), options).run_async(None, {"x": X}, print, None)

    def test_logger_severity(self):
        ort.set_default_logger_severity(3)
        with self.assertRaises(RuntimeError):
            ort.set_default_logger_severity(9)
        with self.assertRaises(TypeError):
            ort.set_default_logger_severity(2.0)

    def test_exceptions_derive_from_exception_only(self):
        self.assertFalse(issubclass(state.Fail, RuntimeError))


class Differences(unittest.TestCase):
    def test_each_is_a_test(self):
        for name in DIFFERENCES:
            self.assertTrue(hasattr(Swap, name), name)

    @unittest.skipIf(ENGINE == "onnxruntime", "only Corelane has it")
    def test_a_folder_is_named_as_such(self):
        for kind, make in ((state.InvalidProtobuf, ort.InferenceSession), (state.NoSuchFile, ort.compile)):
            with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(kind, "it is a folder, not a file"):
                make(folder)
            with self.assertRaisesRegex(kind, "it is not a regular file"):
                make("/dev/null")

    @unittest.skipIf(ENGINE == "onnxruntime", "only Corelane has it")
    def test_ours(self):
        session = ort.InferenceSession(bytearray(relu_model()))
        np.testing.assert_array_equal(session.run(None, [X])[0], np.maximum(X, 0))
        np.testing.assert_array_equal(session.run(None, X)[0], np.maximum(X, 0))
        self.assertTrue(issubclass(state.Fail, RuntimeError))

    @unittest.skipIf(ENGINE == "onnxruntime", "onnxruntime misreads it")
    def test_other_byte_orders_are_refused(self):
        session = ort.InferenceSession(relu_model())
        with self.assertRaises(RuntimeError):
            session.run(None, {"x": X.astype(">f4")})


if __name__ == "__main__":
    unittest.main()
