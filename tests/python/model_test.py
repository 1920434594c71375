"""Models: sources, shapes, layouts, quantised outputs, batches, shared weights, metadata."""
import os
import pathlib
import struct
import tempfile
import unittest
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper

import corelane as ort
from python_support import NPU, X, Y, Callbacks, model_of, relu_model, session

BATCH = {"ztu_modelrt_dispatch_batch": "1"}


def weighted_model(columns, scale=1.0):
    """y = x w with a weight that no file keeps inline; `columns` of x are rows of it."""
    from onnx import helper, numpy_helper
    w = (np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 7 - 3) * np.float32(scale)
    return model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", (columns, 64))],
                    [("y", (columns, 64))], initializer=[numpy_helper.from_array(w, "w")]), w


def quantised_model():
    """y = x as int8 with scale 0.5 and zero point -3."""
    from onnx import helper, numpy_helper
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    constants = [numpy_helper.from_array(np.float32(0.5), "s"), numpy_helper.from_array(np.int8(-3), "z")]
    return model_of(nodes, [("x", (1, 4))], [("y", (1, 4))], initializer=constants)


class Sources(unittest.TestCase):
    def test_paths_and_bytes_of_any_kind(self):
        model = relu_model((1, 4))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "ünï cødé.onnx")
            path.write_bytes(model)
            for source in (path, str(path), os.fsencode(path).decode(), model, bytearray(model),
                           memoryview(model)):
                for providers in ([NPU], None):
                    made = ort.InferenceSession(source, providers=providers)
                    np.testing.assert_array_equal(made.run(None, {"x": X})[0], Y)
        np.testing.assert_array_equal(made.run(None, {"x": X})[0], Y)  # The file is gone.

    def test_bytes_may_change_afterwards(self):
        model = bytearray(relu_model((1, 4)))
        made = ort.InferenceSession(model, providers=[NPU])
        model[:] = bytes(len(model))
        np.testing.assert_array_equal(made.run(None, {"x": X})[0], Y)

    def test_program_files(self):
        made = session(model=ort.compile(relu_model((1, 4)), custom_string="hello"))
        np.testing.assert_array_equal(made.run(None, {"x": X})[0], Y)
        self.assertEqual(made.get_modelmeta().custom_metadata_map["rknn_custom_string"], "hello")

    def test_bytes_that_are_not_a_model_are_refused(self):
        for source, kind, text in ((b"", RuntimeError, "model data must not be empty"),
                                   (b"abcdefgh", RuntimeError, "61 62 63 64"),
                                   ("nope.onnx", RuntimeError, "nope.onnx"),
                                   (3, TypeError, "int"), (None, TypeError, "None")):
            with self.assertRaises(kind) as caught:
                ort.InferenceSession(source, providers=[NPU])
            self.assertIn(text, str(caught.exception))

    def test_failures_of_the_driver_read_as_its_users_know_them(self):
        with self.assertRaises(RuntimeError) as caught:
            session(model=b"abcdefgh")
        self.assertRegex(str(caught.exception), r"^rknn_init failed: RKNN_ERR_MODEL_INVALID \(-6\): ")
        made = session("null:rk3588?fail=1")
        with self.assertRaises(RuntimeError) as caught:
            made.run(None, {"x": X})
        self.assertRegex(str(caught.exception), r"^rknn_run failed: RKNN_ERR_FAIL \(-1\): ")
        said = Callbacks()
        made.run_async(None, {"x": X}, said, None)
        made.close()
        self.assertRegex(said.entries[0][2], r"^rknn_run failed: RKNN_ERR_FAIL \(-1\): ")

    def test_names_of_files_that_are_not_utf8_are_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(os.fsencode(folder), b"m\xff.onnx")
            with open(path, "wb") as file:
                file.write(relu_model())
            with self.assertRaises(RuntimeError) as caught:
                ort.InferenceSession(os.fsdecode(path))
            self.assertIn("UTF-8", str(caught.exception))

    def test_compile_speaks_of_the_model_alone(self):
        with self.assertRaises(RuntimeError) as caught:
            ort.compile(b"abcdefgh")
        self.assertNotIn("rknn", str(caught.exception))

    def test_external_data_of_bytes_is_looked_for_where_the_options_say(self):
        model = onnx.load_from_string(model_of([helper.make_node("Add", ["x", "w"], ["y"])], [("x", (1, 4))],
                                               [("y", (1, 4))],
                                               initializer=[numpy_helper.from_array(2 * Y + 1, "w")]))
        with tempfile.TemporaryDirectory() as folder:
            onnx.save_model(model, f"{folder}/m.onnx", save_as_external_data=True, location="w.bin",
                            size_threshold=0)
            with open(f"{folder}/m.onnx", "rb") as file:
                data = file.read()
            with self.assertRaises(RuntimeError):
                ort.InferenceSession(data)
            options = ort.SessionOptions()
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
            np.testing.assert_array_equal(ort.InferenceSession(data, options).run(None, {"x": X})[0],
                                          X + 2 * Y + 1)

    def test_vendor_files_name_the_way_out(self):
        with self.assertRaises(RuntimeError) as caught:
            ort.InferenceSession(b"RKNN" + struct.pack("<IQQ", 0, 6, 200) + bytes(200), providers=[NPU])
        self.assertIn("corelane compile", str(caught.exception))


class Shapes(unittest.TestCase):
    def test_dynamic_models_take_each_declared_shape(self):
        program = ort.compile(relu_model((1, "n")), shape_sets=[[[1, 4]], [[1, 8]]])
        for device in ("virtual:rk3588", "null:rk3588"):
            made = session(device, model=program)
            for n in (4, 8, 4):
                (y,) = made.run(None, {"x": np.full((1, n), -1, np.float32)})
                self.assertEqual(y.shape, (1, n))
            with self.assertRaises(RuntimeError) as caught:
                made.run(None, {"x": np.ones((1, 6), np.float32)})
            for shape in ("[1, 4]", "[1, 8]", "[1, 6]"):
                self.assertIn(shape, str(caught.exception))
            self.assertEqual(len(made.run(None, {"x": np.ones((1, 8), np.float32)})), 1)

    def test_dynamic_models_on_several_cores_at_once(self):
        program = ort.compile(relu_model((1, "n")), shape_sets=[[[1, 4]], [[1, 8]]])
        made = session(model=program, schedule=[0, 1, 2], max_queue_size=64)
        inputs = [np.full((1, 4 + 4 * (i % 2)), i, np.float32) for i in range(40)]
        futures = [made.submit(None, {"x": x}) for x in inputs]
        for x, future in zip(inputs, futures):
            np.testing.assert_array_equal(future.result()[0], x)

    def test_open_dimensions_take_any_size(self):
        for made in (ort.InferenceSession(relu_model(("N", 4)), providers=[NPU]),
                     ort.InferenceSession(relu_model())):
            self.assertEqual(made.get_inputs()[0].shape, ["N", 4])
            for n in (1, 3, 2):
                self.assertEqual(made.run(None, {"x": np.ones((n, 4), np.float32)})[0].shape, (n, 4))

    def test_open_dimensions_may_be_fixed(self):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("N", 2)
        made = ort.InferenceSession(relu_model(), options)
        self.assertEqual(made.get_inputs()[0].shape, [2, 4])
        with self.assertRaises(RuntimeError):
            made.run(None, {"x": np.ones((3, 4), np.float32)})

    def test_ranks_from_0_to_5(self):
        for rank in range(6):
            shape = (1, 2, 3, 2, 2)[:rank]
            x = np.full(shape, -2, np.float32)
            np.testing.assert_array_equal(session(shape=shape).run(None, {"x": x})[0], np.zeros(shape))

    def test_mismatches_say_what_was_expected(self):
        made = session()
        for x, text in ((X[:, :3], "expected [1, 4], got [1, 3]"), (X[0], "expected [1, 4], got [4]"),
                        (X[None], "got [1, 1, 4]")):
            with self.assertRaises(RuntimeError) as caught:
                made.run(None, {"x": x})
            self.assertIn("Input 'x' shape mismatch".lower(), str(caught.exception).lower())
            self.assertIn(text, str(caught.exception))


class Layouts(unittest.TestCase):
    SHAPE = (1, 3, 2, 5)

    def test_all_of_them(self):
        x = np.arange(-15, 15, dtype=np.float32).reshape(self.SHAPE)
        pixels = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
        for layout, given, shape, name in (
                ("nchw", x, list(self.SHAPE), "NCHW"), ("Original", x, list(self.SHAPE), "NCHW"),
                ("nchw_software", x, list(self.SHAPE), "NCHW"),
                ("original_software", x, list(self.SHAPE), "NCHW"),
                ("nhwc", pixels, [1, 2, 5, 3], "NHWC"), ("ANY", pixels, [1, 2, 5, 3], "NHWC")):
            with self.subTest(layout=layout):
                made = session(shape=self.SHAPE, layout=layout)
                node = made.get_inputs()[0]
                self.assertEqual((node.shape, node.layout), (shape, name))
                self.assertEqual(node.strides, [s // 4 for s in given.strides])
                np.testing.assert_array_equal(made.run(None, {"x": given})[0], np.maximum(x, 0))
                self.assertEqual(made.get_outputs()[0].layout, "NCHW")

    def test_only_inputs_of_rank_4_are_affected(self):
        made = session(layout="nhwc")
        self.assertEqual((made.get_inputs()[0].shape, made.get_inputs()[0].layout), ([1, 4], "UNDEFINED"))
        np.testing.assert_array_equal(made.run(None, {"x": X})[0], Y)

    def test_converted_pixels(self):
        made = session(shape=self.SHAPE, layout="nhwc")
        pixels = np.arange(30, dtype=np.uint8).reshape(1, 2, 5, 3)
        np.testing.assert_array_equal(made.run(None, {"x": pixels})[0], pixels.transpose(0, 3, 1, 2))

    def test_mean_and_std_of_the_program(self):
        program = ort.compile(relu_model(self.SHAPE), mean=[1, 2, 3], std=[2, 2, 2])
        pixels = np.arange(30, dtype=np.uint8).reshape(1, 2, 5, 3)
        expected = np.maximum((pixels.astype(np.float32) - [1, 2, 3]) / 2, 0).transpose(0, 3, 1, 2)
        made = session(model=program, layout="nhwc", normalize=True)
        np.testing.assert_allclose(made.run(None, {"x": pixels})[0], expected)
        plain = session(model=program, layout="nhwc")
        np.testing.assert_array_equal(plain.run(None, {"x": pixels})[0], pixels.transpose(0, 3, 1, 2))


class Quantised(unittest.TestCase):
    def test_outputs_are_what_their_type_says(self):
        expected = np.float32([[-1, 2, -3, 4]])
        for form, kind, name in (("declared", np.float32, "tensor(float)"),
                                 ("float", np.float32, "tensor(float)"),
                                 ("raw", np.int8, "tensor(int8)")):
            made = session(model=quantised_model(), output_form=form)
            node, (y,) = made.get_outputs()[0], made.run(None, {"x": X})
            self.assertEqual((y.dtype, node.type), (kind, name))
            if form == "raw":
                self.assertEqual((node.quant["scales"], node.quant["zero_points"]), ([0.5], [-3]))
                y = (y.astype(np.float32) - node.quant["zero_points"][0]) * node.quant["scales"][0]
            else:
                self.assertIsNone(node.quant)
            np.testing.assert_array_equal(y, expected)

    def test_native_descriptions_have_scale_and_zero_point(self):
        made = session(model=quantised_model())
        for node in (made.get_native_inputs()[0], made.get_native_outputs()[0]):
            self.assertEqual((node.type, node.quant["scales"], node.quant["zero_points"]),
                             ("tensor(int8)", [0.5], [-3]))


class Batches(unittest.TestCase):
    def options(self):
        options = ort.RunOptions()
        options.add_run_config_entry("ztu_modelrt_dispatch_batch", "1")
        return options

    def test_dict_and_run_options(self):
        made = session(schedule=[0, 1, 2])
        x = np.arange(-20, 28, dtype=np.float32).reshape(12, 4)
        for given in (self.options(), BATCH, {"ztu_modelrt_dispatch_batch": "True"},
                      {"ztu_modelrt_dispatch_batch": True}):
            np.testing.assert_array_equal(made.run(None, {"x": x}, given)[0], np.maximum(x, 0))
        for off in ({"ztu_modelrt_dispatch_batch": "0"}, {}, None):
            with self.assertRaises(RuntimeError):
                made.run(None, {"x": x}, off)
        self.assertEqual(made.statistics()["accepted"], 48)

    def test_samples_go_to_the_cores_in_turn(self):
        made = session("null:rk3588?name=samples", schedule=[0, 1, 2], max_queue_size=16)
        made.run(None, {"x": X.repeat(12, 0)}, BATCH)
        self.assertEqual(made.statistics()["tasks_by_context"], [4, 4, 4])

    def test_futures_and_positional_feeds(self):
        made = session(schedule=[0, 1])
        np.testing.assert_array_equal(made.submit(None, [X.repeat(3, 0)], BATCH).result()[0], Y.repeat(3, 0))

    def test_no_sample_and_uneven_samples_are_refused(self):
        from onnx import helper
        made = session(model=model_of([helper.make_node("Add", ["a", "b"], ["y"])],
                                      [("a", (1, 4)), ("b", (1, 4))],
                                      [("y", (1, 4))]))
        for a, b in ((X[:0], X[:0]), (X.repeat(2, 0), X.repeat(3, 0))):
            with self.assertRaises(RuntimeError):
                made.run(None, {"a": a, "b": b}, BATCH)
        np.testing.assert_array_equal(made.run(None, [X.repeat(2, 0)] * 2, BATCH)[0], X.repeat(2, 0) * 2)

    def test_one_failed_sample_fails_the_call_alone(self):
        made = session("null:rk3588?fail=5&name=sample", schedule=[0, 1, 2])
        with self.assertRaises(RuntimeError) as caught:
            made.run(None, {"x": X.repeat(6, 0)}, BATCH)
        self.assertIn("sample", str(caught.exception))
        self.assertEqual(made.run(None, {"x": X.repeat(3, 0)}, BATCH)[0].shape, (3, 4))
        self.assertEqual(made.statistics()["completed"], 9)

    def test_calls_of_one_sample_say_so(self):
        made = session()
        for call in (lambda: made.run_pipeline(X, run_options=BATCH),
                     lambda: made.try_run_async(None, {"x": X}, lambda *_: None, None, BATCH)):
            with self.assertRaises(RuntimeError) as caught:
                call()
            self.assertIn("one sample", str(caught.exception))

    def test_models_with_a_batch_of_their_own_are_refused(self):
        for samples in (2, 4):
            with self.assertRaises(RuntimeError) as caught:
                session(shape=(2, 4)).run(None, {"x": np.ones((samples, 4), np.float32)}, BATCH)
            self.assertIn("2 fixed in dimension 0, and a batch is split into samples of 1", str(caught.exception))


class SharedWeights(unittest.TestCase):
    def programs(self):
        (wide, w), (narrow, _) = weighted_model(2), weighted_model(1)
        return ort.compile(wide), ort.compile(narrow, remove_weights=True), w

    def test_a_program_without_weights_takes_those_of_a_session(self):
        whole, bare, w = self.programs()
        self.assertLess(len(bare) + w.nbytes // 2, len(whole))
        x = np.ones((1, 64), np.float32)
        for name in ("weights_from", "use_weight_from"):
            master = ort.InferenceSession(whole, providers=[NPU])
            shared = ort.InferenceSession(bare, providers=[NPU], **{name: master})
            del master
            np.testing.assert_allclose(shared.run(None, {"x": x})[0], x @ w)

    def test_every_context_loads_the_model_then(self):
        whole, bare, _ = self.programs()
        master = ort.InferenceSession(whole, providers=[NPU])
        with self.assertWarns(UserWarning) as caught:
            shared = ort.InferenceSession(bare, providers=[(NPU, {"schedule": [0, 1]})], weights_from=master)
        self.assertIn("on its own", str(caught.warning))
        self.assertEqual(shared.statistics()["duplicated"], 0)
        self.assertEqual(shared.get_provider_options()[NPU]["disable_dup_context"], "true")

    def test_without_them_it_says_what_is_missing(self):
        _, bare, _ = self.programs()
        for weights in ({}, {"weights_from": ort.InferenceSession(ort.compile(weighted_model(2, 2.0)[0]))}):
            with self.assertRaises(RuntimeError) as caught:
                ort.InferenceSession(bare, providers=[NPU], **weights)
            self.assertRegex(str(caught.exception), "weights_from|the weights of program")

    def test_a_closed_master_is_refused(self):
        whole, bare, _ = self.programs()
        master = ort.InferenceSession(whole, providers=[NPU])
        master.close()
        with self.assertRaises(RuntimeError) as caught:
            ort.InferenceSession(bare, providers=[NPU], weights_from=master)
        self.assertIn("closed", str(caught.exception))

    def test_anything_but_a_session_is_refused(self):
        with self.assertRaises(TypeError):
            ort.InferenceSession(relu_model(), weights_from=3)


class Introspection(unittest.TestCase):
    def test_nodes(self):
        made = session(shape=(1, 3, 2, 5))
        node = made.get_inputs()[0]
        self.assertEqual((node.name, node.shape, node.type, node.layout, node.strides),
                         ("x", [1, 3, 2, 5], "tensor(float)", "NCHW", [30, 10, 5, 1]))
        self.assertEqual((made.input_names, made.output_names), (["x"], ["y"]))
        self.assertIn("tensor(float)", repr(node))

    def test_metadata(self):
        program = ort.compile(relu_model((1, 4)), metadata={"stride": "32", "names": "{0: 'a'}"},
                              custom_string="c")
        self.assertEqual(session(model=program).get_modelmeta().custom_metadata_map,
                         {"stride": "32", "names": "{0: 'a'}", "rknn_custom_string": "c"})
        strict = ort.InferenceSession(program).get_modelmeta()
        self.assertEqual(strict.custom_metadata_map, {"stride": "32", "names": "{0: 'a'}"})
        self.assertEqual((strict.graph_name, strict.producer_name), ("g", "p"))

    def test_statistics_and_device(self):
        made = session("null:rk3576")
        made.run(None, {"x": X})
        figures = made.statistics()
        self.assertEqual((figures["accepted"], figures["completed"], figures["failed"]), (1, 1, 0))
        self.assertEqual((made.device()["kind"], made.device()["cores"]), ("null", 2))

    def test_nothing_warns_without_a_reason(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            session(schedule=[0, 1]).run(None, {"x": X})
            ort.InferenceSession(relu_model()).run(None, {"x": X})


if __name__ == "__main__":
    unittest.main()
