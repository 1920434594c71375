"""corelane.rknn_toolkit, the API of rknn.api.RKNN: real ONNX models to programs, and their evaluation."""
import contextlib
import io
import json
import os
import unittest

import numpy as np

import corelane
from corelane import _native
from corelane.rknn_toolkit import RKNN
from corelane.rknnlite import RKNNLite
from python_support import X, model_of, relu_model
from rknn_support import (MEAN, STD, ToolkitCase, detection, log_lines, normalised, orientation, page,
                          reference)


class Float(ToolkitCase):
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
        with log_lines(self.LOG) as lines:
            self.assertIsNone(rknn.inference([np.ones((1, 5, 5, 3), np.float32)]))
        self.assertIn("[1,3,8,8]", lines[0].replace(" ", ""))

    def test_batch(self):
        rknn = self.built(orientation(), mean_values=[MEAN], std_values=[STD], build={"rknn_batch_size": 4})
        self.assertEqual(rknn.init_runtime(), 0)
        pages = [page(224, 224, turns) for turns in range(4)]
        expected = [reference(orientation(), normalised(one))[0] for one in pages]
        found = rknn.inference([np.concatenate(pages)])[0]
        np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-5)
        for size in (0, -1, 1.5, True, "4"):
            with log_lines(self.LOG) as lines:
                self.assertEqual(rknn.build(do_quantization=False, rknn_batch_size=size), -1)
            self.assertIn("rknn_batch_size", lines[0])


class Evaluation(ToolkitCase):
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


class Tables(ToolkitCase):
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
                ({"custom_string": "x" * 1024}, ValueError, "1023"),
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
        self.refused(-1, lambda: rknn.export_rknn(model), "the program is made of")

    def test_other_formats_and_functions_say_the_way(self):
        rknn = RKNN()
        for name in ("caffe", "tensorflow", "tflite", "darknet", "pytorch", "keras", "mxnet"):
            self.refused(-1, lambda: getattr(rknn, f"load_{name}")(model="m", inputs=["x"]), "load_onnx()")
        for name in ("hybrid_quantization_step1", "hybrid_quantization_step2", "codegen",
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

    def test_a_program_is_no_wider_than_its_model(self):
        def mode(path):
            return os.stat(path).st_mode & 0o777

        model, program = self.save("secret.onnx", relu_model((1, 4))), self.path("open.rknn")
        os.chmod(model, 0o600)
        corelane.compile(model, program)
        self.assertEqual(mode(program), 0o600)
        os.chmod(program, 0o666)
        rknn = RKNN()
        self.assertEqual((rknn.load_onnx(model), rknn.build(do_quantization=False)), (0, 0))
        self.assertEqual(rknn.export_rknn(program), 0)
        self.assertEqual(mode(program), 0o600)
        os.chmod(model, 0o644)
        old = os.umask(0o027)
        try:
            corelane.compile(model, program)
        finally:
            os.umask(old)
        self.assertEqual(mode(program), 0o640)

    def test_a_program_is_no_wider_than_whatever_else_it_is_made_of(self):
        def mode(path):
            return os.stat(path).st_mode & 0o777

        import onnx
        weights, program, model = self.path("weights.bin"), self.path("made.rknn"), self.path("external.onnx")
        inline = model_of([onnx.helper.make_node("Add", ["x", "w"], ["y"])], [("x", (1, 4))], [("y", (1, 4))],
                          initializer=[onnx.numpy_helper.from_array(X, "w")])
        onnx.save_model(onnx.load_model_from_string(inline), model, save_as_external_data=True,
                        location="weights.bin", size_threshold=0)
        os.chmod(weights, 0o600)
        self.assertEqual(mode(model), 0o644)
        corelane.compile(model, program)
        self.assertEqual(mode(program), 0o600)
        with open(model, "rb") as file:
            corelane.compile(file.read(), program, data_root=os.path.dirname(model))
        self.assertEqual(mode(program), 0o600)
        with self.assertRaisesRegex(RuntimeError, "weights.bin.* the program is made of"):
            corelane.compile(model, weights)
        os.chmod(weights, 0o644)
        os.chmod(model, 0o600)
        corelane.compile(model, program, metadata={"k": "v"})
        self.assertEqual(mode(program), 0o600)


if __name__ == "__main__":
    unittest.main()
