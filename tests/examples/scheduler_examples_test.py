"""The examples of the batch scheduler: a service sees how each page lies, a composite answers as batch 1 does.

python scheduler_examples_test.py SCRIPTS PROGRAMS
"""
import pathlib
import re
import sys
import tempfile
import unittest

from example_runs import ORIENTATION, PAGE, PROGRAMS, Runs


class SchedulerExamples(Runs):
    def check_service(self, text, clients, requests):
        said = re.findall(r"turned by +(\d+): (\d+) answers say so", text)
        self.assertEqual(said, [(turn, str(clients * requests // 4)) for turn in ("0", "90", "180", "270")])
        total, calls, mean = re.search(rf"(\d+) requests of {clients} clients in .* a second; (\d+) calls, mean batch "
                                       r"(\d+\.\d\d)\n", text).groups()
        self.assertEqual(int(total), clients * requests)
        self.assertAlmostEqual(float(mean), int(total) / int(calls), places=2)

    def test_a_service_answers_each_of_its_clients(self):
        self.check_service(self.output_of(PROGRAMS / "scheduler_service", ORIENTATION, PAGE), 16, 12)

    def test_a_service_of_a_fixed_program_fills_its_batches_up(self):
        with tempfile.TemporaryDirectory() as folder:
            fixed = pathlib.Path(folder, "fixed.rknn")
            self.start(PROGRAMS / "corelane", "compile", ORIENTATION, "--shape", "x=1,3,224,224", "--batch", "4",
                       "-o", fixed)
            text = self.output_of(PROGRAMS / "scheduler_service", fixed, PAGE, "--fixed", "--clients", "5",
                                  "--requests", "8", "--device", "virtual:generic:2")
        self.check_service(text, 5, 8)

    def test_a_composite_answers_as_the_program_of_batch_1(self):
        text = self.output_of(PROGRAMS / "scheduler_composite", ORIENTATION, PAGE)
        self.assertEqual(re.findall(r"SyncTensor: (\d) instances, (\d) to (\d) items a call", text),
                         [("2", n, n) for n in "148"])
        self.assertIn("6 instances, 2 virtual ones of 1 to 8 items\n", text)
        self.assertRegex(text, r"lists of 1 to 24: 300 answers, at most \d\.\de[-+]\d\d from those of batch 1\n")
        calls = {int(size): int(count) for size, count in re.findall(r"calls of (\d): (\d+)", text)}
        self.assertEqual(sum(size * count for size, count in calls.items()), 300)
        self.assertTrue(all(calls[size] for size in (1, 4, 8)), calls)

    def test_what_is_missing_is_told_in_one_line(self):
        for name in ("scheduler_service", "scheduler_composite"):
            self.check_refused([PROGRAMS / name, "no/such.file", PAGE], name, "no/such.file")
            self.check_refused([PROGRAMS / name, ORIENTATION, "no/such.file"], name, "no/such.file")
            self.check_refused([PROGRAMS / name, ORIENTATION, PAGE, "--device", "nothing"], name, "nothing")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
