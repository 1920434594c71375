"""The object runtime's examples see which way a page lies, and their answers are ONNX Runtime's.

python qaic_examples_test.py SCRIPTS PROGRAMS
"""
import pathlib
import re
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime as ort
from example_runs import ORIENTATION, PAGE, PROGRAMS, Runs

SEEN = r"turned by +(\d+): lies at +(\d+) degrees"
MODEL = pathlib.Path(__file__).parents[2] / "examples" / "qaic" / "decoder_model.py"
RIGHT = [(d, d) for d in ("0", "90", "180", "270")]


class QaicExamples(Runs):
    @classmethod
    def setUpClass(cls):
        kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(kept.cleanup)
        cls.folder = pathlib.Path(kept.name)
        cls.container = cls.folder / "container"
        done = Runs().start(PROGRAMS / "corelane", "compile", ORIENTATION, "--shape", "x=1,3,224,224",
                            "--target", "aic100", "-o", cls.container)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def example(self, name, *arguments):
        return self.output_of(PROGRAMS / name, self.container, PAGE, *arguments)

    def test_step_by_step_with_onnxruntimes_answers(self):
        dump = self.folder / "dump"
        dump.mkdir()
        text = self.example("qaic_steps", dump)
        self.assertEqual(re.findall(SEEN, text), RIGHT)
        self.assertRegex(text, r"(?m)^input  \S+, 602112 bytes$")
        session = ort.InferenceSession(ORIENTATION, providers=["CPUExecutionProvider"])
        for turn in range(4):
            given = np.fromfile(dump / f"{turn}-in.bin", np.float32).reshape(1, 3, 224, 224)
            theirs = session.run(None, {session.get_inputs()[0].name: given})[0]
            ours = np.fromfile(dump / f"{turn}-out.bin", np.float32).reshape(theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5)

    def test_four_activations_print_their_rate(self):
        text = self.example("qaic_activations")
        self.assertRegex(text, r"(?m)^1 activation: 64 inferences, [\d.]+ a second$")
        self.assertRegex(text, r"(?m)^4 activations: 64 inferences, [\d.]+ a second$")
        self.assertEqual(re.findall(SEEN, text), RIGHT)

    def test_two_programs_of_a_group_share_a_core_by_their_weights(self):
        text = self.output_of("env", "CORELANE_QAIC_DEVICES=virtual:generic:1", PROGRAMS / "qaic_group", self.container,
                              PAGE)
        lines = re.findall(r"(?m)^weight (\d): (\d+) inferences in (\d+) turns, ([\d.]+) ms on the core$", text)
        self.assertEqual(["1", "3"], [line[0] for line in lines])
        light, heavy = (int(line[1]) for line in lines)
        self.assertGreaterEqual(light + heavy, 96)
        self.assertGreater(heavy, light)
        self.assertTrue(all(int(line[2]) > 0 for line in lines))
        self.assertEqual(re.findall(SEEN, text), RIGHT)

    def test_a_decoders_state_stays_on_the_device(self):
        self.output_of(sys.executable, MODEL, self.folder / "decoder.onnx")
        made = self.start(PROGRAMS / "corelane", "compile", self.folder / "decoder.onnx", "--state", "next=h",
                          "--target", "aic100", "-o", self.folder / "decoder")
        self.assertEqual(made.returncode, 0, made.stderr)
        # Two engines differ in the last bits.
        text = self.output_of("env", "CORELANE_TIME_ENGINES=0", PROGRAMS / "qaic_decoder", self.folder / "decoder")
        self.assertEqual(text, "state    next -> h, 96 bytes\n"
                               "1000 steps, state on the device: the same as by the host\n"
                               "1000 steps after a reset:        the same\n")
        self.check_refused([PROGRAMS / "qaic_decoder", self.container], "keeps no state")

    def test_recovery_answers_all_on_a_device_that_is_lost(self):
        text = self.example("qaic_recovery")
        self.assertEqual(re.findall(SEEN, text), 4 * RIGHT)
        self.assertRegex(text, r"(?m)^-- context \d+, error 257: ")
        self.assertRegex(text, r"16 inferences, none lost; [1-9]\d* were submitted again")

    def test_log_capture_has_lines_of_host_and_device(self):
        text = self.example("qaic_log_capture")
        self.assertEqual(re.findall(SEEN, text), RIGHT)
        self.assertRegex(text, r"(?m)^info: virtual:aic100#0: the device was lost: ")
        self.assertRegex(text, r"(?m)^info: virtual:aic100#0: the device is back$")
        self.assertIn(f"{len(text.splitlines()) - 1} lines\n", text)

    def test_profiling_writes_a_report_of_its_inferences(self):
        folder = self.folder / "report"
        folder.mkdir()
        text = self.example("qaic_profile_file", folder)
        self.assertEqual(re.findall(SEEN, text), RIGHT)
        (report,) = folder.glob("aic-profiling-program-*-latency.txt")
        self.assertIn(f"wrote {report.name}\n", text)
        self.assertEqual(["1", "2", "3", "4"], [row.split(",")[0] for row in report.read_text().splitlines()[5:]])

    def test_a_folder_that_nothing_would_be_written_to_is_refused(self):
        for name in ("qaic_activations", "qaic_group", "qaic_recovery", "qaic_log_capture"):
            done = self.start(PROGRAMS / name, self.container, PAGE, self.folder / "nothing")
            self.assertEqual((done.returncode, done.stderr),
                             (2, f"usage: {PROGRAMS / name} CONTAINER PICTURE\n"))

    def test_mistakes_are_one_line_with_the_next_step(self):
        self.check_refused([PROGRAMS / "qaic_steps", self.folder / "missing", PAGE], "missing")
        self.check_refused([PROGRAMS / "qaic_steps", self.container, self.folder / "missing.png"], "missing.png")


if __name__ == "__main__":
    unittest.main(argv=["qaic_examples_test.py"])
