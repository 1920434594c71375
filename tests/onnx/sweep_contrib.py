"""Operators of com.microsoft with their flags, for the sweep: a network for each operator and kind of flag."""

import itertools

import numpy as np

from sweep_network import Network

DOMAIN = "com.microsoft"


def node(n, op, *inputs, **attributes):
    n.give(n.add(op, *inputs, domain=DOMAIN, **attributes))


def fused_matmul(n, batches):
    for rank, ta, tb, alpha in itertools.product((2, 3, 4), (0, 1), (0, 1), (1.0, 0.5)):
        lead = (2, 3, 4)[:rank - 2]
        for first, second in ((1, 0), (0, 1), (1, 1)) if batches else ((0, 0),):
            # The first dimension of a factor with a transposed batch stands before its last one.
            def shape(rows, columns, turned, batch):
                dims = [*lead, columns, rows] if turned else [*lead, rows, columns]
                return (*dims[1:-1], dims[0], dims[-1]) if batch else tuple(dims)

            if batches and (rank == 2 or ta or tb or rank > 3):
                continue
            node(n, "FusedMatMul", n.input(shape(4, 5, ta, first), -1, 1), n.input(shape(5, 6, tb, second), -1, 1),
                 transA=ta, transB=tb, transBatchA=first, transBatchB=second, alpha=alpha)


def fused_gemm(n, activations):
    more = {"LeakyRelu": {"activation_alpha": 0.3}}
    for activation, ta, tb in itertools.product(activations, (0, 1), (0, 1)):
        x, w = n.input((5, 4) if ta else (4, 5), -1, 1), n.floats((6, 5) if tb else (5, 6))
        node(n, "FusedGemm", x, w, n.floats((6,)), transA=ta, transB=tb, alpha=0.7, beta=0.3,
             activation=activation, **more.get(activation, {}))


def fused_conv(n):
    kinds = {"Relu": None, "LeakyRelu": [0.3], "Sigmoid": None, "Tanh": None, "HardSigmoid": [0.3, 0.4],
             "Clip": [-0.5, 0.7]}
    for (activation, params), pads in itertools.product(kinds.items(), (0, 1)):
        more = {"activation_params": params} if params else {}
        x, w, b = n.input((1, 3, 6, 6), -1, 1), n.floats((4, 3, 3, 3)), n.floats((4,))
        node(n, "FusedConv", x, w, b, kernel_shape=[3, 3], pads=[pads] * 4, strides=[1 + pads] * 2,
             activation=activation, **more)


def activations(n):
    for op, bias in itertools.product(("Gelu", "FastGelu", "QuickGelu", "BiasGelu"), (False, True)):
        if (op == "BiasGelu") != bias and op != "FastGelu":
            continue
        node(n, op, n.input((2, 3, 8), -2, 2), *([n.floats((8,))] if bias else []))
    node(n, "QuickGelu", n.input((2, 3, 8), -2, 2), alpha=0.8)


def layer_norms(n):
    for skip, epsilon in itertools.product(((2, 3, 8), (1, 3, 8), (3, 8)), (1e-5, 0.1)):
        x, s, g, b = n.input((2, 3, 8), -2, 2), n.input(skip, -2, 2), n.floats((8,)), n.floats((8,))
        node(n, "SkipLayerNormalization", x, s, g, epsilon=epsilon)
        node(n, "SkipLayerNormalization", x, s, g, b, epsilon=epsilon)
        node(n, "SkipLayerNormalization", x, s, g, b, n.floats((8,)), epsilon=epsilon)
        if skip == (2, 3, 8):
            node(n, "SkipSimplifiedLayerNormalization", x, s, g, epsilon=epsilon)
            node(n, "SkipSimplifiedLayerNormalization", x, s, g, n.floats((8,)), epsilon=epsilon)


def attention(n, starts=False, **attributes):
    masks = {"none": None, "2d": [[1, 1, 0], [1, 1, 1]], "1d": [2, 3],
             "3d": [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]] * 2}
    if starts:
        masks = {"starts": [2, 3, 0, 1]}
    for mask, forwards in itertools.product(masks.values(), (0, 1)):
        inputs = [n.input((2, 3, 8), -1, 1), n.floats((8, 24)), n.floats((24,))]
        if mask is not None:
            inputs.append(n.take(np.array(mask, np.int32)))
        node(n, "Attention", *inputs, num_heads=2, unidirectional=forwards, **attributes)


def heads(n):
    for scale, forwards, bias in itertools.product((0.0, 0.1), (0, 1), (False, True)):
        q, k, v = (n.input((2, 4, 8), -1, 1) for _ in range(3))
        node(n, "MultiHeadAttention", q, k, v, *([n.floats((24,))] if bias else []), num_heads=2,
             unidirectional=forwards, **({"scale": scale} if scale else {}))
    for mask in ([[1, 1, 0, 1], [1, 1, 1, 1]], [3, 4]):
        q, k, v = (n.input((2, 4, 8), -1, 1) for _ in range(3))
        node(n, "MultiHeadAttention", q, k, v, "", n.take(np.array(mask, np.int32)), num_heads=2)
    q, k, v = (n.input((2, 4, 8), -1, 1) for _ in range(3))
    node(n, "MultiHeadAttention", q, k, v, "", "", n.input((1, 2, 4, 4), -1, 1), num_heads=2)


def rotary(n, positions):
    angles = np.outer(np.arange(9), [1, 0.5]).astype(np.float32)
    for interleaved in (0, 1):
        caches = n.constant(np.cos(angles)), n.constant(np.sin(angles))
        at = n.take(np.array(positions, np.int64))
        node(n, "RotaryEmbedding", n.input((2, 2, 3, 4), -1, 1), at, *caches, interleaved=interleaved)


def matmul_nbits(n, groups):
    for bits, zero, k in itertools.product((4, 8), (False, True), (64, 80)):
        if groups and bits != 4:
            continue
        blocks = (k + 31) // 32
        b = n.constant(n.random.integers(0, 255, (6, blocks, 4 * bits), dtype=np.uint8))
        inputs = [n.input((3, k), -1, 1), b, n.floats((6, blocks))]
        zeros = n.constant(n.random.integers(0, 255, (6, (blocks * bits + 7) // 8), dtype=np.uint8)) if zero else ""
        if groups:
            order = n.random.permutation(np.arange(blocks * 32) // 32)[:k].astype(np.int32)
            inputs += [zeros, n.constant(order)]
        elif zero:
            inputs.append(zeros)
        node(n, "MatMulNBits", *inputs, K=k, N=6, bits=bits, block_size=32)


def bytes_of(n, *shape):
    return n.take(n.random.integers(0, 255, shape, dtype=np.uint8))


def qlinear(n, op):
    def pair(scale, zero):
        return n.constant(np.float32(scale)), n.constant(np.uint8(zero))

    one, other, out = pair(0.1, 3), pair(0.2, 7), pair(0.3, 9)
    at = {"domain": DOMAIN}
    if op in ("QLinearAdd", "QLinearMul"):
        y = n.add(op, bytes_of(n, 4, 9), *one, bytes_of(n, 4, 9), *other, *out, **at)
    elif op == "QLinearConcat":
        y = n.add(op, *out, bytes_of(n, 4, 9), *one, bytes_of(n, 4, 9), *other, axis=0, **at)
    elif op == "QLinearAveragePool":
        y = n.add(op, bytes_of(n, 1, 2, 5, 5), *one, *out, kernel_shape=[2, 2], **at)
    elif op == "QLinearSoftmax":
        y = n.add(op, bytes_of(n, 4, 9), *one, *pair(1 / 256, 0), opset=13, axis=1, **at)
    elif op == "QLinearLeakyRelu":
        y = n.add(op, bytes_of(n, 4, 9), *one, *out, alpha=0.2, **at)
    else:
        y = n.add(op, bytes_of(n, 4, 9), *one, *pair(1 / 256, 0), **at)
    n.give(y, np.uint8)


KINDS = {
    "FusedMatMul": lambda n: fused_matmul(n, False), "FusedMatMul_batches": lambda n: fused_matmul(n, True),
    "FusedGemm": lambda n: fused_gemm(n, ("Relu", "LeakyRelu")),
    "FusedGemm_others": lambda n: fused_gemm(n, ("Sigmoid", "Tanh")),
    "FusedConv": fused_conv, "activations": activations, "layer_norms": layer_norms,
    "Attention": attention, "Attention_scale": lambda n: attention(n, scale=0.1),
    "Attention_starts": lambda n: attention(n, starts=True),
    "Attention_filter": lambda n: attention(n, mask_filter_value=-1.0), "MultiHeadAttention": heads,
    "Rotary": lambda n: rotary(n, [[0, 1, 2], [3, 1, 2]]), "Rotary_one": lambda n: rotary(n, [2]),
    "MatMulNBits": lambda n: matmul_nbits(n, False), "MatMulNBits_groups": lambda n: matmul_nbits(n, True),
    **{op: lambda n, op=op: qlinear(n, op) for op in (
        "QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearAveragePool", "QLinearSoftmax", "QLinearLeakyRelu",
        "QLinearSigmoid")}}


def contrib():
    for name, fill in KINDS.items():
        n = Network(18, False, 7)
        fill(n)
        yield f"contrib_{name}", n


FAMILIES = (contrib,)
