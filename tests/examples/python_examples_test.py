"""The Python examples find what is on the pictures, and their answers are ONNX Runtime's.

python python_examples_test.py SCRIPTS PROGRAMS

Each runs with --check: it feeds what it fed to Corelane to ONNX Runtime too, and fails where an answer
differs by more than its tolerance.
"""
import pathlib
import re
import sys
import tempfile
import unittest

import numpy as np
from PIL import Image

from example_runs import DETECTION, MODES, PAGE, PAGE_LINES, SCRIPTS, Runs


class PythonExamples(Runs):
    def example(self, name, *options):
        return self.output_of(sys.executable, "-B", SCRIPTS / f"{name}.py", *options)

    def checked(self, name, runs, *options):
        """What an example says, and that it compared as many runs with ONNX Runtime."""
        text = self.example(name, "--check", *options)
        self.assertEqual([int(n) for n in re.findall(r"^check: (\d+) runs of \S+\.onnx, largest difference "
                                                     r"from onnxruntime \S+, allowed 2e-0[45]$", text, re.M)],
                         runs, text)
        return text

    def test_basic_run_sees_how_the_page_lies(self):
        text = self.checked("basic_run", [4])
        self.assertEqual(re.findall(r"turned by +(\d+): lies at +(\d+) degrees", text),
                         [(d, d) for d in ("0", "90", "180", "270")])

    def test_async_frames_come_in_the_order_of_the_clip_and_show_the_taxi_sign(self):
        text = self.checked("async_frames", [25])
        numbers = [int(n) for n in re.findall(r"^frame +(\d+) ", text, re.M)]
        self.assertEqual(numbers, list(range(0, 250, 10)))
        self.assertIn("25 frames in ", text)
        self.assertIn("callbacks in the order of the frames", text)
        self.assertRegex(text, r"frame   70   2\.80 s: \d+ x \d+ at ")

    def test_async_frames_without_an_order_lose_none(self):
        text = self.example("async_frames", "--unordered", "--every", 25)
        self.assertEqual(sorted(int(n) for n in re.findall(r"^frame +(\d+) ", text, re.M)),
                         list(range(0, 250, 25)))

    def test_video_loop_reads_the_taxi_sign_at_its_frame(self):
        text = self.checked("video_loop", [25])
        self.assertRegex(text, r"(?m)^frame   70   2\.80 s: 'TAXI' \(\d+ %\)")
        self.assertIn("pipeline of depth 3", text)
        self.assertIn("25 frames in ", text)

    def test_video_loop_shows_every_frame_of_a_clip_shorter_than_its_pipeline(self):
        self.assertIn("3 frames in ", self.checked("video_loop", [3], "--every", 100, "--depth", 8))

    def test_batch_dispatch_reads_the_page(self):
        text = self.checked("batch_dispatch", [1])
        self.assertEqual(re.findall(r"^ *\d+ %  (.*)$", text, re.M)[:6], PAGE_LINES)
        # A run to compile, 7 lines one by one, 7 lines as a batch.
        self.assertIn("tasks on core 0: 5, core 1: 5, core 2: 5", text)

    def test_batch_dispatch_reads_the_page_where_engines_change_between_runs(self):
        text = self.output_of("env", "CORELANE_TIME_ENGINES=1", "CORELANE_STATIC_FORMS=1", "CORELANE_CACHE=0",
                              sys.executable, "-B", SCRIPTS / "batch_dispatch.py", "--check")
        self.assertIn("tasks on core 0: 5, core 1: 5, core 2: 5", text)

    def test_scheduling_places_tasks_as_each_mode_says(self):
        text = self.checked("scheduling", [4] * 5)
        rows = dict(re.findall(r"^(\S+) +((?:\w+: \d+(?:, )?)+) ", text, re.M))
        for mode, shares in MODES.items():
            expected = "all: 48"
            if shares:
                expected = ", ".join(f"{core}: {n}" for core, n in enumerate(shares) if n)
            self.assertEqual(rows[mode].strip(), expected, text)
        self.assertEqual(text.count("48 of 48"), 5, text)

    def test_one_mode_runs_alone_on_a_device_that_is_named(self):
        text = self.example("scheduling", "--mode", "two-cores", "--tasks", 7, "--device", "virtual:generic:2")
        self.assertIn("0: 4, 1: 3 ", text)
        self.assertNotIn("three-cores", text)

    def test_what_is_missing_is_told_in_one_line(self):
        for name in ("basic_run", "batch_dispatch", "scheduling", "async_frames", "video_loop"):
            with self.subTest(example=name):
                self.check_refused([sys.executable, "-B", SCRIPTS / f"{name}.py", "no/such.file"], name,
                                   "no/such.file", "next:")
        for option in ("--model", "--device"):
            self.check_refused([sys.executable, "-B", SCRIPTS / "basic_run.py", option, "nothing"], "nothing")

    def test_what_is_no_picture_and_no_clip_is_told_in_one_line(self):
        for name, suffix in (("basic_run", ".png"), ("video_loop", ".mp4"), ("async_frames", ".png")):
            with self.subTest(example=name), tempfile.NamedTemporaryFile(suffix=suffix) as file:
                file.write(b"neither" * 99)
                file.flush()
                self.check_refused([sys.executable, "-B", SCRIPTS / f"{name}.py", file.name], file.name)

    def test_a_grey_picture_of_16_bits_is_the_same_page(self):
        with tempfile.TemporaryDirectory() as folder, Image.open(PAGE) as page:
            deep = pathlib.Path(folder, "deep.png")
            Image.fromarray(np.asarray(page.convert("L")).astype(np.uint16) * 257).save(deep)
            text = self.example("basic_run", deep)
        self.assertEqual(re.findall(r"turned by +(\d+): lies at +(\d+) degrees", text),
                         [(d, d) for d in ("0", "90", "180", "270")])

    def test_a_picture_of_odd_size_is_read_or_refused_soon(self):
        with tempfile.TemporaryDirectory() as folder:
            thin, huge = pathlib.Path(folder, "thin.png"), pathlib.Path(folder, "huge.png")
            Image.new("L", (1, 3000)).save(thin)
            Image.new("1", (30000, 30000)).save(huge)
            self.assertEqual(self.example("batch_dispatch", thin), f"{thin}: no text\n")
            self.check_refused([sys.executable, "-B", SCRIPTS / "basic_run.py", huge], huge)

    def test_a_model_that_does_not_name_its_classes_and_a_folder_that_cannot_be_made_are_told_in_one_line(self):
        self.check_refused([sys.executable, "-B", SCRIPTS / "basic_run.py", "--model", DETECTION], "'character'")
        self.check_refused([sys.executable, "-B", SCRIPTS / "clip_to_pictures.py", "/dev/null/x"], "/dev/null/x")

    def test_a_count_of_none_is_refused(self):
        done = self.start(sys.executable, "-B", SCRIPTS / "video_loop.py", "--depth", "0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'0' is not a whole number of at least 1", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
