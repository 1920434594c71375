"""Strings, sequences, maps, optionals, inputs without a rank and overridden initializers: what onnxruntime takes
and gives, and what corelane does beside.

python values_test.py onnxruntime|corelane
"""
import importlib
import sys
import threading
import unittest

import numpy as np
from onnx import TensorProto as T
from onnx import helper

ENGINE = sys.argv.pop(1) if len(sys.argv) > 1 else "corelane"
ort = importlib.import_module(ENGINE)
OWN = ENGINE == "corelane"

TEXTS = helper.make_tensor_value_info("s", T.STRING, ["n", 2])
FLOATS = helper.make_tensor_type_proto(T.FLOAT, [2])


def session(node, inputs, outputs, initializers=(), ir_version=10):
    graph = helper.make_graph([node], "g", inputs, outputs, list(initializers))
    sets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=ir_version)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def same(value):
    """A session of y = x."""
    out = type(value)()
    out.CopyFrom(value)
    out.name = "y"
    return session(helper.make_node("Identity", [value.name], ["y"]), [value], [out])


def texts():
    return same(TEXTS)


def described(node):
    return node.name, node.type, node.shape


class Strings(unittest.TestCase):
    def test_types_and_shapes_are_onnxruntimes(self):
        self.assertEqual(described(texts().get_inputs()[0]), ("s", "tensor(string)", ["n", 2]))
        self.assertEqual(described(texts().get_outputs()[0]), ("y", "tensor(string)", ["n", 2]))

    def test_arrays_of_every_kind_come_back_as_objects(self):
        for given, expected in [(np.array([["a", "b\0c"]], object), ["a", "b\0c"]),
                                (np.array([["a", "b\u00e9"]]), ["a", "b\u00e9"]),
                                (np.array([[1, None]], object), ["1", "None"]),
                                ([["", "b"]], ["", "b"])]:
            (y,) = texts().run(None, {"s": given})
            self.assertEqual(y.dtype, object)
            self.assertEqual(y.shape, (1, 2))
            self.assertEqual(y[0].tolist(), expected)

    @unittest.skipUnless(OWN, "onnxruntime reads on after the end of such elements")
    def test_arrays_of_bytes_are_strings(self):
        self.assertEqual(texts().run(None, {"s": np.array([[b"a", b"bc"]])})[0].tolist(), [["a", "bc"]])

    def test_no_rows_are_an_array_without_elements(self):
        (y,) = texts().run(None, {"s": np.empty((0, 2), object)})
        self.assertEqual((y.dtype, y.shape), (np.dtype(object), (0, 2)))

    def test_other_types_and_shapes_are_refused_in_onnxruntimes_words(self):
        for given, words in [(np.zeros((1, 2), np.float32),
                              "Unexpected input data type. Actual: (tensor(float)) , expected: (tensor(string))"),
                             (np.array(["a"]), "Invalid rank for input: s Got: 1 Expected: 2"),
                             (np.array([["a"]]), "Got invalid dimensions for input: s")]:
            with self.assertRaises(Exception) as caught:
                texts().run(None, {"s": given})
            self.assertIn(words, str(caught.exception))

    def test_bytes_that_are_no_utf8_are_refused_on_the_way_out(self):
        with self.assertRaises(UnicodeDecodeError):
            texts().run(None, {"s": np.array([[b"\xff", b"a"]])})

    def test_asynchronous_calls_give_the_same(self):
        done, results = threading.Event(), []

        def callback(outputs, data, problem):
            results.append((outputs, data, problem))
            done.set()

        opened = texts()
        opened.run_async(None, {"s": np.array([["a", "b"]])}, callback, 7)
        self.assertTrue(done.wait(30))
        self.assertEqual((results[0][0][0].tolist(), results[0][1:]), ([["a", "b"]], (7, "")))

    @unittest.skipUnless(OWN, "onnxruntime makes no values of strings")
    def test_values_hold_strings(self):
        value = ort.OrtValue.ortvalue_from_numpy(np.array([["a", "b"]], object))
        self.assertEqual((value.data_type(), value.element_type(), value.shape()), ("tensor(string)", 8, [1, 2]))
        (y,) = texts().run_with_ort_values(None, {"s": value})
        self.assertEqual(y.numpy().tolist(), [["a", "b"]])

    @unittest.skipUnless(OWN, "onnxruntime binds no strings")
    def test_a_binding_reads_and_gives_strings(self):
        opened = texts()
        binding = opened.io_binding()
        binding.bind_cpu_input("s", np.array([["a", "b"]], object))
        binding.bind_output("y", "cpu")
        opened.run_with_iobinding(binding)
        self.assertEqual(binding.copy_outputs_to_cpu()[0].tolist(), [["a", "b"]])

    @unittest.skipUnless(OWN, "corelane's own calls")
    def test_futures_and_pipelines_give_the_same(self):
        opened, feed = texts(), {"s": np.array([["a", "b"]])}
        self.assertEqual(opened.submit(None, feed).result()[0].tolist(), [["a", "b"]])
        opened.run_pipeline(feed, depth=1)
        self.assertEqual(opened.flush()[0][0].tolist(), [["a", "b"]])

    @unittest.skipUnless(OWN, "memory of one's own")
    def test_memory_for_strings_is_refused(self):
        binding = texts().io_binding()
        with self.assertRaises(Exception):
            binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 2), np.uint8)))
            texts().run_with_iobinding(binding)


class Sequences(unittest.TestCase):
    def setUp(self):
        self.session = same(helper.make_tensor_sequence_value_info("q", T.FLOAT, None))

    def test_the_type_is_onnxruntimes(self):
        self.assertEqual(described(self.session.get_inputs()[0]), ("q", "seq(tensor(float))", []))

    def test_lists_of_arrays_of_any_shape_go_in_and_come_out(self):
        for given in ([np.zeros(2, np.float32), np.ones((1, 3), np.float32)], []):
            (y,) = self.session.run(None, {"q": given})
            self.assertIsInstance(y, list)
            self.assertEqual(len(y), len(given))
            for one, other in zip(y, given):
                np.testing.assert_array_equal(one, other)
                self.assertEqual(one.dtype, np.float32)

    def test_strings_in_sequences(self):
        (y,) = same(helper.make_tensor_sequence_value_info("q", T.STRING, None)).run(None, {"q": [np.array(["a"])]})
        self.assertEqual([array.tolist() for array in y], [["a"]])

    def test_arrays_and_other_element_types_are_refused(self):
        for given in (np.zeros((2, 2), np.float32), [np.zeros(2)]):
            with self.assertRaises(Exception):
                self.session.run(None, {"q": given})


class Maps(unittest.TestCase):
    def vectorizer(self):
        value = helper.make_value_info("d", helper.make_map_type_proto(T.STRING, helper.make_tensor_type_proto(
            T.FLOAT, [])))
        node = helper.make_node("DictVectorizer", ["d"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b"])
        return session(node, [value], [helper.make_tensor_value_info("y", T.FLOAT, [1, 2])])

    def test_a_dict_goes_in(self):
        opened = self.vectorizer()
        self.assertEqual(described(opened.get_inputs()[0]), ("d", "map(string,tensor(float))", []))
        for given, expected in [({"a": 1.0, "b": 2.0}, [1, 2]), ({"b": 1}, [0, 1]), ({"a": np.float32(3)}, [3, 0])]:
            np.testing.assert_array_equal(opened.run(None, {"d": given})[0], [expected])

    def test_other_keys_and_values_are_refused(self):
        for given in ({1: 2.0}, [{"a": 1.0}]):
            with self.assertRaises(Exception):
                self.vectorizer().run(None, {"d": given})

    def test_zip_map_gives_a_list_of_dicts(self):
        for labels, keys, name in [({"classlabels_strings": ["a", "b"]}, ["a", "b"], "string"),
                                   ({"classlabels_int64s": [3, 7]}, [3, 7], "int64")]:
            number = T.STRING if name == "string" else T.INT64
            value = helper.make_value_info("y", helper.make_sequence_type_proto(
                helper.make_map_type_proto(number, helper.make_tensor_type_proto(T.FLOAT, []))))
            opened = session(helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **labels),
                             [helper.make_tensor_value_info("x", T.FLOAT, ["n", 2])], [value])
            self.assertEqual(described(opened.get_outputs()[0]), ("y", f"seq(map({name},tensor(float)))", []))
            (y,) = opened.run(None, {"x": np.array([[0.25, 0.75], [1, 0]], np.float32)})
            self.assertEqual(y, [dict(zip(keys, [0.25, 0.75])), dict(zip(keys, [1.0, 0.0]))])
            self.assertEqual(opened.run(None, {"x": np.empty((0, 2), np.float32)}), [[]])


class Optionals(unittest.TestCase):
    def asks(self, held):
        return session(helper.make_node("OptionalHasElement", ["o"], ["y"]),
                       [helper.make_value_info("o", helper.make_optional_type_proto(held))],
                       [helper.make_tensor_value_info("y", T.BOOL, [])])

    def test_none_is_an_optional_without_a_value(self):
        opened = self.asks(FLOATS)
        self.assertEqual(described(opened.get_inputs()[0]), ("o", "optional(tensor(float))", [2]))
        for _ in range(2):  # One run leaves nothing for the next.
            self.assertFalse(opened.run(None, {"o": None})[0])
            self.assertTrue(opened.run(None, {"o": np.zeros(2, np.float32)})[0])

    def test_sequences_in_optionals(self):
        opened = self.asks(helper.make_sequence_type_proto(FLOATS))
        self.assertEqual(opened.get_inputs()[0].type, "optional(seq(tensor(float)))")
        for given, there in [(None, False), ([], True), ([np.zeros(2, np.float32)], True)]:
            self.assertEqual(opened.run(None, {"o": given})[0], there)

    def test_optionals_come_out(self):
        opened = same(helper.make_value_info("o", helper.make_optional_type_proto(FLOATS)))
        self.assertEqual(opened.run(None, {"o": None}), [None])
        np.testing.assert_array_equal(opened.run(None, {"o": np.ones(2, np.float32)})[0], [1, 1])


class Ranks(unittest.TestCase):
    def test_an_input_without_a_rank_takes_any(self):
        opened = session(helper.make_node("Add", ["x", "x"], ["y"]),
                         [helper.make_tensor_value_info("x", T.FLOAT, None)],
                         [helper.make_tensor_value_info("y", T.FLOAT, None)])
        self.assertEqual(described(opened.get_inputs()[0]), ("x", "tensor(float)", []))
        for given in (np.ones((2, 3), np.float32), np.array(1, np.float32), np.empty((0, 4), np.float32)):
            (y,) = opened.run(None, {"x": given})
            np.testing.assert_array_equal(y, given + given)
            self.assertEqual(y.shape, given.shape)
        with self.assertRaises(Exception):
            opened.run(None, {"x": np.ones(2)})


class Overridden(unittest.TestCase):
    def opened(self, ir_version=10):
        x, w, y = (helper.make_tensor_value_info(name, T.FLOAT, [2]) for name in "xwy")
        return session(helper.make_node("Add", ["x", "w"], ["y"]), [x, w], [y],
                       [helper.make_tensor("w", T.FLOAT, [2], [1, 2])], ir_version)

    def test_initializers_that_are_inputs_are_listed(self):
        found = [described(node) for node in self.opened().get_overridable_initializers()]
        self.assertEqual(found, [("w", "tensor(float)", [2])])
        self.assertEqual([node.name for node in self.opened().get_inputs()], ["x"])

    def test_a_feed_may_hold_them(self):
        opened, x = self.opened(), np.zeros(2, np.float32)
        for feed, expected in [({"x": x}, [1, 2]), ({"x": x, "w": np.array([5, 6], np.float32)}, [5, 6]),
                               ({"x": x}, [1, 2]), ({"x": x, "w": np.array([7, 8], np.float32)}, [7, 8])]:
            np.testing.assert_array_equal(opened.run(None, feed)[0], expected)

    def test_values_of_another_shape_are_refused(self):
        with self.assertRaises(Exception) as caught:
            self.opened().run(None, {"x": np.zeros(2, np.float32), "w": np.ones(3, np.float32)})
        self.assertIn("Got invalid dimensions for input: w", str(caught.exception))

    def test_before_ir_version_4_they_are_constants(self):
        opened = self.opened(3)
        self.assertEqual(opened.get_overridable_initializers(), [])
        with self.assertRaises(Exception) as caught:
            opened.run(None, {"x": np.zeros(2, np.float32), "w": np.ones(2, np.float32)})
        self.assertIn("Invalid input name: w", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
