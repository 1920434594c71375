"""corelane.qaicrt: acceptance tests of the object runtime that no other file has in Python: A2, A4 to A7, A10, A15, A18
and A22 of docs/apis/object-runtime-tests.md, whose table of these tests is read, too.

Times are of the real clock: an inference never ends before its limit; later is wrong only past ten times the limit.
"""
import concurrent.futures
import fnmatch
import functools
import gc
import itertools
import os
import random
import re
import sys
import threading
import time
import unittest
from pathlib import Path

DEVICES = ("virtual:aic100?name=real", "null:generic:16?threads=1&fail=100&name=failing",
           "null:generic:16?a=3600s&name=slow", "null:generic:16?a=3600s&name=endless",
           "null:generic:1?memory=1G&name=one", "null:generic:1?a=300us&log=1&name=left",
           "null:generic:1?a=700us&log=1&name=both", "null:generic:1?a=100us&log=2&name=right",
           "virtual:generic:1?memory=1G&name=roomy")
REAL, FAILING, SLOW, ENDLESS, ONE, LEFT, BOTH, RIGHT, ROOMY = range(len(DEVICES))
os.environ["CORELANE_QAIC_DEVICES"] = ";".join(DEVICES)

import numpy as np  # noqa: E402

from corelane import qaicrt  # noqa: E402
from corelane.qaicrt import QStatus  # noqa: E402
from python_support import PATIENCE  # noqa: E402
from qaicrt_support import X, container, model_of, program, relu  # noqa: E402

OK, ERROR = QStatus.QS_SUCCESS, QStatus.QS_ERROR
FOREVER = 3_600_000  # Milliseconds: longer than any test.


def limits(timeout_ms, retries):
    """Properties of a set whose inferences may take timeout_ms x (retries + 1)."""
    properties = qaicrt.InferenceSetProperties()
    properties.programProperties.SubmitRetryTimeoutMs = timeout_ms
    properties.programProperties.SubmitNumRetries = retries
    return properties


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # What fails here is meant to: its reason is not to stand in the library's log.
        cls.context = qaicrt.Context(error=lambda *event: None)
        cls.qpc = qaicrt.Qpc(relu())

    def ok(self, status):
        self.assertEqual(status, OK, qaicrt.lastErrorText())

    def took(self, pair):
        """The handle of a call that succeeds."""
        self.ok(pair[0])
        return pair[1]

    def busy_set(self, inferences=2, device=ENDLESS):
        """A set whose handles are all in flight, with ids from 1; the first one runs, and none ends by itself."""
        made = qaicrt.InferenceSet(self.context, self.qpc, device, inferences, 1, properties=limits(FOREVER, 0))
        for n in range(inferences):
            handle = self.took(made.getAvailable())
            self.ok(handle.setBuffers([X, X.copy()]))
            self.ok(made.submit(handle, n + 1))
        return made


class Conservation(Case):
    """A2: threads that submit and threads that collect."""

    SUBMITTERS, COLLECTORS, EACH = 4, 3, 300

    def conserve(self, device, size, activations, expected, failures):
        total = self.SUBMITTERS * self.EACH
        made = qaicrt.InferenceSet(self.context, self.qpc, device, size, activations)
        handles = size * activations
        results, collected, failed, mistakes = {}, [], [], []
        tickets = itertools.count()
        # Handles that a collector keeps, and puts back in an order of its own: the set always has others.
        kept_by_each = min(3, (handles - 1) // self.COLLECTORS)

        def submit(thread):
            for number in range(thread, total, self.SUBMITTERS):
                x, y = X + number, np.full_like(X, -1)
                results[number] = expected(x), y
                if thread == 0:
                    what = qaicrt.InferenceVector(self.qpc)
                    self.ok(what.setBuffers([x, y]))
                else:
                    what = self.took(made.getAvailable(timeout=PATIENCE))
                    self.ok(what.setBuffers([x, y]))
                self.ok(made.submit(what, number))

        def collect(thread):
            order, kept = random.Random(thread), []
            while next(tickets) < total:
                status, handle = made.getCompleted(timeout=PATIENCE)
                self.assertIsNotNone(handle, status)
                number = handle.getId()
                collected.append(number)
                if status == OK:
                    np.testing.assert_array_equal(results[number][1], results[number][0])
                else:
                    self.assertEqual(status, ERROR, qaicrt.lastErrorText())
                    failed.append(number)
                kept.append(handle)
                while len(kept) > order.randint(0, kept_by_each):
                    self.ok(made.putCompleted(kept.pop(order.randrange(len(kept)))))
            for handle in kept:
                self.ok(made.putCompleted(handle))

        def guarded(work, thread):
            try:
                work(thread)
            except BaseException as error:
                mistakes.append(error)
                made.shutdown()  # The others end, too.

        threads = [threading.Thread(target=guarded, args=(work, number))
                   for work, count in ((submit, self.SUBMITTERS), (collect, self.COLLECTORS))
                   for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if mistakes:
            raise mistakes[0]
        self.assertEqual(sorted(collected), list(range(total)))
        self.assertEqual(len(failed), failures)
        self.ok(made.waitForCompletion())
        available = {self.took(made.getAvailable(timeout=0)).getIndex() for _ in range(handles)}
        self.assertEqual(available, set(range(handles)))
        self.assertEqual(made.getAvailable(timeout=0), (QStatus.QS_TIMEDOUT, None))

    def test_every_id_is_collected_once_with_the_outputs_of_its_inputs(self):
        for size, activations in ((1, 1), (4, 10), (16, 2)):
            with self.subTest(size=size, activations=activations):
                self.conserve(REAL, size, activations, lambda x: np.maximum(x, 0), 0)

    def test_every_id_is_collected_once_where_one_in_a_hundred_fails(self):
        for size, activations in ((1, 1), (4, 10), (16, 2)):
            with self.subTest(size=size, activations=activations):
                # The device copies its input.
                self.conserve(FAILING, size, activations, np.copy, self.SUBMITTERS * self.EACH // 100)


class Faults(unittest.TestCase):
    """A4, in a process of its own, whose device hangs, fails, and is lost for 20 ms at a time."""

    def test_a_client_that_goes_on_after_each_failure_loses_no_handle_and_hears_of_each_once(self):
        done = program("""
            import collections, threading
            events, failed, good = [], collections.Counter(), 0
            heard = threading.Condition()
            def hear(number, text, kind):
                with heard:
                    events.append(kind)
                    heard.notify()
            context = Context(0, error=hear)
            properties = InferenceSetProperties()
            properties.programProperties.SubmitRetryTimeoutMs = 50
            properties.programProperties.SubmitNumRetries = 0
            made = InferenceSet(context, Qpc(FOLDER), 0, 2, 4, properties=properties)
            idle = [made.getAvailable()[1] for _ in range(8)]
            for handle in idle:
                assert handle.setBuffers([X, np.empty_like(X)]) == QS_SUCCESS
            end = time.monotonic() + 30
            while good < 500 and time.monotonic() < end or len(idle) < 8:
                for handle in idle[:] if good < 500 else ():
                    status = made.submit(handle, handle.getIndex())
                    assert status in (QS_SUCCESS, QS_DEV_ERROR), lastErrorText()
                    if status == QS_SUCCESS:
                        idle.remove(handle)
                if len(idle) == 8:
                    continue  # The device is lost.
                status, handle = made.getCompleted(timeout=30)
                assert status == QS_SUCCESS or handle.getStatus() == status
                if status == QS_SUCCESS:
                    good += 1
                else:
                    failed[status] += 1
                assert made.putCompleted(handle) == QS_SUCCESS
                idle.append(handle)
            print(good >= 500, sorted({made.getAvailable(timeout=0)[1].getIndex() for _ in range(8)}))
            print(sorted(status.name for status in failed))
            own = failed[QS_TIMEDOUT] + failed[QS_ERROR]
            with heard:  # Another thread reports errors; the last one may come after its handle.
                heard.wait_for(lambda: events.count(QIAC_ERROR_EXECOBJ_RUNTIME) >= own, timeout=30)
            print(events.count(QIAC_ERROR_EXECOBJ_RUNTIME) == own, events.count(QAIC_ERROR_CONTEXT_RUNTIME) > 0,
                  set(events) == {QIAC_ERROR_EXECOBJ_RUNTIME, QAIC_ERROR_CONTEXT_RUNTIME})
            """, "null:generic:4?a=100us&fail=100", CORELANE_FAULTS="lost=0.01,lost_ms=20,hang=0.02,seed=3")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "True [0, 1, 2, 3, 4, 5, 6, 7]\n"
                                      "['QS_DEV_ERROR', 'QS_ERROR', 'QS_TIMEDOUT']\nTrue True True\n")


class Timeouts(Case):
    """A5, statement 25. Timeout 0 stands for 5000 ms, which is measured without retries alone."""

    GRID = [(timeout, retries) for timeout in (100, 200) for retries in (0, 1, 5)]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        pool = concurrent.futures.ThreadPoolExecutor(2 * len(cls.GRID) + 1)
        cls.addClassCleanup(pool.shutdown)
        cls.sets = {point: pool.submit(cls.of_a_set, *point) for point in [*cls.GRID, (0, 0)]}
        cls.objects = {point: pool.submit(cls.of_an_object, *point) for point in cls.GRID}

    @classmethod
    def of_a_set(cls, timeout, retries):
        """The outcome, the seconds, the handle that was submitted, the one that came, and the set."""
        made = qaicrt.InferenceSet(cls.context, cls.qpc, SLOW, 1, 1, properties=limits(timeout, retries))
        handle = made.getAvailable()[1]
        handle.setBuffers([X, X.copy()])
        begun = time.monotonic()
        made.submit(handle, 1)
        status, done = made.getCompletedId(1)
        return status, time.monotonic() - begun, handle, done, made

    @classmethod
    def of_an_object(cls, timeout, retries):
        program = qaicrt.Program(cls.context, SLOW, cls.qpc, limits(timeout, retries).programProperties)
        program.activate()
        made = qaicrt.ExecObj(cls.context, program, [X, X.copy()])
        begun = time.monotonic()
        return made.run(), time.monotonic() - begun

    def check(self, timeout, retries, status, seconds):
        whole = (timeout or 5000) / 1000 * (retries + 1)
        self.assertEqual(status, QStatus.QS_TIMEDOUT)
        self.assertGreaterEqual(seconds, whole)
        self.assertLess(seconds, 10 * whole)

    def test_an_inference_of_a_set_ends_after_its_timeout_and_retries_and_gives_its_handle(self):
        for point, future in self.sets.items():
            with self.subTest(point=point):
                status, seconds, handle, done, made = future.result()
                self.check(*point, status, seconds)
                self.assertEqual((done, done.getStatus()), (handle, QStatus.QS_TIMEDOUT))
                self.ok(made.putCompleted(done))
                self.assertEqual(made.getAvailable(timeout=0), (OK, handle))

    def test_a_run_of_an_object_ends_after_its_timeout_and_retries(self):
        for point, future in self.objects.items():
            with self.subTest(point=point):
                self.check(*point, *future.result())


class Waiters:
    """A thread for each call; the calls are functions of the library with their arguments, not of Python."""

    def __init__(self, calls):
        self.found = [None] * len(calls)
        self.threads = [threading.Thread(target=self.call, args=item, daemon=True) for item in enumerate(calls)]
        for thread in self.threads:
            thread.start()

    def call(self, number, function):
        self.line = sys._getframe().f_lineno + 1  # Whoever is there without the interpreter's lock is in the call.
        self.found[number] = function()

    def inside(self):
        """Waits until all are in their calls; False once one has returned."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            if any(found is not None for found in self.found):
                return False
            frames = sys._current_frames()
            places = [frames.get(thread.ident) for thread in self.threads]
            if all(place is not None and place.f_code is self.call.__code__ and place.f_lineno == self.line
                   for place in places):
                return True
            time.sleep(0.001)  # Nothing tells that a thread has begun to wait.
        raise AssertionError("the threads do not come to their calls")

    def returned(self):
        """What all calls gave."""
        limit = time.monotonic() + PATIENCE
        for thread in self.threads:
            thread.join(max(limit - time.monotonic(), 0))
        if any(thread.is_alive() for thread in self.threads):
            raise AssertionError(f"calls that do not return: {self.found.count(None)}")
        return self.found


class Ends(Case):
    """A6: 16 threads in each call that waits."""

    THREADS = 16

    def wait(self, *calls):
        """So many threads, with these calls in turn."""
        waiters = Waiters(list(itertools.islice(itertools.cycle(calls), self.THREADS)))
        self.assertTrue(waiters.inside(), f"returned at once: {waiters.found}")
        return waiters

    def with_and_without_a_limit(self, method, *arguments):
        return functools.partial(method, *arguments), functools.partial(method, *arguments, timeout=FOREVER)

    def test_all_that_wait_for_a_handle_return_at_the_shutdown(self):
        made = self.busy_set()
        waiters = self.wait(*self.with_and_without_a_limit(made.getAvailable))
        self.ok(made.shutdown())
        self.assertEqual(waiters.returned(), [(ERROR, None)] * self.THREADS)

    def test_all_that_submit_a_vector_return_at_the_shutdown(self):
        made = self.busy_set()
        vector = qaicrt.InferenceVector(self.qpc)
        waiters = self.wait(*(functools.partial(made.submit, vector, 10 + n) for n in range(self.THREADS)))
        self.ok(made.shutdown())
        self.assertEqual(waiters.returned(), [ERROR] * self.THREADS)
        self.assertEqual(made.getCompletedId(10), (ERROR, None))

    def test_all_that_collect_return_at_the_shutdown_and_what_was_cancelled_comes_once(self):
        made = self.busy_set()
        waiters = self.wait(*self.with_and_without_a_limit(made.getCompleted))
        self.ok(made.shutdown())
        found = waiters.returned()
        self.assertEqual([status for status, _ in found], [ERROR] * self.THREADS)
        # The first inference runs. The second one had not begun: one of the threads has it, or who asks after them.
        limit = time.monotonic() + PATIENCE
        while all(handle is None for _, handle in found) and time.monotonic() < limit:
            found.append(made.getCompleted())
        found.append(made.getCompleted())
        self.assertEqual([handle.getId() for _, handle in found if handle is not None], [2])

    def test_all_that_collect_an_id_return_at_the_shutdown(self):
        made = self.busy_set()
        waiters = self.wait(*self.with_and_without_a_limit(made.getCompletedId, 1))
        self.ok(made.shutdown())
        self.assertEqual(waiters.returned(), [(ERROR, None)] * self.THREADS)

    def test_all_that_wait_for_completion_return_at_the_shutdown(self):
        made = self.busy_set()
        waiters = self.wait(*self.with_and_without_a_limit(made.waitForCompletion))
        self.ok(made.shutdown())
        self.assertEqual(waiters.returned(), [ERROR] * self.THREADS)

    def test_all_that_drain_return_at_the_shutdown(self):
        made = self.busy_set()
        waiters = self.wait(*self.with_and_without_a_limit(made.drain))
        self.ok(made.shutdown())
        self.assertEqual(waiters.returned(), [ERROR] * self.THREADS)

    def test_all_that_wait_for_an_object_return_when_its_inference_ends(self):
        program = qaicrt.Program(self.context, ENDLESS, self.qpc, limits(500, 0).programProperties)
        made = qaicrt.ExecObj(self.context, program, [X, X.copy()])
        self.ok(qaicrt.Queue(self.context, ENDLESS).enqueue(made))
        waiters = Waiters([*self.with_and_without_a_limit(made.waitForCompletion)] * (self.THREADS // 2))
        self.assertEqual(waiters.returned(), [QStatus.QS_TIMEDOUT] * self.THREADS)

    def held_report(self, make):
        """A profiling handle whose function has been called, and returns once the event is set."""
        called, goes_on = threading.Event(), threading.Event()
        self.addCleanup(goes_on.set)

        def report(text):
            called.set()
            goes_on.wait(PATIENCE)

        program = qaicrt.Program(self.context, REAL, self.qpc)
        handle = make(program, report)
        self.ok(handle.start())
        self.ok(qaicrt.ExecObj(self.context, program, [X, X.copy()]).run())
        return handle, called, goes_on

    def test_all_that_flush_reports_return_once_these_were_delivered(self):
        def make(program, report):
            stream = qaicrt.StreamProfilingHandle(qaicrt.QAIC_PROFILING_SAMPLING_RATE_FULL,
                                                  qaicrt.QAIC_PROFILING_REPORTING_RATE_4000_MS, report)
            self.ok(stream.addProgram(program))
            return stream

        stream, called, goes_on = self.held_report(make)
        self.ok(stream.stop())
        self.assertTrue(called.wait(PATIENCE))
        waiters = self.wait(stream.flushReports)
        goes_on.set()
        self.assertEqual(waiters.returned(), [OK] * self.THREADS)

    def test_all_that_stop_a_handle_return_once_its_report_was_delivered(self):
        handle, called, goes_on = self.held_report(
            lambda program, report: qaicrt.ProfilingHandle(program, 1, report))
        self.assertTrue(called.wait(PATIENCE))
        waiters = self.wait(handle.stop)
        goes_on.set()
        self.assertEqual(waiters.returned(), [OK] * self.THREADS)


class Misuse(Case):
    """A7, statement 23: what needs an inference in flight."""

    def test_a_handle_in_flight_is_busy_and_stays_in_flight(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, SLOW, 1, 1, properties=limits(200, 0))
        handle, y = self.took(made.getAvailable()), X.copy()
        self.ok(handle.setBuffers([X, y]))
        self.ok(made.submit(handle, 1))
        self.assertEqual(made.submit(handle, 2), QStatus.QS_BUSY)
        self.assertEqual(made.putCompleted(handle), QStatus.QS_INVAL)
        self.assertEqual(made.getCompletedId(2), (QStatus.QS_INVAL, None))
        self.assertEqual(made.getCompletedId(1), (QStatus.QS_TIMEDOUT, handle))
        self.ok(made.putCompleted(handle))

    def test_of_two_with_one_id_the_first_is_collected_first(self):
        made = qaicrt.InferenceSet(self.context, self.qpc, REAL, 2, 1)
        handles = [self.took(made.getAvailable()) for _ in range(2)]
        for handle in reversed(handles):
            self.ok(handle.setBuffers([X, X.copy()]))
            self.ok(made.submit(handle, 5))
        self.ok(made.waitForCompletion())
        self.assertEqual([self.took(made.getCompletedId(5)) for _ in handles], handles[::-1])
        self.assertEqual(made.getCompletedId(5), (QStatus.QS_INVAL, None))


class Damage(Case):
    """A10: the tests of the C functions damage containers in other ways, too."""

    def test_a_container_that_is_cut_off_at_any_byte_is_an_exception(self):
        whole = bytes(self.qpc.buffer())
        self.assertEqual(qaicrt.Qpc(whole).size(), len(whole))
        for size in range(len(whole)):
            with self.assertRaises(qaicrt.QAicException, msg=size) as raised:
                qaicrt.Qpc(whole[:size])
            self.assertIn(raised.exception.status, (QStatus.QS_INVAL, QStatus.QS_DATA_CRC_ERROR), size)


class Constants(Case):
    """A18."""

    def test_eight_programs_of_one_container_have_its_constants_once_and_leave_nothing(self):
        from onnx import helper, numpy_helper
        weights = np.ones((512, 1024), np.float32)
        qpc = qaicrt.Qpc(container(model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", (1, 512))],
                                            [("y", (1, 1024))], initializer=[numpy_helper.from_array(weights, "w")])))
        programs = [qaicrt.Program(self.context, ROOMY, qpc) for _ in range(8)]
        free = [self.took(qaicrt.Util.getResourceInfo(ROOMY)).dramFree]  # KiB.
        for each in programs:
            self.ok(each.load())
            free.append(self.took(qaicrt.Util.getResourceInfo(ROOMY)).dramFree)
        constants = weights.nbytes // 1024
        self.assertGreaterEqual(free[0] - free[1], constants)
        self.assertLess(free[1] - free[8], constants)
        for each in programs:
            self.ok(each.unload())
        self.assertEqual(self.took(qaicrt.Util.getResourceInfo(ROOMY)).dramFree, free[0])


class Capture(Case):
    """A15, statement 11: two contexts of three devices, one of them in both."""

    RUNS = 40
    NAMES = {LEFT: "left", BOTH: "both", RIGHT: "right"}
    EVERY = {LEFT: 1, BOTH: 1, RIGHT: 2}  # How many runs there are to a line of the device.

    def test_lines_of_host_and_devices_come_once_in_the_order_of_time_by_another_thread(self):
        heard = {key: [] for key in ("first", "second", "without")}
        callers = set()

        def context(key, devices, properties):
            def log(level, text):
                callers.add(threading.get_ident())
                heard[key].append(text)
            made = qaicrt.Context(devices, properties, log=log)
            self.ok(made.setLogLevel(qaicrt.QL_DEBUG))
            return made

        logs = qaicrt.QAIC_CONTEXT_COLLECT_DEVICE_LOGS
        contexts = {"first": context("first", [LEFT, BOTH], logs), "second": context("second", [BOTH, RIGHT], logs)}
        without = context("without", [BOTH], 0)
        users = {LEFT: "first", BOTH: "second", RIGHT: "second"}
        ours, written = set(), {key: {} for key in contexts}  # By line: not before, not after.

        def timed(call):
            begun = time.monotonic_ns()
            self.ok(call())
            return begun, time.monotonic_ns()

        def work(device):
            ours.add(threading.get_ident())
            mine = contexts[users[device]]
            object_ = qaicrt.ExecObj(mine, qaicrt.Program(mine, device, self.qpc), [X, X.copy()])
            for number in range(1, self.RUNS + 1):
                span = timed(object_.run)
                for key, each in contexts.items():
                    if device in each.getDevices() and number % self.EVERY[device] == 0:
                        written[key][f"{self.NAMES[device]}: run {number}"] = span
                    line = f"host {self.NAMES[device]} {number}"
                    written[key][line] = timed(functools.partial(each.log, qaicrt.QL_INFO, line))

        with concurrent.futures.ThreadPoolExecutor(len(users)) as pool:
            list(pool.map(work, users))
        begun = time.monotonic()
        # The end of a context delivers what waits for earlier lines.
        contexts.clear()
        del without
        gc.collect()
        self.assertLess(time.monotonic() - begun, PATIENCE)
        self.assertEqual(heard["without"], [])
        self.assertTrue(callers and not callers & (ours | {threading.get_ident()}))
        for key, expected in written.items():
            with self.subTest(context=key):
                found = [re.sub(r"^\S+#(\w+: run \d+) of .*", r"\1", text) for text in heard[key]]
                self.assertEqual(sorted(found), sorted(expected))
                latest = 0
                for name in found:
                    begun, ended = expected[name]
                    self.assertLessEqual(latest, ended, f"{name} comes after a line that was written later")
                    latest = max(latest, begun)


class Activations(Case):
    """A22."""

    ROUNDS = 500

    def figures(self):
        """Free cores, free memory, activated networks, and descriptors of the process."""
        status, resources = qaicrt.Util.getResourceInfo(ONE)
        self.ok(status)
        status, info = qaicrt.Util.getDeviceInfo(ONE)
        self.ok(status)
        return (resources.nspFree, resources.dramFree, info.devData.numActiveNWs, len(os.listdir("/proc/self/fd")))

    def test_activations_of_which_one_in_five_fails_leave_all_resources_free(self):
        holder, program = (qaicrt.Program(self.context, ONE, self.qpc) for _ in range(2))
        start = self.figures()
        for number in range(self.ROUNDS):
            fails = number % 5 == 4
            if fails:
                self.ok(holder.activate())
            self.ok(program.load())
            if fails:
                self.assertEqual(program.activate(), QStatus.QS_NOSPC)
                self.assertFalse(program.isActivated())
            else:
                self.ok(program.activate())
                self.assertEqual(self.figures()[0], start[0] - 1)
                made = qaicrt.ExecObj(self.context, program, [X, X.copy()])
                self.ok(made.run())
                del made
            self.ok(program.deactivate())
            self.ok(program.unload())
            if fails:
                self.ok(holder.deactivate())
                self.ok(holder.unload())
        self.assertEqual(self.figures(), start)


class Table(unittest.TestCase):
    """The table of acceptance tests has all of them, and names tests that are there."""

    ROOT = Path(__file__).resolve().parents[2]

    def cases(self, pattern, expression):
        """What the expression finds in files, joined by a dot."""
        for path in self.ROOT.glob(pattern):
            for found in re.findall(expression, path.read_text(encoding="utf-8"), re.M):
                yield found if isinstance(found, str) else ".".join(found)

    def test_each_row_names_tests_that_are_there(self):
        known = {path.name for folder in ("tests", "benchmarks") for path in self.ROOT.joinpath(folder).rglob("*.*")}
        known.update(self.cases("src/**/*_test.cpp", r"^TEST(?:_[FP])?\((\w+), (\w+)\)"))
        known.update(self.cases("tests/robustness/**/*_test.cpp", r"^TEST(?:_[FP])?\((\w+), (\w+)\)"))
        known.update(self.cases("tests/compat/qaic/statements/*.cpp", r"^CORELANE_STATEMENT\((\w+)\)"))
        for path in self.ROOT.glob("tests/python/qaicrt_*test.py"):
            parts = re.split(r"^class (\w+)", path.read_text(encoding="utf-8"), flags=re.M)
            known.update(f"{suite}.{name}" for suite, body in zip(parts[1::2], parts[2::2])
                         for name in re.findall(r"def (test_\w+)", body))
        page = self.ROOT.joinpath("docs/apis/object-runtime-tests.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| (A\d+) \| (.+) \|$", page, re.M)
        self.assertEqual([name for name, _ in rows], [f"A{number}" for number in range(1, 23)])
        for row, cells in rows:
            for name in re.findall(r"`([^`]+)`", cells):
                with self.subTest(row=row, name=name):
                    # In front of a stroke is the name of an instance; commands are no tests.
                    self.assertTrue(name.startswith("./dev ") or fnmatch.filter(known, name.rpartition("/")[2]))


if __name__ == "__main__":
    unittest.main()
