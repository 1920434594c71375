"""The package and its process: import, the interpreter's lock, fork, Ctrl-C, exit, threads."""
import asyncio
import threading
import time
import unittest

import numpy as np

import corelane as ort
from python_support import child, relu_model

NPU = "RKNPU2ExecutionProvider"
X = np.array([[-1, 2, -3, 4]], np.float32)
PREAMBLE = """
    import sys, time, threading, os, signal
    import numpy as np
    import corelane as ort
    from python_support import relu_model
    X = np.ones((1, 4), np.float32)
    def session(ms, **options):
        return ort.InferenceSession(relu_model((1, 4)), providers=["RKNPU2ExecutionProvider"],
                                    provider_options=[{"device": f"null:rk3588?a={ms}ms", **options}])
"""


def session(device="virtual:rk3588", shape=(1, 4), **options):
    return ort.InferenceSession(relu_model(shape), providers=[NPU], provider_options=[{"device": device, **options}])


class Processes(unittest.TestCase):
    def clean(self, code, expected=""):
        result = child(PREAMBLE + code)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertIn(expected, result.stdout)

    def test_import_starts_no_thread_and_prints_nothing(self):
        result = child("""
            import os, numpy
            before = len(os.listdir("/proc/self/task"))
            import corelane
            print(len(os.listdir("/proc/self/task")) - before)
        """)
        self.assertEqual((result.stdout, result.stderr), ("0\n", ""))

    def test_run_gives_the_lock_away(self):
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
        self.assertGreaterEqual(ticks[0], 20)

    def test_forked_child_is_refused_at_once(self):
        self.clean("""
    s = session(1)
    s.run(None, {"x": X})
    pid = os.fork()
    if pid == 0:
        try:
            s.run(None, {"x": X})
        except RuntimeError as error:
            os._exit(0 if "fork" in str(error) else 3)
        os._exit(4)
    print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    s.run(None, {"x": X})
    """, "child 0")

    def test_ctrl_c_ends_a_run(self):
        self.clean("""
    s = session(20000)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        s.run(None, {"x": X})
    except KeyboardInterrupt:
        print("interrupted")
    sys.stdout.flush()
    os._exit(0)  # The device is busy for twenty seconds.
    """, "interrupted")

    def test_exit_with_waiting_tasks_calls_them_back(self):
        self.clean("""
    s = session(50, schedule=[0])
    for i in range(4):
        s.run_async(None, {"x": X}, lambda o, d, e: print("called", d, flush=True), i)
    """, "called 0\ncalled 1\ncalled 2\ncalled 3\n")

    def test_exit_with_slow_callbacks(self):
        self.clean("""
    s = session(1, submit_timeout_ms=60000)
    done = []
    def slow(o, d, e):
        time.sleep(0.02)
        print("called", d, flush=True)
    for i in range(10):
        s.run_async(None, {"x": X}, slow, i)
    """, "called 9\n")

    def test_exit_while_a_daemon_thread_runs(self):
        self.clean("""
    s = session(200)
    threading.Thread(target=lambda: s.run(None, {"x": X}), daemon=True).start()
    time.sleep(0.05)
    """)

    def test_callbacks_that_raise_harm_nobody(self):
        result = child(PREAMBLE + """
    seen = []
    sys.unraisablehook = lambda u: seen.append(u.exc_type)
    s = session(0)
    def bad(*_):
        raise KeyError("x")
    for i in range(100):
        s.run_async(None, {"x": X}, bad, None)
    s.close()
    print(len(seen), seen[0].__name__)
    """)
        self.assertEqual((result.stdout, result.stderr), ("100 KeyError\n", ""))


class Calls(unittest.TestCase):
    def test_session_may_be_dropped_and_used_in_a_callback(self):
        done = threading.Event()
        holder = [session()]

        def callback(outputs, data, error):
            data[0].run(None, {"x": X})
            data[0].submit(None, {"x": X}).result(30)
            data.clear()
            done.set()

        holder[0].run_async(None, {"x": X}, callback, holder)
        self.assertTrue(done.wait(30))

    def test_threads_get_their_own_results(self):
        shared = session(schedule=[0, 1, 2], threads_per_core=2, max_queue_size=64)
        wrong = []

        def work(tag):
            for i in range(100):
                x = np.full((1, 4), tag * 1000 + i, np.float32)
                if not np.array_equal(shared.run(None, {"x": x})[0], x):
                    wrong.append((tag, i))

        workers = [threading.Thread(target=work, args=(t,)) for t in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(wrong, [])

    def test_inputs_are_copied_at_submission(self):
        slow = session(max_queue_size=64)
        futures = []
        x = np.zeros((1, 4), np.float32)
        for i in range(20):
            x[:] = i
            futures.append(slow.submit(None, {"x": x}))
        self.assertEqual([f.result(30)[0][0, 0] for f in futures], list(range(20)))
        self.assertEqual([f.task_id for f in futures], list(range(20)))

    def test_waiting_futures_are_cancelled(self):
        slow = session("null:rk3588?a=200ms&name=cancel", schedule=[0], max_queue_size=4)
        first, waiting = slow.submit(None, {"x": X}), slow.submit(None, {"x": X})
        self.assertTrue(waiting.cancel())
        self.assertTrue(waiting.cancelled())
        self.assertEqual(len(first.result(30)), 1)
        self.assertFalse(first.cancel())

    def test_futures_carry_errors(self):
        failing = session("null:rk3588?a=1ms")
        failing.close()
        with self.assertRaises(RuntimeError):
            failing.submit(None, {"x": X})

    def test_asyncio(self):
        shared = session(schedule=[0, 1, 2])

        async def all_of_them():
            return await asyncio.gather(*(shared.run_awaitable(None, {"x": X + i}) for i in range(20)))

        results = asyncio.run(all_of_them())
        for i, (y,) in enumerate(results):
            np.testing.assert_array_equal(y, np.maximum(X + i, 0))

    def test_pipeline(self):
        shared = session()
        given = [shared.run_pipeline(np.full((1, 4), i, np.float32), depth=2) for i in range(5)]
        self.assertEqual(given[:2], [None, None])
        self.assertEqual([g[0][0, 0] for g in given[2:]], [0, 1, 2])
        self.assertEqual([g[0][0, 0] for g in shared.flush()], [3, 4])
        with self.assertRaises(RuntimeError):
            shared.run_pipeline(X, depth=0)
        with self.assertRaises(TypeError):
            shared.run_pipeline(X, depth=-1)

    def test_dispatch_batch(self):
        shared = session(schedule=[0, 1, 2])
        x = np.arange(-20, 28, dtype=np.float32).reshape(12, 4)
        options = ort.RunOptions()
        options.add_run_config_entry("ztu_modelrt_dispatch_batch", "1")
        for given in (options, {"ztu_modelrt_dispatch_batch": "true"}):
            np.testing.assert_array_equal(shared.run(None, {"x": x}, given)[0], np.maximum(x, 0))
        with self.assertRaises(RuntimeError):
            shared.run(None, {"x": x[:0]}, options)
        with self.assertRaises(RuntimeError):
            shared.run(None, {"x": x})

    def test_full_queue_times_out(self):
        slow = session("null:rk3588?a=300ms&name=full", schedule=[0], max_queue_size=1, submit_timeout_ms=20)
        with self.assertRaises(TimeoutError) as caught:
            for _ in range(3):
                slow.submit(None, {"x": X})
        self.assertIsInstance(caught.exception, RuntimeError)

    def test_terminate_fails_waiting_calls(self):
        slow = session("null:rk3588?a=300ms&name=terminate", schedule=[0], max_queue_size=8)
        options = ort.RunOptions()
        slow.submit(None, {"x": X})
        waiting = slow.submit(None, {"x": X}, options)
        options.terminate = True
        self.assertIsNotNone(waiting.exception(30))
        self.assertEqual(slow.statistics()["cancelled"], 1)

    def test_arrays_share_memory_through_dlpack(self):
        array = np.arange(4, dtype=np.float32)
        value = ort.OrtValue.from_dlpack(array)
        array[0] = 9
        self.assertEqual(value.numpy()[0], 9)
        self.assertEqual(np.from_dlpack(value)[0], 9)

    def test_outputs_outlive_the_session(self):
        made = session()
        (y,) = made.run(None, {"x": X})
        del made
        y += 1
        np.testing.assert_array_equal(y, [[1, 3, 1, 5]])

    def test_dimension_zero_may_be_open(self):
        made = ort.InferenceSession(relu_model(("N", 4)), providers=[NPU])
        for n in (1, 3):
            self.assertEqual(made.run(None, {"x": np.ones((n, 4), np.float32)})[0].shape, (n, 4))

    def test_nhwc(self):
        made = session(layout="nhwc", shape=(1, 3, 2, 2))
        self.assertEqual((made.get_inputs()[0].shape, made.get_inputs()[0].layout), ([1, 2, 2, 3], "NHWC"))
        x = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], x.transpose(0, 3, 1, 2))


if __name__ == "__main__":
    unittest.main()
