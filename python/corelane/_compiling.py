"""compile(): an ONNX model to a program file, as `corelane compile` does."""

from __future__ import annotations

import os
import secrets
import stat
from typing import Any, Iterable, Mapping, Sequence

from . import _native
from ._errors import InvalidArgument, NoSuchFile, StatusError, translated, unreadable
from ._wire import field


def compile(model: Any, output: Any = None, *, input_shapes: Mapping[str, Sequence[int]] | None = None,
            dims: Mapping[str, int] | None = None,
            shape_sets: Iterable[Sequence[Sequence[int]]] | None = None, mean: Any = None,
            std: Any = None, layout: str | None = None, io_dtype: str | None = None,
            batch: int = 1, cores: int = 1, custom_string: str = "", custom_operators: Iterable[str] = (),
            metadata: Mapping[str, str] | None = None, precompile: bool = False, device: str | None = None,
            time_engines: bool = True, remove_weights: bool = False, allow_known_wrong: bool = False,
            attach: Mapping[str, Any] | None = None, data_root: Any = None,
            strict_links: bool = False, states: Mapping[str, str] | None = None) -> bytes | None:
    """The bytes of a program file; with `output`, a path, they are written there and None is returned.

    model: a path, or bytes of an ONNX model. The keywords are the options of `corelane compile`
    (docs/cli.md): input_shapes by input name and dims by name, or as "INPUT[AXIS]", fix open dimensions,
    shape_sets is the closed list of a dynamic model (shapes of all inputs, by position); mean and std are
    subtracted and divided by, for all inputs of rank 4 (a list) or by input name (a dict), by sessions that normalise;
    layout "nhwc" or "nchw" is what inputs of rank 4 are offered in; io_dtype is the type that float
    inputs and outputs report; metadata is kept with the model's own. precompile also times the device's engines
    where dimensions are fixed, and the file keeps which one is faster, unless time_engines is off. attach: device
    kind to file; states: output to the input of the next run that it is, which stays on the device
    (docs/state.md)."""
    given: Any = _source(model)
    source, root = _annotated(given, metadata, data_root) if metadata else (given, data_root)
    options = {
        "input_shapes": {str(k): _dims(v) for k, v in (input_shapes or {}).items()},
        "dims": {str(k): int(v) for k, v in (dims or {}).items()},
        "states": {str(k): str(v) for k, v in (states or {}).items()},
        "shape_sets": [[_dims(shape) for shape in one] for one in shape_sets or ()],
        "mean": _channels("mean", mean), "std": _channels("std", std), "layout": layout,
        "io_dtype": io_dtype, "batch": _count("batch", batch, 1024), "cores": _count("cores", cores, 64),
        "custom_string": custom_string, "custom_operators": [str(op) for op in custom_operators],
        "precompile": bool(precompile), "time_engines": bool(time_engines), "device": device,
        "remove_weights": bool(remove_weights),
        "allow_known_wrong": bool(allow_known_wrong), "strict_links": bool(strict_links),
        "attach": {str(k): os.fsdecode(v) for k, v in (attach or {}).items()},
        "data_root": None if root is None else os.fsdecode(root)}
    try:
        program = _native.compile(source, options)
    except StatusError as error:
        raise translated(error, strict=False, function="") from None
    if output is None:
        return program
    write_program(os.fsdecode(output), program, files_of(given, data_root, (attach or {}).values()))
    return None


def _source(model: Any) -> Any:
    if isinstance(model, (str, os.PathLike)):
        path = os.fsdecode(model)
        if not os.path.isfile(path):
            raise NoSuchFile(f"model {path}: {unreadable(path)}")
        return path
    if isinstance(model, (bytes, bytearray, memoryview)):
        return model
    raise TypeError(f"model: expected a path or bytes of an ONNX model, given {type(model).__name__}")


def files_of(source: Any, data_root: Any = None, attached: Iterable[Any] = ()) -> list[str]:
    """What a program is made of: the model, a path or bytes, its external data, and attached images."""
    files = [source] if isinstance(source, str) else []
    try:
        files += map(os.fsdecode, _native.external_data(source, "" if data_root is None else os.fsdecode(data_root)))
    except StatusError as error:
        raise translated(error, strict=False, function="") from None
    return files + [os.fsdecode(path) for path in attached]


def write_program(path: str, program: bytes, sources: Sequence[str]) -> None:
    """Writes the file as a whole or not at all: readers see the old one until then. It has at most the permissions
    of each of `sources`. InvalidArgument when it would replace one of them."""
    for source in sources:
        if os.path.exists(path) and os.path.exists(source) and os.path.samefile(source, path):
            raise InvalidArgument(f"output {path} is {source}, which the program is made of; "
                                  "give another name so that it is kept")
    draft = f"{path}.{os.getpid()}.{secrets.token_hex(4)}.part"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _mode_for(path, sources)),
                  "wb") as file:
            file.write(program)
        os.replace(draft, path)
    except OSError:
        if os.path.exists(draft):
            os.remove(draft)
        raise


def _mode_for(path: str, sources: Sequence[str]) -> int:
    """Of a program made of `sources`: nobody reads it who may not read all of them. (The kernel takes the umask
    off.)"""
    folder = os.stat(os.path.dirname(path) or ".")
    group = folder.st_gid if folder.st_mode & stat.S_ISGID else os.getegid()
    widest = 0o666
    for source in sources:
        try:
            file = os.stat(source)
        except OSError:
            return 0o600  # It went meanwhile.
        # Another group has what everybody has.
        widest &= file.st_mode if file.st_gid == group else file.st_mode & (~0o070 | (file.st_mode & 0o007) << 3)
    return widest


def _dims(shape: Sequence[int]) -> list[int]:
    return [int(d) for d in shape]


def _count(name: str, value: Any, most: int) -> int:
    number = int(value)
    if not 1 <= number <= most:
        raise InvalidArgument(f"{name}: {number} is not from 1 to {most}")
    return number


def _channels(name: str, values: Any) -> dict[str, list[float]]:
    """By input name; "" stands for all inputs of rank 4."""
    if values is None:
        return {}
    by_input = values if isinstance(values, Mapping) else {"": values}
    try:
        return {str(key): [float(v) for v in channels] for key, channels in by_input.items()}
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name}: expected a list with one number for each channel, or a dict of them "
                              f"by input name; given {values!r}") from None


def _annotated(source: Any, metadata: Mapping[str, str], data_root: Any) -> tuple[bytes, Any]:
    """The model's bytes with more entries of metadata_props, and the folder of its external data: protobuf
    merges messages that follow one another."""
    if isinstance(source, str):
        if data_root is None:
            data_root = os.path.dirname(os.path.realpath(source))
        with open(source, "rb") as file:
            source = file.read()
    return bytes(source) + b"".join(_entry(str(k), str(v)) for k, v in metadata.items()), data_root


def _entry(key: str, value: str) -> bytes:
    # ModelProto.metadata_props is field 14; StringStringEntryProto has key = 1 and value = 2.
    return field(14, field(1, key.encode()) + field(2, value.encode()))
