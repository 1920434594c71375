"""Futures and asyncio, cancellation, termination, pipelines."""
import asyncio
import concurrent.futures
import gc
import threading
import unittest
import weakref

import numpy as np

import corelane as ort
from corelane._ort.futures import Submission
from python_support import PATIENCE, X, Y, Callbacks, relu_model, session

SPLIT = {"ztu_modelrt_dispatch_batch": "1"}


def batch_options():
    options = ort.RunOptions()
    options.add_run_config_entry("ztu_modelrt_dispatch_batch", "1")
    return options


class Futures(unittest.TestCase):
    def test_are_those_of_the_standard_library(self):
        made = session(schedule=[0, 1, 2], max_queue_size=64)
        futures = [made.submit(None, {"x": X + i}) for i in range(20)]
        done, rest = concurrent.futures.wait(futures, PATIENCE)
        self.assertEqual((len(done), rest), (20, set()))
        for i, future in enumerate(futures):
            self.assertIsInstance(future, concurrent.futures.Future)
            self.assertEqual(future.task_id, i)
            np.testing.assert_array_equal(future.result()[0], np.maximum(X + i, 0))

    def test_as_completed(self):
        made = session("null:rk3588?a=5ms&core0=60&name=first", schedule=[0, 1], max_queue_size=8)
        futures = [made.submit(None, {"x": X}) for _ in range(4)]
        order = [f.task_id for f in concurrent.futures.as_completed(futures, PATIENCE)]
        self.assertEqual(order, [1, 3, 0, 2])

    def test_wait_for_the_first_exception(self):
        made = session("null:rk3588?a=5ms&fail=2&name=exception", schedule=[0], max_queue_size=8)
        futures = [made.submit(None, {"x": X}) for _ in range(3)]
        done, _ = concurrent.futures.wait(futures, PATIENCE, concurrent.futures.FIRST_EXCEPTION)
        self.assertIsInstance(futures[1].exception(PATIENCE), RuntimeError)
        self.assertIn(futures[1], done)

    def test_done_callbacks(self):
        made, seen, called = session(), [], threading.Event()
        future = made.submit(None, {"x": X})
        future.add_done_callback(lambda f: (seen.append(f), called.set()))
        self.assertTrue(called.wait(PATIENCE))
        self.assertEqual(seen, [future])

    def test_result_waits_no_longer_than_it_may(self):
        made = session("null:rk3588?a=500ms&name=patience")
        future = made.submit(None, {"x": X})
        with self.assertRaises(concurrent.futures.TimeoutError):
            future.result(0.01)
        self.assertEqual(len(future.result(PATIENCE)), 1)

    def test_waiting_futures_are_cancelled(self):
        made = session("null:rk3588?a=300ms&name=cancel", schedule=[0], max_queue_size=4)
        first, waiting, last = (made.submit(None, {"x": X}) for _ in range(3))
        self.assertEqual((first.running(), waiting.running()), (True, False))
        self.assertTrue(waiting.cancel())
        self.assertTrue(waiting.cancelled())
        with self.assertRaises(concurrent.futures.CancelledError):
            waiting.result(PATIENCE)
        self.assertFalse(first.cancel())  # It runs.
        self.assertEqual((len(first.result(PATIENCE)), len(last.result(PATIENCE))), (1, 1))
        self.assertFalse(first.cancel() or first.running())
        self.assertEqual(made.statistics()["cancelled"], 1)

    def test_wait_and_as_completed_hear_of_cancelled_ones(self):
        made = session("null:rk3588?a=300ms&name=hear", schedule=[0], max_queue_size=4)
        first, waiting, last = (made.submit(None, {"x": X}) for _ in range(3))
        seen = []
        waiting.add_done_callback(lambda f: seen.append(concurrent.futures.wait([f], PATIENCE).done))
        self.assertTrue(waiting.cancel() and waiting.cancel())
        self.assertEqual(seen, [{waiting}])  # Within the callback, too.
        done, rest = concurrent.futures.wait([waiting], PATIENCE)
        self.assertEqual((done, rest), ({waiting}, set()))
        self.assertEqual({f for f in concurrent.futures.as_completed([first, waiting, last], PATIENCE)},
                         {first, waiting, last})

    def test_cancel_does_not_wait_for_a_done_callback(self):
        made = session("null:rk3588?a=100ms&name=calling")
        future, entered, go_on, asked = made.submit(None, {"x": X}), threading.Event(), threading.Event(), []
        future.add_done_callback(lambda _: (entered.set(), go_on.wait(PATIENCE)))
        self.assertTrue(entered.wait(PATIENCE))
        asking = threading.Thread(target=lambda: asked.append(future.cancel()))
        asking.start()
        asking.join(PATIENCE / 2)
        self.assertEqual(asked, [False])  # The callback goes on still.
        go_on.set()

    def test_whose_result_was_read_are_free_though_their_thread_is_busy(self):
        made = session("null:rk3588?a=1ms&core0=100&name=read", schedule=[0] + [1] * 21)
        first, entered, go_on = made.submit(None, {"x": X}), threading.Event(), threading.Event()
        first.add_done_callback(lambda _: (entered.set(), go_on.wait(PATIENCE)))
        self.assertTrue(entered.wait(PATIENCE))
        read, called = [], []
        for i in range(20):
            future = made.submit(None, {"x": X})
            future.add_done_callback(lambda _, i=i: called.append(i))
            future.result(PATIENCE)
            read.append(weakref.ref(future))
        del future
        gc.collect()
        self.assertEqual([ref() for ref in read], [None] * 20)
        unread, told = made.submit(None, {"x": X}), threading.Event()
        unread.add_done_callback(lambda _: told.set())
        self.assertFalse(told.is_set())
        go_on.set()
        self.assertTrue(told.wait(PATIENCE))
        self.assertEqual(called, list(range(20)))

    def test_errors_of_the_call_are_raised_at_once(self):
        made = session()
        with self.assertRaises(RuntimeError):
            made.submit(None, {"x": X[:, :3]})
        made.close()
        with self.assertRaises(RuntimeError):
            made.submit(None, {"x": X})

    def test_outlive_the_session(self):
        future = session("null:rk3588?a=20ms").submit(None, {"x": X})
        self.assertEqual(len(future.result(PATIENCE)), 1)


class Termination(unittest.TestCase):
    def test_fails_queued_calls_at_once(self):
        made = session("null:rk3588?a=1s&name=terminate", schedule=[0], max_queue_size=8)
        running, options = made.submit(None, {"x": X}), ort.RunOptions()
        waiting, failed = made.submit(None, {"x": X}, options), []

        def run():
            try:
                made.run(None, {"x": X}, options)
            except RuntimeError as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while made.statistics()["waiting"] < 2 and not running.done():
            threading.Event().wait(0.001)
        options.terminate = True
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())
        self.assertIsInstance(waiting.exception(PATIENCE), RuntimeError)
        self.assertEqual((len(failed), made.statistics()["cancelled"]), (1, 2))
        self.assertFalse(running.done())
        with self.assertRaises(ort.Timeout):
            made.run(None, {"x": X}, {"corelane.timeout_ms": "1"})
        with self.assertRaises(RuntimeError) as caught:
            made.run(None, {"x": X}, options)
        self.assertIn("RunOptions.terminate", str(caught.exception))
        options.terminate = False
        again = made.submit(None, {"x": X}, options)
        self.assertTrue(again.cancel())

    def test_reads_as_onnxruntimes(self):
        made, options = ort.InferenceSession(relu_model()), ort.RunOptions()
        options.terminate = True
        with self.assertRaises(ort.capi.onnxruntime_pybind11_state.Fail) as caught:
            made.run(None, {"x": X}, options)
        self.assertIn("terminate flag", str(caught.exception))


    def test_reads_as_onnxruntimes_for_calls_that_wait(self):
        settings, options, said = ort.SessionOptions(), ort.RunOptions(), Callbacks()
        for key, value in (("device", "null:rk3588?a=300ms&name=waits"), ("schedule", "0")):
            settings.add_session_config_entry(f"corelane.{key}", value)
        made = ort.InferenceSession(relu_model((1, 4)), settings)
        made.submit(None, {"x": X})
        waiting = made.submit(None, {"x": X}, options)
        batch = made.submit(None, {"x": X.repeat(2, 0)}, {**SPLIT, "corelane.priority": "1"})
        made.run_async(None, {"x": X}, said, None, options)
        options.terminate = True
        self.assertTrue(said.wait(1))
        texts = [str(waiting.exception(PATIENCE)), said.entries[0][2]]
        for text in texts:
            self.assertIn("Exiting due to terminate flag being set to true.", text)
        self.assertTrue(batch.cancel())
        made.close()


class Asyncio(unittest.TestCase):
    def test_gather(self):
        made = session(schedule=[0, 1, 2])

        async def all_of_them():
            return await asyncio.gather(*(made.run_awaitable(None, {"x": X + i}) for i in range(100)))

        for i, (y,) in enumerate(asyncio.run(all_of_them())):
            np.testing.assert_array_equal(y, np.maximum(X + i, 0))
        self.assertEqual(made.statistics()["failed"], 0)

    def test_loop_goes_on_while_the_queue_is_full(self):
        made, ticks = session("null:rk3588?a=50ms&name=loop", schedule=[0], max_queue_size=1), [0]

        async def tick():
            while True:
                ticks[0] += 1
                await asyncio.sleep(0.001)

        async def both():
            ticking = asyncio.ensure_future(tick())
            await asyncio.gather(*(made.run_awaitable(None, {"x": X}) for _ in range(6)))
            ticking.cancel()

        asyncio.run(both())
        self.assertGreater(ticks[0], 5)

    def test_cancelled_awaits_take_their_waiting_task_along(self):
        made = session("null:rk3588?a=300ms&name=awaits", schedule=[0], max_queue_size=8)

        async def cancel_one():
            first = asyncio.ensure_future(made.run_awaitable(None, {"x": X}))
            second = asyncio.ensure_future(made.run_awaitable(None, {"x": X}))
            await asyncio.sleep(0)
            while made.statistics()["waiting"] < 1 and not first.done():
                await asyncio.sleep(0.001)
            second.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await second
            return await first

        self.assertEqual(len(asyncio.run(cancel_one())), 1)
        self.assertEqual(made.statistics()["cancelled"], 1)

    def test_cancelled_awaits_do_not_enter_a_full_queue_later(self):
        made = session("null:rk3588?a=200ms&name=entering", schedule=[0], max_queue_size=1)

        async def cancel_one():
            for _ in range(2):
                made.submit(None, {"x": X})
            entering = asyncio.ensure_future(made.run_awaitable(None, {"x": X}))
            await asyncio.sleep(0.01)
            entering.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await entering

        asyncio.run(cancel_one())  # Waits for the thread, too.
        made.close()
        self.assertEqual(made.statistics()["accepted"], 2)

    def test_nor_where_they_have_run_options(self):
        made, options = session("null:rk3588?a=200ms&name=options", schedule=[0], max_queue_size=1), ort.RunOptions()

        async def cancel_one(given):
            entering = asyncio.ensure_future(made.run_awaitable(None, {"x": X}, given))
            await asyncio.sleep(0.01)
            entering.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await entering

        for _ in range(2):
            made.submit(None, {"x": X})
        for given in ({"corelane.priority": "1"}, options):
            asyncio.run(cancel_one(given))  # Waits for the thread, too.
        self.assertEqual(made.statistics()["accepted"], 2)
        self.assertFalse(options.terminate)  # It is of other calls, too.
        self.assertEqual(len(made.run(None, {"x": X}, options)), 1)

    def test_cancelled_awaits_of_a_batch_submit_no_more_of_it(self):
        for given in (SPLIT, batch_options()):
            made = session("null:rk3588?a=50ms&name=batch", schedule=[0], max_queue_size=1)

            async def cancel_one(made, given):
                entering = asyncio.ensure_future(made.run_awaitable(None, {"x": X.repeat(20, 0)}, given))
                while made.statistics()["accepted"] < 3:
                    await asyncio.sleep(0.001)
                entering.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await entering

            asyncio.run(cancel_one(made, given))
            made.close()
            self.assertLess(made.statistics()["accepted"], 20)

    def test_what_was_submitted_when_its_await_was_cancelled_is_cancelled(self):
        class Native:
            cancelled = 0

            def cancel(self):
                self.cancelled += 1

        for early in (True, False):
            native, terms = Native(), ort._native.Terms().of_one_call()
            submission = Submission(lambda native=native: native, terms)
            for step in (submission._abandon, submission._make) if early else (submission._make, submission._abandon):
                step()
            self.assertEqual(native.cancelled, 1)

    def test_wait_for_gives_up(self):
        made = session("null:rk3588?a=300ms&name=waitfor", schedule=[0])

        async def impatient():
            await asyncio.wait_for(made.run_awaitable(None, {"x": X}), 0.01)

        with self.assertRaises(asyncio.TimeoutError):
            asyncio.run(impatient())

    def test_errors_come_out_of_await(self):
        failing = session("null:rk3588?fail=1&name=await")

        async def run(feed):
            return await failing.run_awaitable(None, feed)

        for feed in ({"x": X}, {"x": X[:, :3]}, {}):
            with self.assertRaises(RuntimeError):
                asyncio.run(run(feed))

    def test_batch(self):
        made = session(schedule=[0, 1])

        async def run():
            return await made.run_awaitable(None, {"x": X.repeat(3, 0)}, {"ztu_modelrt_dispatch_batch": "1"})

        np.testing.assert_array_equal(asyncio.run(run())[0], Y.repeat(3, 0))

    def test_run_options_apply(self):
        made = session("null:rk3588?a=300ms&name=terms", schedule=[0])

        async def run():
            return await made.run_awaitable(None, {"x": X}, {"corelane.timeout_ms": "5"})

        with self.assertRaises(TimeoutError):
            asyncio.run(run())


class Pipeline(unittest.TestCase):
    def value(self, outputs):
        return None if outputs is None else outputs[0][0, 0]

    def test_returns_the_outputs_of_depth_calls_ago(self):
        made = session()
        given = [self.value(made.run_pipeline({"x": np.full((1, 4), i, np.float32)})) for i in range(8)]
        self.assertEqual(given, [None, None, None, 0, 1, 2, 3, 4])
        self.assertEqual([self.value(o) for o in made.flush()], [5, 6, 7])
        self.assertEqual(made.flush(), [])

    def test_reset_and_another_depth_drop_what_is_pending(self):
        made = session()
        feed = [np.full((1, 4), i, np.float32) for i in range(9)]
        for i in range(3):
            made.run_pipeline(feed[i])
        self.assertIsNone(made.run_pipeline(feed[3], reset=True))
        self.assertIsNone(made.run_pipeline(feed[4], depth=1))
        self.assertEqual(self.value(made.run_pipeline(feed[5], depth=1)), 4)
        made.drain()
        self.assertIsNone(made.run_pipeline(feed[6], depth=1))
        made.close()
        self.assertEqual(made.statistics()["completed"], 7)  # Dropped tasks run too.

    def test_depth_is_a_positive_integer(self):
        made = session()
        with self.assertRaises(RuntimeError):
            made.run_pipeline(X, depth=0)
        for depth in (-1, 1.5, "3", True, None):
            with self.assertRaises(TypeError):
                made.run_pipeline(X, depth=depth)
        self.assertEqual(made.statistics()["accepted"], 0)

    def test_failure_is_that_of_the_call_that_returns_the_task(self):
        made = session("null:rk3588?fail=2&name=pipe", schedule=[0], max_queue_size=8)
        self.assertIsNone(made.run_pipeline(X, depth=1))
        self.assertEqual(len(made.run_pipeline(X, depth=1)), 1)
        with self.assertRaises(RuntimeError):
            made.run_pipeline(X, depth=1)
        made.run_pipeline(X, depth=1)
        with self.assertRaises(RuntimeError):
            made.flush()
        self.assertEqual(made.flush(), [])

    def failed_flush(self, name):
        """A session whose pipeline held five calls, of which the second and the fourth have failed, after a flush()."""
        made = session(f"null:rk3588?fail=2&name={name}", schedule=[0], max_queue_size=8)
        for i in range(5):
            made.run_pipeline({"x": np.full((1, 4), i, np.float32)}, depth=5)
        with self.assertRaises(RuntimeError):
            made.flush()
        return made

    def test_failure_in_a_flush_takes_no_other_result(self):
        made = self.failed_flush("flushed")
        with self.assertRaises(RuntimeError):
            made.flush()
        self.assertEqual([self.value(o) for o in made.flush()], [0, 2, 4])
        self.assertEqual(made.flush(), [])

    def test_drain_and_the_next_call_drop_what_a_failed_flush_left(self):
        made = self.failed_flush("drained")
        with self.assertRaises(RuntimeError):
            made.drain()
        self.assertEqual(made.flush(), [])
        made = self.failed_flush("next")
        with self.assertRaises(RuntimeError):  # The sixth call.
            made.run_pipeline(X, depth=5)
            made.flush()
        self.assertEqual(made.flush(), [])


if __name__ == "__main__":
    unittest.main()
