"""corelane.rknnlite, the API of rknnlite.api.RKNNLite: real models against onnxruntime, cores, threads."""
import os
import queue
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
from onnx import TensorProto, helper

import corelane
from corelane.rknnlite import RKNNLite
from python_support import PATIENCE, child, model_of, relu_model
from rknn_support import (MEAN, STD, Case, detection, layout, log_lines, normalised, orientation,
                          package_file, page, reference)


def started(path, **keywords):
    lite = RKNNLite()
    assert lite.load_rknn(path) == 0
    assert lite.init_runtime(**keywords) == 0
    return lite


class LiteCase(Case):
    LOG = "corelane.rknnlite"

    @classmethod
    def program(cls, name, model, **options):
        corelane.compile(model, cls.path(name), **options)
        return cls.path(name)

    def assert_close(self, outputs, expected, part=1e-4):
        self.assertEqual(len(outputs), len(expected))
        for found, wanted in zip(outputs, expected):
            self.assertEqual((found.dtype, found.shape), (np.float32, wanted.shape))
            self.assertLessEqual(np.abs(found - wanted).max(), part * max(np.abs(wanted).max(), 1e-6))


class RealModels(LiteCase):
    def check(self, name, model, height, width, **options):
        lite = started(self.program(name, model, mean=MEAN, std=STD, **options))
        for turns in (0, 1):
            pixels = page(height, width, turns)
            self.assert_close(lite.inference(inputs=[pixels]), reference(model, normalised(pixels)), 1e-3)
        lite.release()

    def test_orientation(self):
        self.check("o.rknn", orientation(), 224, 224, input_shapes={"x": [1, 3, 224, 224]})

    def test_layout_with_eight_outputs(self):
        self.check("l.rknn", layout(), 800, 608)

    def test_text_detection(self):
        self.check("d.rknn", detection(), 320, 320, input_shapes={"x": [1, 3, 320, 320]})

    def test_onnx_file_as_it_is(self):
        lite = started(orientation())
        x = normalised(page(224, 224))
        self.assert_close(lite.inference([x], data_format=["nchw"]), reference(orientation(), x))

    def test_through_an_rknn_library(self):
        """CORELANE_DEVICE names the device: here our own librknnrt.so, as a board's would be."""
        library = os.path.join(os.path.dirname(corelane.__file__), "..", "..", "lib", "librknnrt.so")
        if not os.path.isfile(library):
            self.skipTest("librknnrt.so is not built")
        path = self.program("o.rknn", orientation(), mean=MEAN, std=STD, input_shapes={"x": [1, 3, 224, 224]})
        with mock.patch.dict(os.environ, CORELANE_DEVICE=f"rknn:rk3588?library={os.path.realpath(library)}"):
            lite = started(path, core_mask=RKNNLite.NPU_CORE_1)
        self.assertIn("librknnrt", lite.get_sdk_version())
        expected = reference(orientation(), normalised(page(224, 224)))
        self.assert_close(lite.inference([page(224, 224)]), expected)

    def test_speech_model_with_state_and_a_scalar(self):
        model = package_file("silero_vad", "silero_vad_16k_op15.onnx")
        lite = started(self.program("v.rknn", model, dims={"batch": 1, "sequence": 512}))
        sound = np.sin(np.arange(512, dtype=np.float32) / 9)[np.newaxis]
        feed = [sound, np.zeros((2, 1, 128), np.float32), np.array(16000, np.int64)]
        self.assert_close(lite.inference(feed), reference(model, *feed), 1e-3)


class Inputs(LiteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lite = started(cls.program("o.rknn", orientation(), mean=MEAN, std=STD,
                                       input_shapes={"x": [1, 3, 224, 224]}))
        cls.pixels = page(224, 224)
        cls.expected = reference(orientation(), normalised(cls.pixels))

    def test_forms_that_mean_the_same(self):
        nchw = self.pixels.transpose(0, 3, 1, 2)
        for keywords in (
                {"inputs": [self.pixels]}, {"inputs": (self.pixels,)}, {"inputs": [self.pixels[0]]},
                {"inputs": [self.pixels.astype(np.float32)]}, {"inputs": [self.pixels.astype(np.int32)]},
                {"inputs": [self.pixels.astype(np.float16)]},
                {"inputs": [self.pixels], "data_format": "nhwc"},
                {"inputs": [self.pixels], "data_format": ["NHWC"]},
                {"inputs": [nchw], "data_format": ["nchw"]},
                {"inputs": [nchw.copy()], "data_format": "nchw"},
                {"inputs": [nchw[0]], "data_format": ["nchw"]},
                {"inputs": [self.pixels], "data_type": "float32"},
                {"inputs": [self.pixels], "inputs_pass_through": [0]},
                {"inputs": [normalised(self.pixels)], "data_format": "nchw", "inputs_pass_through": [1]},
                {"inputs": [normalised(self.pixels).transpose(0, 2, 3, 1)],
                 "inputs_pass_through": np.array([1])}):
            given = keywords["inputs"][0]
            with self.subTest(**{**keywords, "inputs": f"{given.dtype} {given.shape}"}):
                self.assert_close(self.lite.inference(**keywords), self.expected)

    def test_float64_is_converted_with_a_warning(self):
        with log_lines(self.LOG) as lines:
            self.assert_close(self.lite.inference([self.pixels.astype(np.float64)]), self.expected)
        self.assertIn("float64", "".join(lines))

    def test_wrong_inputs_are_none_and_a_line(self):
        for keywords, text in (
                ({"inputs": self.pixels}, "[array]"), ({"inputs": None}, "list"),
                ({"inputs": []}, "has 1 ('x')"),
                ({"inputs": [self.pixels] * 2}, "2 were given"), ({"inputs": ["page.png"]}, "numpy array"),
                ({"inputs": [None]}, "NoneType"), ({"inputs": [np.array(["a"])]}, "numbers"),
                ({"inputs": [np.array([object()])]}, "numbers"),
                ({"inputs": [self.pixels[:, :9]]}, "expected [1, 224, 224, 3], got [1, 9, 224, 3]"),
                ({"inputs": [self.pixels.transpose(0, 3, 1, 2)]}, "data_format=['nchw']"),
                ({"inputs": [self.pixels], "data_format": "chw"}, "nhwc, nchw"),
                ({"inputs": [self.pixels], "data_format": ["nhwc", "nhwc"]}, "data_format"),
                ({"inputs": [self.pixels], "data_type": "float64"}, "uint8"),
                ({"inputs": [self.pixels], "inputs_pass_through": [1, 0]}, "inputs_pass_through"),
                ({"inputs": [self.pixels], "inputs_pass_through": 1}, "inputs_pass_through"),
                ({"inputs": [self.pixels], "inputs_pass_through": [2]}, "inputs_pass_through")):
            with self.subTest(text), log_lines(self.LOG) as lines:
                self.assertIsNone(self.lite.inference(**keywords))
                self.assertEqual(len(lines), 1)
                self.assertTrue(lines[0].startswith("E inference: "), lines)
                self.assertIn(text, lines[0])
        self.assert_close(self.lite.inference([self.pixels]), self.expected)

    def test_normalisation_is_the_programs_alone(self):
        plain = started(self.program("plain.rknn", orientation(), input_shapes={"x": [1, 3, 224, 224]}))
        nhwc = normalised(self.pixels).transpose(0, 2, 3, 1)
        self.assert_close(plain.inference([nhwc]), self.expected)
        native = corelane.InferenceSession(self.path("o.rknn")).get_native_inputs()[0]
        np.testing.assert_allclose((native.mean, native.std), (MEAN, STD), rtol=1e-6)

    def test_integers_pass_through_to_a_quantized_input(self):
        nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                 helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
                 helper.make_node("Relu", ["r"], ["y"])]
        constants = [helper.make_tensor("s", TensorProto.FLOAT, [], [0.5]),
                     helper.make_tensor("z", TensorProto.INT8, [], [10])]
        model = model_of(nodes, [("x", (1, 4))], [("y", (1, 4))], initializer=constants)
        lite = started(self.program("q.rknn", model))
        steps = np.array([[10, 12, -128, 127]], np.int8)
        np.testing.assert_array_equal(lite.inference([steps], inputs_pass_through=[1])[0], [[0, 1, 0, 58.5]])
        np.testing.assert_array_equal(lite.inference([steps])[0], [[10, 12, 0, 58.5]])

    def test_integers_quantized_by_channel_pass_through_by_the_scale_of_their_channel(self):
        scales, zeros = np.array([.5, 1, 2], np.float32), np.array([1, 2, 3], np.int8)
        constants = [helper.make_tensor("s", TensorProto.FLOAT, [3], scales),
                     helper.make_tensor("z", TensorProto.INT8, [3], zeros)]
        for shape in ((1, 3, 4, 5), (2, 3)):
            nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
                     helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1)]
            model = model_of(nodes, [("x", shape)], [("y", shape)], initializer=constants)
            lite = started(self.program("c.rknn", model))
            steps = np.arange(np.prod(shape)).reshape(shape).astype(np.int8)
            by_channel = (-1,) + (1,) * (len(shape) - 2)
            wanted = (steps - zeros.astype(np.float32).reshape(by_channel)) * scales.reshape(by_channel)
            given = steps.transpose(0, 2, 3, 1) if len(shape) == 4 else steps
            np.testing.assert_array_equal(lite.inference([given], inputs_pass_through=[1])[0], wanted)

    def test_shapes_of_a_dynamic_program(self):
        model = relu_model(("N", 3, "H", "W"))
        lite = started(self.program("s.rknn", model, shape_sets=[[[1, 3, 4, 4]], [[1, 3, 8, 6]]]))
        for shape in ((1, 4, 4, 3), (1, 8, 6, 3)):
            x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
            np.testing.assert_array_equal(lite.inference([x])[0], np.maximum(x, 0).transpose(0, 3, 1, 2))
        with log_lines(self.LOG) as lines:
            self.assertIsNone(lite.inference([np.zeros((1, 5, 5, 3), np.float32)]))
        self.assertIn("[1,3,8,6]", lines[0].replace(" ", ""))


class Life(LiteCase):
    def setUp(self):
        self.model = self.path("relu.onnx")
        with open(self.model, "wb") as file:
            file.write(relu_model((1, 4)))
        self.x = np.array([[-1, 2, -3, 4]], np.float32)

    def test_codes(self):
        lite = RKNNLite()
        open(self.path("empty.rknn"), "wb").close()
        with open(self.path("noise.rknn"), "wb") as file:
            file.write(b"noise" * 99)
        self.refused(-1, lite.init_runtime, "load_rknn()")
        self.refused(-1, lambda: lite.load_rknn(self.path("none.rknn")), "no such file")
        self.refused(-1, lambda: lite.load_rknn(os.path.dirname(self.model)), "it is a folder")
        self.refused(-1, lambda: lite.load_rknn(self.path("empty.rknn")), "empty")
        self.refused(-1, lambda: lite.load_rknn(b"RKNN"), "bytes")
        self.assertEqual(lite.load_rknn(self.path("noise.rknn")), 0)
        self.refused(-1, lite.init_runtime, "noise.rknn")
        self.refused(None, lambda: lite.inference([self.x]), "init_runtime()")
        self.refused(None, lite.get_sdk_version, "init_runtime()")
        self.assertEqual(lite.load_rknn(self.model), 0)
        for mask in (5, float("inf"), None, "0"):
            self.refused(-1, lambda mask=mask: lite.init_runtime(core_mask=mask), "core_mask")
        self.refused(-1, lambda: lite.init_runtime(target="rk9999"), "rk9999")
        self.refused(-1, lambda: lite.init_runtime(target="rk3566", core_mask=RKNNLite.NPU_CORE_2),
                     "core_mask")
        self.assertEqual(lite.init_runtime(target="rk3566", core_mask=RKNNLite.NPU_CORE_0), 0)
        np.testing.assert_array_equal(lite.inference([self.x])[0], [[0, 2, 0, 4]])

    def test_release_and_begin_again(self):
        lite = started(self.model)
        lite.release()
        lite.release()
        self.refused(None, lambda: lite.inference([self.x]), "init_runtime()")
        self.assertEqual(lite.init_runtime(), 0)
        self.assertEqual(lite.init_runtime(), 0)
        np.testing.assert_array_equal(lite.inference([self.x])[0], [[0, 2, 0, 4]])

    def test_constants(self):
        names = ("AUTO", "0", "1", "2", "0_1", "0_1_2", "ALL")
        self.assertEqual([getattr(RKNNLite, f"NPU_CORE_{n}") for n in names], [0, 1, 2, 4, 3, 7, 0xffff])

    def test_core_masks_reach_the_device(self):
        for mask in (RKNNLite.NPU_CORE_0, RKNNLite.NPU_CORE_1, RKNNLite.NPU_CORE_2, RKNNLite.NPU_CORE_0_1,
                     RKNNLite.NPU_CORE_0_1_2):
            lite = started(self.model, target=f"null:rk3588?name=mask{mask}", core_mask=mask)
            session = lite._runtime.session
            session.set_trace(16)
            for _ in range(3):
                lite.inference([self.x])
            self.assertEqual([record["core_bits"] for record in session.read_trace()], [mask] * 3)

    def test_async_mode_lags_by_one_frame(self):
        lite = started(self.model, async_mode=True)
        results = [lite.inference([np.full((1, 4), k, np.float32)], get_frame_id=True) for k in range(5)]
        self.assertEqual([int(outputs[0][0, 0]) for outputs in results], [0, 0, 1, 2, 3])
        self.assertEqual([outputs[-1] for outputs in results], [0, 0, 1, 2, 3])

    def test_versions_and_platforms(self):
        path = self.program("p.rknn", self.model, metadata={"corelane.target_platform": "rk3576"})
        lite = started(path)
        self.assertRegex(lite.get_sdk_version(),
                         r"API: 2\.\d+\.\d+ \(corelane .*\)\n *DRV: 0\.9\.8 \(virtual:rk3588")
        found = lite.list_support_target_platform(path)
        self.assertEqual(found["filled_target_platform"], ["rk3576"])
        self.assertIn("rk3588", found["support_target_platform"])
        self.assertEqual(lite.list_support_target_platform()["filled_target_platform"], [])
        self.refused(None, lambda: lite.list_support_target_platform(self.path("none")), "no such file")

    def test_logs_go_to_stderr_and_the_file_alone(self):
        code = f"""
        from corelane.rknnlite import RKNNLite
        for verbose in (False, True):
            lite = RKNNLite(verbose=verbose, verbose_file={self.path("log.txt")!r})
            assert lite.load_rknn("missing.rknn") == -1 and lite.load_rknn({self.model!r}) == 0
            assert lite.init_runtime() == 0
        """
        done = child(code)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertEqual(done.stderr.count("E load_rknn: "), 2)
        with open(self.path("log.txt"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("E load_rknn: ", text)
        self.assertIn("I init_runtime: ", text)


class Threads(LiteCase):
    """The pool that public code is built on: several objects, an executor, a queue of futures."""

    def test_pool_of_three_cores(self):
        path = self.program("o.rknn", orientation(), mean=MEAN, std=STD,
                            input_shapes={"x": [1, 3, 224, 224]})
        frames = [page(224, 224, turns) for turns in range(4)]
        expected = [reference(orientation(), normalised(frame)) for frame in frames]
        cores = (RKNNLite.NPU_CORE_0, RKNNLite.NPU_CORE_1, RKNNLite.NPU_CORE_2)
        pool = [started(path, core_mask=core) for core in cores]
        results, pending = [], queue.Queue()

        def work(lite, frame):
            return lite.inference(inputs=[frame], data_format=["nhwc"])

        with ThreadPoolExecutor(max_workers=3) as executor:
            for k in range(60):
                pending.put(executor.submit(work, pool[k % 3], frames[k % 4]))
                if k >= 3:
                    results.append(pending.get().result(PATIENCE))
            while not pending.empty():
                results.append(pending.get().result(PATIENCE))
        self.assertEqual(len(results), 60)
        for k, outputs in enumerate(results):
            self.assert_close(outputs, expected[k % 4])
        for lite in pool:
            lite.release()

    def test_one_object_in_eight_threads(self):
        lite = started(orientation())
        frames = [normalised(page(224, 224, turns)) for turns in range(4)]
        expected = [reference(orientation(), frame) for frame in frames]
        with ThreadPoolExecutor(max_workers=8) as executor:
            futures = [executor.submit(lite.inference, [frames[k % 4]], None, "nchw") for k in range(40)]
            for k, future in enumerate(futures):
                self.assert_close(future.result(PATIENCE), expected[k % 4])

    def test_release_during_calls_of_others(self):
        with open(self.path("relu.onnx"), "wb") as file:
            file.write(relu_model((1, 4)))
        lite = started(self.path("relu.onnx"), target="null:rk3588?a=2ms&name=busy")
        x = np.ones((1, 4), np.float32)
        begun, ended = threading.Barrier(5), []

        def work():
            begun.wait(PATIENCE)
            outputs = lite.inference([x])
            while outputs is not None:
                ended.append(outputs[0].tolist())
                outputs = lite.inference([x])

        workers = [threading.Thread(target=work) for _ in range(4)]
        with log_lines(self.LOG):
            for worker in workers:
                worker.start()
            begun.wait(PATIENCE)
            lite.release()
            for worker in workers:
                worker.join(PATIENCE)
        self.assertFalse(any(worker.is_alive() for worker in workers))
        self.assertTrue(all(row == [[1, 1, 1, 1]] for row in ended))


class TimeLimit(LiteCase):
    NAME = "CORELANE_RKNN_TIMEOUT_MS"

    def setUp(self):
        self.model, self.x = self.save("relu.onnx", relu_model((1, 4))), np.ones((1, 4), np.float32)

    def test_the_variable_ends_a_run_and_the_next_one_begins_anew(self):
        with mock.patch.dict(os.environ, {self.NAME: "200"}):
            lite = started(self.model, target="null:rk3588?a=3s&name=limit")
        with log_lines(self.LOG) as lines:
            self.assertIsNone(lite.inference([self.x]))
        for text in (self.NAME, "200 ms", "core set", "reset"):
            self.assertIn(text, "".join(lines))
        with mock.patch.dict(os.environ, {self.NAME: "60000"}):
            again = started(self.model, target="null:rk3588?a=1ms&name=fine")
        self.assertEqual(again.inference([self.x])[0].tolist(), [[1, 1, 1, 1]])

    def test_a_value_that_is_no_number_fails_init_runtime(self):
        for value in ("soon", "-1", "1.5", str(2**32)):
            lite = RKNNLite()
            self.assertEqual(lite.load_rknn(self.model), 0)
            with self.subTest(value=value), mock.patch.dict(os.environ, {self.NAME: value}):
                self.refused(-1, lambda: lite.init_runtime(target="null:rk3588?name=bad"), self.NAME, value)


if __name__ == "__main__":
    unittest.main()
