"""qaic-runner: options, inputs, what is written and compared, output lines, exit codes.

python qaic_runner_test.py BUILD/bin/corelane
"""
import json
import signal
import subprocess
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

import cli_support
from cli_support import CliTest, main, small_model
from runner_parsers import read_device_table, read_stats


def sum_model(path, size=4):
    """y = a + b"""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name in ("a", "in/b", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["a", "in/b"], ["y"])], "sum", values[:2], values[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def two_steps(path):
    """half = relu(x), y = half + half"""
    x, half, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "half", "y"))
    nodes = [helper.make_node("Relu", ["x"], ["half"]), helper.make_node("Add", ["half", "half"], ["y"])]
    graph = helper.make_graph(nodes, "steps", [x], [y], value_info=[half])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def counting_model(path):
    """next = y = h + x"""
    x, h, y, after = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "h", "y", "next"))
    nodes = [helper.make_node("Add", ["h", "x"], ["y"]), helper.make_node("Identity", ["y"], ["next"])]
    graph = helper.make_graph(nodes, "counting", [x, h], [y, after])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Runner(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        sum_model(cls.path / "sum.onnx")
        small_model(cls.path / "batched.onnx", (2, 4))
        small_model(cls.path / "one.onnx", (1, 4))
        small_model(cls.path / "open.onnx", ("n", 4))
        two_steps(cls.path / "steps.onnx")
        counting_model(cls.path / "counting.onnx")
        for name, extra in (("sum", ("--partial", "in/b")), ("one", ()), ("batched", ()), ("steps", ("--cut", "half")),
                            ("counting", ("--state", "next=h")),
                            ("open", ("--shape-set", "1,4", "--shape-set", "3,4"))):
            result = cli_support.run("compile", cls.path / f"{name}.onnx", "--target", "aic100", *extra,
                                     "-o", cls.path / name)
            assert result.returncode == 0, result.stderr
        result = cli_support.run("compile", cls.path / "one.onnx", "--batch", "2", "--target", "aic100",
                                 "-o", cls.path / "two")
        assert result.returncode == 0, result.stderr
        cls.values("a", [1, 2, 3, 4])
        cls.values("b", [10, 20, 30, 40])
        cls.values("y", [11, 22, 33, 44])
        (cls.path / "out").mkdir()

    @classmethod
    def values(cls, name, numbers):
        np.array(numbers, np.float32).tofile(cls.path / f"{name}.bin")

    def written(self, name):
        return np.fromfile(self.path / "out" / name, np.float32).tolist()

    def setUp(self):
        for file in (self.path / "out").iterdir():
            file.unlink()

    def runner(self, program, *words, **kw):
        return self.ok("qaic-runner", "-t", self.path / program, *words, **kw)

    def files(self, program="sum"):
        return ("-i", self.path / "a.bin", "-i", self.path / "b.bin") if program == "sum" else ()

    # The lines that others read.

    def test_the_rate_is_the_last_word_of_the_line_after_stats(self):
        stats = read_stats(self.runner("sum", "-n", "25").stdout)
        self.assertEqual((stats["count"], stats["batch"]), (25, 1))
        self.assertAlmostEqual(stats["rate"], 25e6 / stats["us"], delta=stats["rate"] * 0.01 + 1e6 / stats["us"])
        self.assertEqual(read_stats(self.runner("two", "-n", "3").stdout)["batch"], 2)
        self.assertEqual(read_stats(self.runner("sum").stdout)["count"], 40)

    def test_it_ends_well_while_an_engine_is_still_being_loaded(self):
        for _ in range(8):  # It is loaded for a comparison, after eight runs.
            stats = read_stats(self.runner("sum", "-n", "12", "-a", "2", "-S", "2",
                                           env={"CORELANE_TIME_ENGINES": "1", "CORELANE_CACHE": "0"}).stdout)
            self.assertEqual(stats["count"], 12)

    def test_the_device_table_is_read_by_the_names_of_its_columns(self):
        table = read_device_table(self.runner("sum", "-n", "30").stdout)
        self.assertIn("ExecTimeUs_Func_0", table)
        for metric, row in table.items():
            self.assertLessEqual(row["min"], row["avg"], metric)
            self.assertLessEqual(row["avg"], row["max"], metric)
            self.assertLessEqual(row["std"], row["max"] - row["min"], metric)
        self.assertGreater(table["ExecTimeUs_Func_0"]["min"], 0)

    def test_latencies_begin_with_the_submission(self):
        for words, handles in ((("-S", "1"), 1), (("-a", "2", "-S", "2"), 4)):
            text = self.runner("sum", "-n", "200", *words).stdout
            # So many are in flight at most.
            total = read_device_table(text)["LatencyUs"]["avg"] * 200
            self.assertLessEqual(total, handles * (read_stats(text)["us"] + 1))

    def test_json_holds_the_same_figures(self):
        out = json.loads(self.runner("sum", "-n", "8", "--json").stdout)
        self.assertEqual((out["inference_cnt"], out["batch_size"], out["interrupted"]), (8, 1, False))
        self.assertEqual(out["device_table"][0]["metric"], "ExecTimeUs_Func_0")

    def test_time_instead_of_a_count(self):
        stats = read_stats(self.runner("sum", "--time", "0.2").stdout)
        self.assertGreater(stats["count"], 0)
        self.assertGreaterEqual(stats["us"], 200_000)

    def test_live_lines_go_to_stderr(self):
        result = self.runner("sum", "--time", "0.3", "-l", "-r", "50", "-s")
        self.assertIn("InferenceCnt", result.stderr)
        self.assertIn("Metric,", result.stderr)
        self.assertEqual(result.stdout.count("InferenceCnt"), 1)

    # Inputs and outputs.

    def test_outputs_of_chosen_inferences_are_written(self):
        self.runner("sum", *self.files(), "-n", "6", "-a", "2", "-S", "1", "--write-output-start-iter", "2",
                    "--write-output-num-samples", "3", "--write-output-dir", self.path / "out")
        names = sorted(p.name for p in (self.path / "out").iterdir())
        self.assertEqual(sorted(n.rsplit("-", 1)[1] for n in names), ["2.bin", "3.bin", "4.bin"])
        for name in names:
            self.assertRegex(name, r"^y-activation-[01]-inf-[234]\.bin$")
            self.assertEqual(self.written(name), [11, 22, 33, 44])

    def test_inputs_are_dumped_with_slashes_replaced(self):
        self.runner("sum", *self.files(), "-n", "1", "-S", "1", "--dump-input-buffers", "--write-output-dir",
                    self.path / "out")
        self.assertEqual(sorted(p.name for p in (self.path / "out").iterdir()),
                         ["a-activation-0-inf-0.bin", "in_b-activation-0-inf-0.bin", "y-activation-0-inf-0.bin"])
        self.assertEqual(self.written("in_b-activation-0-inf-0.bin"), [10, 20, 30, 40])

    def test_outputs_are_compared_byte_by_byte_or_within_a_tolerance(self):
        result = self.runner("sum", *self.files(), "-n", "5", "-o", self.path / "y.bin")
        self.assertIn("Outputs of 5 inferences compared, 0 differ", result.stdout)
        self.values("off", [11, 22, 33, 44.001])
        words = ("qaic-runner", "-t", self.path / "sum", *self.files(), "-n", "5", "-o", self.path / "off.bin")
        failed = self.fails(1, *words, parts=("5 of 5 inferences", "inference 0, output 'y': byte"))
        self.assertEqual(read_stats(failed.stdout)["count"], 5)
        self.ok(*words, "--max-error", "1e-4")
        self.fails(1, *words, "--max-error", "1e-6", parts=("error 2.27e-05",))
        self.fails(3, *words[:-1], self.path / "sum.onnx", parts=("output 'y'", "16 bytes"))

    def test_a_folder_of_inputs(self):
        folder = self.path / "images"
        folder.mkdir(exist_ok=True)
        for i in range(3):
            np.full(4, i, np.float32).tofile(folder / f"{i}.raw")
        self.runner("one", "--aic-batch-input-directory", folder, "-n", "7", "--write-output-num-samples", "7",
                    "--write-output-dir", self.path / "out")
        for number in range(7):
            found = list((self.path / "out").glob(f"y-*-inf-{number}.bin"))
            self.assertEqual(self.written(found[0].name), [number % 3 + 1] * 4)
        self.fails(3, "qaic-runner", "-t", self.path / "sum", "--aic-batch-input-directory", folder,
                   parts=("one input", "has 2"))

    def test_a_list_of_inputs_and_expected_outputs(self):
        self.values("a2", [0, 0, 0, 0])
        lines = self.path / "list.txt"
        lines.write_text(f"{self.path}/a.bin, {self.path}/b.bin,{self.path}/y.bin\n\n"
                         f"{self.path}/a2.bin,{self.path}/b.bin,{self.path}/b.bin\n")
        words = ("--aic-batch-input-file-list", lines, "-n", "9", "--compare-outputs")
        self.assertIn("9 inferences compared, 0 differ", self.runner("sum", *words).stdout)
        lines.write_text(f"{self.path}/a.bin\n")
        self.fails(3, "qaic-runner", "-t", self.path / "sum", "--aic-batch-input-file-list", lines,
                   parts=("line 1 names 1 file", "2 inputs"))

    def io_json(self, *buffers):
        path = self.path / "io.json"
        path.write_text(json.dumps({"IO-files": [[{k.replace("_", "-"): v for k, v in b.items()} for b in buffers]]}))
        return path

    def test_json_names_buffers(self):
        path = self.io_json(
            {"path": str(self.path / "b.bin"), "dims": [4], "elem_size": 4, "io_direction": "in", "map_to": "in/b"},
            {"path": str(self.path / "a.bin"), "dims": [4], "elem_size": 4, "io_direction": "in", "map_to": "a"},
            {"path": str(self.path / "y.bin"), "dims": [4], "elem_size": 4, "io_direction": "out", "map_to": "y"})
        words = ("--aic-batch-json-input", path, "-n", "4")
        self.assertIn("0 differ", self.runner("sum", *words, "--compare-outputs").stdout)
        self.assertNotIn("compared", self.runner("sum", *words).stdout)

    def test_json_chooses_a_specialization_by_dims_and_leaves_partial_inputs_out(self):
        self.values("three", list(range(12)))
        path = self.io_json({"path": str(self.path / "three.bin"), "dims": [3, 4], "map_to": "x"})
        self.runner("open", "--aic-batch-json-input", path, "-n", "1", "--write-output-dir", self.path / "out")
        self.assertEqual(self.written("y-activation-0-inf-0.bin"), [i + 1 for i in range(12)])
        path = self.io_json({"path": str(self.path / "a.bin"), "map_to": "a"}, {"dims": [0], "map_to": "in/b"})
        self.runner("sum", "--aic-batch-json-input", path, "-n", "1", "--write-output-dir", self.path / "out")
        self.assertEqual(self.written("y-activation-0-inf-0.bin"), [1, 2, 3, 4])

    def test_files_choose_a_specialization_by_size(self):
        for name, rows in (("a", 1), ("three", 3)):
            self.values("three", list(range(12)))
            self.runner("open", "-i", self.path / f"{name}.bin", "-n", "1", "--write-output-dir", self.path / "out")
            self.assertEqual(len(self.written("y-activation-0-inf-0.bin")), rows * 4)
        self.values("bad", [1, 2])
        self.fails(3, "qaic-runner", "-t", self.path / "open", "-i", self.path / "bad.bin",
                   parts=("8 'x'", "allowed are 48 or 16"))

    def test_samples_of_one_are_put_together(self):
        self.values("b", [10, 20, 30, 40])
        files = [w for name in "aba" for w in ("-i", self.path / f"{name}.bin")]
        self.runner("two", *files, "--auto-batch-input", "-n", "2", "--write-output-num-samples", "2",
                    "--write-output-dir", self.path / "out")
        a, b = [2, 3, 4, 5], [11, 21, 31, 41]
        for number, rows in ((0, a + b), (1, a + a)):
            found = next((self.path / "out").glob(f"y-*-inf-{number}.bin"))
            self.assertEqual(self.written(found.name), rows)

    def test_random_inputs_are_the_same_each_time(self):
        seen = []
        for extra in ((), (), ("--unbound-random",)):
            self.runner("one", "-n", "1", *extra, "--write-output-dir", self.path / "out")
            seen.append((self.path / "out/y-activation-0-inf-0.bin").read_bytes())
        self.assertEqual(seen[0], seen[1])
        self.assertNotEqual(seen[0], seen[2])

    # Devices.

    def test_a_device_is_named_by_its_number_or_text(self):
        env = {"CORELANE_QAIC_DEVICES": "virtual:generic:1?name=small;virtual:generic:4?name=large"}
        for words, name in (((), "small"), (("-d", "1"), "large"), (("-D", "1"), "large"),
                            (("-a", "2"), "large"), (("-d", "virtual:generic:2?name=mine"), "mine")):
            out = json.loads(self.runner("one", "-n", "1", "--json", *words, env=env).stdout)
            self.assertIn(name, out["device"], words)
        words = ("qaic-runner", "-t", self.path / "one")
        self.fails(3, *words, "-d", "2", parts=("there are 0 to 1",), env=env)
        self.fails(5, *words, "-a", "9", parts=("no device has room", "small", "large"), env=env)
        self.fails(5, *words, "-d", "1", "-a", "5", parts=("5 activations of 1 cores each need 5", "has 4"), env=env)
        self.fails(3, *words, "-d", "-1", parts=("no device -1", "numbered from 0"), env=env)
        self.fails(3, *words, parts=("CORELANE_QAIC_DEVICES",), env={"CORELANE_QAIC_DEVICES": "virtual;;"})

    def test_the_parts_of_a_network_run_on_the_devices_of_the_mapping(self):
        np.array([1, -2, 3, -4], np.float32).tofile(self.path / "x.bin")
        np.array([2, 0, 6, 0], np.float32).tofile(self.path / "twice.bin")
        env = {"CORELANE_QAIC_DEVICES": ";".join(f"virtual:generic:2?name={name}" for name in ("one", "two", "three"))}
        for mapping in ("0:2", "2,0"):
            out = self.runner("steps", "-D", mapping, "-i", self.path / "x.bin", "-o", self.path / "twice.bin",
                              "-n", "9", "-a", "2", "-v", "--json", "--aic-profiling-type", "latency",
                              "--aic-profiling-type", "trace", "--aic-profiling-num-samples", "9",
                              "--aic-profiling-out-dir", self.path / "out", env=env)
            report = json.loads(out.stdout)
            self.assertEqual([report["inference_cnt"], report["different"]], [9, 0])
            for name in ("one", "three"):
                self.assertIn(name, report["device"])
            self.assertNotIn("two", report["device"])
            self.assertIn(f"on {mapping}: 2 activations", out.stderr)
            latency, trace = sorted(report["profiles"])
            with open(latency) as file:
                self.assertEqual(len(file.read().splitlines()), 5 + 9)
            with open(trace) as file:
                spans = [event for event in json.load(file)["traceEvents"] if event["name"] == "steps"]
            # The parts of a job, one after the other, on a core of each device; each has two.
            jobs = {}
            for span in sorted(spans, key=lambda span: span["ts"]):
                jobs.setdefault(span["args"]["job"], []).append(span)
            self.assertEqual([len(parts) for parts in jobs.values()], [2] * 9)
            for first, second in jobs.values():
                self.assertLessEqual(first["ts"] + first["dur"], second["ts"] + 0.001)
                self.assertNotEqual(first["tid"] // 2, second["tid"] // 2)

    def test_a_mapping_that_does_not_fit_the_program_is_refused(self):
        env = {"CORELANE_QAIC_DEVICES": "virtual:generic:2?name=one;virtual:generic:2?name=two"}
        words = ("qaic-runner", "-n", "1", "-t", self.path / "steps", "-D")
        self.fails(3, *words, "0:1:0", parts=("-D 0:1:0", "device 0 stands there twice"), env=env)
        self.fails(3, *words, "0:", parts=("'' is not a number",), env=env)
        self.fails(3, *words, "0:7", parts=("-D 0:7", "there are 0 to 1"), env=env)
        more = {"CORELANE_QAIC_DEVICES": env["CORELANE_QAIC_DEVICES"] + ";virtual:generic:2?name=three"}
        self.fails(3, *words, "0:1:2", parts=("2 parts", "one device for each part"), env=more)
        self.fails(4, "qaic-runner", "-t", self.path / "one", "-D", "0:1", parts=("--cut",), env=env)

    # State.

    def test_states_that_are_given_are_ordinary_buffers(self):
        self.runner("counting", "-n", "40", "-a", "2")
        self.runner("counting", "-i", self.path / "a.bin", "-i", self.path / "b.bin", "-o", self.path / "y.bin", "-o",
                    self.path / "y.bin", "-n", "40")

    def test_states_that_are_left_out_stay_on_the_device(self):
        x, h = ({"path": str(self.path / f"{name}.bin")} for name in "ab")
        left, given = ([[x, kept]] for kept in ({"dims": [0]}, h))
        for name, inferences in (("left", left), ("turns", left + left + given)):
            (self.path / f"{name}.json").write_text(json.dumps({"IO-files": inferences}))
        words = ("--write-output-dir", self.path / "out", "--write-output-num-samples", "6", "--dump-input-buffers")
        self.runner("counting", "--aic-batch-json-input", self.path / "left.json", "-n", "6", "-S", "1", *words)
        self.assertEqual([self.written(f"y-activation-0-inf-{n}.bin") for n in range(6)],
                         [[n, 2 * n, 3 * n, 4 * n] for n in range(1, 7)])
        self.assertFalse((self.path / "out" / "h-activation-0-inf-0.bin").exists())
        # A value that is given is the user's: the state on the device stays as it was.
        self.runner("counting", "--aic-batch-json-input", self.path / "turns.json", "-n", "6", "-S", "1", *words)
        self.assertEqual([self.written(f"y-activation-0-inf-{n}.bin")[0] for n in range(6)], [1, 2, 11, 3, 4, 11])
        self.fails(3, "qaic-runner", "-t", self.path / "counting", "--aic-batch-json-input", self.path / "left.json",
                   parts=("input 'h' is left out", "-S 1"))

    # Failures.

    def test_a_full_line_of_the_device_is_waited_for(self):
        out = self.runner("one", "-n", "5", "-d", "null:generic:1?a=20ms&depth=1").stdout
        self.assertEqual(read_stats(out)["count"], 5)

    def test_failed_inferences_are_counted_and_decide_the_exit_code(self):
        env = {"CORELANE_FAULTS": "hang=1,seed=1"}
        result = self.fails(6, "qaic-runner", "-t", self.path / "one", "-n", "2", "--submit-timeout", "20",
                            "--submit-retry-count", "1", parts=("2 of 2 inferences failed",), env=env)
        self.assertEqual(read_stats(result.stdout)["count"], 0)

    def test_mistakes_have_their_way_out(self):
        words = ("qaic-runner", "-t", self.path / "sum")
        self.fails(2, "qaic-runner", parts=("--test-data",))
        self.fails(2, *words, "-n", "5", "--time", "1", parts=("--time",))
        self.fails(2, *words, "-S", "0", parts=("1 to 1024",))
        self.fails(2, *words, "-p", "maybe", parts=("maybe",))
        self.fails(3, *words, "--aic-profiling-num-samples", "3", parts=("--aic-profiling-type",))
        self.fails(2, *words, "--aic-profiling-sampling-rate", "third", parts=("third",))
        self.fails(5, *words, "--write-output-dir", self.path / "nowhere", parts=("is not a folder",))
        self.fails(3, *words, "-i", self.path / "a.bin", parts=("given 1 times", "2 inputs"))
        self.fails(3, *words, "-i", self.path / "a.bin", "-i", self.path / "none.bin", parts=("none.bin",))
        self.fails(3, *words, *self.files(), "--unbound-random", parts=("--unbound-random",))
        self.fails(3, *words, "--auto-batch-input", parts=("--auto-batch-input",))
        self.fails(3, *words, "--max-error", "1", parts=("--max-error",))
        self.fails(3, "qaic-runner", "-t", self.path / "nothing", parts=("nothing",))

    def test_the_memory_of_files_is_bounded(self):
        big = self.path / "big.bin"
        with open(big, "wb") as file:
            file.truncate(2_000_000)
        self.fails(5, "qaic-runner", "-t", self.path / "one", "-i", big, "--aic-batch-max-memory", "1",
                   parts=("--aic-batch-max-memory",))

    def test_a_list_that_is_none_is_refused(self):
        path = self.path / "io.json"
        for text in ("", "[]", "{}", '{"IO-files": 3}', '{"IO-files": [[3]]}', '{"IO-files": []}',
                     '{"IO-files": [[{"map-to": "zz", "path": "x"}]]}', '{"IO-files": [[{"path": 7}]]}',
                     '{"IO-files": [[{"path": "x", "dims": [-1e400]}]]}',
                     '{"IO-files": [[{"path": "x", "dims": [2.5, 3]}]]}', '{"IO-files": [[{"path": "x", "dims": 4}]]}',
                     '{"IO-files": [[{"path": "x", "dims": [-4]}]]}',
                     '{"IO-files": [[{"path": "x", "map-to": "a"}, {"path": "x", "map-to": "a"}]]}',
                     '{"IO-files": [[{"path": "x", "io-direction": "up"}]]}'):
            path.write_text(text)
            self.fails(3, "qaic-runner", "-t", self.path / "sum", "--aic-batch-json-input", path)
        path.write_text('{"IO-files": [[{"path": "%s/a.bin", "dims": [%d, %d], "map-to": "a"}, '
                        '{"path": "%s/b.bin", "dims": [4], "map-to": "in/b"}]]}'
                        % (self.path, 2**62, 2**62, self.path))
        self.fails(3, "qaic-runner", "-t", self.path / "sum", "--aic-batch-json-input", path)

    def test_the_vendors_container_is_named(self):
        folder = self.path / "vendors"
        folder.mkdir(exist_ok=True)
        (folder / "programqpc.bin").write_bytes(bytes.fromhex("7ccda100") + bytes(100))
        self.fails(4, "qaic-runner", "-t", folder, parts=("vendor's compiler", "corelane inspect"))

    def test_ctrl_c_ends_with_the_figures_so_far(self):
        process = subprocess.Popen([cli_support.CORELANE, "qaic-runner", "-t", str(self.path / "one"), "--time",
                                    "60", "-l", "-r", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stderr.readline()  # It is running.
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        stdout, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertGreater(read_stats(stdout)["count"], 0)


if __name__ == "__main__":
    main()
