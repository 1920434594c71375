"""corelane.qaicrt: reports of inferences (statements 27 to 31), the benchmark set, and what becomes of their
functions: threads, exceptions, objects dropped in any order, the end of the interpreter."""
import gc
import json
import tempfile
import textwrap
import threading
import unittest
import weakref
from pathlib import Path

import numpy as np

from corelane import qaicrt
from corelane.qaicrt import QStatus
from python_support import relu_model
from qaicrt_support import X, compiled, program, relu

OK = QStatus.QS_SUCCESS
TRACE = qaicrt.QAIC_PROFILING_TYPE_TRACE
FULL, HALF_SECOND = qaicrt.QAIC_PROFILING_SAMPLING_RATE_FULL, qaicrt.QAIC_PROFILING_REPORTING_RATE_500_MS


def rows(report):
    """The table after four header lines, by the names of its columns."""
    lines = report.splitlines()
    names = lines[4].split(",")
    return [dict(zip(names, map(float, line.split(",")), strict=True)) for line in lines[5:]]


class Reports(list):
    """Gets reports; wait(n) returns once there are so many."""

    def __init__(self):
        super().__init__()
        self.more = threading.Condition()

    def __call__(self, report):
        with self.more:
            self.append(report)
            self.more.notify_all()

    def wait(self, count):
        with self.more:
            if not self.more.wait_for(lambda: len(self) >= count, timeout=30):
                raise AssertionError(f"{len(self)} reports, not {count}")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context = qaicrt.Context()
        cls.qpc = qaicrt.Qpc(relu())

    def setUp(self):
        self.program = qaicrt.Program(self.context, 0, self.qpc, name="net")
        self.reports = Reports()

    def ok(self, status):
        self.assertEqual(status, OK, qaicrt.lastErrorText())

    def run_some(self, count, of=None):
        object = qaicrt.ExecObj(self.context, of or self.program, [X, np.empty_like(X)])
        for _ in range(count):
            self.ok(object.run())

    def nested(self, row):
        for name, value in row.items():
            self.assertGreaterEqual(value, 0, name)
        self.assertGreater(row["devExecUs"], 0)
        self.assertLessEqual(row["devExecUs"], row["execToCompleteUs"] + 0.01)
        self.assertLessEqual(row["enqTimeUs"] + row["execTotalUs"], row["totalRoundtripTimeUs"] + 0.01)


class Count(Case):
    def test_27_the_report_comes_once_when_the_number_is_reached(self):
        handle = qaicrt.ProfilingHandle(self.program, 3, self.reports)
        self.ok(handle.start())
        self.assertEqual(handle.start(), QStatus.QS_BUSY)
        self.run_some(2)
        self.assertEqual(self.reports, [])
        self.run_some(5)
        self.reports.wait(1)
        self.ok(handle.stop())
        self.assertEqual(len(self.reports), 1)
        self.assertEqual([row["Sample"] for row in rows(self.reports[0])], [1, 2, 3])
        for row in rows(self.reports[0]):
            self.nested(row)

    def test_27_stop_gives_what_there_is_and_nothing_for_nothing(self):
        handle = qaicrt.ProfilingHandle([self.program], 100, self.reports, type=TRACE)
        self.ok(handle.start())
        self.ok(handle.stop())
        self.assertEqual(self.reports, [])
        self.ok(handle.start())  # 28: as at first.
        self.run_some(4)
        self.ok(handle.stop())
        self.assertEqual(len(self.reports), 1)
        trace = json.loads(self.reports[0])
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        self.assertEqual(sum(event["ph"] == "X" for event in events), 4)

    def test_a_set_and_a_program_together_and_in_files(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 2, 1)
        with tempfile.TemporaryDirectory() as folder:
            handle = qaicrt.ProfilingHandle([made, self.program], 8, None, filePrefix="mine", outputDir=folder)
            self.ok(handle.start())
            vector = qaicrt.InferenceVector(self.qpc)
            for n in range(5):
                self.ok(made.submit(vector, n))
                status, done = made.getCompletedId(n)
                self.ok(status)
                self.ok(made.putCompleted(done))
            self.run_some(3)
            self.ok(handle.stop())
            found = sorted(Path(folder).iterdir())
            self.assertTrue(all(path.name.startswith("mine-") for path in found), found)
            self.assertEqual(sorted(len(rows(path.read_text())) for path in found), [3, 5])

    def test_mistakes_are_refused_with_their_reason(self):
        for make, text in (
                (lambda: qaicrt.ProfilingHandle(self.program, 0, self.reports), "0 samples"),
                (lambda: qaicrt.ProfilingHandle(self.program, 2 ** 21, self.reports), "1048576"),
                (lambda: qaicrt.ProfilingHandle([], 1, self.reports), "no program"),
                (lambda: qaicrt.ProfilingHandle([self.program] * 2, 1, self.reports), "twice"),
                (lambda: qaicrt.ProfilingHandle(self.program, 1), "callback"),
                (lambda: qaicrt.ProfilingHandle(self.program, 1, self.reports, filePrefix="a/b"), "slash"),
                (lambda: qaicrt.StreamProfilingHandle(FULL, HALF_SECOND, None), "callback"),
                (lambda: qaicrt.StreamProfilingHandle(FULL, HALF_SECOND, self.reports, regex="("), "expression"),
                (lambda: qaicrt.StreamProfilingHandle(FULL, HALF_SECOND, self.reports, regex="a" * 300), "256")):
            with self.assertRaises(qaicrt.CoreExceptionInit) as raised:
                make()
            self.assertEqual(raised.exception.status, QStatus.QS_INVAL)
            self.assertIn(text, str(raised.exception))
        for make in (lambda: qaicrt.ProfilingHandle("net", 1, self.reports),
                     lambda: qaicrt.ProfilingHandle(None, 1, self.reports),
                     lambda: qaicrt.ProfilingHandle(self.program, -1, self.reports),
                     lambda: qaicrt.ProfilingHandle(self.program, 1, 7),
                     lambda: qaicrt.ProfilingHandle(self.program, 1, self.reports, type=9),
                     lambda: qaicrt.StreamProfilingHandle(9, HALF_SECOND, self.reports)):
            with self.assertRaises(TypeError):
                make()


class Stream(Case):
    def test_30_reports_come_at_boundaries_without_samples_too_and_the_last_one_at_stop(self):
        handle = qaicrt.StreamProfilingHandle(FULL, HALF_SECOND, self.reports, name="mine")
        self.ok(handle.addProgram(self.program))
        self.ok(handle.start())
        self.reports.wait(1)
        self.run_some(6)
        before = len(self.reports)
        self.ok(handle.stop())
        self.ok(handle.flushReports())
        self.assertGreater(len(self.reports), before)
        self.assertEqual(sum(len(rows(report)) for report in self.reports), 6)
        self.assertTrue(all("mine" in report.splitlines()[0] for report in self.reports))

    def test_31_programs_join_and_leave_by_their_name_and_by_calls(self):
        handle = qaicrt.StreamProfilingHandle(qaicrt.QAIC_PROFILING_SAMPLING_RATE_HALF, HALF_SECOND, self.reports,
                                              qaicrt.QAicProfilingProperties(), regex="ne.*")
        self.ok(handle.start())
        self.run_some(4)
        other = qaicrt.Program(self.context, 0, self.qpc, name="other")
        self.run_some(4, other)
        self.ok(handle.addProgram(other))
        self.run_some(4, other)
        self.ok(handle.removeProgram(other))
        self.assertEqual(handle.removeProgram(other), QStatus.QS_INVAL)
        self.run_some(4, other)
        del self.program
        gc.collect()
        self.ok(handle.stop())
        self.ok(handle.flushReports())
        self.assertEqual(sum(len(rows(report)) for report in self.reports), 2 + 2)

    def test_a_set_joins_by_a_call(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, 0, 1, 1)
        handle = qaicrt.StreamProfilingHandle(FULL, HALF_SECOND, self.reports)
        self.ok(handle.addProgram(made))
        self.ok(handle.start())
        self.ok(made.submit(qaicrt.InferenceVector(self.qpc), 1))
        self.ok(made.getCompletedId(1)[0])
        self.ok(handle.stop())
        self.ok(handle.flushReports())
        self.assertEqual(sum(len(rows(report)) for report in self.reports), 1)


class Functions(Case):
    """Functions of the user, and the objects that have them."""

    def test_a_callback_may_call_its_handle(self):
        seen = []

        def callback(report):
            seen.extend([handle.flushReports(), handle.stop(), handle.start(), handle.stop()])
            done.set()
        done = threading.Event()
        handle = qaicrt.StreamProfilingHandle(FULL, HALF_SECOND, callback)
        self.ok(handle.start())
        self.assertTrue(done.wait(30))
        self.assertEqual(seen[:4], [QStatus.QS_INVAL, OK, OK, OK])
        self.ok(handle.stop())

    def test_a_callback_may_drop_its_handle(self):
        for make in (lambda function: qaicrt.ProfilingHandle(self.program, 2, function),
                     lambda function: qaicrt.StreamProfilingHandle(FULL, HALF_SECOND, function)):
            held, gone = [], threading.Event()

            def callback(report, held=held, gone=gone):
                held.clear()
                gone.set()
            held.append(make(callback))
            self.ok(held[0].start())
            self.run_some(2)
            self.assertTrue(gone.wait(30))
            self.assertEqual(held, [])

    def test_objects_go_in_any_order_while_inferences_end(self):
        for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)):
            made = qaicrt.InferenceSet(self.context, self.qpc, 0, 2, 1)
            stream = qaicrt.StreamProfilingHandle(FULL, HALF_SECOND, self.reports, regex=".*")
            self.ok(stream.addProgram(made))
            count = qaicrt.ProfilingHandle([made], 2, self.reports)
            shown = made.getProgram()
            self.ok(stream.start())
            self.ok(count.start())
            for n in range(2):
                self.ok(made.submit(qaicrt.InferenceVector(self.qpc), n))
            held = [made, stream, count, shown]
            del made, stream, count, shown
            for place in order:
                held[place] = None

    def test_a_handle_and_its_function_in_a_cycle_are_collected(self):
        class Holder:
            def __call__(self, report):
                pass
        gone = []
        for make in (lambda holder: qaicrt.ProfilingHandle(self.program, 5, holder),
                     lambda holder: qaicrt.StreamProfilingHandle(FULL, HALF_SECOND, holder),
                     lambda holder: qaicrt.Context(0, log=lambda level, text: holder)):
            holder = Holder()
            holder.handle = make(holder)
            gone.append(weakref.ref(holder))
            if hasattr(holder.handle, "start"):
                self.ok(holder.handle.start())
        holder = Holder()
        holder.handle = qaicrt.InferenceBenchmarkSet(self.context, self.qpc)
        self.ok(holder.handle.setCompletionCallback(holder))
        gone.append(weakref.ref(holder))
        del holder
        gc.collect()
        self.assertEqual([one() for one in gone], [None] * 4)

    def test_handles_leave_no_function_behind(self):
        reports = Reports()
        gone = weakref.ref(reports)
        for _ in range(50):
            handle = qaicrt.ProfilingHandle(self.program, 1, reports)
            self.ok(handle.start())
            self.run_some(1)
            self.ok(handle.stop())
        self.assertEqual(len(reports), 50)
        del handle, reports
        self.assertIsNone(gone())


class Benchmark(Case):
    def test_runs_count_and_time(self):
        made = qaicrt.InferenceBenchmarkSet(self.context, self.qpc, None, 4, 2)
        self.assertEqual(made.run(3), QStatus.QS_INVAL)
        self.assertIn("enable()", qaicrt.lastErrorText())
        with self.assertRaises(qaicrt.CoreExceptionRuntime):
            made.getProgram()
        self.assertEqual(tuple(made.getLastRunStats()), (0, 0.0, 0, 1))
        self.ok(made.enable())
        self.ok(made.enable())
        seen = []
        self.ok(made.setCompletionCallback(lambda number, status: seen.append((number, status))))
        self.ok(made.run(25))
        self.assertEqual(sorted(seen), [(n, OK) for n in range(25)])
        completed, rate, us, batch = made.getLastRunStats()
        self.assertEqual((completed, batch, made.getInfCompleted()), (25, 1, 25))
        self.assertAlmostEqual(rate * us / 1e6, 25, delta=1)
        self.assertEqual(made.run(0), QStatus.QS_INVAL)
        self.ok(made.setCompletionCallback(None))
        self.ok(made.runForDuration(0.2))
        stats = made.getLastRunStats()
        self.assertGreaterEqual(stats.totalTimeUs, 200_000)
        self.assertEqual(stats.infCompleted, made.getInfCompleted())
        self.assertEqual(len(seen), 25)
        self.assertEqual(made.setOperatorStatsCallback(print), QStatus.QS_UNSUPPORTED)
        self.ok(made.disable())
        self.assertEqual(made.run(1), QStatus.QS_INVAL)

    def test_the_rate_is_of_inferences_and_not_of_samples(self):
        qpc = qaicrt.Qpc(compiled(relu_model((1, 4)), "--batch", "4"))
        made = qaicrt.InferenceBenchmarkSet(self.context, qpc, 0, 1, 1)
        self.ok(made.enable())
        self.ok(made.run(20))
        completed, rate, us, batch = made.getLastRunStats()
        self.assertEqual((completed, batch), (20, 4))
        self.assertAlmostEqual(rate * us / 1e6, 20, delta=1)

    def test_it_is_profiled_as_a_set(self):
        made = qaicrt.InferenceBenchmarkSet(self.context, self.qpc, 0, 2, 1)
        self.ok(made.enable())
        handle = qaicrt.ProfilingHandle(made, 12, self.reports)
        self.ok(handle.start())
        self.ok(made.run(12))
        self.reports.wait(1)
        self.assertEqual(len(rows(self.reports[0])), 12)

    def test_one_user_at_a_time(self):
        made = qaicrt.InferenceBenchmarkSet(self.context, self.qpc, 0, 1, 1)
        self.ok(made.enable())
        seen = []

        def callback(number, status):
            if not seen:
                seen.extend([made.run(1), made.disable(), made.enable(), made.setCompletionCallback(None),
                             made.setLiveReporting(qaicrt.QL_ERROR, 1)])
                seen.append(made.getInfCompleted())
        self.ok(made.setCompletionCallback(callback))
        self.ok(made.run(3))
        self.assertEqual(seen, [QStatus.QS_BUSY] * 5 + [1])
        self.assertEqual(made.getLastRunStats().infCompleted, 3)

    def test_live_lines_come_to_the_context(self):
        lines = []
        context = qaicrt.Context(0, log=lambda level, text: lines.append((level, text)))
        made = qaicrt.InferenceBenchmarkSet(context, self.qpc, 0, 1, 1)
        self.ok(made.enable())
        self.ok(made.setLiveReporting(qaicrt.QL_WARN, reportingPeriodMs=10))
        self.ok(made.runForDuration(0.3))
        self.assertGreater(sum("inferences" in text and level == qaicrt.QL_WARN for level, text in lines), 1)
        before = len(lines)
        for period in (0, -1):
            self.ok(made.setLiveReporting(qaicrt.QL_WARN, period))
            self.ok(made.run(5))
        self.assertEqual(len(lines), before)


class Process(unittest.TestCase):
    """Programs of their own: exceptions that nobody catches, exit, fork."""

    def prints(self, code, expected, devices="null:generic:4?a=1ms", **environment):
        rates = "FULL, HALF_SECOND = QAIC_PROFILING_SAMPLING_RATE_FULL, QAIC_PROFILING_REPORTING_RATE_500_MS\n"
        done = program(rates + textwrap.dedent(code), devices, **environment)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", expected))

    def test_what_a_callback_raises_goes_to_the_hook_and_profiling_goes_on(self):
        self.prints("""
            raised = []
            sys.unraisablehook = lambda given: raised.append((str(given.exc_value), given.object is fail))
            def fail(*given):
                raise ValueError("no")
            context, qpc, program, queue = parts()
            x = ExecObj(context, program, [X, X.copy()])
            handle = ProfilingHandle(program, 1, fail)
            for _ in range(2):
                handle.start()
                x.run()
                handle.stop()
            print(raised)
            made = InferenceBenchmarkSet(context, qpc, 0, 1, 1)
            made.enable()
            made.setCompletionCallback(fail)
            print(made.run(3).name, made.getLastRunStats().infCompleted, len(raised))
            stream = StreamProfilingHandle(FULL, HALF_SECOND, fail)
            stream.start()
            stream.stop()
            print(stream.flushReports().name, len(raised) >= 6)
            """, "[('no', True), ('no', True)]\nQS_SUCCESS 3 5\nQS_SUCCESS True\n")

    def test_reports_come_while_the_main_thread_waits_and_holds_its_own_locks(self):
        self.prints("""
            context, qpc, program, queue = parts()
            lock, seen = threading.Lock(), []
            def callback(report):
                with lock:
                    seen.append(report)
            handle = ProfilingHandle(program, 2, callback)
            x = ExecObj(context, program, [X, X.copy()])
            handle.start()
            with lock:
                x.run(), x.run()
            print(handle.stop().name, len(seen))
            """, "QS_SUCCESS 1\n")

    def test_exit_with_a_running_stream(self):
        for devices in ("null:generic:4?a=1ms", "virtual:aic100"):
            self.prints("""
                context, qpc, program, queue = parts()
                stream = StreamProfilingHandle(FULL, HALF_SECOND, lambda report: None, regex=".*")
                count = ProfilingHandle(program, 1000000, lambda report: None)
                made = InferenceSet(context, qpc, 0, 2, 1)
                print(stream.start().name, count.start().name)
                vector = InferenceVector(qpc)
                for n in range(2):
                    made.submit(vector, n)
                x = ExecObj(context, program, [X, X.copy()])
                queue.enqueue(x)
                """, "QS_SUCCESS QS_SUCCESS\n", devices)

    def test_exit_delivers_what_is_queued(self):
        self.prints("""
            context, qpc, program, queue = parts()
            def callback(report):
                time.sleep(0.2)
                samples = len(report.splitlines()) - 5
                if samples:  # A boundary of the clock may fall into this, too.
                    print(samples, flush=True)
            stream = StreamProfilingHandle(FULL, QAIC_PROFILING_REPORTING_RATE_4000_MS, callback)
            stream.addProgram(program)
            stream.start()
            ExecObj(context, program, [X, X.copy()]).run()
            stream.stop()
            stream.start()
            """, "1\n")

    def test_exit_while_a_callback_runs_and_a_thread_measures(self):
        self.prints("""
            context, qpc, program, queue = parts()
            begun = [threading.Event(), threading.Event()]
            def callback(*given):
                begun[len(given) - 1].set()
                time.sleep(0.3)
            handle = ProfilingHandle(program, 1, callback)
            handle.start()
            made = InferenceBenchmarkSet(context, qpc, 0, 2, 1)
            made.enable()
            made.setCompletionCallback(callback)
            threading.Thread(target=lambda: made.runForDuration(600), daemon=True).start()
            ExecObj(context, program, [X, X.copy()]).run()
            print(all(event.wait(30) for event in begun))
            """, "True\n")

    def test_a_forked_child_ends(self):
        self.prints("""
            context, qpc, program, queue = parts()
            stream = StreamProfilingHandle(FULL, HALF_SECOND, lambda report: None)
            stream.addProgram(program)
            stream.start()
            pid = os.fork()
            if pid == 0:
                print(stream.stop().name, stream.flushReports().name, flush=True)
                sys.exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), stream.stop().name)
            """, "QS_ERROR QS_ERROR\n0 QS_SUCCESS\n")


if __name__ == "__main__":
    unittest.main()
