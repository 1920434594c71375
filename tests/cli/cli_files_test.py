"""Files that the command line writes: what it reads is kept, and what it measured is not lost.

python cli_files_test.py BUILD/bin/corelane
"""
import json
import os
import stat
import subprocess

import numpy as np
import onnx

import cli_support
from cli_support import CliTest, main, small_model


class Files(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        small_model(cls.path / "large.onnx", (1, 3, 512, 512))
        onnx.save(onnx.load(cls.path / "fixed.onnx"), cls.path / "outside.onnx", save_as_external_data=True,
                  location="outside.data", size_threshold=0)
        np.save(cls.path / "x.npy", np.zeros((1, 3, 8, 8), np.float32))

    def assert_kept(self, file, *words, parts):
        before = file.read_bytes()
        self.fails(3, *words, parts=(*parts, "so that it is kept"))
        self.assertEqual(file.read_bytes(), before)

    def test_compile_keeps_what_it_reads(self):
        fixed, image, link = self.path / "fixed.onnx", self.path / "fixed.rknn", self.path / "link"
        image.write_bytes(b"RKNN vendor bytes")
        link.symlink_to(image)
        attach = ("compile", fixed, "--attach", f"rk3588={image}")
        self.assert_kept(image, *attach, parts=("--output", "fixed.rknn"))
        self.assert_kept(image, *attach, "-o", link, parts=("--output", "link"))
        self.assert_kept(self.path / "outside.data", "compile", self.path / "outside.onnx", "-o",
                         self.path / "outside.data", parts=("external data of", "outside.onnx"))
        hard = self.path / "hard.data"
        hard.hardlink_to(self.path / "outside.data")
        self.assert_kept(hard, "compile", self.path / "outside.onnx", "-o", hard, parts=("external data of",))
        hard.unlink()
        data = self.path / "list.txt"
        data.write_text("x.npy\n")
        self.assert_kept(data, "compile", fixed, "--int8", "--dataset", data, "-o", data, parts=("list.txt",))
        image.unlink()
        for _ in range(2):  # A program is written over.
            self.ok("compile", self.path / "outside.onnx", "-o", self.path / "again.rknn")

    def test_a_program_is_no_more_open_than_its_external_data(self):
        program = self.path / "private.rknn"
        os.chmod(self.path / "outside.data", 0o600)
        self.ok("compile", self.path / "outside.onnx", "-o", program)
        self.assertEqual(stat.S_IMODE(program.stat().st_mode), 0o600)
        os.chmod(self.path / "outside.data", 0o644)

    def test_bench_keeps_what_it_reads(self):
        fixed, x = self.path / "fixed.onnx", self.path / "x.npy"
        words = ("bench", fixed, "-n", "2", "--warm-up", "0")
        self.assert_kept(fixed, *words, "--out-json", fixed, parts=("--out-json",))
        for item in (x, f"x={x}"):
            self.assert_kept(x, *words, "-i", item, "--out-csv", x, parts=("--out-csv", "x.npy"))
        self.fails(3, *words, "--out-json", self.path / "r", "--out-html", self.path / "." / "r",
                   parts=("--out-html", "--out-json"))
        self.ok(*words, "--out-json", "/dev/null", "--out-html", "/dev/null")

    def bench_fails(self, *words):
        """What `bench --json` prints, one document, when it ends with exit code 5."""
        result = self.fails(5, "bench", *words, "--warm-up", "0", "--json")
        return json.loads(result.stdout)

    def test_a_sweep_that_stops_reports_the_points_before(self):
        files = {k: self.path / f"stopped.{k}" for k in ("json", "csv")}
        out = self.bench_fails(self.path / "large.onnx", "-d", "null:generic:4?memory=64M", "-c", "1,64", "-n", "5",
                               "--out-json", files["json"], "--out-csv", files["csv"])
        self.assertEqual([p["inferences"] for p in out["points"]], [5])
        self.assertEqual(out["error"], "out_of_memory")
        self.assertIn("no room", out["stopped"])
        self.assertEqual(len(json.loads(files["json"].read_text())["points"]), 1)
        self.assertEqual(len(files["csv"].read_text().splitlines()), 6)

    def test_a_report_that_cannot_be_written_takes_no_other_with_it(self):
        csv = self.path / "kept.csv"
        out = self.bench_fails(self.path / "fixed.onnx", "-n", "5", "--out-json", "/dev/full", "--out-csv", csv)
        self.assertEqual((out["points"][0]["inferences"], out["error"]), (5, "io"))
        self.assertEqual(len(csv.read_text().splitlines()), 6)

    def test_a_failing_run_of_the_runner_prints_one_document(self):
        out = self.fails(6, "qaic-runner", "-t", self.path / "fixed.onnx", "-d", "virtual", "-n", "5", "--json",
                         env={"CORELANE_FAULTS": "short=1"})
        report = json.loads(out.stdout)
        self.assertEqual((report["inference_cnt"], report["error"]), (0, "bad_result"))

    def test_a_path_that_is_not_utf8(self):
        model = os.fsencode(self.path) + b"/m\xff.onnx"
        with open(model, "wb") as file:
            file.write((self.path / "fixed.onnx").read_bytes())
        report = self.path / "report.json"

        def corelane(*words):
            return subprocess.run([cli_support.CORELANE, *words], capture_output=True, timeout=120, check=False)

        done = corelane("bench", model, "-n", "2", "--warm-up", "0", "--json", "--out-json", str(report))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\ufffd.onnx", json.loads(report.read_text())["model"])
        self.assertIn("\ufffd.onnx", json.loads(done.stdout)["model"])
        (self.path / "list.txt").write_text("x.npy\n")
        done = corelane("compile", model, "--int8", "--dataset", str(self.path / "list.txt"), "-o",
                        str(self.path / "q.rknn"), "--json")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(json.loads(done.stdout)["error"], "invalid_argument")
        self.assertIn(b"UTF-8", done.stderr)


if __name__ == "__main__":
    main()
