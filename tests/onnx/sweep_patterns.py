"""More patterns of the sweep: pools, places from inputs, subgraphs that hide names, and types, flags and
quantization that an engine may not know.

Patterns that an engine may have to refuse are in networks of their own, by kind.
"""

import itertools

import numpy as np
from onnx import TensorProto, helper

from sweep_network import OPEN, OPERATORS, Network, follow, forms_of

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
CONTRIB = "com.microsoft"


def pools():
    """Pools, and a constant of each form after them."""
    shapes = {3: (2, 3, 4), 4: (2, 3, 4, 5), 5: (2, 3, 4, 3, 4)}
    kinds = {"average": ("AveragePool", {}), "max": ("MaxPool", {}), "norm": ("LpPool", {"p": 2}),
             "padded": ("AveragePool", {"count_include_pad": 1}), "strided": ("MaxPool", {}),
             "GlobalAveragePool": None, "GlobalMaxPool": None, "GlobalLpPool": None}
    for rank, opset, kind, is_open in itertools.product(shapes, (11, 13, 18), kinds, OPEN):
        if is_open and (opset != 18 or kind == "GlobalLpPool"):
            continue  # The engine refuses that one, and says so.
        n, spatial = Network(opset, is_open, rank), rank - 2
        if kinds[kind] is None:
            op, attributes, after = kind, {}, shapes[rank][:2] + (1,) * spatial
        else:
            op, attributes = kinds[kind][0], {"kernel_shape": [2] * spatial, **kinds[kind][1]}
            after = shapes[rank][:2] + tuple(s - 1 for s in shapes[rank][2:])
            if kind in ("padded", "strided"):
                attributes |= {"pads": [1] * (2 * spatial), "strides": [2] * spatial}
                after = shapes[rank][:2] + tuple(s // 2 + 1 for s in shapes[rank][2:])
        for follower, form in itertools.product(OPERATORS, forms_of(after)):
            low, high = (-1.5, -0.5) if follower == "PRelu" and kind != "norm" else (0.5, 1.5)
            n.give(follow(n, follower, n.add(op, n.input(shapes[rank], low, high), **attributes), form))
        yield f"pool_{kind}_rank{rank}_opset{opset}", n


def places():
    """Gather and Slice, whose indices, starts and ends are inputs."""
    shape = (5, 6, 7)
    for opset, is_open in itertools.product((11, 13, 18), OPEN):
        n = Network(opset, is_open, opset)
        for axis in (-3, -1, 0, 1, 2):
            size = shape[axis]
            for indices in (1, [0, size - 1], [-1, -size], [[1, 2], [-2, 0]]):
                for dtype in (np.int64, np.int32):
                    n.give(n.add("Gather", n.input(shape), n.take(np.array(indices, dtype)), axis=axis))
            along = np.resize(np.array([0, -1, 2, -3]), (5, 6, 7)).astype(np.int64)
            n.give(n.add("GatherElements", n.input(shape), n.take(along), axis=axis))
        if not is_open:
            n.give(n.add("GatherND", n.input(shape), n.take(np.array([[0, 1], [-1, 2]], np.int64))))
        yield f"gather_opset{opset}", n
    ranges = ((0, 3, 1), (1, 100, 1), (-3, -1, 1), (-100, 4, 2), (4, 0, -1), (-1, -100, -1), (3, 3, 1))
    every = itertools.product((11, 13, 18), OPEN, ((0,), (2,), (0, 2), (-1, 1)), (np.int64, np.int32))
    for opset, is_open, axes, dtype in every:
        n = Network(opset, is_open, opset)
        for start, end, step in ranges:
            lists = [np.array([v] * len(axes), dtype) for v in (start, end)]
            at, by = n.constant(np.array(axes, dtype)), n.constant(np.array([step] * len(axes), dtype))
            x = n.input(shape)
            n.give(n.add("Slice", n.add("Relu", x), *[n.take(v) for v in lists], at, by))
            # From the size: the last `end` of them.
            size = n.add("Gather", n.add("Shape", x), n.constant(np.array([axes[0]], np.int64)))
            ends = n.add("Sub", size, n.constant(np.array([1], np.int64)))
            first = n.constant(np.array([axes[0]], np.int64))
            n.give(n.add("Slice", x, n.constant(np.array([1], np.int64)), ends, first))
        yield f"slice_opset{opset}_axes{'_'.join(map(str, axes))}_{np.dtype(dtype).name}", n
    # To the end, as callers write it.
    for is_open, end in itertools.product(OPEN, (2**63 - 1, 2**31 - 1)):
        n = Network(18, is_open, 1)
        for axis in range(3):
            starts, ends = n.take(np.array([2], np.int64)), n.take(np.array([end], np.int64))
            n.give(n.add("Slice", n.input(shape), starts, ends, n.constant(np.array([axis], np.int64))))
        yield f"slice_to_{'int64' if end > 2**32 else 'int32'}_max", n


def value(name, elem, shape):
    return helper.make_tensor_value_info(name, elem, shape)


def loop_of(n, x, count, names, shape, **more):
    """A Loop x, sum = x * w + outer, carried `count` times, whose body's names are given."""
    i, go, state = names
    nodes = [helper.make_node("Mul", [state, more["weight"]], ["body_scaled"]),
             helper.make_node("Add", ["body_scaled", more["outer"]], ["body_next"]),
             helper.make_node("Cast", [i], ["body_step"], to=FLOAT),
             helper.make_node("Add", ["body_next", "body_step"], ["body_scan"]),
             helper.make_node("Identity", [go], ["body_go"])]
    body = helper.make_graph(
        nodes, "body", [value(i, INT64, []), value(go, BOOL, []), value(state, FLOAT, shape)],
        [value("body_go", BOOL, []), value("body_next", FLOAT, shape), value("body_scan", FLOAT, shape)])
    return n.add("Loop", n.constant(np.int64(count)), n.constant(np.array(True)), x, outputs=2, body=body)


def scan_of(n, state, x, names, shape, outer):
    first, second = names
    nodes = [helper.make_node("Add", [first, second], ["body_next"]),
             helper.make_node("Mul", ["body_next", outer], ["body_scan"])]
    body = helper.make_graph(nodes, "body", [value(first, FLOAT, shape), value(second, FLOAT, shape)],
                             [value("body_next", FLOAT, shape), value("body_scan", FLOAT, shape)])
    return n.add("Scan", state, x, outputs=2, body=body, num_scan_inputs=1)


def branch_of(n, condition, x, hidden, outer):
    """An If whose branches make values under the name of one around them."""
    branches = {}
    for branch, op in (("then_branch", "Sub"), ("else_branch", "Add")):
        loop_state = helper.make_node(op, [x, outer], [f"{branch}_{hidden}"])
        last = helper.make_node("Relu", [f"{branch}_{hidden}"], [f"{branch}_out"])
        branches[branch] = helper.make_graph([loop_state, last], branch, [],
                                             [value(f"{branch}_out", FLOAT, None)])
    return n.add("If", condition, **branches)


def hidden_names():
    """Loop, Scan and If whose inner names are those of values around them."""
    shape = (2, 3)
    for opset, is_open, kind in itertools.product((11, 13, 18), OPEN, ("loop", "scan", "nested")):
        n = Network(opset, is_open, opset)
        for hides, steps in itertools.product(
                ("nothing", "input", "carried", "constant", "other", "shape", "counter"), (1, 3, 70)):
            x, other = n.input(shape), n.input(shape)
            weight, outer = n.floats(shape), n.add("Abs", other)
            carried = n.add("Relu", n.add("Mul", x, n.constant(np.float32(0.5))))
            unlike = n.floats((7,))  # Of another shape.
            n.give(n.add("Relu", unlike))
            name = {"nothing": f"own{len(n.nodes)}", "input": x, "carried": carried, "constant": n.floats(shape),
                    "other": other, "shape": unlike, "counter": f"own{len(n.nodes)}"}[hides]
            counter = x if hides == "counter" else f"i{len(n.nodes)}"
            if kind == "scan":
                rows = n.input((steps, *shape))
                for names in ((name, f"row{len(n.nodes)}"), (f"state{len(n.nodes)}", name)):
                    last, all_rows = scan_of(n, carried, rows, names, shape, weight)
                    n.give(last)
                    n.give(all_rows)
                continue
            names = (counter, f"go{len(n.nodes)}", name)
            last, steps_of = loop_of(n, carried, min(steps, 5), names, shape, weight=weight, outer=outer)
            n.give(last)
            n.give(steps_of)
            if kind == "nested":
                total = n.add("ReduceMax", last, keepdims=0)
                positive = n.add("Greater", total, n.constant(np.float32(0)))
                n.give(branch_of(n, positive, last, "v0", outer))
        yield f"hidden_{kind}_opset{opset}", n


def quantized_16():
    """Quantization to 16 bits: by the standard and by com.microsoft; whole, and by channel."""
    kinds = itertools.product(((21, ""), (18, CONTRIB)), (np.uint16, np.int16), (False, True))
    for (opset, domain), dtype, channels in kinds:
        names = ("pair", "read", "weights", "written", "between")
        for kind, is_open in itertools.product(names, OPEN):
            if is_open and channels:
                continue
            n = Network(opset, is_open, 16)
            for rank, zero in itertools.product((2, 3, 4), (0, 1000)):
                shape = (3, 4, 5, 6)[:rank]
                scale = n.random.uniform(0.001, 0.002, shape[1] if channels else ()).astype(np.float32)
                s, z = n.constant(scale), n.constant(np.full(scale.shape, zero, dtype))
                at = {"axis": 1, "domain": domain} if channels else {"domain": domain}
                info = np.iinfo(dtype)
                whole = n.random.integers(info.min, info.max, shape).astype(dtype)
                if kind == "read":
                    n.give(n.add("DequantizeLinear", n.take(whole), s, z, **at))
                elif kind == "weights":
                    w = n.add("DequantizeLinear", n.constant(whole), s, z, **at)
                    n.give(n.add("Mul", n.input(shape), w))
                elif kind == "written":
                    n.give(n.add("QuantizeLinear", n.input(shape, -9, 9), s, z, **at), dtype)
                else:
                    x = n.input(shape, -90, 90)
                    q = n.add("QuantizeLinear", n.add("Relu", x) if kind == "between" else x, s, z, **at)
                    y = n.add("DequantizeLinear", q, s, z, **at)
                    n.give(n.add("Mul", y, n.floats(shape)) if kind == "between" else y)
            by = "channels" if channels else "whole"
            yield f"bits16_{kind}_{by}_{np.dtype(dtype).name}_{domain or 'standard'}", n


def wide_types():
    """Integers beyond 32 bits and beyond 24, bytes that wrap around, float64, casts through float16."""
    big = np.array([2**31 + 5, 2**40, -2**35, 7, 2**31 - 1], np.int64)
    mid = np.array([2**24 + 1, 2**30 + 3, 123456789, 5, 2**31 - 1])
    small = np.array([3, 5, 7, 9, 1])
    for is_open in OPEN:
        for op in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min"):
            for dtype, left in ((np.int64, big), (np.int32, mid), (np.uint32, np.abs(big) % 2**32)):
                n = Network(18, is_open, 1)
                n.give(n.add(op, n.take(left.astype(dtype)), n.take(small.astype(dtype))), dtype)
                n.give(n.add(op, n.take(left.astype(dtype)), n.constant(small.astype(dtype))), dtype)
                yield f"wide_{op}_{np.dtype(dtype).name}", n
        for op in ("Identity", "Neg", "Abs", "Sign"):
            n = Network(18, is_open, 1)
            n.give(n.add(op, n.take(big)), np.int64)
            yield f"wide_{op}", n
        for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"):
            for dtype in (np.int64, np.int32):
                n = Network(18, is_open, 1)
                n.give(n.add(op, n.take(np.array([2**24 + 1, 1, 3], dtype)), keepdims=0), dtype)
                yield f"wide_{op}_{np.dtype(dtype).name}", n
        for op in ("Less", "Equal", "GreaterOrEqual"):
            n = Network(18, is_open, 1)
            n.give(n.add(op, n.take(big), n.take(big - 2**32)), np.bool_)
            yield f"wide_{op}", n
        n = Network(18, is_open, 1)
        n.give(n.add("Add", n.take(small.astype(np.int64)), n.constant(np.array([2**33], np.int64))), np.int64)
        yield "wide_constant", n
        n = Network(18, is_open, 1)
        n.give(n.add("MatMul", n.take(mid.astype(np.int32).reshape(1, 5)), n.take(np.ones((5, 1), np.int32))), np.int32)
        yield "wide_MatMul", n
        n = Network(18, is_open, 1)
        buckets = n.add("Mod", n.take(big), n.constant(np.int64(11)))
        n.give(n.add("Gather", n.floats((11, 3)), buckets))
        yield "wide_hash", n
        for op, dtype in itertools.product(("Add", "Sub", "Mul"), (np.uint8, np.int8)):
            n = Network(18, is_open, 1)
            least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
            left = np.array([most, least, 7, most - 20], dtype)
            n.give(n.add(op, n.take(left), n.take(np.array([least + 99, 4, 9, 99], dtype))), dtype)
            yield f"wide_{op}_{np.dtype(dtype).name}", n
        n = Network(18, is_open, 1)
        byte = np.array([200, 100, 3], np.uint8)
        n.give(n.add("BitShift", n.take(byte), n.take(np.array([1, 2, 3], np.uint8)), direction="LEFT"), np.uint8)
        yield "wide_BitShift", n
        for op in ("Add", "Mul", "Div", "Exp", "Floor", "MatMul", "Cast"):
            n = Network(18, is_open, 1)
            x = n.take(n.random.uniform(0.5, 3, (4, 4)) + 1e-9)
            if op == "Cast":
                n.give(n.add("Cast", n.take(np.array([1e300, 1.5, -np.inf])), to=FLOAT))
            elif op in ("Exp", "Floor"):
                n.give(n.add(op, x), np.float64)
            else:
                n.give(n.add(op, x, n.take(n.random.uniform(0.5, 3, (4, 4)))), np.float64)
            yield f"wide_{op}_float64", n
        n = Network(18, is_open, 1)
        x = n.take(np.array([1 / 3, 70000, 2049, 1e-8], np.float32))
        n.give(n.add("Cast", n.add("Cast", x, to=TensorProto.FLOAT16), to=FLOAT))
        yield "wide_through_float16", n


def ordinary_integers():
    """Integers as text, speech and vision models use them, which every engine computes."""
    for is_open in OPEN:
        n = Network(18, is_open, 2)
        ids = n.take(n.random.integers(0, 9, (2, 5)))
        n.give(n.add("Gather", n.floats((9, 4)), ids))
        mask = n.take(np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]))
        count = n.add("CumSum", mask, n.constant(np.int64(1)))
        at = n.add("Add", n.add("Mul", count, mask), n.constant(np.int64(1)))
        n.give(n.add("Gather", n.floats((9, 4)), at))
        n.give(n.add("Cast", n.add("Sub", n.constant(np.int64(1)), mask), to=FLOAT))
        n.give(n.add("Cast", n.add("Equal", ids, n.constant(np.int64(3))), to=FLOAT))
        lengths = n.take(np.array([5, 3]))
        halves = n.add("Div", n.add("Add", lengths, n.constant(np.int64(1))), n.constant(np.int64(2)))
        steps = n.constant(np.arange(5).reshape(1, 5))
        wide = n.add("Unsqueeze", halves, n.constant(np.array([1])))
        n.give(n.add("Cast", n.add("Less", steps, wide), to=FLOAT))
        n.give(halves, np.int64)
        scores = n.input((2, 5))
        best = n.add("ArgMax", scores, axis=1, keepdims=0)
        n.give(best, np.int64)
        n.give(n.add("Add", best, n.constant(np.int64(1))), np.int64)
        k = n.constant(np.array([2]))
        values, indices = n.add("TopK", scores, k, outputs=2)
        n.give(values)
        n.give(n.add("Mod", indices, n.constant(np.int64(3))), np.int64)
        yield "ordinary_integers", n


FAMILIES = (pools, places, hidden_names, quantized_16, wide_types, ordinary_integers)
