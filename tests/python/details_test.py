"""Details that programs written for onnxruntime rely on, of both packages alike.

python details_test.py onnxruntime|corelane
"""
import gc
import glob
import importlib
import os
import sys
import tempfile
import unittest
import weakref

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

ENGINE = sys.argv.pop(1) if len(sys.argv) > 1 else "corelane"
ort = importlib.import_module(ENGINE)
OWN = ENGINE == "corelane"
X = np.array([[-1, 2, -3, 4]], np.float32)


def value(name, elem, shape):
    return helper.make_tensor_value_info(name, elem, shape)


def model(nodes, inputs, outputs, initializers=(), ir_version=8):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=ir_version)


def relu(rows="N", **given):
    return model([helper.make_node("Relu", ["x"], ["y"])], [value("x", T.FLOAT, ("N", 4))],
                 [value("y", T.FLOAT, (rows, 4))], **given)


def session(made, options=None):
    data = made if isinstance(made, bytes) else made.SerializeToString()
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


class Sizes(unittest.TestCase):
    """Sizes that a run decides, whatever the model declares."""

    def test_a_loop_may_make_no_round(self):
        nodes = [helper.make_node("Identity", ["c"], ["co"]), helper.make_node("Identity", ["i"], ["s"])]
        body = helper.make_graph(nodes, "b", [value("i", T.INT64, ()), value("c", T.BOOL, ())],
                                 [value("co", T.BOOL, ()), value("s", T.INT64, ())])
        for more in ([], [helper.make_node("Identity", ["r"], ["y"])]):
            loop = helper.make_node("Loop", ["n", ""], ["r" if more else "y"], body=body)
            made = session(model([loop, *more], [value("n", T.INT64, ())], [value("y", T.INT64, None)]))
            results = [made.run(None, {"n": np.array(n)})[0].tolist() for n in (3, 0, 2, 0)]
            self.assertEqual(results, [[0, 1, 2], [], [0, 1], []])

    def test_sizes_of_one_traced_run_are_not_believed(self):
        made = session(model([helper.make_node("NonZero", ["x"], ["y"])], [value("x", T.FLOAT, (1, 4))],
                             [value("y", T.INT64, (2, 4))]))
        for x, size in ((X, 4), (np.array([[1, 0, 3, 0]], np.float32), 2)):
            self.assertEqual(made.run(None, {"x": x})[0].shape, (2, size))

    def test_a_rank_that_an_output_declares_is_not_believed(self):
        for declared in ((), ("A",), ("A", "B")):
            with self.subTest(declared):
                made = session(model([helper.make_node("Squeeze", ["x"], ["y"])], [value("x", T.FLOAT, ("N", 1, "K"))],
                                     [value("y", T.FLOAT, declared)]))
                for given, expected in (((2, 1, 1), (2,)), ((1, 1, 1), ()), ((2, 1, 3), (2, 3))):
                    self.assertEqual(made.run(None, {"x": np.ones(given, np.float32)})[0].shape, expected)

    def test_dictionaries_of_classes_are_in_ascending_order(self):
        for attribute, labels in (("classlabels_int64s", [3, 1, 2, 0]), ("classlabels_strings", list("dbca"))):
            kind = T.INT64 if labels[0] == 3 else T.STRING
            rows = helper.make_sequence_type_proto(
                helper.make_map_type_proto(kind, helper.make_tensor_type_proto(T.FLOAT, ())))
            made = model([helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **{attribute: labels})],
                         [value("x", T.FLOAT, ("N", 4))], [helper.make_value_info("y", rows)])
            made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
            row = session(made).run(None, {"x": X})[0][0]
            self.assertEqual(list(row.items()), sorted(zip(labels, X[0].tolist())))


class Reached(unittest.TestCase):
    """What programs reach that onnxruntime does not document."""

    def test_the_inner_binding(self):
        inner = importlib.import_module(f"{ENGINE}.capi.onnxruntime_pybind11_state")
        device = inner.OrtDevice(inner.OrtDevice.cpu(), inner.OrtDevice.default_memory(), 0)
        made = session(relu())
        binding = made.io_binding()
        binding.bind_cpu_input("x", X)
        binding._iobinding.bind_output("y", device)
        made.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding._iobinding.get_outputs()[0].numpy(), [[0, 2, 0, 4]])
        alone = inner.SessionIOBinding(made._sess)
        alone.bind_input("x", X)
        alone.bind_output("y", device)
        made._sess.run_with_iobinding(alone, None)
        np.testing.assert_array_equal(alone.get_outputs()[0].numpy(), [[0, 2, 0, 4]])

    def test_names_that_programs_read(self):
        made = session(relu())
        self.assertEqual((made._inputs_meta[0].name, made._outputs_meta[0].name), ("x", "y"))
        self.assertEqual(dict(made._model_meta.custom_metadata_map), {})
        state = importlib.import_module(f"{ENGINE}.capi._pybind_state")
        for name in ("NotFound", "DeviceReset", "ModelLoadCanceled", "ModelRequiresCompilation", "Fail"):
            self.assertTrue(issubclass(getattr(state, name), Exception), name)

    def test_a_class_made_from_the_session_may_run_through_the_inner_one(self):
        class Named(ort.InferenceSession):
            def run(self, names, feed, options=None):
                return {"y": self._sess.run(names or ["y"], feed, options)[0]}

        made = Named(relu().SerializeToString(), providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(made.run(None, {"x": X})["y"], [[0, 2, 0, 4]])
        made.output_names = ["y"]
        self.assertEqual(made.output_names, ["y"])
        given = made.run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(X)})
        np.testing.assert_array_equal(given[0].numpy(), [[0, 2, 0, 4]])


class Models(unittest.TestCase):
    def test_a_wrong_batch_that_an_output_declares_is_not_believed(self):
        made = session(relu(rows=1))
        for rows in (1, 3):
            self.assertEqual(made.run(None, {"x": np.repeat(X, rows, 0)})[0].shape, (rows, 4))

    def test_an_output_without_a_type_gets_the_one_of_its_value(self):
        made = model([helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Neg", ["h"], ["y"])],
                     [value("x", T.FLOAT, ("N", 4))], [value("y", T.FLOAT, ("N", 4))])
        made.graph.output.append(onnx.ValueInfoProto(name="h"))
        given = session(made)
        self.assertEqual([o.type for o in given.get_outputs()], ["tensor(float)"] * 2)
        np.testing.assert_array_equal(given.run(["h"], {"x": X})[0], [[0, 2, 0, 4]])

    def test_an_initializer_is_overridden_in_the_model_that_was_loaded(self):
        def made(op):
            return model([helper.make_node(op, ["x", "b"], ["y"])],
                         [value("x", T.FLOAT, ("N", 4)), value("b", T.FLOAT, (4,))], [value("y", T.FLOAT, ("N", 4))],
                         [onnx.numpy_helper.from_array(np.zeros(4, np.float32), "b")])

        feed = {"x": X, "b": np.full(4, 10, np.float32)}
        with tempfile.TemporaryDirectory() as folder:
            path, other = os.path.join(folder, "m.onnx"), os.path.join(folder, "other.onnx")
            onnx.save(made("Add"), path)
            loaded = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
            written = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
            onnx.save(made("Mul"), other)
            os.replace(other, path)
            np.testing.assert_array_equal(loaded.run(None, feed)[0], X + 10)
        np.testing.assert_array_equal(written.run(None, feed)[0], X + 10)

    def test_texts_that_are_not_utf8_keep_no_model_from_running(self):
        made = relu()
        made.doc_string = made.graph.doc_string = made.producer_name = "QQ"
        helper.set_model_props(made, {"key": "QQ"})
        given = session(made.SerializeToString().replace(b"QQ", b"\xc4\xe3"))
        np.testing.assert_array_equal(given.run(None, {"x": X})[0], [[0, 2, 0, 4]])


class Feeds(unittest.TestCase):
    def setUp(self):
        self.same = session(model([helper.make_node("Identity", ["x"], ["y"])], [value("x", T.STRING, ("N",))],
                                  [value("y", T.STRING, ("N",))]))

    def test_lists_for_strings_are_taken_as_they_are(self):
        for given, expected in (([], []), (["a\0", "b"], ["a\0", "b"]), ([1, 2], ["1", "2"])):
            self.assertEqual(self.same.run(None, {"x": given})[0].tolist(), expected)

    def test_memory_of_a_capsule_can_be_written(self):
        results = np.zeros((1, 4), np.float32)
        held = ort.OrtValue.from_dlpack(results.__dlpack__())
        made = session(relu())
        binding = made.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_ortvalue_output("y", held)
        made.run_with_iobinding(binding)
        np.testing.assert_array_equal(results, [[0, 2, 0, 4]])

    def test_an_ortvalue_takes_an_array_of_another_shape_and_the_same_size(self):
        held = ort.OrtValue.ortvalue_from_numpy(X.copy())
        held.update_inplace(np.arange(4, dtype=np.float32))
        np.testing.assert_array_equal(held.numpy(), [[0, 1, 2, 3]])


class Failures(unittest.TestCase):
    def test_a_node_that_fails_on_the_data_can_be_caught_by_the_usual_classes(self):
        product = session(model([helper.make_node("MatMul", ["x", "z"], ["y"])],
                                [value("x", T.FLOAT, ("N", 4)), value("z", T.FLOAT, ("A", "B"))],
                                [value("y", T.FLOAT, (None, None))]))
        errors = ort.capi.onnxruntime_pybind11_state
        with self.assertRaises((errors.Fail, errors.InvalidArgument)):
            product.run(None, {"x": X, "z": np.zeros((3, 2), np.float32)})


class Options(unittest.TestCase):
    def test_a_session_has_its_own_copy(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ort.SessionOptions()
            options.enable_profiling = True
            options.profile_file_prefix = os.path.join(folder, "first")
            first = session(relu(), options)
            options.profile_file_prefix = os.path.join(folder, "second")
            second = session(relu(), options)
            names = [os.path.basename(s.end_profiling()) for s in (first, second)]
            self.assertTrue(names[0].startswith("first_"), names)
            self.assertTrue(names[1].startswith("second_"), names)
            first.get_session_options().log_severity_level = 3
            self.assertEqual(options.log_severity_level, -1)

    def test_a_profile_is_written_when_its_session_goes(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ort.SessionOptions()
            options.enable_profiling = True
            options.profile_file_prefix = os.path.join(folder, "p")
            made = session(relu(), options)
            made.run(None, {"x": X})
            del made
            gc.collect()
            self.assertEqual(len(glob.glob(os.path.join(folder, "p_*.json"))), 1)

    def test_a_profile_that_cannot_be_written_ends_all_the_same(self):
        if ort.__name__ != "corelane":
            self.skipTest("onnxruntime returns the name of a file that is not there")
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(os.sep, "no", "such", "folder", "p")
        made = session(relu(), options)
        made.run(None, {"x": X})
        with self.assertRaisesRegex(ort.capi.onnxruntime_pybind11_state.Fail, "profile_file_prefix"):
            made.end_profiling()
        self.assertEqual(made.end_profiling(), "")
        recorded = len(made.read_trace())
        made.run(None, {"x": X})
        self.assertEqual(len(made.read_trace()), recorded)

    def test_numbers_that_have_names_read_as_them(self):
        self.assertEqual(str(ort.GraphOptimizationLevel.ORT_ENABLE_ALL), "GraphOptimizationLevel.ORT_ENABLE_ALL")
        self.assertEqual(f"{ort.ExecutionMode.ORT_PARALLEL}", "ExecutionMode.ORT_PARALLEL")

    def test_whatever_is_true_or_false_sets_a_switch(self):
        options = ort.SessionOptions()
        for given, expected in ((None, False), (1.0, True), (np.int64(1), True)):
            options.enable_profiling = given
            self.assertIs(options.enable_profiling, expected)

    def test_the_long_names_are_there(self):
        self.assertIs(ort.capi.onnxruntime_inference_collection.OrtValue, ort.OrtValue)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            onnx.save(relu(), path)
            self.assertEqual(ort.InferenceSession(path, providers=["CPUExecutionProvider"])._model_path, path)


class Life(unittest.TestCase):
    def overriding(self):
        weights = helper.make_tensor("w", T.FLOAT, (4,), [1, 2, 3, 4])
        return session(model([helper.make_node("Mul", ["x", "w"], ["y"])],
                             [value("x", T.FLOAT, ("N", 4)), value("w", T.FLOAT, (4,))],
                             [value("y", T.FLOAT, ("N", 4))], [weights], 4))

    def test_a_session_with_initializers_to_override_goes_with_its_last_name(self):
        gc.collect()
        gc.disable()
        try:
            made = self.overriding()
            seen = weakref.ref(made)
            del made
            self.assertIsNone(seen())
        finally:
            gc.enable()

    @unittest.skipUnless(OWN, "of corelane alone")
    def test_a_closed_session_overrides_nothing(self):
        made = self.overriding()
        made.close()
        with self.assertRaisesRegex(RuntimeError, "closed"):
            made.run(None, {"x": X, "w": np.ones(4, np.float32)})


if __name__ == "__main__":
    unittest.main()
