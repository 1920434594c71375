"""Wrong input to the command line: each mistake is named with what was given and what is allowed,
ends with the exit code of its kind, and leaves stdout clean. Run with the path of `corelane`.

python cli_mistakes_test.py BUILD/bin/corelane
"""
import json
import os
import pathlib
import signal
import shutil
import stat
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

import cli_support
from cli_support import CliTest, interrupted_leaves_no_folder, main, run


class Mistakes(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = cls.path / "fixed.rknn"
        assert run("compile", cls.path / "fixed.onnx", "-o", cls.program).returncode == 0
        np.save(cls.path / "x.npy", np.ones((1, 3, 8, 8), np.float32))

    def test_unknown_words_are_named_with_those_allowed(self):
        self.fails(2, "nonsense", parts=("'nonsense'", "compile", "compare", "--help"))
        self.fails(2, "run", self.program, "--foo", parts=("--foo", "corelane run --help"))
        self.fails(2, parts=("subcommand", "devices"))
        out = json.loads(self.fails(2, "--json", "nonsense").stdout)
        self.assertEqual(out["error"], "invalid_argument")

    def test_json_failures_carry_details_for_programs(self):
        out = json.loads(self.fails(3, "--json", "run", self.program, "--random", "--shape",
                                    "nothere=1,3,8,8").stdout)
        self.assertEqual(out["error"], "not_found")
        self.assertEqual(out["details"]["given"], "nothere")
        self.assertIn("'x'", out["details"]["allowed"])

    def test_a_repeatable_option_does_not_take_the_model(self):
        self.ok("run", "-i", self.path / "x.npy", self.program)
        self.ok("compile", "--shape", "x=2,3,8,8", self.path / "small.onnx", "-o",
                self.path / "two.rknn")

    def test_numbers_out_of_range(self):
        for command, option, given in (
                ("run", "--timeout", "-5"), ("run", "--timeout", "nan"), ("run", "--top-k", "-3"),
                ("run", "--repeat", "0"), ("run", "--seed", "-1"), ("bench", "--count", "-5"),
                ("bench", "--concurrency", "0"), ("bench", "--concurrency", "two"),
                ("bench", "--rate", "0"), ("bench", "--warm-up", "nan"),
                ("compare", "--min-cosine", "2")):
            self.fails(2, command, self.program, option, given,
                       parts=(f"'{given}'", "allowed", option))
        self.fails(3, "bench", self.program, "--poisson", parts=("--rate",))
        for given in ("nan,1,1", "1,2,3,", "", ",1,2", "1,,2", "x="):
            self.fails(3, "compile", self.path / "fixed.onnx", "-o", self.path / "n.rknn", "--mean",
                       given, parts=("--mean", given.removeprefix("x="), "finite"))

    def test_options_that_would_do_nothing(self):
        self.fails(2, "inspect", self.program, "-d", "virtual", parts=("--device", "--load"))
        self.fails(2, "compile", self.path / "fixed.onnx", "-o", self.path / "d.rknn", "-d",
                   "virtual", parts=("--device", "--precompile"))
        self.assertFalse((self.path / "d.rknn").exists())
        self.fails(3, "inspect", self.path / "fixed.onnx", "--verify",
                   parts=("--verify", "fixed.onnx", "ONNX model"))

    def test_a_pipe_is_written_to_and_stays_a_pipe(self):
        pipe = self.path / "pipe"
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        self.ok("compile", self.path / "fixed.onnx", "-o", pipe)
        self.assertEqual(reader.communicate(timeout=60)[0], self.program.read_bytes())
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))

    def test_devices_that_do_not_exist(self):
        self.fails(3, "run", self.program, "--random", "-d", "bogus", parts=("'bogus'", "virtual"))
        self.fails(3, "run", self.program, "--random", "-d", "virtual:rk1",
                   parts=("'rk1'", "rk3588"))
        self.fails(3, "devices", env={"CORELANE_DEVICE": "foo"}, parts=("foo", "CORELANE_DEVICE"))
        doctor = run("doctor", "--json", env={"CORELANE_DEVICE": "foo"})
        self.assertEqual(doctor.returncode, 1)
        check, = [c for c in json.loads(doctor.stdout)["checks"] if c["check"] == "device"]
        self.assertIn("foo", check["found"])
        self.assertIn("CORELANE_DEVICE", check["remedy"])
        self.fails(3, "run", self.program, "--random", "--cores", "7", parts=("'7'", "0 to 2"))

    def remedy(self, *words, check="device", env=None):
        done = run("doctor", "--json", *words, env=env)
        self.assertEqual(done.returncode, 1, done.stderr)
        found, = [c for c in json.loads(done.stdout)["checks"] if c["check"] == check]
        return found["remedy"]

    def test_doctor_names_a_ggml_plugin_that_cannot_be_loaded(self):
        doctor = run("doctor", "--json", env={"GGML_BACKEND_PATH": "/nowhere/libggml-rknn.so"})
        self.assertEqual(doctor.returncode, 1)
        check, = [c for c in json.loads(doctor.stdout)["checks"] if c["check"] == "ggml plugin"]
        self.assertIn("/nowhere/libggml-rknn.so", check["found"])
        self.assertIn("set GGML_BACKEND_PATH to the absolute path", check["remedy"])

    def test_doctor_mends_each_cause_by_its_own_remedy(self):
        library = pathlib.Path(cli_support.CORELANE).parents[1] / "lib"
        bare = self.path / "bare"
        bare.mkdir()
        for file in library.glob("libcorelane.so*"):
            shutil.copy2(file, bare, follow_symlinks=False)
        broken = self.path / "broken"
        broken.mkdir()
        (broken / "libcorelane_virtual.so").write_bytes(b"\x7fELF")
        for words, env, parts in (
                (("-d", "virtul"), None, ("--device", "null, rknn, virtual")),
                (("-d", "virtual:rk1"), None, ("--device", "message")),
                ((), {"CORELANE_DEVICE": "virtual:rk1"}, ("CORELANE_DEVICE", "message")),
                ((), {"LD_LIBRARY_PATH": str(bare)}, ("libcorelane_virtual.so", "CORELANE_DRIVER_PATH")),
                ((), {"CORELANE_DRIVER_PATH": str(broken)}, (f"ldd {broken}", "cmake --install"))):
            with self.subTest(words=words, env=env):
                remedy = self.remedy(*words, env=env)
                for part in parts:
                    self.assertIn(part, remedy)
        self.assertIn("a folder that can be made",
                      self.remedy(check="cache folder", env={"CORELANE_CACHE_DIR": "/dev/null/x"}))

    def test_only_drivers_are_listed_as_drivers(self):
        out = json.loads(self.ok("devices", "--json").stdout)
        self.assertEqual({d["kind"] for d in out["drivers"]}, {"null", "rknn", "virtual"})

    def test_files_that_cannot_be_read(self):
        missing = self.path / "missing.rknn"
        for words in (("run", missing, "--random"), ("inspect", missing), ("bench", missing),
                      ("compare", missing), ("compile", missing)):
            self.fails(3, *words, parts=("missing.rknn", "No such file"))
        self.fails(4, "run", self.path, "--random", parts=("directory", "regular file"))
        (self.path / "text.onnx").write_text("hello, this is not a model")
        self.fails(4, "run", self.path / "text.onnx", "--random", parts=("text.onnx", "ONNX"))
        bytes_ = bytearray(self.program.read_bytes())
        bytes_[200] ^= 0x10
        (self.path / "flipped.rknn").write_bytes(bytes_)
        self.fails(4, "run", self.path / "flipped.rknn", "--random", parts=("flipped.rknn",))
        (self.path / "half.rknn").write_bytes(bytes_[:700])
        self.fails(4, "inspect", self.path / "half.rknn", parts=("half.rknn",))
        for name, part in (("flipped.rknn", "flipped"), ("missing.rknn", "missing")):
            doctor = run("doctor", self.path / name, "--json")
            self.assertEqual(doctor.returncode, 1)
            check, = [c for c in json.loads(doctor.stdout)["checks"] if c["check"] == "program"]
            self.assertIn(part, check["found"])
            self.assertIn("corelane compile", check["remedy"])
        # A program is not blamed for a device that does not open.
        checks = json.loads(self.fails(1, "doctor", self.program, "-d", "nonsense", "--json").stdout)["checks"]
        self.assertEqual([c["check"] for c in checks if not c["ok"]], ["device"])
        if os.geteuid() != 0:
            (self.path / "secret.rknn").write_bytes(b"x")
            (self.path / "secret.rknn").chmod(0)
            self.fails(5, "run", self.path / "secret.rknn", parts=("secret.rknn", "denied"))

    def test_inputs_that_do_not_fit(self):
        path = self.path
        np.save(path / "complex.npy", np.zeros((1, 3, 8, 8), np.complex64))
        np.save(path / "wide.npy", np.zeros((1, 3, 8, 9), np.float32))
        (path / "junk.npy").write_bytes(b"hello")
        (path / "short.npy").write_bytes((path / "x.npy").read_bytes()[:300])
        (path / "junk.png").write_bytes(b"\x89PNG\r\n\x1a\njunk")
        (path / "junk.jpg").write_bytes(b"\xff\xd8\xffjunk")
        (path / "short.raw").write_bytes(b"1234")
        for code, item, parts in (
                (3, "complex.npy", ("complex.npy", "c8")),
                (3, "wide.npy", ("'x'", "[1, 3, 8, 9]", "[1, 3, 8, 8]")),
                (4, "junk.npy", ("junk.npy", "numpy.save")), (4, "short.npy", ("short.npy", "172")),
                (4, "junk.png", ("junk.png",)), (4, "junk.jpg", ("junk.jpg",)),
                (3, "short.raw", ("short.raw", "4 bytes", "768")),
                (3, "x.npz", ("x.npz", ".npy .png")), (3, "missing.npy", ("missing.npy",))):
            self.fails(code, "run", self.program, "-i", path / item, parts=parts)
        x = path / "x.npy"
        self.fails(3, "run", self.program, parts=("'x'", "--random"))
        self.fails(3, "run", self.program, "-i", f"q={x}", parts=("'q'", "'x'"))
        self.fails(3, "run", self.program, "-i", x, "-i", x, parts=("file number 2", "1 input"))
        self.fails(3, "run", self.program, "-i", f"x={x}", "-i", f"x={x}", parts=("'x'", "already"))
        self.fails(3, "run", self.program, "--random", "--shape", "q=1", parts=("'q'", "'x'"))
        self.fails(3, "run", self.program, "--random", "--shape", "x", parts=("--shape x=1,3",))
        self.fails(3, "run", self.program, "--random", "--expose", "nothing", parts=("'nothing'",))

    def test_random_fills_what_no_file_feeds(self):
        source = self.path / "sum.onnx"
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "aby"]
        graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "sum", values[:2],
                                  values[2:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                                    ir_version=8), source)
        np.save(self.path / "b.npy", np.full(4, 100, np.float32))
        self.ok("run", source, "--random", "-i", f"b={self.path / 'b.npy'}", "-o",
                self.path / "sum")
        y = np.load(self.path / "sum/y.npy")
        self.assertTrue(((y >= 100) & (y < 101)).all(), y)
        self.fails(3, "run", source, "-i", f"b={self.path / 'b.npy'}", parts=("'a'",))

    def test_outputs_with_like_names_get_files_of_their_own(self):
        source = self.path / "alike.onnx"
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4])
                  for n in ("x", "a/b", "a_b")]
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["a/b"]),
                                   helper.make_node("Neg", ["x"], ["a_b"])], "alike", values[:1],
                                  values[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                                    ir_version=8), source)
        out = json.loads(self.ok("run", source, "--random", "-o", self.path / "alike",
                                 "--json").stdout)
        files = [o["file"] for o in out["outputs"]]
        self.assertEqual(len(set(files)), 2)
        np.testing.assert_array_equal(np.load(files[0]), -np.load(files[1]))

    def test_outputs_that_cannot_be_written(self):
        source = self.path / "fixed.onnx"
        before = source.read_bytes()
        self.fails(3, "compile", source, "-o", source, parts=("--output", "which this command reads"))
        self.assertEqual(source.read_bytes(), before)
        self.fails(3, "compile", source, "-o", self.path, parts=("--output", "folder"))
        read = self.path / "y.npy"  # Named as the output of the program is.
        np.save(read, np.ones((1, 3, 8, 8), np.float32))
        before = read.read_bytes()
        self.fails(3, "run", self.program, "-i", read, "-o", self.path, parts=("--out", "which this command reads"))
        self.assertEqual(read.read_bytes(), before)
        self.fails(5, "compile", source, "-o", source / "x.rknn", parts=("fixed.onnx",))
        # Refused before anything is measured.
        for report in ("json", "csv", "trace", "html"):
            out = self.fails(3, "bench", self.program, "-n", "5", f"--out-{report}", self.path,
                             parts=(f"--out-{report}", "folder"))
            self.assertEqual(out.stdout, "")
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([cli_support.CORELANE, "inspect", self.program], stdout=full,
                                    stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(result.returncode, 5)
        self.assertIn("standard output", result.stderr)

    def test_quiet_keeps_errors_only(self):
        env = {"CORELANE_CACHE_DIR": "/proc/nowhere", "CORELANE_CACHE": "1"}
        words = ("run", self.path / "fixed.onnx", "--random")
        self.assertIn("not cached", self.ok(*words, env=env).stderr)
        self.assertNotIn("warning", self.ok(*words, "--quiet", env=env).stderr)
        self.fails(3, "run", "missing.onnx", "--quiet", parts=("missing.onnx",))

    def test_a_closed_pipe_ends_quietly(self):
        done = subprocess.run(f"'{cli_support.CORELANE}' inspect '{self.program}' --json | head -1",
                              shell=True, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "{\n")
        self.assertEqual(done.stderr, "")

    def test_compile_options_that_do_not_fit(self):
        small, fixed = self.path / "small.onnx", self.path / "fixed.onnx"
        for model, words, parts in (
                (fixed, ("--shape", "x=1,3,9,9"), ("'x'", "[1, 3, 9, 9]", "[1, 3, 8, 8]")),
                (fixed, ("--shape", "q=1"), ("'q'", "x")), (small, ("--dim", "Q=3"), ("'Q'", "N")),
                (fixed, ("--mean", "1,2"), ("2 values", "3")),
                (fixed, ("--std", "0,1,1"), ("std", "0")),
                (fixed, ("--layout", "nhcw"), ("'nhcw'", "nhwc")),
                (fixed, ("--io-dtype", "foo"), ("'foo'", "f16")),
                (fixed, ("--custom-string", "a" * 1024), ("1024", "1023")),
                (fixed, ("--custom-op", "Nope"), ("'Nope'",)),
                (fixed, ("--attach", "img.bin"), ("--attach", "NAME=VALUE")),
                (fixed, ("--attach", "rknn=missing.bin"), ("missing.bin",)),
                (fixed, ("--precompile", "-d", "bogus"), ("'bogus'",))):
            self.fails(3, "compile", model, "-o", self.path / "never.rknn", *words, parts=parts)
        self.assertFalse((self.path / "never.rknn").exists())
        self.ok("compile", fixed, "-o", self.path / "nchw.rknn", "--layout", "nchw")

    def test_compare_says_what_its_reference_needs(self):
        self.fails(3, "compare", self.program, "--python", "/nonexistent/python",
                   parts=("/nonexistent/python", "--python"))
        self.fails(3, "compare", self.program, "--script", "/nonexistent.py",
                   parts=("/nonexistent.py", "ort_reference.py"))
        self.fails(3, "compare", self.program, "--onnx", self.path / "x.npy", parts=("x.npy",))
        self.fails(6, "compare", self.program, "--python", "/bin/false", parts=("onnxruntime",))
        self.fails(5, "compare", self.program, env={"TMPDIR": "/nonexistent"}, parts=("TMPDIR",))

    def test_an_interrupted_compare_leaves_no_folder(self):
        interrupted_leaves_no_folder(self, "compare", self.program)

    def test_bench_counts_failures_and_ends_with_the_first_where_nothing_works(self):
        env = {"CORELANE_FAULTS": "crash=0.2,seed=3"}
        out = json.loads(self.ok("bench", self.program, "-n", "100", "--warm-up", "0", "--json",
                                 env=env).stdout)
        point = out["points"][0]
        self.assertGreater(point["failed"], 0)
        self.assertEqual(point["failed"] + point["inferences"], 100)
        self.assertIn("device_reset", point["first_error"])
        late = self.fails(6, "bench", self.program, "-n", "5", "--warm-up", "0", "--timeout",
                          "0.000001", parts=("timeout", "none of 5"))
        self.assertIn("callers", late.stdout)

    def test_a_short_result_is_a_failed_run_for_every_command_that_runs(self):
        env = {"CORELANE_FAULTS": "short=1"}
        for words in (("run", self.program, "--random"), ("bench", self.program, "-n", "5", "--warm-up", "0")):
            self.fails(6, *words, parts=("bad_result", "short"), env=env)

    def test_an_input_names_a_file(self):
        self.fails(3, "run", self.program, "-i", "x=", parts=("'x='", "no file", "x=FILE"))
        self.fails(3, "run", self.program, "-i", "", parts=("no file", "x=FILE"))

    def test_a_cut_array_is_named(self):
        cut = self.path / "cut.npy"
        cut.write_bytes((self.path / "x.npy").read_bytes()[:-9])
        self.fails(4, "run", self.program, "-i", cut, parts=("cut.npy", "bytes of data"))

    def test_a_data_root_is_a_folder(self):
        for root in ("/nodir", self.program):
            self.fails(3, "compile", self.path / "fixed.onnx", "--data-root", root, "-o", self.path / "n.rknn",
                       parts=("--data-root", str(root), "folder"))

    def test_help_that_cannot_be_printed_is_a_failure(self):
        for words in (("--help",), ("--version",), ("run", "--help")):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([cli_support.CORELANE, *words], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=60, check=False)
            self.assertEqual(done.returncode, 5, words)
            self.assertIn("standard output cannot be written", done.stderr)

    def test_a_closed_stderr_is_nobodys_file(self):
        done = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", cli_support.CORELANE, "compare", self.program, "--python",
                               sys.executable], stdout=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_an_input_without_a_file_is_advised_what_the_command_has(self):
        graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "two", *(
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in names] for names in ("ab", "y")))
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
                  self.path / "ab.onnx")
        np.save(self.path / "a.npy", np.ones(2, np.float32))
        words = (self.path / "ab.onnx", "-i", self.path / "a.npy")
        self.fails(3, "run", *words, parts=("'b'", "--input b=FILE, or --random"))
        for command in ("bench", "compare"):
            result = self.fails(3, command, *words, parts=("'b'", "--input b=FILE, or no --input"))
            self.assertNotIn("--random", result.stderr)

    def test_a_load_that_is_too_high_ends_with_its_time(self):
        words = ("-d", "null:generic:1?a=20ms", "-t", "0.2", "-r", "10000", "--warm-up", "0", "--json")
        for more in ((), ("--set",)):
            result = self.ok("bench", self.program, *words, *more)
            point = json.loads(result.stdout)["points"][0]
            self.assertEqual(point["inferences"] + point["not_started"], 2000)
            self.assertLessEqual(point["inferences"], 11)  # Of 20 ms each, the last one begun within the time.
            self.assertIn(f"{point['not_started']} inferences due and not started", result.stderr)

    def interrupted_bench(self, *words):
        """What a bench prints that gets SIGINT once it listens to it."""
        process = subprocess.Popen([cli_support.CORELANE, "bench", str(self.program), *words, "--warm-up", "0",
                                    "--json"], stdout=subprocess.PIPE, text=True)
        # The handler is in place once the first inference ran; signals before it end the process.
        status = pathlib.Path(f"/proc/{process.pid}/status")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            caught = [line for line in status.read_text().splitlines() if line.startswith("SigCgt")]
            if int(caught[0].split()[1], 16) & (1 << (signal.SIGINT - 1)):
                break
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        return json.loads(out)

    def test_an_interrupted_bench_reports_what_it_has(self):
        self.assertTrue(self.interrupted_bench("-t", "600")["interrupted"])

    def test_an_interrupted_bench_does_not_wait_for_the_next_arrival(self):
        for words in ((), ("--set",)):
            self.assertTrue(self.interrupted_bench("-n", "9", "--rate", "0.001", *words)["interrupted"])


if __name__ == "__main__":
    main()
