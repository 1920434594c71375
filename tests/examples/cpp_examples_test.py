"""The C++ examples over a session find what is on the pictures, and their answers are ONNX Runtime's.

python cpp_examples_test.py SCRIPTS PROGRAMS

Each writes down the bytes that it fed to a model and the answer (--dump). The same bytes, normalised
here, go through ONNX Runtime.
"""
import pathlib
import re
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime as ort
from PIL import Image

from example_runs import (DETECTION, MODES, ORIENTATION, PAGE, PAGE_LINES, PROGRAMS, RECOGNITION, SCRIPTS,
                          Runs)

# Mean, deviation and tolerance by the name that a dump starts with.
MODELS = {"orientation": (ORIENTATION, [123.675, 116.28, 103.53], [58.395, 57.12, 57.375], 2e-5),
          "detection": (DETECTION, 127.5, 127.5, 2e-4), "recognition": (RECOGNITION, 127.5, 127.5, 2e-4)}


class CppExamples(Runs):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.kept.cleanup)
        cls.frames = pathlib.Path(cls.kept.name) / "frames"
        done = Runs().start(sys.executable, "-B", SCRIPTS / "clip_to_pictures.py", cls.frames)
        if done.stdout != f"25 frames in {cls.frames}\n":
            raise RuntimeError(done.stdout + done.stderr)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dump = pathlib.Path(folder.name) / "dump"

    def example(self, name, *arguments):
        return self.output_of(PROGRAMS / name, *arguments, "--dump", self.dump)

    def check_answers(self, **expected):
        """The dumped answers are ONNX Runtime's; `expected` runs of each model were dumped."""
        for kind, count in expected.items():
            model, mean, deviation, tolerance = MODELS[kind]
            session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
            given = sorted(self.dump.glob(f"{kind}-*-in.npy"))
            self.assertEqual(len(given), count)
            for path in given:
                pixels = np.load(path)
                self.assertEqual(pixels.dtype, np.uint8)
                real = ((pixels - np.array(mean)) / deviation).astype(np.float32).transpose(0, 3, 1, 2)
                theirs = session.run(None, {session.get_inputs()[0].name: np.ascontiguousarray(real)})[0]
                ours = np.load(str(path).replace("-in.npy", "-out.npy"))
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance, err_msg=path.name)
        self.assertEqual(len(list(self.dump.glob("*-in.npy"))), sum(expected.values()))

    def test_basic_run_sees_how_the_page_lies(self):
        text = self.example("session_basic_run", ORIENTATION, PAGE)
        self.assertEqual(re.findall(r"turned by +(\d+): lies at +(\d+) degrees", text),
                         [(d, d) for d in ("0", "90", "180", "270")])
        self.check_answers(orientation=4)

    def test_grey_of_16_bits_is_fed_as_its_8_bits(self):
        grey = np.asarray(Image.open(PAGE).convert("L"))
        fed = []
        for name, array in (("grey", grey), ("deep", grey.astype(np.uint16) * 257)):
            Image.fromarray(array).save(self.frames.parent / f"{name}.png")
            self.example("session_basic_run", ORIENTATION, self.frames.parent / f"{name}.png")
            fed.append(np.load(self.dump / "orientation-00000-in.npy"))
        np.testing.assert_array_equal(fed[0], fed[1])

    def test_a_jpeg_in_cmyk_says_what_to_do(self):
        printed = self.frames.parent / "print.jpg"
        Image.open(PAGE).convert("CMYK").save(printed)
        self.check_refused([PROGRAMS / "session_basic_run", ORIENTATION, printed], "CMYK", "convert it to RGB")

    def test_an_event_loop_sees_how_the_page_lies(self):
        text = self.output_of(PROGRAMS / "set_event_loop", ORIENTATION, PAGE)
        self.assertEqual(sorted(re.findall(r"turned by +(\d+): lies at +(\d+) degrees", text)),
                         sorted((d, d) for d in ("0", "90", "180", "270")))

    def test_a_set_answers_all_on_a_device_that_is_lost(self):
        text = self.output_of(PROGRAMS / "set_loss", ORIENTATION, PAGE)
        self.assertEqual(sorted(re.findall(r"turned by +(\d+): lies at +(\d+) degrees", text)),
                         sorted((d, d) for d in ("0", "90", "180", "270") for _ in range(4)))
        self.assertIn("-- lost: an injected fault struck job ", text)
        self.assertIn("-- back: ", text)
        self.assertRegex(text, r"16 inferences, none lost; [1-9]\d* were run again")

    def test_four_activations_share_the_constants_and_have_cores_of_their_own(self):
        text = self.output_of(PROGRAMS / "four_activations", ORIENTATION, PAGE)
        self.assertEqual(re.findall(r"turned by +(\d+): lies at +(\d+) degrees", text),
                         2 * [(d, d) for d in ("0", "90", "180", "270")])
        homes = re.findall(r"(?m)^cores ([\d,]+): (\d+) inferences", text)
        self.assertEqual([n for _, n in homes], ["2"] * 4)
        self.assertEqual(sorted(int(c) for cores, _ in homes for c in cores.split(",")), list(range(16)))
        four, one = re.search(r"constants: (\d+) KiB for 4 activations, (\d+) KiB for one", text).groups()
        self.assertEqual(four, one)

    def test_async_frames_come_in_the_order_of_the_clip_and_show_the_taxi_sign(self):
        text = self.example("session_async_frames", DETECTION, self.frames)
        self.assertEqual([int(n) for n in re.findall(r"^frame(\d+)\.png", text, re.M)], list(range(0, 250, 10)))
        self.assertIn("callbacks in the order of the frames; core 0: 9, core 1: 8, core 2: 8", text)
        self.assertIn("frame00070.png: text at ", text)
        self.check_answers(detection=25)

    def test_async_frames_without_an_order_lose_none(self):
        text = self.example("session_async_frames", DETECTION, self.frames, "--unordered")
        self.assertEqual(sorted(int(n) for n in re.findall(r"^frame(\d+)\.png", text, re.M)),
                         list(range(0, 250, 10)))

    def test_video_loop_reads_the_taxi_sign_at_its_frame(self):
        text = self.example("session_video_loop", DETECTION, RECOGNITION, self.frames)
        self.assertRegex(text, r"(?m)^frame00070\.png: 'TAXI' \(\d+ %\)")
        self.assertIn("25 frames in ", text)
        self.assertIn("pipeline of depth 3; core 0: 9, core 1: 8, core 2: 8", text)
        self.check_answers(detection=25)

    def test_video_loop_shows_every_frame_of_a_clip_shorter_than_its_pipeline(self):
        text = self.example("session_video_loop", DETECTION, RECOGNITION, self.frames / "frame00070.png",
                            "--depth", 8)
        self.assertIn("'TAXI'", text)
        self.assertIn("1 frames in ", text)

    def test_batch_dispatch_reads_the_page(self):
        text = self.example("session_batch_dispatch", DETECTION, RECOGNITION, PAGE)
        self.assertEqual(re.findall(r"^ *\d+ %  (.*)$", text, re.M)[:6], PAGE_LINES)
        self.assertIn("core 0: 3, core 1: 2, core 2: 2", text)
        self.check_answers(detection=1, recognition=1)

    def test_scheduling_places_tasks_as_each_mode_says(self):
        text = self.example("session_scheduling", ORIENTATION, PAGE)
        for mode, shares in MODES.items():
            expected = "all cores: 48"
            if shares:
                expected = ", ".join(f"core {core}: {n}" for core, n in enumerate(shares) if n)
            self.assertRegex(text, rf"(?m)^{mode} +{expected} ")
        self.assertEqual(text.count("48 of 48"), 5, text)
        self.check_answers(orientation=20)

    def test_help_names_the_options_that_an_example_has(self):
        self.assertIn("--dump", self.output_of(PROGRAMS / "session_basic_run", "--help"))
        for name in ("set_event_loop", "set_loss", "four_activations"):
            self.assertNotIn("--dump", self.output_of(PROGRAMS / name, "--help"))
        self.assertIn("(default: virtual:generic:16)", self.output_of(PROGRAMS / "four_activations", "--help"))

    def test_a_set_opens_the_device_that_the_environment_names(self):
        self.check_refused(["env", "CORELANE_DEVICE=nothing", PROGRAMS / "set_loss", ORIENTATION, PAGE], "nothing")

    def test_what_is_missing_is_told_in_one_line(self):
        for command in (["session_basic_run", "no/such.file", PAGE],
                        ["session_basic_run", ORIENTATION, "no/such.file"],
                        ["session_async_frames", DETECTION, "no/such.file"],
                        ["session_video_loop", DETECTION, "no/such.file", self.frames],
                        ["session_batch_dispatch", DETECTION, RECOGNITION, "no/such.file"],
                        ["session_scheduling", ORIENTATION, "no/such.file"]):
            with self.subTest(command=command[0]):
                self.check_refused([PROGRAMS / command[0], *command[1:]], command[0], "no/such.file")
        self.check_refused([PROGRAMS / "session_basic_run", ORIENTATION, PAGE, "--device", "nothing"],
                           "nothing")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
