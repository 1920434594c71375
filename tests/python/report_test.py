"""What a session reports: the per-task log, the trace, the profile, warnings."""
import json
import os
import re
import tempfile
import unittest
import warnings

import corelane as ort
from python_support import NPU, X, child, model_of, relu_model, session, standard_error

LINE = re.compile(r"\[corelane_perf\] task_id=(\d+) thread_id=(\d+) core_id=(\d+) set_input_us=(\d+) "
                  r"infer_us=(\d+) copy_output_us=(\d+) total_us=(\d+)")
VARIABLES = ("CORELANE_PRINT_PERF", "ZTU_EZRKNN_ASYNC_PRINT_PERF")


class PerTaskLog(unittest.TestCase):
    def setUp(self):
        for name in VARIABLES:
            before = os.environ.pop(name, None)
            if before is not None:
                self.addCleanup(os.environ.__setitem__, name, before)
            self.addCleanup(os.environ.pop, name, None)

    def lines(self, device, calls, **options):
        """The fields of each line that a session writes."""
        with standard_error() as said:
            made = session(device, **options)
            calls(made)
            made.close()
        matches = [LINE.fullmatch(line) for line in said.read().splitlines()]
        self.assertNotIn(None, matches)
        return [tuple(map(int, match.groups())) for match in matches]

    def test_one_line_a_task_whose_parts_make_the_total(self):
        for name in VARIABLES:  # Set after the import.
            os.environ[name] = "1"
            lines = self.lines("null:rk3588?a=2ms", lambda s: [s.submit(None, {"x": X}) for _ in range(6)],
                               schedule=[0, 1, 2], threads_per_core=2)
            del os.environ[name]
            self.assertEqual(sorted(line[0] for line in lines), list(range(6)))
            for task, thread, core, set_input, infer, copy_output, total in lines:
                self.assertEqual((core, thread % 3), (task % 3, task % 3))
                self.assertEqual(set_input + infer + copy_output, total)
                self.assertGreaterEqual(infer, 2000)

    def test_all_kinds_of_calls(self):
        os.environ[VARIABLES[0]] = "yes"

        def calls(s):
            s.run(None, {"x": X})
            s.run_async(None, {"x": X}, lambda *_: None, None)
            s.run_pipeline(X)
            s.run(None, {"x": X.repeat(3, 0)}, {"ztu_modelrt_dispatch_batch": "1"})

        lines = self.lines("virtual:rk3588", calls)
        self.assertEqual(sorted(line[0] for line in lines), list(range(6)))
        self.assertEqual({line[2] for line in lines}, {0})

    def test_failed_tasks_have_a_line(self):
        os.environ[VARIABLES[0]] = "on"
        lines = self.lines("null:rk3588?fail=1", lambda s: s.submit(None, {"x": X}).exception())
        self.assertEqual([(line[0], line[5]) for line in lines], [(0, 0)])

    def test_values_that_switch_it_on(self):
        for value, count in (("1", 1), ("true", 1), ("TRUE", 1), ("On", 1), ("yes", 1), ("0", 0), ("", 0),
                             ("no", 0),
                             ("2", 0)):
            os.environ[VARIABLES[0]] = value
            self.assertEqual(len(self.lines("null:rk3588", lambda s: s.run(None, {"x": X}))), count, value)

    def test_read_when_a_session_is_made(self):
        made = session("null:rk3588")
        os.environ[VARIABLES[0]] = "1"
        with standard_error() as said:
            made.run(None, {"x": X})
        self.assertEqual(said.read(), "")


class Trace(unittest.TestCase):
    def test_records_tell_when_and_where(self):
        made = session("null:rk3588?a=1ms&fail=4&name=records", schedule=[0, 1])
        made.set_trace(16)
        for i in range(4):
            made.submit(None, {"x": X}).exception()
        records = sorted(made.read_trace(), key=lambda r: r["task_id"])
        self.assertEqual([(r["task_id"], r["core_bits"]) for r in records], [(0, 1), (1, 2), (2, 1), (3, 2)])
        self.assertEqual([r["code"] for r in records], ["ok", "ok", "ok", "engine_failed"])
        for r in records:
            self.assertLessEqual(r["queued_ns"], r["started_ns"])
            self.assertGreaterEqual(r["ended_ns"] - r["started_ns"], 1_000_000)

    def test_off_until_it_is_asked_for(self):
        made = session("null:rk3588?name=off")
        made.run(None, {"x": X})
        with self.assertRaises(RuntimeError) as caught:
            made.read_trace()
        self.assertIn("set_trace", str(caught.exception))
        made.set_trace(4)
        self.assertEqual(made.read_trace(), [])


class Profile(unittest.TestCase):
    def options(self, folder):
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(folder, "profile_")
        options.add_session_config_entry("corelane.device", "null:rk3588?a=1ms&name=profile")
        return options

    def test_is_a_chrome_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            made = ort.InferenceSession(relu_model(), self.options(folder))
            self.assertGreater(made.get_profiling_start_time_ns(), 0)
            for _ in range(5):
                made.run(None, {"x": X})
            name = made.end_profiling()
            self.assertTrue(os.path.basename(name).startswith("profile_"))
            with open(name, encoding="utf-8") as file:
                events = json.load(file)
            self.assertEqual(sorted(e["name"] for e in events), [f"task {i}" for i in range(5)])
            for event in events:
                self.assertEqual((event["ph"], event["pid"]), ("X", os.getpid()))
                self.assertGreaterEqual(event["dur"], 1000)
                self.assertGreaterEqual(event["args"]["queued_us"], 0)
            self.assertEqual(made.end_profiling(), "")

    def test_two_profiles_of_one_second_are_two_files(self):
        with tempfile.TemporaryDirectory() as folder:
            names = set()
            for _ in range(2):
                made = ort.InferenceSession(relu_model(), self.options(folder))
                made.run(None, {"x": X})
                names.add(made.end_profiling())
            self.assertEqual(len(names), 2)

    def test_off(self):
        made = ort.InferenceSession(relu_model())
        self.assertEqual((made.end_profiling(), made.get_profiling_start_time_ns()), ("", 0))


class Remarks(unittest.TestCase):
    def test_are_warnings_of_the_caller(self):
        from onnx import helper
        model = model_of([helper.make_node("Mine", ["x"], ["y"], domain="my")], [("x", (1, 4))],
                         [("y", (1, 4))])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ort.InferenceSession(model, providers=[(NPU, {"schedule": [0, 1],
                                                          "custom_operators": {"Mine": lambda x: x}})])
        self.assertEqual([(w.category, os.path.basename(w.filename)) for w in caught],
                         [(UserWarning, os.path.basename(__file__))])

    def test_nothing_goes_to_standard_output(self):
        result = child("""
            import warnings
            s = session("null:rk3588?fail=2", schedule=[0, 1])
            for i in range(4):
                try:
                    s.run(None, {"x": X})
                except RuntimeError:
                    pass
            for bad in (dict(schedule=[9]), dict(nope=1)):
                try:
                    session("virtual:rk3588", **bad)
                except RuntimeError:
                    pass
            ort.InferenceSession(os.environ["RELU_MODEL"], providers=["Nope"])
        """, env={VARIABLES[0]: "1"})
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertIn("UserWarning", result.stderr)


if __name__ == "__main__":
    unittest.main()
