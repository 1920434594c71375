"""Patterns of the sweep about sizes: integers of shapes below 0, constants without elements, many equal
values, and what does not fit into a type.
"""

import itertools

import numpy as np
from onnx import TensorProto

from sweep_network import OPEN, Network


def sizes_below_zero():
    """Quotients and amounts of differences of shapes, as exporters of paddings write them."""
    for is_open, dtype in itertools.product(OPEN, (np.int64, np.int32)):
        n = Network(18, is_open, 3)
        to = {np.int64: TensorProto.INT64, np.int32: TensorProto.INT32}[dtype]
        for less, by in itertools.product(([6, 7], [5, 6], [4, 9], [0, 3]), (2, 3)):
            sizes = n.add("Cast", n.add("Shape", n.input((3, 4))), to=to)
            apart = n.add("Sub", sizes, n.constant(np.array(less, dtype)))
            quotient = n.add("Div", apart, n.constant(np.array([by], dtype)))
            n.give(quotient, dtype)
            more = n.add("Add", quotient, n.constant(np.array([10], dtype)))
            n.give(n.add("ConstantOfShape", n.add("Cast", more, to=TensorProto.INT64)))
            amount = n.add("Abs", apart)
            n.give(amount, dtype)
            n.give(n.add("ConstantOfShape", n.add("Cast", amount, to=TensorProto.INT64)))
            n.give(n.add("Div", n.add("Sub", n.add("Gather", sizes, n.constant(np.int64(1))),
                                      n.constant(np.array(less[0], dtype))), n.constant(np.array(by, dtype))), dtype)
            opposite = n.add("Neg", n.add("Div", n.add("Neg", sizes), n.constant(np.array([by], dtype))))
            n.give(n.add("ConstantOfShape", n.add("Cast", opposite, to=TensorProto.INT64)))
        yield f"below_zero_{np.dtype(dtype).name}", n


def without_elements():
    """Operators with a constant of shape [0, 2], or of no columns."""
    boolean = ("Equal", "Greater", "LessOrEqual")
    for is_open, op in itertools.product(OPEN, ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", *boolean)):
        n = Network(18, is_open, 1)
        of_none = n.add(op, n.input((1, 2)), n.constant(np.zeros((0, 2), np.float32)))
        n.give(of_none, bool if op in boolean else np.float32)
        yield f"empty_{op}", n
    for is_open in OPEN:
        n = Network(18, is_open, 1)
        n.give(n.add("Expand", n.input((1, 2)), n.constant(np.array([0, 2]))))
        yield "empty_Expand", n
        n = Network(18, is_open, 1)
        n.give(n.add("MatMul", n.input((1, 2)), n.constant(np.zeros((2, 0), np.float32))))
        yield "empty_MatMul", n
        n = Network(18, is_open, 1)
        added = n.add("Add", n.input((1, 2)), n.constant(np.zeros((0, 2), np.float32)))
        n.give(n.add("ReduceSum", added, keepdims=0))
        yield "empty_sum", n
        n = Network(18, is_open, 1)
        n.give(n.add("Concat", n.input((1, 2)), n.constant(np.zeros((0, 2), np.float32)), axis=0))
        yield "empty_Concat", n


def equal_values():
    """TopK of few different values: the places of the first ones."""
    shapes = (((2, 300), 1), ((300, 4), 0), ((2, 40, 3), 1), ((1, 400), 1), ((3, 8, 5, 5), 1))
    for is_open, (shape, axis), largest in itertools.product(OPEN, shapes, (0, 1)):
        for k in sorted({1, min(7, shape[axis]), min(200, shape[axis])}):
            n = Network(18, is_open, k)
            x = n.take(n.random.integers(0, 5, shape))
            x = n.add("Cast", x, to=TensorProto.FLOAT)
            values, places = n.add("TopK", x, n.constant(np.array([k])), outputs=2, axis=axis, largest=largest)
            n.give(values)
            n.give(places, np.int64)
            yield f"equal_{'x'.join(map(str, shape))}_k{k}_largest{largest}", n
    n = Network(18, False, 1)
    whole, few = n.random.integers(0, 250, (2, 9000)).astype(np.uint8), n.constant(np.array([200]))
    x = n.add("DequantizeLinear", n.take(whole), n.constant(np.float32(0.5)), n.constant(np.uint8(3)))
    values, places = n.add("TopK", x, few, outputs=2)
    n.give(values)
    n.give(places, np.int64)
    yield "equal_quantized", n
    n = Network(18, False, 1)  # Of scores that differ, in no order.
    values, places = n.add("TopK", n.input((2, 30)), n.constant(np.array([30])), outputs=2, sorted=0)
    n.give(n.add("ReduceSum", values, n.constant(np.array([1]))))
    n.give(n.add("ReduceSum", n.add("Cast", places, to=TensorProto.FLOAT), n.constant(np.array([1]))))
    yield "equal_unsorted", n
    for is_open, op, last in itertools.product(OPEN, ("ArgMax", "ArgMin"), (0, 1)):
        n = Network(18, is_open, 1)
        for axis in (0, 1):
            x = n.take(n.random.integers(0, 3, (20, 30)).astype(np.float32))
            n.give(n.add(op, x, axis=axis, select_last_index=last), np.int64)
        yield f"equal_{op}_last{last}", n


def beyond_a_type():
    """NaN as bool, places in fractions, fillings beyond 32 bits, values beyond 8-bit floats."""
    odd = np.array([np.nan, 0.5, -0.0, 0, 2, np.inf], np.float32)
    for is_open in OPEN:
        for dtype in (np.float32, np.float16):
            n = Network(18, is_open, 1)
            n.give(n.add("Cast", n.take(odd.astype(dtype)), to=TensorProto.BOOL), bool)
            yield f"beyond_bool_{np.dtype(dtype).name}", n
        n = Network(18, is_open, 1)
        places, values = n.take(np.array([0.5, 1.5, 2.9, 0], np.float32)), n.constant(np.array([0, 1], np.float32))
        n.give(n.add("OneHot", places, n.constant(np.array([4], np.float32)), values))
        yield "beyond_OneHot", n
        for value in (np.array([2**40 + 3]), np.array([1 / 3])):
            n = Network(18, is_open, 1)
            tensor = TensorProto(data_type=TensorProto.INT64 if value.dtype == np.int64 else TensorProto.DOUBLE,
                                 dims=[1], raw_data=value.tobytes())
            n.give(n.add("ConstantOfShape", n.add("Shape", n.input((2, 3))), value=tensor), value.dtype)
            yield f"beyond_ConstantOfShape_{value.dtype.name}", n
        for to in ("FLOAT8E4M3FN", "FLOAT8E5M2"):
            n = Network(19, is_open, 1)
            x = n.take(np.array([1.001, 1e38, -0.1, np.inf, 300], np.float32))
            n.give(n.add("Cast", n.add("Cast", x, to=getattr(TensorProto, to)), to=TensorProto.FLOAT))
            yield f"beyond_{to}", n


def parts():
    """Split into a number of parts, of sizes that it divides or not; pools and tops of nothing."""
    for is_open, size in itertools.product(OPEN, (6, 7, 2)):
        n, count = Network(18, is_open, size), min(size, 3)
        for part in n.add("Split", n.input((size, 2)), outputs=count, axis=0, num_outputs=count):
            n.give(part)
        yield f"parts_{size}", n
    n = Network(18, False, 1)  # With open dimensions such a run is refused.
    n.give(n.add("MaxPool", n.take(np.zeros((0, 1, 4, 4), np.float32)), kernel_shape=[2, 2]))
    yield "parts_MaxPool_of_none", n
    for is_open in OPEN:
        for count in (0, 2):
            n = Network(18, is_open, 1)
            values, _ = n.add("TopK", n.input((5,)), n.take(np.array([count])), outputs=2)
            n.give(values)
            yield f"parts_TopK_{count}", n
            n = Network(18, is_open, 1)
            n.give(n.add("Tile", n.input((5,)), n.take(np.array([count]))))
            yield f"parts_Tile_{count}", n


FAMILIES = (parts, sizes_below_zero, without_elements, equal_values, beyond_a_type)
