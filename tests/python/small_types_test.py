"""8-bit floats and types of 4 and 2 bits: what onnxruntime takes and gives, and what corelane does beside.

python small_types_test.py onnxruntime|corelane
"""
import importlib
import sys
import unittest

import numpy as np
from onnx import TensorProto as T
from onnx import helper

ENGINE = sys.argv.pop(1) if len(sys.argv) > 1 else "corelane"
ort = importlib.import_module(ENGINE)
OWN = ENGINE == "corelane"

X = np.array([0, 1, -1, 0.5, 1.5], np.float32)
BYTES = {T.FLOAT8E4M3FN: [0, 0x38, 0xB8, 0x30, 0x3C], T.FLOAT8E4M3FNUZ: [0, 0x40, 0xC0, 0x38, 0x44],
         T.FLOAT8E5M2: [0, 0x3C, 0xBC, 0x38, 0x3E], T.FLOAT8E5M2FNUZ: [0, 0x40, 0xC0, 0x3C, 0x42]}
WORDS = {T.FLOAT8E4M3FN: "float8e4m3fn", T.FLOAT8E4M3FNUZ: "float8e4m3fnuz", T.FLOAT8E5M2: "float8e5m2",
         T.FLOAT8E5M2FNUZ: "float8e5m2fnuz"}
# 0 to 3 and 1: packed, the first in the low bits.
PACKED = {T.UINT2: [0xE4, 0x01], T.INT2: [0xE4, 0x01], T.UINT4: [0x10, 0x32, 0x01], T.INT4: [0x10, 0x32, 0x01]}
VALUES = {T.UINT2: [0, 1, 2, 3, 1], T.INT2: [0, 1, -2, -1, 1], T.UINT4: [0, 1, 2, 3, 1], T.INT4: [0, 1, 2, 3, 1]}


def cast(source, target):
    """A session of y = Cast(x), five elements."""
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=target)], "g",
                              [helper.make_tensor_value_info("x", source, [5])],
                              [helper.make_tensor_value_info("y", target, [5])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def value(data, number):
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array(data, np.uint8), number)


class SmallTypes(unittest.TestCase):
    def test_bits_of_8_bit_floats_go_in_as_values(self):
        for number, data in BYTES.items():
            session = cast(number, T.FLOAT)
            self.assertEqual(session.get_inputs()[0].type, f"tensor({WORDS[number]})")
            given = value(data, number)
            self.assertEqual((given.data_type(), given.element_type(), given.shape()),
                             (f"tensor({WORDS[number]})", number, [5]))
            np.testing.assert_array_equal(session.run(None, {"x": given})[0], X)
            (y,) = session.run_with_ort_values(None, {"x": given})
            np.testing.assert_array_equal(y.numpy(), X)

    def test_8_bit_floats_come_out_as_values(self):
        for number, data in BYTES.items():
            session = cast(T.FLOAT, number)
            (y,) = session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(X)})
            self.assertEqual((y.data_type(), y.element_type(), y.shape(), y.tensor_size_in_bytes()),
                             (f"tensor({WORDS[number]})", number, [5], 5))
            np.testing.assert_array_equal(cast(number, T.FLOAT).run(None, {"x": y})[0], X)
            if number == T.FLOAT8E4M3FN:
                np.testing.assert_array_equal(y.numpy(), np.array(data, np.uint8))

    def test_float8e4m3fn_comes_out_as_bytes(self):
        (y,) = cast(T.FLOAT, T.FLOAT8E4M3FN).run(None, {"x": X})
        self.assertEqual(y.dtype, np.uint8)
        np.testing.assert_array_equal(y, BYTES[T.FLOAT8E4M3FN])

    def test_packed_elements_go_in_as_the_first_bytes_of_a_value(self):
        for number, data in PACKED.items():
            given = value(data + [0] * (5 - len(data)), number)
            self.assertEqual((given.element_type(), given.shape()), (number, [5]))
            np.testing.assert_array_equal(cast(number, T.FLOAT).run(None, {"x": given})[0], VALUES[number])

    def test_packed_elements_come_out_as_values(self):
        for number, data in PACKED.items():
            x = np.array(VALUES[number], np.float32)
            (y,) = cast(T.FLOAT, number).run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(x)})
            self.assertEqual((y.element_type(), y.shape(), y.tensor_size_in_bytes()), (number, [5], len(data)))
            np.testing.assert_array_equal(cast(number, T.FLOAT).run(None, {"x": y})[0], x)

    def test_plain_bytes_are_another_type(self):
        for number in (T.FLOAT8E5M2, T.UINT2):
            with self.assertRaisesRegex(Exception, "Unexpected input data type"):
                cast(number, T.FLOAT).run(None, {"x": np.zeros(5, np.uint8)})


@unittest.skipUnless(OWN, "onnxruntime raises")
class Beside(unittest.TestCase):
    """numpy arrays of ml_dtypes, which onnx imports: elements, whatever their size."""

    def test_arrays_of_ml_dtypes_go_in(self):
        import ml_dtypes
        for number, name in {T.FLOAT8E4M3FN: "float8_e4m3fn", T.FLOAT8E5M2: "float8_e5m2", T.UINT2: "uint2",
                             T.INT2: "int2", T.INT4: "int4"}.items():
            x = np.array(VALUES.get(number, X), np.float32)
            given = x.astype(getattr(ml_dtypes, name))
            np.testing.assert_array_equal(cast(number, T.FLOAT).run(None, {"x": given})[0], x)
            held = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(given, number)
            np.testing.assert_array_equal(cast(number, T.FLOAT).run(None, {"x": held})[0], x)

    def test_arrays_of_ml_dtypes_come_out(self):
        import ml_dtypes
        for number, name in {T.FLOAT8E5M2: "float8_e5m2", T.UINT2: "uint2", T.INT2: "int2", T.INT4: "int4"}.items():
            x = np.array(VALUES.get(number, X), np.float32)
            (y,) = cast(T.FLOAT, number).run(None, {"x": x})
            self.assertEqual(y.dtype, np.dtype(getattr(ml_dtypes, name)))
            np.testing.assert_array_equal(y.astype(np.float32), x)

    def test_memory_of_elements_of_2_bits_is_not_taken_for_packed(self):
        session = cast(T.FLOAT, T.UINT2)
        (y,) = session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(X)})
        with self.assertRaisesRegex(RuntimeError, "an element in each byte"):
            y.data_ptr()
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        with self.assertRaisesRegex(Exception, "bind it without memory"):
            binding.bind_ortvalue_output("y", y)
            session.run_with_iobinding(binding)

    def test_floats_of_4_bits_are_refused_by_both_engines(self):
        with self.assertRaisesRegex(Exception, "f4e2m1"):
            cast(T.FLOAT, T.FLOAT4E2M1)


if __name__ == "__main__":
    unittest.main()
