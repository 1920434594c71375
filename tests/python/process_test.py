"""The package and its process: import, the interpreter's lock, fork, Ctrl-C, exit."""
import textwrap
import threading
import unittest

from python_support import X, child, children, session

PROMPT = 5.0  # Seconds: ten times what the contract allows.


class Exit(unittest.TestCase):
    def clean(self, code, expected=""):
        result = child(code)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertIn(expected, result.stdout)

    def all_clean(self, code, expected):
        results = children([code] * 20)
        self.assertEqual(len(results), 20)
        for result in results:
            self.assertEqual(result, (0, expected, ""))

    def test_pending_tasks_are_run_and_called_back(self):
        self.all_clean("""
            s = session("null:rk3588?a=100ms", schedule=[0])
            for i in range(4):
                s.run_async(None, {"x": X}, lambda o, d, e: print("called", d), i)
        """, "".join(f"called {i}\n" for i in range(4)))

    def test_backlog_of_slow_callbacks_is_worked_off(self):
        self.all_clean("""
            s = session("null:rk3588?a=1ms", submit_timeout_ms=60000)
            def slow(o, d, e):
                time.sleep(0.1)
                print("called", d)
            for i in range(6):
                s.run_async(None, {"x": X}, slow, i)
        """, "".join(f"called {i}\n" for i in range(6)))

    def test_on_the_virtual_npu(self):
        self.clean("""
            s = session("virtual:rk3588", schedule=[0, 1, 2])
            for i in range(4):
                s.run_async(None, {"x": X}, lambda o, d, e: print("called", d), i)
        """, "called 0\ncalled 1\ncalled 2\ncalled 3\n")

    def test_while_the_engines_are_timed(self):
        # After eight runs; the one of them that does not run yet is loaded for it.
        for end in ("pass", "sys.exit(0)", "sys.kept = s"):
            self.all_clean(f"""
                os.environ["CORELANE_TIME_ENGINES"] = "1"
                s = session("virtual:rk3588", cache=False)
                for _ in range(12):
                    s.run(None, {{"x": X}})
                {end}
            """, "")

    def test_while_threads_run_and_wait(self):
        self.all_clean("""
            s = session("null:rk3588?a=100ms", schedule=[0], max_queue_size=8)
            for _ in range(4):
                threading.Thread(target=lambda: s.run(None, {"x": X}), daemon=True).start()
            while s.statistics()["accepted"] < 4:
                time.sleep(0.001)
        """, "")

    def test_by_sys_exit_in_a_callback_and_in_the_program(self):
        self.clean("""
            s = session("null:rk3588?a=20ms")
            s.run_async(None, {"x": X}, lambda o, d, e: print("called"), None)
            sys.exit(0)
        """, "called\n")

    def test_with_futures_that_are_never_read(self):
        self.clean("""
            s = session("null:rk3588?a=20ms")
            futures = [s.submit(None, {"x": X}) for _ in range(3)]
        """)

    def test_after_close_and_with_the_session_in_a_cycle(self):
        self.clean("""
            s = session("null:rk3588?a=1ms")
            s.close()
            t = session("null:rk3588?a=1ms")
            cycle = [t]
            cycle.append(cycle)
            t.run_async(None, {"x": X}, lambda o, d, e: cycle, cycle)
            del t
        """)

    def test_while_daemon_threads_make_sessions_and_use_them(self):
        self.all_clean("""
            def forever():
                while True:
                    try:
                        session("null:rk3588").run(None, {"x": X.tolist()})
                    except RuntimeError:
                        pass
            for _ in range(3):
                threading.Thread(target=forever, daemon=True).start()
            time.sleep(0.1)
        """, "")

    def test_after_the_first_calls_of_many_threads(self):
        # What is looked up once is looked up while other threads get their turns.
        self.all_clean("""
            sys.setswitchinterval(1e-6)
            sessions = [session("null:rk3588") for _ in range(8)]
            start = threading.Barrier(8)
            def first(mine):
                start.wait()
                mine.run(None, {"x": X.tolist()})
            threads = [threading.Thread(target=first, args=(one,)) for one in sessions]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """, "")


class Import(unittest.TestCase):
    def test_starts_no_thread_and_prints_nothing(self):
        result = child("""
            import os, numpy
            before = len(os.listdir("/proc/self/task"))
            import corelane
            print(len(os.listdir("/proc/self/task")) - before)
        """, preamble="")
        self.assertEqual((result.stdout, result.stderr), ("0\n", ""))

    def test_is_refused_where_it_cannot_work_and_leaves_the_rest_alone(self):
        result = child("""
            import importlib
            s = session("null:rk3588")
            try:
                inner = importlib.import_module("_xxsubinterpreters")
            except ImportError:
                print("[] subinterpreter"), sys.exit(0)
            other = inner.create()
            inner.run_string(other, "try:\\n import corelane\\n"
                                    "except ImportError as error:\\n print(error)")
            inner.destroy(other)
            print(len(s.run(None, {"x": X})))
            for name in [n for n in sys.modules if n.startswith("corelane")]:
                del sys.modules[name]
            try:
                import corelane
            except ImportError as error:
                print(error)
            print(len(s.run(None, {"x": X})))
        """)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("subinterpreter", result.stdout)
        if "[]" not in result.stdout:
            self.assertRegex(result.stdout, r"(?s)subinterpreters.*\n1\n.*sys\.modules.*\n1\n")


class Lock(unittest.TestCase):
    def test_run_gives_it_away(self):
        slow = session("null:rk3588?a=200ms")
        ticks, stop = [0], threading.Event()

        def tick():
            while not stop.wait(0.001):
                ticks[0] += 1

        thread = threading.Thread(target=tick)
        thread.start()
        slow.run(None, {"x": X})
        stop.set()
        thread.join()
        # The contract asks for 150; a loaded machine gives a thread fewer turns.
        self.assertGreaterEqual(ticks[0], 15)


class Fork(unittest.TestCase):
    def clean(self, code, expected):
        result = child(code)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertEqual(result.stdout, expected)

    def test_child_is_refused_at_once_and_may_make_its_own(self):
        self.clean("""
            s = session("null:rk3588?a=100ms")
            b = s.io_binding()
            b.bind_output("y")
            s.run(None, {"x": X})
            pending = s.submit(None, {"x": X})
            pid = os.fork()
            if pid == 0:
                begin = time.monotonic()
                refused = 0
                for call in (lambda: s.run(None, {"x": X}), lambda: s.submit(None, {"x": X}),
                             lambda: s.run_async(None, {"x": X}, print, None), lambda: s.run_pipeline(X),
                             s.close, s.flush, s.drain, s.io_binding,
                             lambda: s.run_with_iobinding(b), pending.result, lambda: pending.result(50)):
                    try:
                        call()
                    except RuntimeError as error:
                        refused += "fork" in str(error) and type(error).__name__ != "StatusError"
                quick = time.monotonic() - begin < 10
                own = session("null:rk3588?a=1ms&name=own").run(None, {"x": X})
                del s
                gc.collect()
                os._exit(10 * refused + quick + len(own))
            print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            print(len(s.run(None, {"x": X})))
        """, "child 112\n1\n")

    def test_child_made_while_tasks_wait_ends_cleanly(self):
        self.clean("""
            s = session("null:rk3588?a=50ms", schedule=[0])
            for _ in range(3):
                s.run_async(None, {"x": X}, lambda *_: None, None)
            pid = os.fork()
            if pid == 0:
                sys.exit(7)
            print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """, "child 7\n")

    def test_child_that_returns_from_the_callback_that_forked_it_ends(self):
        for leave, code in (("return print('returned')", 0), ("sys.exit(4)", 4), ("raise SystemExit", 0)):
            self.clean(f"""
                done = threading.Event()
                def callback(*_):
                    pid = os.fork()
                    if pid == 0:
                        {leave}
                    print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
                    done.set()
                s = session("null:rk3588?a=1ms")
                s.run_async(None, {{"x": X}}, callback, None)
                print(done.wait(60), len(s.run(None, {{"x": X}})))
            """, ("returned\n" if "print" in leave else "") + f"child {code}\nTrue 1\n")


class CtrlC(unittest.TestCase):
    """The device is busy for twenty seconds; os._exit spares the test the wait at the end."""

    BUSY = "s.submit(None, {'x': X})"
    FULL = f"{BUSY}; {BUSY}"
    # name: what went before, the call, what is printed afterwards, and what that is.
    CASES = {
        "run": ("", "s.run(None, {'x': X})", "", ""),
        "run that waits for room": (FULL, "s.run(None, {'x': X})", "s.statistics()['accepted']", "2"),
        "submit": (FULL, "s.submit(None, {'x': X})", "s.statistics()['accepted']", "2"),
        "run_async": (FULL, "s.run_async(None, {'x': X}, print, None)", "s.statistics()['accepted']", "2"),
        "pipeline that waits for room": (FULL, "s.run_pipeline(X)", "s.statistics()['accepted']", "2"),
        "pipeline": ("s.run_pipeline(X, depth=1)", "s.run_pipeline(X, depth=1)", "s.statistics()['running']",
                     "1"),
        "flush": ("s.run_pipeline(X)", "s.flush()", "s.statistics()['failed']", "0"),
        "batch": ("", "s.run(None, {'x': X.repeat(4, 0)}, {'ztu_modelrt_dispatch_batch': '1'})",
                  "s.statistics()['cancelled']", "1"),
        "future": ("f = s.submit(None, {'x': X})", "f.result()", "f.done()", "False"),
        "bound run": ("b = s.io_binding(); b.bind_cpu_input('x', X); b.bind_output('y')",
                      "s.run_with_iobinding(b)", "", ""),
        "close": (BUSY, "s.close()", "s.closed, s.statistics()['running']", "True 1"),
    }

    def test_ends_every_wait(self):
        codes = [f"""
s = session("null:rk3588?a=20s", schedule=[0], max_queue_size=1)
{before}
def interrupt():
    global begin
    begin = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.2, interrupt).start()
try:
    {call}
    print("went on")
except KeyboardInterrupt:
    took = time.monotonic() - begin
    print("interrupted" if took < {PROMPT} else f"after {{took}} s", {after or "''"})
sys.stdout.flush()
os._exit(0)
""" for before, call, after, _ in self.CASES.values()]
        for name, result in zip(self.CASES, children(codes)):
            with self.subTest(wait=name):
                self.assertEqual(result, (0, f"interrupted {self.CASES[name][3]}\n", ""))

    def test_ends_a_run_that_an_engine_computes(self):
        """Products that take some ten seconds. ONNX Runtime stops between two of them, OpenVINO goes on to the end."""
        code = """
            from onnx import TensorProto, helper
            size, products = 1500, 150
            names = ["x", *(f"y{i}" for i in range(products))]
            nodes = [helper.make_node("MatMul", [a, "x"], [b]) for a, b in zip(names, names[1:])]
            value = helper.make_tensor_value_info
            graph = helper.make_graph(nodes, "products", [value("x", TensorProto.FLOAT, [size, size])],
                                      [value(names[-1], TensorProto.FLOAT, [size, size])])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
            s = ort.InferenceSession(model.SerializeToString(), providers=["RKNPU2ExecutionProvider"],
                                     provider_options=[{"device": "virtual:generic:1", "engine": ENGINE, "cache": 0}])
            x = np.zeros((size, size), np.float32)
            def interrupt():
                global begin
                begin = time.monotonic()
                os.kill(os.getpid(), signal.SIGINT)
            threading.Timer(0.5, interrupt).start()
            try:
                s.run(None, {"x": x})
                print("went on")
            except KeyboardInterrupt:
                took = time.monotonic() - begin
                print("interrupted" if took < PROMPT else f"after {took} s")
            sys.stdout.flush()
            os._exit(0)
        """
        for engine in ("onnxruntime", "openvino"):
            with self.subTest(engine=engine):
                done = child(f"ENGINE, PROMPT = {engine!r}, {PROMPT}\n" + textwrap.dedent(code))
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "interrupted\n", ""))

    def test_ends_a_wait_for_the_pace(self):
        ((code, out, err),) = children(["""
            s = session("null:rk3588?a=300ms", enable_pacing=True)
            for _ in range(2):
                s.run(None, {"x": X})
            s.submit(None, {"x": X})
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            try:
                s.submit(None, {"x": X})
                print("went on")
            except KeyboardInterrupt:
                print("interrupted")
        """])
        self.assertEqual((code, out, err), (0, "interrupted\n", ""))

    def test_a_handler_that_returns_does_not_end_a_run(self):
        ((code, out, err),) = children(["""
            signal.signal(signal.SIGALRM, lambda *_: print("handled"))
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            s = session("null:rk3588?a=300ms")
            print(len(s.run(None, {"x": X})))
        """])
        self.assertEqual((code, out, err), (0, "handled\n1\n", ""))


if __name__ == "__main__":
    unittest.main()
