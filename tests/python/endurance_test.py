"""Many calls: nothing lost, nothing mixed up, no stall, no growth of memory."""
import gc
import random
import threading
import time
import unittest

import numpy as np

import corelane as ort
from python_support import X, Callbacks, session

PAGE = 4096


def resident():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


class Calls(unittest.TestCase):
    def test_fifty_thousand_submissions_at_queue_3(self):
        made, longest, called = session("null:rk3588?name=wake", schedule=[0, 1, 2]), 0.0, [0]

        def callback(outputs, tag, error):
            called[0] += not error

        for i in range(50_000):
            begin = time.perf_counter()
            made.run_async(None, {"x": X}, callback, None)
            longest = max(longest, time.perf_counter() - begin)
        made.close()
        figures = made.statistics()
        self.assertEqual((called[0], figures["accepted"], figures["completed"]), (50_000,) * 3)
        self.assertEqual((figures["rejected"], figures["failed"]), (0, 0))
        self.assertLess(longest, 1.0)  # A lost wake-up costs the whole timeout, ten seconds.

    def test_eight_threads_get_their_own_results(self):
        made = session("virtual:rk3588", schedule=[0, 1, 2], threads_per_core=2, max_queue_size=64)
        wrong, said = [], Callbacks()

        def work(tag):
            for i in range(1000):
                x = np.full((1, 4), tag * 1000 + i, np.float32)
                kind = i % 16
                if kind == 3:
                    y = made.submit(None, {"x": x}).result()[0]
                elif kind == 5:
                    made.run_async(None, {"x": x}, said, x[0, 0])
                    continue
                elif kind == 7:
                    batch = np.concatenate([x, x + 0.5])
                    y = made.run(None, {"x": batch}, {"ztu_modelrt_dispatch_batch": "1"})[0]
                    x = batch
                else:
                    y = made.run(None, {"x": x})[0]
                if not np.array_equal(x, y):
                    wrong.append((tag, i))

        workers = [threading.Thread(target=work, args=(t,)) for t in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        made.close()
        self.assertEqual(wrong, [])
        self.assertEqual([o[0][0, 0] for o, _, _ in said.entries], said.tags())
        self.assertEqual(len(said.entries), 8 * 63)
        self.assertEqual(made.statistics()["failed"], 0)

    def test_failures_are_those_of_their_own_calls(self):
        made = session("null:rk3588?fail=20&name=harm", schedule=[0, 1, 2], threads_per_core=2,
                       max_queue_size=64)
        failed, lost, lock = [0], [], threading.Lock()

        def work():
            mine = 0
            for i in range(500):
                try:
                    if len(made.run(None, {"x": X}) if i % 2 else made.submit(None, {"x": X}).result()) != 1:
                        lost.append(i)
                except RuntimeError:
                    mine += 1
            with lock:
                failed[0] += mine

        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        figures = made.statistics()
        self.assertEqual((lost, failed[0]), ([], 200))
        self.assertEqual((figures["completed"], figures["failed"]), (4000, 200))


class Mixture(unittest.TestCase):
    """Calls of all kinds from eight threads, one task in twenty fails, some are cancelled or terminated."""

    CALLS = 200

    def setUp(self):
        self.made = session("null:rk3588?a=200us&fail=20&name=mix", schedule=[0, 1, 2], threads_per_core=2,
                            max_queue_size=8)
        self.ends, self.lock = [], threading.Lock()

    def ended(self, call, error=None):
        with self.lock:
            self.ends.append((call, error))

    def one(self, kind, call):
        made, feed = self.made, {"x": X}
        if kind == 0:
            made.run_async(None, feed, lambda outputs, user_data, error: self.ended(user_data, error), call)
            return
        if kind == 1:
            made.run(None, {"x": X.repeat(3, 0)}, {"ztu_modelrt_dispatch_batch": "1"})
        elif kind == 2:
            future = made.submit(None, feed)
            if not future.cancel():
                future.result()
        elif kind == 3:
            options = ort.RunOptions()
            stop = threading.Timer(0.001, setattr, (options, "terminate", True))
            stop.start()
            try:
                made.run(None, feed, options)
            finally:
                stop.join()
        else:
            made.run(None, feed)
        self.ended(call)

    def work(self, thread):
        draw = random.Random(thread)
        for i in range(self.CALLS):
            try:
                self.one(draw.randrange(5), (thread, i))
            except RuntimeError as error:
                self.ended((thread, i), error)

    def test_each_call_ends_once(self):
        workers = [threading.Thread(target=self.work, args=(t,)) for t in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.made.close()
        self.assertEqual(sorted(call for call, _ in self.ends),
                         [(t, i) for t in range(8) for i in range(self.CALLS)])
        figures = self.made.statistics()
        self.assertEqual((figures["waiting"], figures["running"], figures["pending_callbacks"]), (0, 0, 0))
        self.assertEqual(figures["completed"], figures["accepted"])
        self.assertGreater(figures["failed"], figures["cancelled"])


class Memory(unittest.TestCase):
    """Growth after a warm-up of the same work. The allocator hands pages back late and in pieces, so the
    least growth of three attempts counts: a leak shows in each of them."""

    LIMIT = 1 << 20

    def level(self, work, warm_up):
        warm_up()
        grown = []
        for _ in range(3):
            before = resident()
            work()
            grown.append(resident() - before)
            if grown[-1] < self.LIMIT:
                return
        self.fail(f"memory grew by {grown} bytes")

    def test_twenty_thousand_runs(self):
        made = session("virtual:rk3588", schedule=[0, 1, 2])

        def runs(n):
            for _ in range(n):
                made.run(None, {"x": X})

        self.level(lambda: runs(20_000), lambda: runs(2_000))

    def test_callbacks_and_futures(self):
        made = session("null:rk3588?name=level", max_queue_size=64)

        def calls(n):
            for _ in range(n):
                made.run_async(None, {"x": X}, lambda *_: None, None)
                made.submit(None, {"x": X}).result()

        self.level(lambda: calls(3_000), lambda: calls(500))

    def test_futures_that_nobody_reads(self):
        made = session("null:rk3588?name=unread", max_queue_size=64)

        def calls(n):
            for _ in range(n):
                made.submit(None, {"x": X})
            made._native.wait_callbacks()  # Each is resolved, and gone.

        self.level(lambda: calls(10_000), lambda: calls(10_000))

    def test_callbacks_that_raise(self):
        import sys
        made, before = session("null:rk3588?name=raise"), sys.unraisablehook

        def bad(*_):
            raise KeyError("x")

        def calls(n):
            for _ in range(n):
                made.run_async(None, {"x": X}, bad, None)

        sys.unraisablehook = lambda _: None
        try:
            self.level(lambda: calls(1_000), lambda: calls(200))
        finally:
            sys.unraisablehook = before

    def test_two_hundred_sessions(self):
        from python_support import relu_model
        model = relu_model((1, 4))
        kept = session("virtual:rk3588", model=model)  # The device stays open.

        def sessions(n):
            for _ in range(n):
                made = session("virtual:rk3588", model=model, schedule=[0, 1])
                made.run(None, {"x": X})
                made.run_async(None, {"x": X}, lambda *_: None, None)
                made.close()

        self.level(lambda: sessions(200), lambda: sessions(50))
        kept.close()


if __name__ == "__main__":
    unittest.main()
