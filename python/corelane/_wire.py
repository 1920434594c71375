"""Protobuf's wire format, as far as the package reads and writes ONNX bytes itself."""

from __future__ import annotations

from typing import Iterator

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


def fields(data: memoryview) -> Iterator[tuple[int, memoryview, int | memoryview]]:
    """(number, the whole field, its value) of each field of a message: a number, or the content. ValueError
    for bytes that are no message."""
    at = 0
    while at < len(data):
        begin = at
        key, at = _read(data, at)
        kind = key & 7
        value: int | memoryview
        if kind == _VARINT:
            value, at = _read(data, at)
        else:
            size = 8 if kind == _EIGHT else 4
            if kind == _BYTES:
                size, at = _read(data, at)
            elif kind not in (_EIGHT, _FOUR):
                raise ValueError(f"wire type {kind} at byte {begin}")
            value, at = data[at:at + size], at + size
            if at > len(data):
                raise ValueError(f"a field of {size} bytes at byte {begin} goes beyond the end")
        yield key >> 3, data[begin:at], value


def _read(data: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError(f"no number at byte {at}")
        byte = data[at]
        at, number, shift = at + 1, number | (byte & 127) << shift, shift + 7
        if byte < 128:
            return number, at


def numbers(packed: memoryview) -> Iterator[int]:
    """The numbers of a packed field."""
    at = 0
    while at < len(packed):
        number, at = _read(packed, at)
        yield number


def varint(number: int) -> bytes:
    """A number from 0 on."""
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes(encoded) + bytes([number])


def field(number: int, content: bytes | memoryview) -> bytes:
    """A field of bytes, or of a message."""
    return b"".join((varint(number << 3 | _BYTES), varint(len(content)), content))


def number_field(number: int, value: int) -> bytes:
    """A field of a number from 0 on."""
    return varint(number << 3 | _VARINT) + varint(value)
