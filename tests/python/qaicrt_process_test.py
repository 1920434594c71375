"""corelane.qaicrt and its process: callbacks, the interpreter's lock, work in flight that nobody holds, exit, fork."""
import tempfile
import unittest

from qaicrt_support import program, start

SLOW = "null:generic:4?a=300ms"


class Callbacks(unittest.TestCase):
    def prints(self, code, expected, devices="null:generic:4?a=1ms", **environment):
        done = program(code, devices, **environment)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", expected))

    def test_lines_of_the_log_come_to_a_function(self):
        self.prints("""
            lines = []
            context = Context(0, log=lambda level, text: lines.append((level, text)))
            context.log(QL_INFO, "too low")
            context.log(QL_ERROR, "h\\u00e9")
            context.setLogLevel(QL_DEBUG)
            context.log(QL_DEBUG, "low")
            print([line for line in lines if line[1].endswith(("low", "\\u00e9"))])
            print(type(lines[0][0]) is QLogLevel)
            """, "[(QLogLevel.QL_ERROR, 'hé'), (QLogLevel.QL_DEBUG, 'low')]\nTrue\n")

    def test_failures_come_to_the_error_handler(self):
        self.prints("""
            events = []
            context = Context(0, error=lambda *event: events.append(event))
            try:
                Program(context, 9, Qpc(FOLDER))
            except CoreExceptionInit as error:
                print(error.status.name)
            print([(number == context.getId(), kind.name, "device" in text) for number, text, kind in events])
            """, "QS_NODEV\n[(True, 'QAIC_ERROR_PROGRAM_CREATION', True)]\n")

    def test_what_a_callback_raises_goes_to_the_hook_once(self):
        self.prints("""
            raised = []
            sys.unraisablehook = lambda given: raised.append((str(given.exc_value), given.object is fail))
            def fail(*given):
                raise ValueError("no")
            context, qpc, program, queue = parts(log=fail, error=fail)
            print(context.log(QL_ERROR, "line").name, raised)
            try:
                Program(context, 9, qpc)
            except CoreExceptionInit:
                print(len(raised))
            x = ExecObj(context, program, [X, X.copy()])
            print(x.run().name, len(raised))
            """, "QS_SUCCESS [('no', True)]\n2\nQS_SUCCESS 2\n")

    def test_a_callback_may_call_any_method_and_drop_its_context(self):
        self.prints("""
            held, seen = [], []
            def log(level, text):
                if not seen:
                    seen.append(held[0].getId() > 0 and Util().getDeviceIds()[0].name)
                    held.clear()
            held.append(Context(0, log=log))
            held[0].log(QL_ERROR, "line")
            print(seen, held)
            """, "['QS_SUCCESS'] []\n")

    def test_no_callback_comes_after_its_context_has_gone(self):
        self.prints("""
            lines = []
            context = Context(0, log=lambda level, text: lines.append(text))
            context.setLogLevel(QL_DEBUG)
            del context
            before = len(lines)
            Context(0).log(QL_ERROR, "of another one")
            print(len(lines) == before)
            """, "True\n", CORELANE_LOG="off")

    def test_lines_from_other_threads(self):
        self.prints("""
            lines = []
            context = Context(0, log=lambda level, text: lines.append(text))
            threads = [threading.Thread(target=lambda: [context.log(QL_ERROR, "x") for _ in range(200)])
                       for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print(len(lines))
            """, "800\n")


class Lock(unittest.TestCase):
    def test_waits_release_the_interpreter(self):
        done = program("""
            context, qpc, program, queue = parts()
            x = ExecObj(context, program, [X, X.copy()])
            made = InferenceSet(context, qpc, 0, 1, 1)
            status, handle = made.getAvailable()
            handle.setBuffers([X, X.copy()])
            program.activate()
            def steps():
                # How often another thread ran meanwhile.
                count, end = 0, threading.Event()
                def work():
                    nonlocal count
                    while not end.is_set():
                        count += 1
                        time.sleep(0.001)
                thread = threading.Thread(target=work)
                thread.start()
                yield
                end.set()
                thread.join()
                yield count
            for call in (x.run, lambda: queue.enqueue(x) or x.waitForCompletion(),
                         lambda: made.submit(handle, 1) or made.getCompletedId(1)[0],
                         lambda: made.getAvailable(timeout=0.3) and QS_SUCCESS):
                counted = steps()
                next(counted)
                status = call()
                print(status.name, next(counted) > 20)
            """, SLOW)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "QS_SUCCESS True\n" * 4))


class Flight(unittest.TestCase):
    """Inferences whose Python objects are gone."""

    def prints(self, code, expected, devices=SLOW):
        done = program(code, devices)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", expected))

    def test_memory_stays_until_the_inference_has_ended(self):
        self.prints("""
            import weakref
            class Array(np.ndarray):
                pass
            context, qpc, program, queue = parts()
            made = InferenceSet(context, qpc, 0, 1, 1)
            arrays = [X.copy().view(Array) for _ in range(4)]
            gone = [weakref.ref(one) for one in arrays]
            x = ExecObj(context, program, arrays[:2])
            status, handle = made.getAvailable()
            print(handle.setBuffers(arrays[2:]).name, queue.enqueue(x).name, made.submit(handle).name)
            del x, made, handle, arrays
            gc.collect()
            print([one() is None for one in gone])
            limit = time.monotonic() + 30
            while any(one() is not None for one in gone) and time.monotonic() < limit:
                ExecObj(context, program)  # New objects end with what is over.
                time.sleep(0.01)
            print([one() is None for one in gone])
            """, "QS_SUCCESS QS_SUCCESS QS_SUCCESS\n[False, False, False, False]\n[True, True, True, True]\n")

    def test_memory_stays_where_its_set_was_shut_down_before(self):
        self.prints("""
            import weakref
            class Array(np.ndarray):
                pass
            context, qpc, program, queue = parts()
            made = InferenceSet(context, qpc, 0, 1, 1)
            arrays = [X.copy().view(Array) for _ in range(2)]
            gone = [weakref.ref(one) for one in arrays]
            handle = made.getAvailable()[1]
            print(handle.setBuffers(arrays).name, made.submit(handle).name, made.shutdown().name)
            del made, handle, arrays
            gc.collect()
            print([one() is None for one in gone])
            """, "QS_SUCCESS QS_SUCCESS QS_SUCCESS\n[False, False]\n")

    def test_memory_stays_where_another_thread_has_waited_for_the_inference_before(self):
        self.prints("""
            import weakref
            class Array(np.ndarray):
                pass
            context, qpc, program, queue = parts()
            program.activate()
            arrays = [X.copy().view(Array) for _ in range(2)]
            gone = [weakref.ref(one) for one in arrays]
            x = ExecObj(context, program, arrays)
            print(queue.enqueue(x).name)
            waits = threading.Thread(target=lambda: x.waitForCompletion())
            waits.start()
            sys.setswitchinterval(60)  # The thread gets the interpreter back in the second call of enqueue().
            while program.getInferenceCompleteCount() < 1:
                pass
            while (status := queue.enqueue(x)) == QS_BUSY:
                pass
            print(status.name)
            sys.setswitchinterval(0.005)
            waits.join()
            del x, arrays
            gc.collect()
            print([one() is None for one in gone])
            """, "QS_SUCCESS\nQS_SUCCESS\n[False, False]\n", "null:generic:4?a=1s")

    def test_a_program_is_deactivated_once_its_objects_have_gone(self):
        self.prints("""
            context, qpc, program, queue = parts()
            program.activate()
            x = ExecObj(context, program, [X, X.copy()])
            print(x.run().name)
            del x
            print(program.deactivate().name)
            """, "QS_SUCCESS\nQS_SUCCESS\n")

    def test_buffers_in_flight_are_not_replaced(self):
        self.prints("""
            context, qpc, program, queue = parts()
            x = ExecObj(context, program, [X, X.copy()])
            print(queue.enqueue(x).name, x.setData([X, X.copy()]).name, x.waitForCompletion(0.01).name,
                  x.waitForCompletion().name, x.setData([X, X.copy()]).name)
            """, "QS_SUCCESS QS_BUSY QS_TIMEDOUT QS_SUCCESS QS_SUCCESS\n")


class Exit(unittest.TestCase):
    def clean(self, code, devices=SLOW, expected="", **environment):
        done = program(code, devices, **environment)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", expected))

    def test_with_work_in_flight(self):
        for devices in (SLOW, "virtual:aic100"):
            self.clean("""
                context, qpc, program, queue = parts(log=lambda *line: None)
                objects = [ExecObj(context, program, [X, X.copy()]) for _ in range(4)]
                made = InferenceSet(context, qpc, 0, 4, 1)
                vector = InferenceVector(qpc)
                for n, x in enumerate(objects):
                    queue.enqueue(x)
                    made.submit(vector, n)
                """, devices)

    def test_with_objects_that_are_gone_in_flight(self):
        self.clean("""
            context, qpc, program, queue = parts()
            x = ExecObj(context, program, [X, X.copy()])
            queue.enqueue(x)
            del x, context, program, queue
            """)

    def test_while_threads_wait_for_a_set(self):
        self.clean("""
            context, qpc, program, queue = parts()
            made = InferenceSet(context, qpc, 0, 1, 1)
            held = made.getAvailable()
            started = threading.Barrier(4)
            def wait():
                started.wait()
                made.getAvailable(timeout=600)
            for _ in range(3):
                threading.Thread(target=wait, daemon=True).start()
            started.wait()
            """)

    def test_while_daemon_threads_run(self):
        self.clean("""
            context, qpc, program, queue = parts()
            started = threading.Barrier(4)
            def run():
                x = ExecObj(context, program, [X, X.copy()])
                x.run()
                started.wait()
                while True:
                    x.run()
            for _ in range(3):
                threading.Thread(target=run, daemon=True).start()
            started.wait()
            """, "null:generic:4?a=1ms")

    def test_by_an_exception_and_with_lines_that_wait(self):
        done = program("""
            context = Context(0, properties=QAIC_CONTEXT_COLLECT_DEVICE_LOGS, log=lambda *line: None)
            context.log(QL_ERROR, "a line that waits for earlier ones")
            sys.exit(3)
            """)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (3, "", ""))


class DeviceLock(unittest.TestCase):
    HOLD = """
        print(Util().lockDevice(0, True).name, flush=True)
        time.sleep(600)
        """

    def test_another_process_is_busy_and_its_death_frees_the_lock(self):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"CORELANE_QAIC_LOCK": "60", "CORELANE_RUN_DIR": folder}
            holder = start(self.HOLD, SLOW, **settings)
            self.addCleanup(holder.communicate)
            self.addCleanup(holder.kill)
            self.assertEqual(holder.stdout.readline(), "QS_SUCCESS\n")
            code = """
                util = Util()
                print(util.lockDevice(0, True, False).name, f"process {os.environ['HOLDER']} (" in lastErrorText())
                print(util.lockDevice(0, False).name)
                os.kill(int(os.environ["HOLDER"]), signal.SIGKILL)
                print(util.lockDevice(0, True).name, util.lockDevice(0, False).name)
                """
            done = program(code, SLOW, HOLDER=str(holder.pid), **settings)
            self.assertEqual((done.returncode, done.stderr, done.stdout),
                             (0, "", "QS_BUSY True\nQS_INVAL\nQS_SUCCESS QS_SUCCESS\n"))


class Fork(unittest.TestCase):
    def test_a_child_gets_errors_and_ends(self):
        done = program("""
            context, qpc, program, queue = parts(log=lambda *line: None)
            x = ExecObj(context, program, [X, X.copy()])
            print(x.run().name, flush=True)
            pid = os.fork()
            if pid == 0:
                try:
                    Context(0)
                except CoreExceptionInit as error:
                    print(error.status.name, "fork" in str(error), x.run().name, queue.enqueue(x).name, flush=True)
                sys.exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), x.run().name)
            """)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "QS_SUCCESS\nQS_ERROR True QS_ERROR QS_ERROR\n0 QS_SUCCESS\n")

    def test_a_second_interpreter_and_a_second_import_are_refused(self):
        done = program("""
            del sys.modules["corelane.qaicrt"]
            try:
                import corelane.qaicrt as again
                import importlib
                importlib.reload(again)
                print(again is qaicrt)
            except ImportError as error:
                print("leave it there" in str(error))
            """)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "True\n")


if __name__ == "__main__":
    unittest.main()
