"""The file of calibration samples, and files as inputs: a picture or .npy array for each input."""

from __future__ import annotations

import os
from typing import Any, Sequence

import numpy as np

from .._arrays import dtype_of
from .._rknn.log import Log, UsageError


def read_dataset(path: Any, inputs: int) -> list[list[str]]:
    """Samples, one a line: the file of each input, separated by blanks. Relative paths are looked for
    beside the dataset, then in the working folder."""
    if not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path):
        raise UsageError(f"dataset: {path!r} is not a file; it lists pictures or .npy files, one sample a "
                         "line")
    base = os.path.dirname(os.path.abspath(path))
    samples = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = [line.strip()] if inputs == 1 else line.split()
            if not line.strip():
                continue
            if len(words) != inputs:
                raise UsageError(f"dataset {path}, line {number}: {len(words)} files for {inputs} inputs; "
                                 "separate them by blanks")
            samples.append([_find(word, base, f"dataset {path}, line {number}") for word in words])
    if not samples:
        raise UsageError(f"dataset {path}: it has no line with a file")
    return samples


def _find(name: str, base: str, where: str) -> str:
    for path in (os.path.join(base, name), os.path.abspath(name)):
        if os.path.isfile(path):
            return path
    raise UsageError(f"{where}: {name!r} is not a file, neither under {base} nor in the working folder")


class SampleReader:
    """Reads samples into what the network computes with: model order, normalised, of its types.

    inputs: descriptions with static shapes, model order, and "mean" and "std"."""

    def __init__(self, inputs: Sequence[dict], rgb_to_bgr: bool, log: Log):
        self._inputs, self._bgr, self._log = inputs, rgb_to_bgr, log
        self._resized = False

    def read(self, sample: Sequence[Any]) -> dict[str, np.ndarray]:
        """From paths, or arrays as inference() takes them."""
        if len(sample) != len(self._inputs):
            raise UsageError(f"inputs: the model has {len(self._inputs)}, {len(sample)} were given")
        return {desc["name"]: self._normalised(self._array(item, desc), desc)
                for item, desc in zip(sample, self._inputs)}

    def _array(self, item: Any, desc: dict) -> np.ndarray:
        if isinstance(item, np.ndarray):
            return self._fitted(item, desc, f"input {desc['name']!r}")
        path = os.fsdecode(item) if isinstance(item, (str, os.PathLike)) else ""
        if not os.path.isfile(path):
            raise UsageError(f"input {desc['name']!r}: {item!r} is not a file (a picture or .npy)")
        if path.lower().endswith(".npy"):
            return self._fitted(np.load(path, allow_pickle=False), desc, path)
        return self._picture(path, desc)

    def _fitted(self, array: np.ndarray, desc: dict, where: str) -> np.ndarray:
        """Model order is tried first, then N, H, W, C; a missing batch dimension is added."""
        shape = tuple(desc["shape"])
        if array.dtype.kind not in "biuf":
            raise UsageError(f"{where}: expected numbers, found an array of {array.dtype}")
        if array.ndim == len(shape) - 1:
            array = array[np.newaxis]
        if array.shape == shape:
            return array
        if len(shape) == 4 and array.shape == (shape[0], shape[2], shape[3], shape[1]):
            return array.transpose(0, 3, 1, 2)
        raise UsageError(f"{where}: shape {list(array.shape)} does not fit input {desc['name']!r} of "
                         f"{list(shape)}")

    def _picture(self, path: str, desc: dict) -> np.ndarray:
        shape = desc["shape"]
        if len(shape) != 4 or shape[1] not in (1, 3):
            raise UsageError(f"{path}: a picture does not fit input {desc['name']!r} of {shape}; give .npy")
        picture = _open_picture(path).convert("RGB" if shape[1] == 3 else "L")
        if picture.size != (shape[3], shape[2]):
            if not self._resized:
                self._log.warning("dataset", f"{path} is {picture.size[0]}x{picture.size[1]} and is resized "
                                             f"to {shape[3]}x{shape[2]}, as are others")
            self._resized = True
            picture = picture.resize((shape[3], shape[2]), resample=2)  # Bilinear.
        pixels = np.asarray(picture).reshape(shape[2], shape[3], shape[1])
        if self._bgr:
            pixels = pixels[:, :, ::-1]
        return np.repeat(pixels.transpose(2, 0, 1)[np.newaxis], shape[0], axis=0)

    def _normalised(self, array: np.ndarray, desc: dict) -> np.ndarray:
        if len(desc["shape"]) == 4 and (desc["mean"] or desc["std"]):
            mean = np.asarray(desc["mean"] or [0], np.float32).reshape(1, -1, 1, 1)
            std = np.asarray(desc["std"] or [1], np.float32).reshape(1, -1, 1, 1)
            array = (array.astype(np.float32) - mean) / std
        return np.ascontiguousarray(array, dtype=dtype_of(desc["type"]))


def _open_picture(path: str) -> Any:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise UsageError(f"{path}: pictures are read by Pillow, which is not installed; "
                         "`pip install pillow`, or give .npy files") from None
    try:
        picture = Image.open(path)
        picture.load()
    except UnidentifiedImageError:
        raise UsageError(f"{path} is neither a picture that Pillow reads nor .npy") from None
    except (OSError, SyntaxError, Image.DecompressionBombError) as problem:
        raise UsageError(f"{path}: Pillow cannot read this picture: {problem}") from None
    if picture.mode.startswith("I;16") or (picture.mode == "I" and picture.format == "PNG"):
        # Grey of 16 bits, which convert() would cut off at 255.
        picture = Image.fromarray((np.asarray(picture) // 257).astype(np.uint8))
    return picture
