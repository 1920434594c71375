#!/usr/bin/env python3
"""Writes networks of patterns that engines fuse or read by operator set, with ONNX Runtime's results.

    sweep_cases.py OUT

Files as export_cases.py writes them, for the same runner. A network has up to MOST_PATTERNS
outputs, one for each pattern; its name and the number of the output say which. Nothing is done
when the stamp is there.
"""

import hashlib
import itertools
import pathlib
import struct
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

import sweep_contrib
import sweep_patterns
import sweep_sizes
from export_cases import pack
from sweep_network import OPEN, OPERATORS, Network, follow, forms_of, reduced

REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
              "ReduceProd", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
# In one network: a verdict on one pattern holds for all beside it.
MOST_PATTERNS = 24


def input_for(n, op, shape, follower):
    """Negative results for PRelu where the reduction has any."""
    if follower == "PRelu" and op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"):
        return n.input(shape, -1.5, -0.5)
    if follower == "PRelu" and op.startswith("ReduceLog"):
        return n.input(shape, 0.01, 0.05)
    return n.input(shape)


def reductions():
    shapes = {2: (3, 5), 3: (2, 3, 5), 4: (2, 3, 4, 5)}
    for rank, op, keep, is_open in itertools.product(shapes, REDUCTIONS, (0, 1), OPEN):
        if rank != 3 and op not in ("ReduceSum", "ReduceMax", "ReduceL2"):
            continue
        single = [(i,) for i in range(rank)]
        pairs = list(itertools.combinations(range(rank), 2)) if rank == 3 else []
        for axes in single + pairs:
            n = Network(18, is_open, rank)
            after = reduced(shapes[rank], axes, keep)
            for follower, form in itertools.product(OPERATORS, forms_of(after)):
                r = n.reduce(op, input_for(n, op, shapes[rank], follower), axes, keep)
                n.outputs.append(follow(n, follower, r, form))
            yield f"{op}_rank{rank}_axes{''.join(map(str, axes))}_keep{keep}", n


def chain(n, kind, r, after, channel):
    """What else may stand between a reduction of one of three dimensions and its constants."""
    form = [s if i == channel else 1 for i, s in enumerate(after)]
    rank = len(after)
    if kind == "relu":
        r = n.add("Relu", r)
    elif kind == "scaled":
        r = n.add("Mul", r, n.constant(np.float32(0.5)))
    elif kind == "cast":
        r = n.add("Cast", n.add("Cast", r, to=TensorProto.DOUBLE), to=TensorProto.FLOAT)
    elif kind == "same shape":
        r = n.reshape("Squeeze", n.reshape("Unsqueeze", r, (rank, rank + 1)), (rank, rank + 1))
    elif kind == "computed":
        flat = n.constant(n.random.uniform(0.5, 2, after[channel]).astype(np.float32))
        shaped = n.add("Reshape", flat, n.constant(np.array(form, np.int64)))
        return n.add("Add", r, n.add("Neg", shaped))
    elif kind == "normalised":
        if channel != 1:
            return None
        vectors = [n.floats((after[1],)) for _ in range(4)]
        return n.add("BatchNormalization", r, *vectors)
    return n.add("Add", n.add("Mul", r, n.floats(form)), n.floats(form))


def chains():
    kinds = ("directly", "relu", "scaled", "same shape", "computed", "normalised")
    shape = (4, 3, 5)
    for opset, is_open, kinds_of in itertools.product((11, 13, 18), OPEN, (kinds, ("cast",))):
        n = Network(opset, is_open, opset)
        for op, axis, keep, kind in itertools.product(("ReduceSum", "ReduceMax"), (0, 1, 2), (0, 1),
                                                      kinds_of):
            after = reduced(shape, (axis,), keep)
            for channel, size in enumerate(after):
                if size == 1:
                    continue
                y = chain(n, kind, n.reduce(op, n.input(shape), (axis,), keep), after, channel)
                if y is not None:
                    n.outputs.append(y)
        for op in ("GlobalAveragePool", "GlobalMaxPool"):
            for rank in (3, 4):
                r = n.add(op, n.input((2, 3, 4, 5)[:rank]))
                n.outputs.append(follow(n, "Mul", r, (3,) + (1,) * (rank - 2)))
        # A dimension that is taken away and put back, of which the engine makes one reduction.
        for axis in (0, 2):
            after = reduced(shape, (axis,), 1)
            back = n.reshape("Unsqueeze", n.reduce("ReduceSum", n.input(shape), (axis,), 0), (axis,))
            form = [s if i == 1 else 1 for i, s in enumerate(after)]
            n.outputs.append(follow(n, "Sub", back, form))
        yield f"chains{'_cast' if kinds_of is not kinds else ''}_opset{opset}", n


def subgraphs():
    """The same in the branches of an If whose condition is computed."""
    for is_open in OPEN:
        n = Network(18, is_open, 3)
        for axis, keep in itertools.product((0, 2), (0, 1)):
            x = n.input((2, 3, 5))
            after = reduced((2, 3, 5), (axis,), keep)
            channel = 0 if (axis, keep) == (0, 0) else 1
            outer = n.floats([s if i == channel else 1 for i, s in enumerate(after)])
            axes = n.constant(np.array([axis], np.int64))
            total = n.add("ReduceSum", x, keepdims=0)
            positive = n.add("Greater", total, n.constant(np.float32(0)))
            branches = {}
            for branch, op in (("then_branch", "Sub"), ("else_branch", "Add")):
                names = [f"{branch}_{len(n.nodes)}_{k}" for k in range(2)]
                nodes = [helper.make_node("ReduceSum", [x, axes], [names[0]], keepdims=keep),
                         helper.make_node(op, [names[0], outer], [names[1]])]
                out = helper.make_tensor_value_info(names[1], TensorProto.FLOAT, [None] * len(after))
                branches[branch] = helper.make_graph(nodes, branch, [], [out])
            n.outputs.append(n.add("If", positive, **branches))
        yield "subgraphs", n


def softmaxes():
    shapes = {1: (5,), 2: (3, 5), 3: (2, 3, 5), 4: (2, 3, 4, 5), 5: (2, 3, 4, 2, 3)}
    for op, opset, is_open in itertools.product(("Softmax", "LogSoftmax", "Hardmax"), range(7, 14),
                                                OPEN):
        n = Network(opset, is_open, opset)
        for rank, shape in shapes.items():
            first = -rank if opset >= 11 else 0
            for axis in [None, *range(first, rank)]:
                if axis is None and rank == 1 and opset < 13:
                    continue  # 1, which there is not.
                attributes = {} if axis is None else {"axis": axis}
                n.outputs.append(n.add(op, n.input(shape, -2, 2), **attributes))
                n.outputs.append(n.add(op, n.add("Abs", n.input(shape, -2, 2)), **attributes))
        yield f"{op}_opset{opset}", n


def axes_by_set():
    for opset, is_open in itertools.product((7, 11, 12, 13, 17, 18, 20), OPEN):
        n = Network(opset, is_open, opset)
        for op, rank, keep in itertools.product(REDUCTIONS, (1, 2, 3), (0, 1)):
            shape = (2, 3, 5)[:rank]
            for count in range(1, rank + 1):
                for axes in itertools.combinations(range(rank), count):
                    n.outputs.append(n.reduce(op, n.input(shape), axes, keep))
                    if opset >= 11:
                        n.outputs.append(n.reduce(op, n.input(shape), [a - rank for a in axes], keep))
            n.outputs.append(n.add(op, n.input(shape), keepdims=keep))
            if opset >= 18:
                n.outputs.append(n.add(op, n.input(shape), keepdims=keep, noop_with_empty_axes=1))
        yield f"axes_opset{opset}", n


def slopes():
    for opset, is_open in itertools.product((7, 9, 16), OPEN):
        n = Network(opset, is_open, opset)
        for rank in (1, 2, 3, 4, 5):
            for shape in ((2, 3, 4, 5, 6)[:rank], (4,) * rank):
                for form in forms_of(shape):
                    n.outputs.append(n.add("PRelu", n.input(shape, -1, 1), n.floats(form)))
        yield f"slopes_opset{opset}", n


def quantized():
    shapes = {2: (17, 33), 3: (3, 4, 5), 4: (2, 3, 8, 9)}
    for is_open, channels, dtype in itertools.product(OPEN, (False, True), (np.uint8, np.int8)):
        if is_open and channels:
            continue  # The engine refuses it, and says so.
        n = Network(18, is_open, 5)
        for op, rank, keep in itertools.product(
                ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"), shapes, (0, 1)):
            for axis in range(rank):
                after = reduced(shapes[rank], (axis,), keep)
                for channel, size in enumerate(after if channels else [0]):
                    scale = n.random.uniform(0.2, 0.3, size if channels else ()).astype(np.float32)
                    s = n.constant(scale)
                    z = n.constant(np.full(scale.shape, -100 if dtype == np.int8 else 28, dtype))
                    attributes = {"axis": channel} if channels else {}
                    r = n.reduce(op, n.input(shapes[rank], 0, 3), (axis,), keep)
                    q = n.add("QuantizeLinear", r, s, z, **attributes)
                    n.outputs.append(n.add("DequantizeLinear", q, s, z, **attributes))
        yield f"quantized_{'channels' if channels else 'whole'}_{np.dtype(dtype).name}", n


def small():
    """Networks of a few values, which a driver may run without its engine."""
    shape = (2, 3, 5)
    for rank, is_open, opset in itertools.product((1, 2, 3), OPEN, (10, 11, 12, 13)):
        for axis in range(rank):
            n = Network(opset, is_open, axis)
            n.outputs.append(n.add("Softmax", n.input(shape[:rank], -2, 2), axis=axis))
            yield f"small_softmax_opset{opset}_rank{rank}_axis{axis}", n
    for rank, is_open, op in itertools.product((1, 2, 3), OPEN, ("Add", "from", "over", "PRelu")):
        n = Network(18, is_open, rank)
        for form in forms_of(shape[:rank]):
            n.outputs.append(follow(n, op, n.add("Relu", n.input(shape[:rank])), form))
        yield f"small_{op}_rank{rank}", n


def write(out, name, network, session_of):
    model = network.model()
    expected = session_of(model).run(None, network.inputs)
    # A value at a tie may be quantized to either side: one step of 0.3, or of 0.002.
    tolerance = 0.31 if name.startswith("quantized") else 3e-3 if name.startswith("bits16") else 2e-4
    relative = 1e-3
    if "float64" in name:
        relative = tolerance = 1e-12
    head = b"CLTC" + struct.pack("<Iqdd", 2, network.opset, relative, tolerance)
    head += struct.pack("<II", len(network.inputs), len(expected))
    body = b"".join(pack(v) for v in [*network.inputs.values(), *expected])
    (out / f"{name}.onnx").write_bytes(model.SerializeToString())
    (out / f"{name}.data").write_bytes(head + body)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: sweep_cases.py OUT")
    out = pathlib.Path(sys.argv[1])
    import onnxruntime
    sources = sorted(pathlib.Path(__file__).parent.glob("sweep_*.py"))
    own = hashlib.sha256(b"".join(p.read_bytes() for p in sources)).hexdigest()[:16]
    stamp = out / f"{onnx.__version__}-{onnxruntime.__version__}-{own}.stamp"
    if stamp.exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4

    def session_of(model):
        return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                            providers=["CPUExecutionProvider"])

    patterns = 0
    own_families = (reductions, chains, subgraphs, softmaxes, axes_by_set, slopes, quantized, small)
    for family in own_families + sweep_patterns.FAMILIES + sweep_contrib.FAMILIES + sweep_sizes.FAMILIES:
        for name, network in family():
            suffix = "open" if network.is_open else "static"
            for number, part in enumerate(network.parts(MOST_PATTERNS)):
                write(out, f"{name}_{suffix}_{number}", part, session_of)
            patterns += len(network.outputs)
    print(f"{patterns} patterns in {len(list(out.glob('*.onnx')))} networks")
    stamp.write_text("")


if __name__ == "__main__":
    main()
