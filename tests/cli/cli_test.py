"""The command line as a user meets it: exit codes, JSON, files. Run with the path of `corelane`.

python cli_test.py BUILD/bin/corelane
"""
import fcntl
import json
import re
import resource
import shutil
import struct
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

import cli_support
from cli_support import CliTest, custom_model, main, run, small_model


def words_model(path, kind=TensorProto.STRING, dims=(2,), name="words"):
    """y = words."""
    values = [helper.make_tensor_value_info(value, kind, dims) for value in (name, "y")]
    graph = helper.make_graph([helper.make_node("Identity", [name], ["y"])], "words", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Cli(CliTest):
    def test_help_lists_every_subcommand(self):
        text = self.ok("--help").stdout
        for name in ("devices", "doctor", "compile", "inspect", "validate", "run", "bench", "compare",
                     "qaic-runner", "top", "completion"):
            self.assertIn(name, text)
            of_command = self.ok(name, "--help").stdout
            self.assertIn("--help", of_command)
            self.assertIn("Exit codes: 0 done", of_command)

    def test_devices_shows_three_cores_by_default(self):
        out = json.loads(self.ok("devices", "--json").stdout)
        self.assertEqual(len(out["device"]["cores"]), 3)
        self.assertEqual({d["kind"] for d in out["drivers"]} >= {"virtual", "null"}, True)

    def test_device_comes_from_the_environment(self):
        out = json.loads(self.ok("devices", "--json",
                                 env={"CORELANE_DEVICE": "virtual:generic:5"}).stdout)
        self.assertEqual(len(out["device"]["cores"]), 5)

    def test_devices_say_what_they_can_hold_and_who_holds_their_cores(self):
        device, env = "null:generic:4?memory=64M&depth=8", {"CORELANE_RUN_DIR": str(self.path)}
        out = json.loads(self.ok("devices", device, "--json", env=env).stdout)["device"]
        self.assertEqual(out["capacity"], {"cores": 4, "memory_limit": 64 << 20, "memory_used": 0, "depth_limit": 8})
        self.assertEqual(out["held"], [])
        # As another process holds core 2 by a lease.
        stem = "".join(c if c.isalnum() and c.isascii() or c in "-." else f"_{ord(c):02x}" for c in out["instance"])
        with open(self.path / f"corelane-lease-{stem}-2.lock", "w") as lock:
            lock.write("4711 a\x1bnpu\n")
            lock.flush()
            fcntl.lockf(lock, fcntl.LOCK_EX)
            out = json.loads(self.ok("devices", device, "--json", env=env).stdout)["device"]
            self.assertEqual(out["held"], [{"by": "lease", "cores": "2", "process": "4711", "program": "a\\x1bnpu"}])
            self.assertIn("held    2 by process 4711 (a\\x1bnpu)", self.ok("devices", device, env=env).stdout)
        self.assertIn("held    nobody", self.ok("devices", device, env=env).stdout)

    def test_unknown_device_is_named_with_the_known_ones(self):
        result = run("devices", "nonsense:1")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("nonsense", result.stderr)
        self.assertIn("virtual", result.stderr)

    def test_doctor_is_content_here(self):
        out = json.loads(self.ok("doctor", "--json").stdout)
        self.assertTrue(out["ok"])

    def test_doctor_says_that_the_cache_is_off(self):
        out = json.loads(self.ok("doctor", "--json", env={"CORELANE_CACHE": "0"}).stdout)
        found, = [c["found"] for c in out["checks"] if c["check"] == "cache folder"]
        self.assertIn("CORELANE_CACHE=0", found)

    def hostile_model(self):
        """Every name in it would clear a screen and forge a line."""
        bad = "{}\x1b[2J\nforged\x9b"
        x, y = (helper.make_tensor_value_info(bad.format(name), TensorProto.FLOAT, [2, 4]) for name in "xy")
        nodes = [helper.make_node("Relu", [x.name], [bad.format("r")], name=bad.format("relu")),
                 helper.make_node("Identity", [bad.format("r")], [y.name], name=bad.format("same"))]
        model = helper.make_model(helper.make_graph(nodes, bad.format("graph"), [x], [y]), ir_version=8,
                                  opset_imports=[helper.make_opsetid("", 13)], producer_name=bad.format("tool"))
        onnx.helper.set_model_props(model, {bad.format("key"): bad.format("value")})
        onnx.save(model, self.path / "hostile.onnx")
        return self.path / "hostile.onnx"

    def assert_plain(self, result):
        for text in (result.stdout, result.stderr):
            self.assertEqual([c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)], [], text)
            self.assertFalse(any(line.startswith("forged") for line in text.splitlines()), text)

    def test_control_characters_of_a_model_are_written_out(self):
        model, program = self.hostile_model(), self.path / "hostile.rknn"
        for words in (("compile", model, "-o", program), ("inspect", model), ("inspect", program, "--verify", "--json"),
                      ("inspect", program, "--load"), ("run", program, "--random"),
                      ("run", program, "--random", "--json"), ("run", program, "--random", "--profile"),
                      ("doctor", program), ("compare", program, "--onnx", model)):
            result = run(*words)
            self.assertEqual(result.returncode, 0, f"{words}: {result.stderr}")
            self.assert_plain(result)
        self.assertIn("x\\x1b[2J\\nforged\\xc2\\x9b: f32 [2, 4]", self.ok("inspect", program).stdout)
        for words in (("run", program, "-i", "none\x1b[2J.npy"), ("run", program, "--random", "--shape", "x\x1b=1,2"),
                      ("compile", model, "-o", program, "--dim", "x\x1b\nforged=2")):
            result = run(*words)
            self.assertGreater(result.returncode, 0, words)
            self.assert_plain(result)

    def test_a_program_is_no_wider_than_its_model(self):
        model, program = self.path / "secret.onnx", self.path / "open.rknn"
        shutil.copy(self.path / "fixed.onnx", model)
        for mode, expected in ((0o600, 0o600), (0o644, 0o644)):
            model.chmod(mode)
            program.unlink(missing_ok=True)
            self.ok("compile", model, "-o", program)
            self.assertEqual(program.stat().st_mode & 0o777, expected)
        model.chmod(0o600)
        self.ok("compile", model, "-o", program)
        self.assertEqual(program.stat().st_mode & 0o777, 0o600)

    def test_a_limit_on_files_is_an_error(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

        program = self.path / "limited.rknn"
        result = subprocess.run([cli_support.CORELANE, "compile", self.path / "fixed.onnx", "-o", program],
                                capture_output=True, text=True, preexec_fn=limit, check=False)
        self.assertEqual(result.returncode, 5, result)
        self.assertIn("File too large", result.stderr)
        self.assertFalse(program.exists())
        with open(self.path / "stdout", "w") as out:
            result = subprocess.run([cli_support.CORELANE, "--help"], stdout=out, stderr=subprocess.PIPE,
                                    preexec_fn=limit, check=False)
        self.assertGreaterEqual(result.returncode, 0, "it ended by a signal")

    def test_compile_inspect_run_round_trip(self):
        program = self.path / "fixed.rknn"
        self.ok("compile", self.path / "fixed.onnx", "-o", program, "--custom-string", "hello",
                "--mean", "127.5,127.5,127.5", "--std", "127.5,127.5,127.5", "--precompile")
        self.assertEqual(program.read_bytes()[:8], b"RKNNCLP1")
        out = json.loads(self.ok("inspect", program, "--json", "--verify", "--load").stdout)
        self.assertEqual(out["program"]["custom_string"], "hello")
        self.assertEqual(out["program"]["inputs"][0]["shape"], [1, 3, 8, 8])
        self.assertEqual(out["program"]["inputs"][0]["reported_dtype"], "f16")
        self.assertTrue(out["loaded"]["precompiled"])
        self.assertIn("OpenVINO", out["loaded"]["engine"])
        self.assertEqual(out["loaded"]["why_engine"], "")
        self.assertRegex(self.ok("inspect", program, "--load").stdout, "Engine +OpenVINO")
        checks = {c["check"]: c["found"] for c in json.loads(self.ok("doctor", program, "--json").stdout)["checks"]}
        self.assertIn("OpenVINO", checks["program's engine"])
        x = np.random.default_rng(1).uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)
        np.save(self.path / "x.npy", x)
        self.ok("run", program, "-i", self.path / "x.npy", "-o", self.path / "out", "-k", "3")
        np.testing.assert_array_equal(np.load(self.path / "out/y.npy"), np.maximum(x, 0) + 1)
        self.ok("doctor", program)

    def test_run_prints_values_and_labels(self):
        np.save(self.path / "ramp.npy", np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8))
        (self.path / "labels.txt").write_text("\n".join(f"name{i}" for i in range(192)))
        words = ("run", self.path / "fixed.onnx", "-i", self.path / "ramp.npy", "-k", "2",
                 "--labels", self.path / "labels.txt")
        out = json.loads(self.ok(*words, "--values", "--json").stdout)["outputs"][0]
        self.assertEqual(out["values"], [float(i + 1) for i in range(192)])
        self.assertEqual(out["top"][0], {"index": 191, "value": 192.0, "label": "name191"})
        self.assertIn("name190", self.ok(*words).stdout)
        self.fails(3, *words[:-1], self.path / "none.txt", parts=("none.txt",))

    def test_compile_takes_every_option(self):
        program, image = self.path / "all.rknn", self.path / "vendor.bin"
        image.write_bytes(b"RKNN vendor bytes")
        self.ok("compile", self.path / "small.onnx", "-o", program, "--dim", "N=1", "--batch", "2",
                "--cores", "3", "--layout", "nchw", "--io-dtype", "f32", "--mean", "x=1,2,3",
                "--std", "4", "--custom-string", "mine", "--attach", f"rknn={image}", "--precompile")
        out = json.loads(self.ok("inspect", program, "--verify", "--json").stdout)
        description = out["program"]
        self.assertEqual((description["batch"], description["cores"]), (2, 3))
        self.assertEqual(description["custom_string"], "mine")
        x, y = description["inputs"][0], description["outputs"][0]
        self.assertEqual((x["shape"], y["shape"]), ([2, 3, 8, 8], [2, 3, 8, 8]))
        self.assertEqual((x["reported_dtype"], x["preferred_layout"]), ("f32", "plain"))
        self.assertEqual(x["mean"], [1, 2, 3])
        self.assertEqual(set(x["std"]), {4})
        kinds = {(s["kind"], s["tag"]) for s in out["segments"]}
        self.assertIn(("foreign", "rknn"), kinds)
        self.assertIn("precompiled", {kind for kind, _ in kinds})
        result = json.loads(self.ok("run", program, "--random", "--json").stdout)
        self.assertEqual(result["outputs"][0]["shape"], [2, 3, 8, 8])

    def test_forms_are_shown_and_switched_off(self):
        program = self.path / "open.rknn"
        self.ok("compile", self.path / "small.onnx", "-o", program)
        form, = json.loads(self.ok("inspect", program, "--load", "--json").stdout)["loaded"]["forms"]
        self.assertEqual(form["input_shapes"], ["[?, 3, 8, 8]"])
        self.assertIn("OpenVINO", form["engine"])
        for words in ((), ("--no-static-forms",)):
            out = self.ok("bench", program, "--shape", "x=2,3,8,8", "-n", "100", "--json", *words).stdout
            first, *others = json.loads(out)["forms"]
            self.assertEqual((first["input_shapes"], first["runs"]), (["[?, 3, 8, 8]"], 0))
            self.assertIn([other["input_shapes"] for other in others], [[]] if words else [[], [["[2, 3, 8, 8]"]]])

    def test_batch_range_makes_one_program_for_several_sizes(self):
        program = self.path / "range.rknn"
        self.ok("compile", self.path / "fixed.onnx", "-o", program, "--batch-range", "1,8")
        self.assertIn("each batch from 1 to 8", self.ok("inspect", program, "--verify").stdout)
        description = json.loads(self.ok("inspect", program, "--json").stdout)["program"]
        self.assertEqual(description["batch_range"], [1, 8])
        self.assertEqual(description["inputs"][0]["shape"], [-1, 3, 8, 8])
        self.assertEqual(description["outputs"][0]["shape"], [-1, 3, 8, 8])
        for size in (1, 3, 8):
            np.save(self.path / "batch.npy", np.full((size, 3, 8, 8), size, np.float32))
            self.ok("run", program, "-i", self.path / "batch.npy", "-o", self.path / "out")
            np.testing.assert_array_equal(np.load(self.path / "out/y.npy"), np.full((size, 3, 8, 8), size + 1.0))
        np.save(self.path / "batch.npy", np.zeros((9, 3, 8, 8), np.float32))
        self.fails(3, "run", program, "-i", self.path / "batch.npy", parts=["from 1 to 8"])
        self.ok("compile", self.path / "fixed.onnx", "-o", program, "--batch-range", "3,8")
        self.ok("run", program, "--random", "-o", self.path / "out")
        self.assertEqual(np.load(self.path / "out/y.npy").shape, (3, 3, 8, 8))
        for wrong in ("8", "0,8", "8,1", "1,2000", "a,b"):
            self.fails(3, "compile", self.path / "fixed.onnx", "-o", program, "--batch-range", wrong,
                       parts=["--batch-range"])
        self.fails(2, "compile", self.path / "fixed.onnx", "-o", program, "--batch-range", "1,8", "--batch", "2",
                   parts=["--batch"])

    def test_inspect_shows_why_an_engine_would_compute_a_network_wrongly(self):
        values = [helper.make_tensor_value_info(name, TensorProto.UINT8, [4]) for name in "xy"]
        node = helper.make_node("Add", ["x", "x"], ["y"], name="twice")
        model = helper.make_model(helper.make_graph([node], "bytes", values[:1], values[1:]),
                                  opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path, program = self.path / "bytes.onnx", self.path / "bytes.rknn"
        onnx.save(model, path)
        reason = "node twice (Add): 8-bit integers saturate"
        self.assertIn(reason, json.loads(self.ok("inspect", path, "--json").stdout)["lowered"][0]["unfit"])
        self.ok("compile", path, "-o", program)
        verdict, = json.loads(self.ok("inspect", program, "--json").stdout)["verdicts"]
        self.assertIn(reason, verdict["text"])
        self.assertIn(f"Verdict    {verdict['tag']}: {reason}", self.ok("inspect", program).stdout)
        self.ok("compile", path, "-o", program, "--allow-known-wrong")
        out = json.loads(self.ok("inspect", program, "--json").stdout)
        self.assertEqual(out["verdicts"], [])
        self.assertIn("saturate", out["program"]["findings"][0]["text"])

    def test_precompile_keeps_which_engine_was_faster(self):
        program, timed = self.path / "timed.rknn", {"CORELANE_TIME_ENGINES": "1"}
        compile = "compile", self.path / "fixed.onnx", "-o", program, "--precompile"
        self.ok(*compile, env=timed)
        trial, = json.loads(self.ok("inspect", program, "--json").stdout)["trials"]
        self.assertRegex(trial["text"], r"^(openvino|onnxruntime) [0-9.]+ [0-9]+ one$")
        self.assertIn(f"Trial      {trial['tag']}: {trial['text']}", self.ok("inspect", program).stdout)
        for words in (("doctor", program), ("inspect", program, "--load")):
            self.assertIn("measured: ", self.ok(*words, env=timed).stdout)
        self.assertIn("fits this engine and CPU", self.ok("doctor", program, env=timed).stdout)
        self.ok(*compile, "--no-time-engines", env=timed)
        self.assertEqual(json.loads(self.ok("inspect", program, "--json").stdout)["trials"], [])

    def test_program_without_weights_says_where_they_come_from(self):
        program = self.path / "bare.rknn"
        self.ok("compile", self.path / "small.onnx", "-o", program, "--dim", "N=1", "--remove-weights")
        segments = json.loads(self.ok("inspect", program, "--json").stdout)["segments"]
        self.assertEqual([s["size"] for s in segments if s["kind"] == "constants"], [0])
        self.fails(3, "run", program, "--random", parts=["compiled without its weights", "weights_from in Python"])

    def test_external_data_stay_in_the_folder_of_the_model(self):
        folder, outside = self.path / "strict", self.path / "outside"
        folder.mkdir()
        outside.mkdir()
        onnx.save(onnx.load(self.path / "fixed.onnx"), folder / "model.onnx",
                  save_as_external_data=True, location="weights", size_threshold=0)
        model, program = folder / "model.onnx", self.path / "external.rknn"
        self.ok("compile", model, "-o", program, "--strict-links")
        (folder / "weights").rename(folder / "moved")
        (folder / "weights").symlink_to("moved")
        self.ok("compile", model, "-o", program)
        self.fails(3, "compile", model, "-o", program, "--strict-links", parts=("weights", "link"))
        (folder / "weights").unlink()
        (folder / "moved").rename(outside / "weights")
        (folder / "weights").symlink_to(outside / "weights")
        for command in (("compile", model, "-o", program), ("run", model, "--random")):
            self.fails(3, *command, parts=("weights", str(folder)))
        (folder / "weights").unlink()
        self.fails(3, "run", model, "--random", parts=("weights",))
        # The folder of the file that the model links to counts as the model's.
        model.rename(outside / "model.onnx")
        model.symlink_to(outside / "model.onnx")
        (folder / "weights").symlink_to(outside / "weights")
        self.ok("run", model, "--random")

    def test_open_shapes_ask_for_a_shape(self):
        small_model(self.path / "sizes.onnx", ("N", 3, "H", 8))
        self.fails(3, "run", self.path / "sizes.onnx", "--random", parts=("'x'", "--shape x=1,3,SIZE,8"))
        out = json.loads(self.ok("run", self.path / "small.onnx", "--random", "--shape",
                                 "x=2,3,8,8", "--json").stdout)
        self.assertEqual(out["outputs"][0]["shape"], [2, 3, 8, 8])

    def test_a_batch_that_nothing_decides_is_1(self):
        for command in ("run", "compare"):
            words = ("--random",) if command == "run" else ()
            self.ok(command, self.path / "small.onnx", *words)
        self.ok("bench", self.path / "small.onnx", "-n", "5", "--warm-up", "0")
        out = json.loads(self.ok("run", self.path / "small.onnx", "--random", "--json").stdout)
        self.assertEqual(out["inputs"], [{"name": "x", "source": "random", "shape": [1, 3, 8, 8], "steps": []}])

    def test_a_dimension_without_a_name_is_fixed_by_input_and_axis(self):
        source, program = self.path / "unnamed.onnx", self.path / "unnamed.rknn"
        small_model(source, (None, 3, None, 8))
        self.ok("compile", source, "-o", program, "--dim", "x[0]=2", "--dim", "x[2]=4")
        out = json.loads(self.ok("inspect", program, "--json").stdout)
        self.assertEqual(out["program"]["inputs"][0]["shape"], [2, 3, 4, 8])
        self.fails(3, "compile", source, "-o", program, "--dim", "x[1]=2", parts=("'x[1]'", "INPUT[AXIS]"))

    def test_shape_sets_are_a_closed_list(self):
        program = self.path / "sets.rknn"
        self.ok("compile", self.path / "small.onnx", "-o", program, "--shape-set", "1,3,8,8",
                "--shape-set", "4,3,8,8")
        out = json.loads(self.ok("run", program, "--random", "--shape", "x=4,3,8,8",
                                 "--json").stdout)
        self.assertEqual(out["outputs"][0]["shape"], [4, 3, 8, 8])
        for batch in (1, 4):  # The file chooses its set.
            np.save(self.path / "set.npy", np.ones((batch, 3, 8, 8), np.float32))
            out = json.loads(self.ok("run", program, "-i", self.path / "set.npy", "--json").stdout)
            self.assertEqual(out["outputs"][0]["shape"], [batch, 3, 8, 8])
        out = json.loads(self.ok("run", program, "--random", "--json").stdout)
        self.assertEqual(out["outputs"][0]["shape"], [1, 3, 8, 8])
        result = run("run", program, "--random", "--shape", "x=2,3,8,8")
        self.assertEqual(result.returncode, 3)
        self.assertIn("[4, 3, 8, 8]", result.stderr)

    def test_strings_are_inspected_and_run_from_their_flat_form(self):
        model, form, program = self.path / "words.onnx", self.path / "words.bin", self.path / "words.rknn"
        words_model(model)
        # docs/formats/values.md: a tensor of strings, ["a", "bcd"].
        form.write_bytes(b"CLV1" + struct.pack("<IQBBHIq3Q", 0, 64, 1, 16, 1, 0, 2, 0, 1, 4) + b"abcd\0\0\0\0")
        self.ok("compile", model, "-o", program)
        self.assertIn("words: tensor(string) [2]", self.ok("inspect", program).stdout)
        described = json.loads(self.ok("inspect", program, "--json").stdout)
        self.assertIn("tensor(string)", json.dumps(described))
        out = json.loads(self.ok("run", program, "-i", form, "--values", "--json").stdout)["outputs"][0]
        self.assertEqual((out["dtype"], out["shape"], out["values"]), ("tensor(string)", [2], ["a", "bcd"]))
        np.save(self.path / "words.npy", np.array(["a", "bcd"]))
        for words in (("run", program, "--random"), ("run", program, "-i", self.path / "words.npy"),
                      ("run", program, "--shape", "words=2", "-i", form), ("compare", model),
                      ("compile", model, "--batch", "2", "-o", program)):
            refused = run(*words)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("tensor(string)", refused.stderr)

    def test_inputs_without_a_rank_take_arrays(self):
        model, array = self.path / "any.onnx", self.path / "x.npy"
        words_model(model, TensorProto.FLOAT, None, "x")
        np.save(array, np.arange(6, dtype=np.float32).reshape(2, 3))
        out = json.loads(self.ok("run", model, "-i", array, "--values", "--json").stdout)["outputs"][0]
        self.assertEqual((out["shape"], out["values"]), ([2, 3], [0, 1, 2, 3, 4, 5]))

    def test_errors_have_stable_codes(self):
        self.assertEqual(run("run").returncode, 2)
        self.assertEqual(run("nonsense").returncode, 2)
        missing = run("run", self.path / "missing.onnx", "--random")
        self.assertEqual(missing.returncode, 3)
        self.assertIn("missing.onnx", missing.stderr)
        (self.path / "text.rknn").write_text("not a model at all")
        self.assertEqual(run("inspect", self.path / "text.rknn").returncode, 4)
        (self.path / "vendor.rknn").write_bytes(b"RKNN\0\0\0\0" + struct.pack("<QQ", 6, 200) + bytes(200))
        vendor = run("run", self.path / "vendor.rknn", "--random")
        self.assertEqual(vendor.returncode, 4)
        self.assertIn("corelane compile", vendor.stderr)
        out = json.loads(run("--json", "inspect", self.path / "missing.onnx").stdout)
        self.assertEqual(out["error"], "not_found")

    def test_wrong_shape_names_both(self):
        np.save(self.path / "bad.npy", np.zeros((1, 3, 8, 9), np.float32))
        result = run("run", self.path / "fixed.onnx", "-i", self.path / "bad.npy")
        self.assertEqual(result.returncode, 3)
        self.assertIn("[1, 3, 8, 9]", result.stderr)
        self.assertIn("[1, 3, 8, 8]", result.stderr)

    def test_custom_operator_must_be_declared(self):
        custom_model(self.path / "custom.onnx")
        result = run("compile", self.path / "custom.onnx", "-o", self.path / "custom.rknn")
        self.assertEqual(result.returncode, 4)
        self.assertIn("MyOp", result.stderr)
        self.assertIn("--custom-op", result.stderr)
        self.ok("compile", self.path / "custom.onnx", "-o", self.path / "custom.rknn",
                "--custom-op", "me.MyOp")
        missing = run("run", self.path / "custom.rknn", "--random")
        self.assertEqual(missing.returncode, 6, missing.stderr)
        self.assertIn("MyOp", missing.stderr)

    def test_bench_writes_every_report(self):
        files = {k: self.path / f"bench.{k}" for k in ("json", "csv", "trace", "html")}
        words = [w for k, f in files.items() for w in (f"--out-{k}", f)]
        self.ok("bench", self.path / "fixed.onnx", "-n", "50", "-c", "1,3", "--warm-up", "0.01",
                *words)
        report = json.loads(files["json"].read_text())
        self.assertEqual([p["concurrency"] for p in report["points"]], [1, 3])
        self.assertTrue(all(p["inferences"] == 50 for p in report["points"]))
        self.assertEqual(len(files["csv"].read_text().splitlines()), 101)
        trace = json.loads(files["trace"].read_text())
        spans = trace["traceEvents"] if isinstance(trace, dict) else trace
        self.assertGreaterEqual(len([s for s in spans if s.get("ph") == "X"]), 100)
        self.assertIn("<svg", files["html"].read_text())

    def test_bench_open_loop_counts_all_arrivals(self):
        out = json.loads(self.ok("bench", self.path / "fixed.onnx", "-n", "40", "-c", "2", "-r",
                                 "2000", "--poisson", "--warm-up", "0.01", "--json").stdout)
        self.assertEqual(out["points"][0]["inferences"], 40)

    def test_bench_of_a_set_counts_what_its_handles_ran(self):
        closed = json.loads(self.ok("bench", self.path / "fixed.onnx", "--set", "-n", "50", "-c", "1,4",
                                    "--warm-up", "0.01", "--json").stdout)
        self.assertTrue(closed["set"])
        self.assertEqual([p["inferences"] for p in closed["points"]], [50, 50])
        for point in closed["points"]:  # At most so many are in flight, each from its submission on.
            self.assertLessEqual(point["latency_us"]["mean"] * point["throughput"], point["concurrency"] * 1e6)
        late = json.loads(self.ok("bench", self.path / "fixed.onnx", "--set", "-n", "40", "-c", "2", "-r",
                                  "2000", "--warm-up", "0.01", "--json").stdout)
        self.assertEqual(late["points"][0]["inferences"], 40)
        self.assertGreater(late["points"][0]["latency_us"]["p50"], 0)

    def test_compare_agrees_with_onnxruntime(self):
        out = json.loads(self.ok("compare", self.path / "fixed.onnx", "--layers", "--python",
                                 sys.executable, "--json").stdout)
        self.assertTrue(out["ok"])
        self.assertEqual([o["name"] for o in out["outputs"]], ["y", "r"])

    def test_compare_sees_a_difference(self):
        other = self.path / "other.onnx"
        model = onnx.load(self.path / "fixed.onnx")
        model.graph.initializer[0].CopyFrom(helper.make_tensor("one", TensorProto.FLOAT, [1], [2.0]))
        onnx.save(model, other)
        result = run("compare", self.path / "fixed.onnx", "--onnx", other, "--python",
                     sys.executable)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)

    def test_compare_leaves_out_layers_that_the_program_lost(self):
        """The reference makes an inner value that the program does not: it is named and counted."""
        source = self.path / "identity.onnx"
        model = onnx.load(self.path / "fixed.onnx")
        model.graph.node[0].output[0] = "before"
        model.graph.node.insert(1, helper.make_node("Identity", ["before"], ["r"], name="same"))
        onnx.save(model, source)
        words = ("compare", self.path / "fixed.onnx", "--onnx", source, "--layers", "--python",
                 sys.executable)
        out = json.loads(self.ok(*words, "--json").stdout)
        self.assertEqual([o["name"] for o in out["outputs"]], ["y", "r"])
        self.assertEqual([v["name"] for v in out["left_out"]], ["before"])
        self.assertIn("rewrote", out["left_out"][0]["reason"])
        text = self.ok(*words).stdout
        self.assertIn("1 inner value", text)
        self.assertIn("before", text)

    def test_compare_leaves_out_layers_that_are_not_tensors(self):
        source = self.path / "sequence.onnx"
        value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in ("x", "y")]
        zero = helper.make_tensor("zero", TensorProto.INT64, [], [0])
        graph = helper.make_graph(
            [helper.make_node("Relu", ["x"], ["r"]),
             helper.make_node("SequenceConstruct", ["r", "r"], ["s"]),
             helper.make_node("SequenceAt", ["s", "zero"], ["y"])], "sequence", value[:1],
            value[1:], [zero])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                                    ir_version=8), source)
        out = json.loads(self.ok("compare", source, "--layers", "--python", sys.executable,
                                 "--json").stdout)
        self.assertEqual([o["name"] for o in out["outputs"]], ["y", "r"])
        self.assertEqual([v["name"] for v in out["left_out"]], ["s"])

    def test_compare_measures_against_the_model_as_it_was_given(self):
        """Not against the graph that the import made of it: external data, shapes, rewrites."""
        folder = self.path / "external"
        folder.mkdir()
        model = onnx.load(self.path / "small.onnx")
        onnx.save(model, folder / "model.onnx", save_as_external_data=True, location="weights",
                  size_threshold=0)
        out = json.loads(self.ok("compare", folder / "model.onnx", "--layers", "--shape",
                                 "x=2,3,8,8", "--python", sys.executable, "--json").stdout)
        self.assertTrue(out["ok"])
        self.assertEqual(out["reference"], str(folder / "model.onnx"))

    def test_completion_knows_the_options(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("precompile", self.ok("completion", shell).stdout)
        for line in self.ok("completion", "fish").stdout.splitlines()[1:]:
            self.assertNotIn("'", re.sub(r"'(?:[^'\\]|\\.)*'", "", line), line)  # All quotes are closed.

    def test_completion_offers_words_and_files(self):
        (self.path / "zz b.rknn").write_text("")
        for shell in ("bash", "zsh"):
            # bash reads what is for zsh as well, but for the lines that load zsh's reader of such scripts.
            script = "\n".join(line for line in self.ok("completion", shell).stdout.splitlines()
                               if "bashcompinit" not in line)
            self.assertEqual("mapfile" in script, shell == "bash")
            for words, offered in ((("ben",), ["bench"]), (("compile", "--prec"), ["--precompile"]),
                                   (("inspect", "zz"), ["zz b.rknn"])):
                call = (f"COMP_WORDS=(corelane {' '.join(words)}); COMP_CWORD={len(words)}; _corelane; "
                        'printf "%s\\n" "${COMPREPLY[@]}"')
                done = subprocess.run(["bash", "-c", f"{script}\n{call}"], cwd=self.path, capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual(done.stdout.splitlines(), offered, done.stderr)


if __name__ == "__main__":
    main()
