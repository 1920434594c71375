"""The flat form of values that are not plain tensors, as docs/formats/values.md has it: written from that page,
not from the library."""

import struct

TENSOR, SEQUENCE, OPTIONAL = 1, 2, 4
# The program file's numbers of element types, by ONNX's.
NUMBERS = {1: 1, 2: 6, 3: 5, 4: 8, 5: 7, 6: 9, 7: 11, 8: 16, 9: 13, 10: 2, 11: 14, 12: 10, 13: 12, 16: 3}


def padded(data):
    return data + bytes(-len(data) % 8)


def head(kind, element=0, rank=0):
    return struct.pack("<BBHI", kind, element, rank, 0)


def tensor(value, element):
    """value: an array of the ONNX element type `element`."""
    import numpy as np

    array = np.asarray(value)
    begin = head(TENSOR, NUMBERS[element], array.ndim) + struct.pack(f"<{array.ndim}q", *array.shape)
    if element != 8:
        return begin + padded(np.ascontiguousarray(array).tobytes())
    texts = [t if isinstance(t, bytes) else str(t).encode() for t in array.ravel().tolist()]
    offsets = [0]
    for text in texts:
        offsets.append(offsets[-1] + len(text))
    return begin + struct.pack(f"<{len(offsets)}Q", *offsets) + padded(b"".join(texts))


def content(value, kind):
    """kind: the TypeProto of the value."""
    if kind.HasField("optional_type"):
        there = value is not None
        return head(OPTIONAL) + struct.pack("<Q", there) + (
            content(value, kind.optional_type.elem_type) if there else b"")
    if kind.HasField("sequence_type"):
        items = [content(item, kind.sequence_type.elem_type) for item in value]
        return head(SEQUENCE) + struct.pack("<Q", len(items)) + b"".join(items)
    return tensor(value, kind.tensor_type.elem_type)


def flat(value, kind):
    """The whole form of a value of that TypeProto."""
    body = content(value, kind)
    return b"CLV1" + struct.pack("<IQ", 0, len(body) + 16) + body


def is_plain(kind):
    """Whether a TypeProto is a tensor of numbers."""
    return kind.HasField("tensor_type") and kind.tensor_type.elem_type != 8
