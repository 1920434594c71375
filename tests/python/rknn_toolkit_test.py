"""corelane.rknn_toolkit, the API of rknn.api.RKNN: from real ONNX models to programs, float and int8."""
import contextlib
import io
import json
import os
import sys
import tempfile
import textwrap
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import corelane
from corelane import _native
from corelane.rknn_toolkit import RKNN
from corelane.rknnlite import RKNNLite
from python_support import PATIENCE, X, child, model_of, relu_model
from rknn_support import (MEAN, STD, cosine, detection, layout, log_lines, normalised, orientation, page,
                          reference)

LOG = "corelane.rknn_toolkit"


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def save(cls, name, content):
        with open(cls.path(name), "wb") as file:
            file.write(content)
        return cls.path(name)

    @classmethod
    def pictures(cls, height, width):
        """A dataset of the page in four turns."""
        from PIL import Image
        for turns in range(4):
            Image.fromarray(page(height, width, turns)[0]).save(cls.path(f"{height}x{width}_{turns}.png"))
        lines = "".join(f"./{height}x{width}_{turns}.png\n" for turns in range(4))
        return cls.save(f"{height}x{width}.txt", lines.encode())

    def built(self, model, quantize=None, load=None, build=None, **config):
        rknn = RKNN()
        self.assertEqual(rknn.config(**config), 0)
        self.assertEqual(rknn.load_onnx(model, **(load or {})), 0)
        keywords = {"do_quantization": quantize is not None, "dataset": quantize, **(build or {})}
        self.assertEqual(rknn.build(**keywords), 0)
        return rknn

    def exported(self, rknn, name):
        self.assertEqual(rknn.export_rknn(self.path(name)), 0)
        return self.path(name)

    def refused(self, code, call, *texts):
        with log_lines(LOG) as lines:
            self.assertEqual(call(), code)
        for text in texts:
            self.assertIn(text, "".join(lines))


class Float(Case):
    def test_program_gives_the_models_results_here_and_in_rknnlite(self):
        rknn = self.built(orientation(), mean_values=[MEAN], std_values=[STD], target_platform="RK3576",
                          custom_string="v1", optimization_level=2)
        path = self.exported(rknn, "o.rknn")
        lite = RKNNLite()
        self.assertEqual((rknn.init_runtime(), lite.load_rknn(path), lite.init_runtime()), (0, 0, 0))
        for turns in range(4):
            expected = reference(orientation(), normalised(page(224, 224, turns)))[0]
            for door in (rknn, lite):
                np.testing.assert_allclose(door.inference([page(224, 224, turns)])[0], expected, atol=1e-5)
        self.assertIn("virtual:rk3576", rknn.get_sdk_version())
        description = _native.describe(path)
        self.assertEqual(description["custom_string"], "v1")
        self.assertEqual(description["metadata"]["corelane.target_platform"], "rk3576")

    def test_load_rknn_and_run_on_the_platform_it_names(self):
        path = self.exported(self.built(relu_model((1, 4)), target_platform="rk3566"), "r.rknn")
        rknn = RKNN()
        self.assertEqual((rknn.load_rknn(path), rknn.init_runtime()), (0, 0))
        self.assertIn("virtual:rk3566", rknn.get_sdk_version())
        np.testing.assert_array_equal(rknn.inference([X])[0], [[0, 2, 0, 4]])
        self.refused(-1, lambda: rknn.export_rknn(self.path("x.rknn")), "build()")

    def test_a_part_of_the_model(self):
        logits = "p2o.pd_op.add.4.0"
        rknn = self.built(orientation(), load={"outputs": [logits], "input_size_list": [[1, 3, 224, 224]]})
        self.assertEqual(rknn.init_runtime(), 0)
        x = normalised(page(224, 224))
        outputs = rknn.inference([x], data_format="nchw")
        self.assertEqual(len(outputs), 1)
        exponents = np.exp(outputs[0] - outputs[0].max())
        np.testing.assert_allclose(exponents / exponents.sum(), reference(orientation(), x)[0], atol=1e-5)
        self.refused(-1, lambda: RKNN().load_onnx(orientation(), outputs=["nothing"]), "'nothing'")
        self.refused(-1, lambda: RKNN().load_onnx(orientation(), inputs="x"), "lists of names")

    def test_open_shapes_are_fixed_or_refused_with_the_remedy(self):
        rknn = RKNN()
        self.assertEqual(rknn.load_onnx(detection()), 0)
        self.refused(-1, lambda: rknn.build(do_quantization=False), "input_size_list", "dynamic_input")
        sizes = [[1, 3, 320, 256]]
        rknn = self.built(detection(), load={"inputs": ["x"], "input_size_list": sizes}, mean_values=[MEAN],
                          std_values=[STD])
        self.assertEqual(rknn.init_runtime(), 0)
        expected = reference(detection(), normalised(page(320, 256)))[0]
        np.testing.assert_allclose(rknn.inference([page(320, 256)])[0], expected, atol=1e-3)
        self.refused(-1, lambda: RKNN().load_onnx(detection(), input_size_list=[[1, 3], [1]]), "2 shapes")
        self.refused(-1, lambda: RKNN().load_onnx(detection(), input_size_list=[[1, 3, "h", 4]]), "positive")

    def test_dynamic_input(self):
        rknn = self.built(relu_model(("N", 3, "H", "W")), dynamic_input=[[[1, 3, 4, 4]], [[1, 3, 8, 8]]])
        self.assertEqual(rknn.init_runtime(), 0)
        for size in (4, 8):
            output = rknn.inference([np.ones((1, size, size, 3), np.float32)])[0]
            self.assertEqual(output.shape, (1, 3, size, size))
        with log_lines(LOG) as lines:
            self.assertIsNone(rknn.inference([np.ones((1, 5, 5, 3), np.float32)]))
        self.assertIn("[1,3,8,8]", lines[0].replace(" ", ""))

    def test_batch(self):
        rknn = self.built(orientation(), mean_values=[MEAN], std_values=[STD], build={"rknn_batch_size": 4})
        self.assertEqual(rknn.init_runtime(), 0)
        pages = [page(224, 224, turns) for turns in range(4)]
        expected = [reference(orientation(), normalised(one))[0] for one in pages]
        found = rknn.inference([np.concatenate(pages)])[0]
        np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-5)


class Int8(Case):
    def check(self, model, height, width, likeness, **config):
        """The program against onnxruntime on the same quantized network: as near to it as onnxruntime is to
        itself without optimisations, which round elsewhere; and as near to the float model as it is."""
        rknn = self.built(model, self.pictures(height, width), mean_values=[MEAN], std_values=[STD],
                          load={"input_size_list": [[1, 3, height, width]]}, **config)
        path = self.exported(rknn, "q.rknn")
        self.assertLess(os.path.getsize(path), 0.4 * os.path.getsize(model))
        network = self.save("q.onnx", _native.network(path))
        self.assertEqual(rknn.init_runtime(), 0)
        answers = []
        for turns in (0, 1):
            pixels = page(height, width, turns)
            x = normalised(pixels)
            rows = zip(rknn.inference([pixels]), reference(network, x),
                       reference(network, x, optimised=False), reference(model, x),
                       _native.describe(path)["outputs"])
            for found, same, plain, exact, described in rows:
                step = described["quant"]["scales"][0] if described["quant"] else 1 / 255
                allowed = 1.5 * self.share(same, plain, step) + 0.02
                self.assertLessEqual(self.share(found, same, step), allowed)
                self.assertGreaterEqual(cosine(found, exact), cosine(same, exact) - 0.02)
                self.assertGreaterEqual(cosine(found, exact), likeness)
                answers.append((found, exact))
        return answers

    @staticmethod
    def share(one, other, step):
        """Of elements that are more than a step apart."""
        return float((np.abs(one - other) > 1.5 * step).mean())

    def test_orientation_keeps_its_answers(self):
        for found, exact in self.check(orientation(), 224, 224, 0.999, quantized_dtype="w8a8"):
            self.assertEqual(found.argmax(), exact.argmax())

    def test_weights_have_scales_by_channel_or_by_layer(self):
        weights = np.arange(1, 13, dtype=np.float32).reshape(4, 3, 1, 1)
        model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], [("x", (1, 3, 8, 8))],
                         [("y", (1, 4, 8, 8))], initializer=[numpy_helper.from_array(weights, "w")])
        np.save(self.path("x.npy"), np.linspace(-1, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8))
        dataset = self.save("x.txt", b"x.npy\n")
        for method, scales in (("channel", 4), ("layer", 1)):
            path = self.exported(self.built(model, dataset, quantized_method=method), "w.rknn")
            network = onnx.load_model_from_string(_native.network(path))
            found = {t.name: numpy_helper.to_array(t).size for t in network.graph.initializer}
            self.assertEqual(found["w_scale"], scales, found)

    def test_layout(self):
        # Its scores lose much by these ranges, in onnxruntime as here: only nearness to it is asked for.
        self.check(layout(), 800, 608, 0)

    def test_text_detection_of_an_old_operator_set(self):
        self.check(detection(), 320, 320, 0.99)

    def test_dataset_is_needed_and_checked(self):
        model = relu_model((1, 3, 8, 8))
        rknn = RKNN()
        rknn.load_onnx(model)
        self.refused(-1, lambda: rknn.build(do_quantization=True), "dataset")
        self.refused(-1, lambda: rknn.build(dataset=self.path("none.txt")), "none.txt")
        for content, text in ((b"", "no line"), (b"missing.png\n", "missing.png"),
                              (b"bad.npy\n", "does not fit"), (b"text.txt\n", "neither a picture"),
                              (b"names.npy\n", "numbers")):
            np.save(self.path("bad.npy"), np.zeros((1, 3, 5, 5), np.float32))
            np.save(self.path("names.npy"), np.array(["a"]))
            self.save("text.txt", b"no picture")
            dataset = self.save("set.txt", content)
            with self.subTest(text):
                self.refused(-1, lambda: rknn.build(dataset=dataset), text)
        self.refused(-1, lambda: rknn.export_rknn(self.path("x.rknn")), "build()")

    def test_arrays_and_pictures_calibrate_alike(self):
        """One picture as .png, as N, H, W, C and as N, C, H, W in .npy: the same program."""
        from PIL import Image
        pixels = page(16, 12)
        Image.fromarray(pixels[0]).save(self.path("a.png"))
        np.save(self.path("b.npy"), pixels)
        np.save(self.path("c.npy"), pixels.transpose(0, 3, 1, 2))
        np.save(self.path("d.npy"), pixels[0])
        model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], [("x", (1, 3, 16, 12))],
                         [("y", (1, 2, 16, 12))], initializer=[helper.make_tensor(
                             "w", TensorProto.FLOAT, [2, 3, 1, 1], [0.5, -1, 0.25, 1, 2, -0.5])])
        scales = {}
        for name in ("a.png", "b.npy", "c.npy", "d.npy"):
            rknn = self.built(model, self.save("one.txt", f"{name}\n".encode()), mean_values=[MEAN],
                              std_values=[STD])
            path = self.exported(rknn, "c.rknn")
            scales[name] = [entry["quant"]["scales"] for part in ("inputs", "outputs")
                            for entry in _native.describe(path)[part]]
        self.assertEqual(len(scales["a.png"]), 2)
        for name, found in scales.items():
            self.assertEqual(found, scales["a.png"], name)

    def test_channels_of_pictures_are_swapped_on_demand(self):
        from PIL import Image
        Image.fromarray(np.full((8, 8, 3), (10, 20, 250), np.uint8)).save(self.path("blue.png"))
        dataset = self.save("blue.txt", b"blue.png\n")
        node = helper.make_node("Slice", ["x", "from", "to", "axis"], ["y"])
        constants = [helper.make_tensor(name, TensorProto.INT64, [1], [value])
                     for name, value in (("from", 0), ("to", 1), ("axis", 1))]
        convolution = helper.make_node("Conv", ["y", "w"], ["z"])
        constants.append(helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 1, 1], [1]))
        model = model_of([node, convolution], [("x", (1, 3, 8, 8))], [("z", (1, 1, 8, 8))],
                         initializer=constants)
        for swap, first_channel in ((False, 10), (True, 250)):
            path = self.exported(self.built(model, dataset, quant_img_RGB2BGR=swap), "swap.rknn")
            scale = _native.describe(path)["outputs"][0]["quant"]["scales"][0]
            self.assertAlmostEqual(scale * 255, first_channel, delta=0.01 * first_channel)

    def test_two_inputs_a_line(self):
        model = model_of([helper.make_node("Add", ["a", "b"], ["y"])], [("a", (1, 4)), ("b", (1, 4))],
                         [("y", (1, 4))])
        np.save(self.path("a.npy"), np.array([[-1, 0, 1, 2]], np.float32))
        np.save(self.path("b.npy"), np.array([[1, 5, 1, -2]], np.float32))
        rknn = self.built(model, self.save("two.txt", b"a.npy b.npy\n"))
        self.assertEqual(rknn.init_runtime(), 0)
        found = rknn.inference([np.load(self.path("a.npy")), np.load(self.path("b.npy"))])[0]
        np.testing.assert_allclose(found, [[0, 5, 2, 0]], atol=0.05)
        rknn.load_onnx(model)
        self.refused(-1, lambda: rknn.build(dataset=self.save("one.txt", b"a.npy\n")), "line 1", "2 inputs")

    def test_builds_in_two_threads_leave_stdout_alone(self):
        model = model_of([helper.make_node("Add", ["a", "a"], ["y"])], [("a", (1, 4))], [("y", (1, 4))])
        np.save(self.path("a.npy"), X)
        dataset, before = self.save("a.txt", b"a.npy\n"), sys.stdout
        with ThreadPoolExecutor(2) as executor:
            for done in [executor.submit(self.built, model, dataset) for _ in range(4)]:
                self.assertEqual(done.result(PATIENCE).init_runtime(), 0)
        self.assertIs(sys.stdout, before)

    def test_kl_divergence(self):
        rknn = self.built(orientation(), self.pictures(224, 224), mean_values=[MEAN], std_values=[STD],
                          quantized_algorithm="kl_divergence")
        self.assertEqual(rknn.init_runtime(), 0)
        found = rknn.inference([page(224, 224)])[0]
        self.assertEqual(found.argmax(), reference(orientation(), normalised(page(224, 224)))[0].argmax())

    def test_extra_is_named_where_it_is_absent(self):
        code = """
        import sys, logging
        sys.modules[MISSING] = None
        from corelane.rknn_toolkit import RKNN
        np.save("one.npy", X)
        open("set.txt", "w").write("one.npy")
        rknn = RKNN()
        assert rknn.load_onnx(os.environ["RELU_MODEL"]) == 0
        assert rknn.build(dataset="set.txt") == -1
        assert rknn.build(do_quantization=False) == 0
        """
        for missing in ("onnxruntime", "onnx"):
            start = f"import os; os.chdir({self.folder!r}); MISSING = {missing!r}\n"
            done = child(start + textwrap.dedent(code))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("pip install corelane[quantize]", done.stderr)
            self.assertIn(missing, done.stderr)
            self.assertEqual(done.stdout, "")


class Evaluation(Case):
    def test_accuracy_analysis_compares_layers_and_outputs(self):
        for quantize in (None, self.pictures(224, 224)):
            rknn = self.built(orientation(), quantize, mean_values=[MEAN], std_values=[STD])
            self.pictures(224, 224)
            sample = [self.path("224x224_0.png")]
            self.assertEqual(rknn.accuracy_analysis(inputs=sample, output_dir=self.path("snap")), 0)
            with open(self.path("snap/error_analysis.json"), encoding="utf-8") as file:
                report = json.load(file)
            self.assertEqual([row["name"] for row in report["outputs"]], ["fetch_name_0"])
            self.assertGreaterEqual(report["outputs"][0]["cosine"], 0.999)
            self.assertGreaterEqual(len(report["layers"]), 50)
            for row in report["layers"]:
                self.assertGreaterEqual(row["cosine"], 0.99999 if quantize is None else 0.8, row)
            with open(self.path("snap/error_analysis.txt"), encoding="utf-8") as file:
                self.assertIn("fetch_name_0", file.read())
        self.assertEqual(rknn.accuracy_analysis([page(224, 224)], self.path("snap")), 0)
        self.refused(-1, lambda: rknn.accuracy_analysis([], self.path("snap")), "has 1, 0 were given")
        self.refused(-1, lambda: rknn.accuracy_analysis(["none.png"], self.path("snap")), "none.png")
        self.refused(-1, lambda: RKNN().accuracy_analysis(sample), "build()")

    def test_a_wrong_program_is_seen(self):
        from corelane.rknn_toolkit import _analysis
        rows = _analysis.compare({"y": np.array([1.0, 2.0]), "z": np.zeros(3)},
                                 {"y": np.array([1.0, -2.0]), "z": np.zeros(4)})
        self.assertAlmostEqual(rows[0]["cosine"], -0.6)
        self.assertEqual((rows[0]["max_error"], rows[1]["found_shape"]), (4.0, [4]))

    def test_perf_and_memory(self):
        rknn = self.built(orientation())
        self.refused(None, rknn.eval_perf, "init_runtime()")
        self.refused(None, rknn.eval_memory, "init_runtime()")
        self.assertEqual(rknn.init_runtime(perf_debug=True, eval_mem=True), 0)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            text = rknn.eval_perf(loop_cnt=2)
        self.assertEqual(shown.getvalue().strip(), text.strip())
        self.assertRegex(text, r"Total Time\(us\): [1-9]\d*\n")
        self.assertRegex(text, r"\n +\d+ Convolution +f32 ")
        with contextlib.redirect_stdout(io.StringIO()) as nothing:
            memory = rknn.eval_memory(is_print=False)
        self.assertEqual(nothing.getvalue(), "")
        self.assertGreater(memory["weight_memory"], 6_000_000)
        parts = sum(memory[f"{part}_memory"] for part in ("weight", "internal", "other"))
        self.assertEqual(memory["total_memory"], parts)

    def test_perf_of_a_scripted_device(self):
        rknn = self.built(relu_model((1, 4)))
        self.assertEqual(rknn.init_runtime(target="null:rk3588?a=3ms"), 0)
        text = rknn.eval_perf(is_print=False, loop_cnt=3)
        self.assertGreaterEqual(int(text.split("Total Time(us): ")[1].split()[0]), 3000)


class Tables(Case):
    def test_keywords_that_are_taken(self):
        for keywords in (
                {}, {"mean_values": None, "std_values": None},
                {"mean_values": [0, 0, 0], "std_values": [1, 1, 1]},
                {"mean_values": [[0, 0, 0]]}, {"mean_values": np.zeros((1, 3))}, {"std_values": [None]},
                {"quantized_dtype": "asymmetric_quantized-8"}, {"quantized_algorithm": "normal"},
                {"quantized_method": "layer"}, {"optimization_level": 0}, {"float_dtype": "float16"},
                {"target_platform": "rv1106"}, {"remove_weight": False}, {"compress_weight": True},
                {"single_core_mode": True}, {"model_pruning": True}, {"op_target": {"a": "cpu"}},
                {"sparse_infer": True}, {"enable_flash_attention": True}, {"quantize_weight": False},
                {"remove_reshape": False}, {"disable_rules": ["r"]}, {"inputs_yuv_fmt": None}):
            with self.subTest(**keywords):
                self.assertEqual(RKNN().config(**keywords), 0)

    def test_keywords_that_are_refused(self):
        for keywords, kind, text in (
                ({"means": 1}, TypeError, "mean_values"), ({"mean_values": 5}, ValueError, "mean_values"),
                ({"mean_values": [["a"]]}, ValueError, "numbers"),
                ({"mean_values": []}, ValueError, "mean_values"),
                ({"std_values": [[1, 0, 1]]}, ValueError, "0 cannot"),
                ({"std_values": "x"}, ValueError, "std_values"),
                ({"quantized_dtype": "w16a16i"}, ValueError, "w8a8"),
                ({"quantized_algorithm": "mmse"}, ValueError, "kl_divergence"),
                ({"quantized_method": "group32"}, ValueError, "layer"),
                ({"target_platform": "rk1"}, ValueError, "rk3588"),
                ({"target_platform": 3588}, ValueError, "rk3588"),
                ({"optimization_level": 4}, ValueError, "optimization_level"),
                ({"custom_string": 1}, ValueError, "text"),
                ({"custom_string": "x" * 1025}, ValueError, "1024"),
                ({"dynamic_input": [[1, 3]]}, ValueError, "dynamic_input"),
                ({"dynamic_input": []}, ValueError, "dynamic_input"),
                ({"remove_weight": True}, ValueError, "--remove-weights"),
                ({"remove_reshape": True}, ValueError, "remove_reshape"),
                ({"inputs_yuv_fmt": ["nv12"]}, ValueError, "RGB")):
            with self.subTest(**keywords), self.assertRaises(kind) as caught:
                RKNN().config(**keywords)
            self.assertIn(text, str(caught.exception))

    def test_means_are_held_against_the_inputs(self):
        for config, text in (({"mean_values": [[0] * 3, [0] * 3]}, "2 lists for 1 inputs"),
                             ({"mean_values": [[0, 0]]}, "channels")):
            rknn = RKNN()
            rknn.config(**config)
            rknn.load_onnx(relu_model((1, 3, 4, 4)))
            self.refused(-1, lambda: rknn.build(do_quantization=False), text)
        rknn = RKNN()
        rknn.config(mean_values=[[0, 0, 0]])
        rknn.load_onnx(relu_model((1, 4)))
        self.refused(-1, lambda: rknn.build(do_quantization=False), "rank 4")

    def test_order_of_calls(self):
        rknn = RKNN()
        self.refused(-1, lambda: rknn.build(do_quantization=False), "load_onnx()")
        self.refused(-1, lambda: rknn.export_rknn(self.path("x")), "build()")
        self.refused(-1, rknn.init_runtime, "load_rknn()")
        self.refused(None, lambda: rknn.inference([]), "init_runtime()")
        self.refused(-1, lambda: rknn.load_onnx(self.path("none.onnx")), "none.onnx")
        self.refused(-1, lambda: rknn.load_onnx(b"no model"), "corelane compile model.onnx")
        self.refused(-1, lambda: rknn.load_onnx(5), "path")
        self.refused(-1, lambda: rknn.load_rknn("none.rknn"), "none.rknn")
        rknn.load_onnx(relu_model((1, 4)))
        self.refused(-1, lambda: rknn.build(do_quantization=False, auto_hybrid=True), "auto_hybrid")
        self.assertEqual(rknn.build(do_quantization=False), 0)
        self.refused(-1, lambda: rknn.export_rknn(self.path("no/such/x.rknn")), "no/such")
        self.refused(-1, lambda: rknn.export_rknn(self.path("x.rknn"), cpp_gen_cfg="c"), "cpp_gen_cfg")
        self.assertFalse(os.path.exists(self.path("x.rknn")))
        model = self.save("kept.onnx", relu_model((1, 4)))
        self.assertEqual((rknn.load_onnx(model), rknn.build(do_quantization=False)), (0, 0))
        self.refused(-1, lambda: rknn.export_rknn(model), "the model itself")

    def test_other_formats_and_functions_say_the_way(self):
        rknn = RKNN()
        for name in ("caffe", "tensorflow", "tflite", "darknet", "pytorch", "keras", "mxnet"):
            self.refused(-1, lambda: getattr(rknn, f"load_{name}")(model="m", inputs=["x"]), "load_onnx()")
        for name in ("hybrid_quantization_step1", "hybrid_quantization_step2", "codegen", "reg_custom_op",
                     "export_encrypted_rknn_model"):
            self.refused(-1, getattr(rknn, name), "not served")
        self.assertEqual(rknn.list_devices(), ([], []))

    def test_compile(self):
        program = corelane.compile(relu_model((1, 4)), custom_string="s")
        self.assertEqual(_native.describe(program)["custom_string"], "s")
        for options, text in (({"batch": 0}, "batch"), ({"cores": 65}, "cores"), ({"layout": "chw"}, "nhwc"),
                              ({"io_dtype": "x"}, "f16"), ({"mean": "abc"}, "mean"),
                              ({"input_shapes": {"q": [1]}}, "'q'")):
            with self.subTest(text), self.assertRaises(RuntimeError) as caught:
                corelane.compile(relu_model((1, 4)), **options)
            self.assertIn(text, str(caught.exception))
        path = self.save("m.onnx", relu_model((1, 4)))
        with self.assertRaises(RuntimeError):
            corelane.compile(path, path)
        self.assertIsNone(corelane.compile(path, self.path("m.rknn")))
        with self.assertRaises(RuntimeError):
            corelane.compile(self.path("none.onnx"))


if __name__ == "__main__":
    unittest.main()
