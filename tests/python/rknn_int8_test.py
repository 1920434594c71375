"""What an int8 build of corelane.rknn_toolkit quantizes: all that a board has as int8; and what it names.

CORELANE_TEST_LIBRARIES, where it is set, is the folder with librknnrt.so, which is asked, too."""
import ctypes
import os
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import corelane
from corelane import _native
from corelane._arrays import dtype_of
from corelane.rknn_toolkit import RKNN
from corelane.rknn_toolkit.custom_op import get_node_attr
from python_support import NPU, model_of
from rknn_support import ToolkitCase, log_lines, reference

CLASSES, SIDE = 8, 64


class HeadBuilder:
    """A detection head as model collections of the field export it (operator set 12): for each of three
    scales a box distribution, scores of the classes, and their sum cut at 1."""

    def __init__(self):
        self.nodes, self.weights, self._random = [], [], np.random.default_rng(7)

    def constant(self, name, values):
        self.weights.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def conv(self, source, target, channels_in, channels, stride=1):
        weights = self._random.normal(0, 0.6, (channels, channels_in, stride, stride)) / stride
        bias = self._random.normal(-0.5, 0.5, channels)
        names = [self.constant(f"{target}_{part}", values) for part, values in (("w", weights), ("b", bias))]
        self.add("Conv", [source, *names], target, strides=[stride, stride])

    def add(self, kind, sources, target, **attributes):
        self.nodes.append(helper.make_node(kind, sources, [target], name=f"make_{target}", **attributes))

    def model(self):
        outputs = []
        self.constant("zero", 0)
        self.constant("one", 1)
        for stride in (8, 16, 32):
            size = SIDE // stride
            self.conv("x", f"f{stride}", 3, 12, stride)
            self.conv(f"f{stride}", f"box{stride}", 12, 16)
            self.conv(f"f{stride}", f"logits{stride}", 12, CLASSES)
            self.add("Sigmoid", [f"logits{stride}"], f"score{stride}")
            self.add("ReduceSum", [f"score{stride}"], f"all{stride}", axes=[1], keepdims=1)
            self.add("Clip", [f"all{stride}", "zero", "one"], f"sum{stride}")
            outputs += [(f"{name}{stride}", (1, channels, size, size))
                        for name, channels in (("box", 16), ("score", CLASSES), ("sum", 1))]
        return model_at(12, self.nodes, [("x", (1, 3, SIDE, SIDE))], outputs, self.weights)


def model_at(version, nodes, inputs, outputs, initializer=()):
    def values(rows):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in rows]

    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), initializer=initializer)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)],
                             ir_version=8).SerializeToString()


def types(path):
    """Of the outputs, as clients are told them."""
    return [str(dtype_of(entry["type"])) for entry in _native.describe(path)["outputs"]]


class Attribute(ctypes.Structure):
    """rknn_tensor_attr of rknn_api.h."""
    _fields_ = [(name, ctypes.c_uint32) for name in ("index", "n_dims")] + [
        ("dims", ctypes.c_uint32 * 16), ("name", ctypes.c_char * 256)] + [
        (name, ctypes.c_uint32) for name in ("n_elems", "size", "fmt", "type", "qnt_type", "fl")] + [
        ("zp", ctypes.c_int32), ("scale", ctypes.c_float)] + [
        (name, ctypes.c_uint32) for name in ("w_stride", "size_with_stride", "pass_through", "h_stride")]


def queried_types(path, outputs):
    """(type, qnt_type) of each output as rknn_query gives them; 2 is INT8, and 2 AFFINE."""
    library = ctypes.CDLL(os.path.join(os.environ["CORELANE_TEST_LIBRARIES"], "librknnrt.so"))
    context = ctypes.c_uint64()
    assert library.rknn_init(ctypes.byref(context), os.fsencode(path), 0, 0, None) == 0
    found = []
    for i in range(outputs):
        attribute = Attribute(index=i)
        assert library.rknn_query(context, 2, ctypes.byref(attribute), ctypes.sizeof(attribute)) == 0
        found.append((attribute.type, attribute.qnt_type))
    library.rknn_destroy(context)
    return found


class Case(ToolkitCase):
    def dataset(self, *samples):
        """Each sample an array, or a list of them."""
        lines = []
        for number, sample in enumerate(samples):
            names = []
            for i, array in enumerate(sample if isinstance(sample, list) else [sample]):
                names.append(f"{self.id().split('.')[-1]}_{number}_{i}.npy")
                np.save(self.path(names[-1]), array)
            lines.append(" ".join(names) + "\n")
        return self.save(f"{self.id().split('.')[-1]}.txt", "".join(lines).encode())

    def quantized(self, model, *samples, operators=(), **config):
        """(path of the program, the warnings of the build)."""
        rknn = RKNN()
        self.assertEqual(rknn.config(**config), 0)
        for operator in operators:
            self.assertEqual(rknn.reg_custom_op(operator), 0)
        with log_lines(self.LOG) as lines:
            self.assertEqual((rknn.load_onnx(model), rknn.build(dataset=self.dataset(*samples))), (0, 0), lines)
        self.rknn = rknn
        return self.exported(rknn, "int8.rknn"), "".join(lines)

    def near(self, model, *inputs, steps=3):
        """Inference is within that many steps of the float model's results."""
        self.assertEqual(self.rknn.init_runtime(), 0)
        found = self.rknn.inference([a.transpose(0, 2, 3, 1) if a.ndim == 4 else a for a in inputs])
        for one, exact in zip(found, reference(model, *inputs)):
            step = max(float(np.ptp(np.append(exact, 0))), 1e-6) / 255
            self.assertLessEqual(float(np.abs(one - exact).max()), steps * step + 1e-6)


class Outputs(Case):
    def test_head_has_nine_int8_outputs_and_keeps_every_cell(self):
        """As clients read it: integers by the first output's type, cells dropped by their sum first."""
        samples = [np.random.default_rng(i).uniform(-1, 1, (1, 3, SIDE, SIDE)).astype(np.float32)
                   for i in range(4)]
        for method in ("channel", "layer"):
            path, warnings = self.quantized(HeadBuilder().model(), *samples, quantized_method=method)
            self.assertEqual(types(path), ["int8"] * 9)
            self.assertEqual(warnings, "")
            if "CORELANE_TEST_LIBRARIES" in os.environ:
                self.assertEqual(queried_types(path, 9), [(2, 2)] * 9)
            session = corelane.InferenceSession(path, providers=[NPU],
                                                provider_options=[{"output_form": "raw"}])
            forms = [output.quant for output in session.get_outputs()]
            kept = wanted = 0
            for sample in samples:
                found = session.run(None, {"x": sample})
                self.assertEqual({array.dtype for array in found}, {np.dtype(np.int8)})
                for branch in range(3):
                    scores, sums = found[3 * branch + 1][0], found[3 * branch + 2][0, 0]
                    best, least = scores.max(axis=0), [round(0.5 / form["scales"][0]) + form["zero_points"][0]
                                                       for form in forms[3 * branch + 1:3 * branch + 3]]
                    wanted += int((best >= least[0]).sum())
                    kept += int(((best >= least[0]) & (sums >= least[1])).sum())
            self.assertGreater(wanted, 50)
            self.assertEqual(kept, wanted)

    def test_results_between_any_operators_are_int8_and_near(self):
        """Each operator that the quantizer leaves as it is: alone between two others, and last."""
        x = np.linspace(-2, 2, 48, dtype=np.float32).reshape(1, 3, 4, 4)
        cases = {"Tanh": {}, "Exp": {}, "Abs": {}, "Neg": {}, "Sqrt": {}, "Erf": {}, "HardSwish": {}, "Elu": {},
                 "Softplus": {}, "ReduceMean": {"axes": [1], "keepdims": 1}, "Sin": {},
                 "ReduceMax": {"axes": [2], "keepdims": 1}, "ReduceL2": {"axes": [3], "keepdims": 1}}
        for kind, attributes in cases.items():
            source = "p" if kind == "Sqrt" else "x"
            nodes = [helper.make_node("Mul", ["x", "x"], ["p"]), helper.make_node(kind, [source], ["m"], **attributes),
                     helper.make_node("Neg", ["m"], ["y"])]
            model = model_at(14, nodes, [("x", x.shape)], [("m", None), ("y", None)])
            with self.subTest(kind):
                path, warnings = self.quantized(model, x)
                self.assertEqual(types(path), ["int8", "int8"])
                self.assertEqual(warnings, "")
                self.near(model, x, steps=8 if kind == "Sqrt" else 3)  # It is steep at 0.

    def test_sub_div_and_the_clip_behind_them(self):
        a = np.linspace(-4, 4, 32, dtype=np.float32).reshape(1, 32)
        b = np.linspace(1, 3, 32, dtype=np.float32).reshape(1, 32)
        limits = [numpy_helper.from_array(np.float32(v), n) for n, v in (("low", -1), ("high", 2))]
        nodes = [helper.make_node("Sub", ["a", "b"], ["s"]), helper.make_node("Div", ["a", "b"], ["d"]),
                 helper.make_node("Clip", ["s", "low", "high"], ["c"]),
                 helper.make_node("Clip", ["d", "low", "high"], ["e"])]
        model = model_at(13, nodes, [("a", a.shape), ("b", b.shape)],
                         [("d", a.shape), ("c", a.shape), ("e", a.shape)], limits)
        path, warnings = self.quantized(model, [a, b])
        self.assertEqual(types(path), ["int8"] * 3)
        self.assertEqual(warnings, "")
        self.near(model, a, b, steps=5)

    def test_a_shared_constant_stays_exact_where_a_rounding_would_spoil_it(self):
        """An exponent of 2 that is also a factor: (-1.5) ** 1.9999999 is not a number."""
        x = np.linspace(-2, 2, 32, dtype=np.float32).reshape(1, 32)
        two = numpy_helper.from_array(np.array([2, 0.3], np.float32)[:1], "two")
        nodes = [helper.make_node("Mul", ["x", "two"], ["m"]), helper.make_node("Pow", ["m", "two"], ["y"])]
        model = model_at(13, nodes, [("x", x.shape)], [("y", x.shape)], [two])
        path, _ = self.quantized(model, x)
        self.assertEqual(types(path), ["int8"])
        self.near(model, x, steps=6)

    def test_sizes_that_a_network_computes_are_no_activations(self):
        """Twice the size of the input, computed as floats: 8 bits would give another size."""
        x = np.linspace(0, 1, 3 * 10 * 14, dtype=np.float32).reshape(1, 3, 10, 14)
        constants = [numpy_helper.from_array(np.array(v, t), n) for n, v, t in (
            ("double", [1, 1, 2, 2], np.float32), ("none", [], np.float32))]
        nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Shape", ["r"], ["s"]),
                 helper.make_node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
                 helper.make_node("Mul", ["f", "double"], ["g"]),
                 helper.make_node("Cast", ["g"], ["t"], to=TensorProto.INT64),
                 helper.make_node("Resize", ["r", "none", "none", "t"], ["y"], mode="nearest")]
        model = model_at(13, nodes, [("x", ("N", 3, 10, 14))], [("y", ("N", 3, 20, 28))], constants)
        path, warnings = self.quantized(model, x)
        self.assertEqual(types(path), ["int8"])
        self.assertEqual(warnings, "")
        self.near(model, x)


class HardToQuantize(Case):
    """What ONNX Runtime's quantizer fails for, or computes wrongly, by itself."""

    def built_near(self, nodes, x, constants):
        """The network inside, computed by onnxruntime as floats: 8-bit sums saturate on some CPUs."""
        model = model_at(13, nodes, [("x", x.shape)], [("y", None)], constants)
        for method in ("channel", "layer"):
            path, warnings = self.quantized(model, x, quantized_method=method)
            self.assertEqual((types(path), warnings), (["int8"], ""))
            exact = reference(model, x)[0]
            found = reference(_native.network(path), x, optimised=False)[0]
            self.assertLessEqual(float(np.abs(found - exact).max()), 5 * np.ptp(np.append(exact, 0)) / 255)

    def test_a_bias_of_two_dimensions(self):
        x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)
        random = np.random.default_rng(1)
        constants = [numpy_helper.from_array(random.normal(0, 0.1, shape).astype(np.float32), name)
                     for name, shape in (("w", (8, 4)), ("b", (1, 4)))]
        self.built_near([helper.make_node("Gemm", ["x", "w", "b"], ["y"])], x, constants)

    def test_a_bias_of_two_nodes_whose_copy_would_have_the_name_of_a_value(self):
        x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 2, 2, 4)
        weights = np.array([[0.5, -0.25], [0.125, 0.25]], np.float32).reshape(2, 2, 1, 1)
        constants = [numpy_helper.from_array(weights, "w"),
                     numpy_helper.from_array(np.array([0.3, -0.2], np.float32), "b")]
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["b1"]),
                 helper.make_node("Conv", ["b1", "w", "b"], ["b2"]),
                 helper.make_node("Neg", ["b2"], ["y"])]
        self.built_near(nodes, x, constants)

    def test_values_with_names_that_the_quantizer_gives(self):
        x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16)
        nodes = [helper.make_node("Neg", ["x"], ["a"], name="x_QuantizeLinear"),
                 helper.make_node("Exp", ["a"], ["x_scale"]),
                 helper.make_node("Tanh", ["a"], ["a_QuantizeLinear_Output"]),
                 helper.make_node("Add", ["x_scale", "a_QuantizeLinear_Output"], ["a_zero_point"]),
                 helper.make_node("Sub", ["a_zero_point", "x"], ["y"])]
        self.built_near(nodes, x, [])

    def test_an_output_that_a_clip_reads_too_has_its_own_range(self):
        x = np.linspace(-4, 4, 32, dtype=np.float32).reshape(1, 32)
        nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Relu", ["n"], ["y"])]
        path, _ = self.quantized(model_at(13, nodes, [("x", x.shape)], [("n", x.shape), ("y", x.shape)]), x)
        self.assertEqual(types(path), ["int8", "int8"])
        self.assertEqual(self.rknn.init_runtime(), 0)
        np.testing.assert_allclose(self.rknn.inference([x])[0], -x, atol=0.05)

    def test_a_model_that_is_quantized_already(self):
        x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16)
        constants = [numpy_helper.from_array(np.float32(2 / 255), "s"), numpy_helper.from_array(np.int8(0), "z")]
        pair = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"])]
        tail = [helper.make_node("Reshape", ["d", "shape"], ["r"]), helper.make_node("Tanh", ["r"], ["y"])]
        constants.append(numpy_helper.from_array(np.array([2, 8], np.int64), "shape"))
        pair[0].input[0] = "n"
        self.built_near([helper.make_node("Neg", ["x"], ["n"]), *pair, *tail], x, constants)
        pair[0].input[0] = "x"
        rknn = RKNN()
        self.assertEqual(rknn.load_onnx(model_at(13, pair + tail, [("x", x.shape)], [("y", (2, 8))], constants)), 0)
        self.refused(-1, lambda: rknn.build(dataset=self.dataset(x)), "quantized already", "do_quantization=False")


class StayFloat(Case):
    def test_layer_norm_that_is_written_out_keeps_its_small_divisor(self):
        rows = np.random.default_rng(3).normal(0, 1, (1, 6, 16)).astype(np.float32)
        rows *= np.array([1, 1, 30, 1, 0.01, 1], np.float32).reshape(1, 6, 1)
        constants = [numpy_helper.from_array(np.float32(v), n) for n, v in (("two", 2), ("eps", 1e-6))]
        nodes = [helper.make_node(kind, sources, [target], **attributes) for kind, sources, target, attributes in (
            ("ReduceMean", ["x"], "mean", {"axes": [-1]}), ("Sub", ["x", "mean"], "d", {}),
            ("Pow", ["d", "two"], "p", {}), ("ReduceMean", ["p"], "v", {"axes": [-1]}),
            ("Add", ["v", "eps"], "e", {}), ("Sqrt", ["e"], "root", {}), ("Div", ["d", "root"], "y", {}))]
        model = model_at(13, nodes, [("x", rows.shape)], [("y", rows.shape)], constants)
        path, warnings = self.quantized(model, rows)
        self.assertEqual(types(path), ["int8"])
        self.assertIn("value 'root' of Sqrt", warnings)
        self.assertIn("divided by", warnings)
        self.assertNotIn("'mean'", warnings)
        self.assertEqual(self.rknn.init_runtime(), 0)
        self.assertTrue(np.isfinite(self.rknn.inference([rows])[0]).all())

    def test_masks_beyond_float16_are_named_and_spoil_nothing(self):
        x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(1, 8)
        keep = np.array([[True, True, False, True, True, False, True, True]])
        for least in (-1e9, -np.inf):
            constants = [numpy_helper.from_array(np.float32(least), "least"),
                         numpy_helper.from_array(keep, "keep")]
            nodes = [helper.make_node("Where", ["keep", "x", "least"], ["masked"], name="mask"),
                     helper.make_node("Softmax", ["masked"], ["y"], axis=-1)]
            model = model_at(13, nodes, [("x", x.shape)], [("y", x.shape)], constants)
            path, warnings = self.quantized(model, x)
            self.assertEqual(types(path), ["int8"])
            self.assertIn("'masked' of Where 'mask'", warnings)
            self.assertEqual(self.rknn.init_runtime(), 0)
            np.testing.assert_allclose(self.rknn.inference([x])[0], reference(model, x)[0], atol=0.02)

    def test_what_a_body_reads_and_other_types_are_named(self):
        x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)
        branches = {}
        for name, kind in (("then_branch", "Neg"), ("else_branch", "Abs")):
            result = helper.make_tensor_value_info(f"r_{kind}", TensorProto.FLOAT, x.shape)
            branches[name] = helper.make_graph([helper.make_node(kind, ["a"], [f"r_{kind}"])], name, [], [result])
        nodes = [helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0),
                 helper.make_node("Greater", ["t", "zero"], ["c"]),
                 helper.make_node("If", ["c"], ["i"], name="choice", **branches),
                 helper.make_node("Cast", ["i"], ["w"], to=TensorProto.DOUBLE),
                 helper.make_node("Softmax", ["w"], ["p"]),
                 helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT)]
        model = model_at(13, nodes, [("x", x.shape)], [("y", x.shape)],
                         [numpy_helper.from_array(np.float32(0.5), "zero")])
        path, warnings = self.quantized(model, x)
        self.assertEqual(types(path), ["int8"])
        for text in ("the body of If 'choice'", "value 'a' of Tanh: the body", "'p' of Softmax: its type is"):
            self.assertIn(text, warnings)

    def test_bodies_and_recurrent_operators_are_named(self):
        x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 1, 4)
        weights = np.random.default_rng(5).normal(0, 0.5, (1, 8, 6)).astype(np.float32)
        constants = [numpy_helper.from_array(weights[:, :, :4].copy(), "w"),
                     numpy_helper.from_array(weights[:, :, 4:].copy(), "r")]
        model = model_at(13, [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2, name="cells")],
                         [("x", x.shape)], [("y", (3, 1, 1, 2))], constants)
        path, warnings = self.quantized(model, x)
        self.assertEqual(types(path), ["int8"])
        self.assertIn("LSTM 'cells', a recurrent operator", warnings)


class CstScale:
    op_type = "cstScale"

    def shape_infer(self, node, in_shapes, in_dtypes):
        return in_shapes.copy(), in_dtypes.copy()

    def compute(self, node, inputs):
        assert get_node_attr(node, "mode") == "plain" and get_node_attr(node, "nothing") is None
        return [inputs[0] * np.float32(get_node_attr(node, "factor"))]


class CstSplit:
    op_type = "cstSplit"

    def shape_infer(self, node, in_shapes, in_dtypes):
        half = [*in_shapes[0][:-1], in_shapes[0][-1] // 2]
        return [half, half], [in_dtypes[0]] * 2

    def compute(self, node, inputs):
        return np.split(inputs[0], 2, axis=-1)


class CustomOperators(Case):
    """Between int8 values, computed by the functions that were registered."""

    def model(self):
        nodes = [helper.make_node("Sigmoid", ["x"], ["a"]),
                 helper.make_node("cstScale", ["a"], ["b"], factor=4.0, mode="plain", name="mine"),
                 helper.make_node("cstSplit", ["b"], ["c", "d"], domain="my"),
                 helper.make_node("Sub", ["c", "d"], ["y"])]
        return model_of(nodes, [("x", (1, 8))], [("y", (1, 4))])

    def expected(self, x):
        scaled = 4 / (1 + np.exp(-x))
        return scaled[:, :4] - scaled[:, 4:]

    def test_in_float_and_int8(self):
        x = np.linspace(-3, 3, 8, dtype=np.float32).reshape(1, 8)
        float_model = RKNN()
        for operator in (CstScale(), CstSplit):
            self.assertEqual(float_model.reg_custom_op(operator), 0)
        self.assertEqual((float_model.load_onnx(self.model()), float_model.build(do_quantization=False),
                          float_model.init_runtime()), (0, 0, 0))
        np.testing.assert_allclose(float_model.inference([x])[0], self.expected(x), atol=1e-5)
        for algorithm in ("normal", "kl_divergence"):
            path, warnings = self.quantized(self.model(), x, x / 2, operators=(CstScale, CstSplit()),
                                            quantized_algorithm=algorithm)
            self.assertEqual(types(path), ["int8"])
            self.assertIn("cstScale 'mine', a custom operator", warnings)
            network = onnx.load_model_from_string(_native.network(path))
            made = {value: node.op_type for node in network.graph.node for value in node.output}
            readers = {value: node.op_type for node in network.graph.node for value in node.input}
            for node in network.graph.node:
                if node.op_type.startswith("cst"):
                    self.assertEqual({made[value] for value in node.input}, {"DequantizeLinear"})
                    self.assertEqual({readers[value] for value in node.output}, {"QuantizeLinear"})
        path, _ = self.quantized(self.model(), x, operators=(CstScale, CstSplit))
        self.assertEqual(self.rknn.init_runtime(), 0)
        np.testing.assert_allclose(self.rknn.inference([x])[0], self.expected(x), atol=0.1)
        self.refused(-1, lambda: self.rknn.accuracy_analysis([x]), "custom operators")
        self.refused(None, lambda: self.rknn.eval_perf(is_print=False), "custom operators")

    def test_as_outputs_of_the_graph(self):
        x = np.linspace(-3, 3, 8, dtype=np.float32).reshape(1, 8)
        nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("cstSplit", ["n"], ["c", "d"])]
        model = model_of(nodes, [("x", (1, 8))], [("c", (1, 4)), ("d", (1, 4))])
        path, _ = self.quantized(model, x, operators=[CstSplit])
        self.assertEqual(types(path), ["int8", "int8"])
        self.assertEqual(self.rknn.init_runtime(), 0)
        for found, exact in zip(self.rknn.inference([x]), np.split(-x, 2, axis=-1)):
            np.testing.assert_allclose(found, exact, atol=0.05)

    def test_what_is_missing_is_named(self):
        rknn = RKNN()
        self.assertEqual(rknn.reg_custom_op(CstScale()), 0)
        self.refused(-1, lambda: rknn.load_onnx(self.model()), "cstSplit", "reg_custom_op()")
        self.refused(-1, lambda: RKNN().reg_custom_op(object()), "op_type")
        self.refused(-1, lambda: RKNN().reg_custom_op(type("Bare", (), {"op_type": "cst"})), "compute")


if __name__ == "__main__":
    unittest.main()
