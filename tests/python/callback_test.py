"""Callbacks: their arguments, what they may do, what they must not break."""
import asyncio
import concurrent.futures
import gc
import sys
import threading
import unittest
import weakref

import numpy as np

import corelane as ort
from python_support import PATIENCE, X, Y, Callbacks, model_of, relu_model, session


class Given(unittest.TestCase):
    def one(self, made, names, feed):
        said = Callbacks()
        self.assertIsNone(made.run_async(names, feed, said, "data"))
        self.assertTrue(said.wait(1))
        return said.entries[0]

    def test_outputs_and_user_data(self):
        outputs, data, error = self.one(session(), None, {"x": X})
        np.testing.assert_array_equal(outputs, [Y])
        self.assertEqual((data, error), ("data", ""))

    def test_names_may_come_from_an_iterator(self):
        from onnx import helper
        model = model_of([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])],
                         [("x", (1, 4))], [("y", (1, 4)), ("z", (1, 4))])
        made, value = session(model=model), ort.OrtValue.ortvalue_from_numpy(X)
        for names in (iter(["z"]), (name for name in ["z"]), np.array(["z"])):
            outputs, _, error = self.one(made, names, {"x": X})
            self.assertEqual(error, "")
            np.testing.assert_array_equal(outputs, [-X])
        for names in (iter(["z", "y"]), np.array(["z", "y"])):
            outputs = made.run_with_ort_values(names, {"x": value})
            np.testing.assert_array_equal([output.numpy() for output in outputs], [-X, Y])

    def test_empty_list_of_names_means_all(self):
        outputs, _, error = self.one(session(), [], {"x": X})
        np.testing.assert_array_equal(outputs, [Y])
        self.assertEqual(error, "")

    def test_failure_is_a_text(self):
        outputs, data, error = self.one(session("null:rk3588?fail=1"), None, {"x": X})
        self.assertEqual((outputs, data), (None, "data"))
        self.assertIn("fail", error)

    def test_batch_is_one_callback(self):
        made = session(schedule=[0, 1, 2])
        said = Callbacks()
        made.run_async(None, {"x": X.repeat(5, 0)}, said, None, {"ztu_modelrt_dispatch_batch": "1"})
        made.close()
        self.assertEqual(len(said.entries), 1)
        np.testing.assert_array_equal(said.entries[0][0][0], Y.repeat(5, 0))

    def test_callbacks_that_are_not_functions_are_refused(self):
        with self.assertRaises(TypeError):
            session().run_async(None, {"x": X}, None, None)

    def test_inputs_are_copied_at_submission(self):
        made = session("virtual:rk3588", max_queue_size=64)
        said, x = Callbacks(), np.zeros((1, 4), np.float32)
        for i in range(20):
            x[:] = i
            made.run_async(None, {"x": x}, said, i)
        x[:] = -1
        made.close()
        self.assertEqual([(o[0][0, 0], d) for o, d, _ in said.entries], [(i, i) for i in range(20)])


class Inside(unittest.TestCase):
    """What a callback may do; each of these hangs where callbacks wait for their own thread."""

    def inside(self, action, **options):
        """Calls action(session) in a callback; its result."""
        options = {"device": "null:rk3588?a=1ms", "max_queue_size": 1, **options}
        made, results, done = session(**options), [], threading.Event()

        def callback(*_):
            try:
                results.append(action(made))
            except BaseException as problem:  # noqa: BLE001 - shown by the test
                results.append(problem)
            done.set()

        made.run_async(None, {"x": X}, callback, None)
        self.assertTrue(done.wait(PATIENCE))
        made.close()
        if isinstance(results[0], BaseException):
            raise results[0]
        return results[0]

    def test_run(self):
        self.assertEqual(len(self.inside(lambda s: [s.run(None, {"x": X}) for _ in range(20)])), 20)

    def test_run_async_more_often_than_callbacks_may_be_pending(self):
        said = Callbacks()
        self.inside(lambda s: [s.run_async(None, {"x": X}, said, i) for i in range(20)],
                    max_pending_callbacks=1)
        self.assertEqual(said.tags(), list(range(20)))

    def test_futures(self):
        self.assertEqual(len(self.inside(lambda s: s.submit(None, {"x": X}).result(PATIENCE))), 1)

    def test_waits_of_the_standard_library(self):
        def action(made):
            futures = [made.submit(None, {"x": X}) for _ in range(2)]
            done, rest = concurrent.futures.wait(futures, PATIENCE)
            again = made.submit(None, {"x": X})
            return len(done), len(rest), list(concurrent.futures.as_completed([again], PATIENCE)) == [again]

        self.assertEqual(self.inside(action, max_queue_size=4), (2, 0, True))

    def test_asyncio(self):
        self.assertEqual(len(self.inside(lambda s: asyncio.run(s.run_awaitable(None, {"x": X})))), 1)

    def test_a_binding_that_another_thread_runs(self):
        made, results = session("null:rk3588", max_pending_callbacks=1), []
        entered, started, left = threading.Event(), threading.Event(), threading.Event()
        binding = made.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")
        running = threading.Thread(target=lambda: results.append(made.run_with_iobinding(binding)))

        def callback(*_):
            entered.set()
            started.wait(PATIENCE)
            running.join(PATIENCE)  # It is not held up by this callback, which is pending.
            made.run_with_iobinding(binding)
            results.append(len(binding.copy_outputs_to_cpu()))
            left.set()

        made.run_async(None, {"x": X}, callback, None)
        self.assertTrue(entered.wait(PATIENCE))
        running.start()
        started.set()
        self.assertTrue(left.wait(PATIENCE))
        made.close()
        self.assertEqual(results, [None, 1])

    def test_batch(self):
        options = {"ztu_modelrt_dispatch_batch": "1"}
        (y,) = self.inside(lambda s: s.run(None, {"x": X.repeat(6, 0)}, options), device="virtual:rk3588")
        self.assertEqual(y.shape, (6, 4))

    def test_pipeline(self):
        self.assertEqual(self.inside(lambda s: [s.run_pipeline(X, depth=1) is None for _ in range(3)]),
                         [True, False, False])

    def test_another_session(self):
        self.assertEqual(len(self.inside(lambda s: session("null:rk3588?a=1ms").run(None, {"x": X}))), 1)

    def test_close(self):
        self.assertTrue(self.inside(lambda s: (s.close(), s.closed)[1]))

    def test_statistics(self):
        self.assertEqual(self.inside(lambda s: s.statistics()["pending_callbacks"]), 1)

    def test_last_reference_may_go(self):
        done = threading.Event()
        holder = [session("null:rk3588?a=1ms")]
        gone = threading.Event()
        weakref.finalize(holder[0], gone.set)

        def callback(outputs, data, error):
            data[0].run(None, {"x": X})
            data[0].submit(None, {"x": X}).result(PATIENCE)
            data.clear()
            gc.collect()
            done.set()

        holder[0].run_async(None, {"x": X}, callback, holder)
        self.assertTrue(done.wait(PATIENCE))
        self.assertTrue(gone.wait(PATIENCE))

    def test_last_reference_may_go_while_others_wait(self):
        said, done = Callbacks(), threading.Event()
        holder = [session("null:rk3588?a=5ms", schedule=[0], max_queue_size=16)]

        def callback(outputs, data, error):
            holder.clear()
            done.set()

        holder[0].run_async(None, {"x": X}, callback, None)
        for i in range(5):
            holder[0].run_async(None, {"x": X}, said, i)
        self.assertTrue(done.wait(PATIENCE) and said.wait(5))
        self.assertEqual(said.tags(), list(range(5)))


class Raising(unittest.TestCase):
    def test_a_thousand_exceptions_do_no_harm(self):
        made, seen = session("null:rk3588", max_queue_size=64), []

        def bad(*_):
            raise KeyError("x")

        before = sys.unraisablehook
        sys.unraisablehook = lambda u: seen.append(u.exc_type)
        try:
            for i in range(1000):
                made.run_async(None, {"x": X}, bad, None)
            self.assertEqual(len(made.run(None, {"x": X})), 1)
            made.close()
        finally:
            sys.unraisablehook = before
        self.assertEqual(seen, [KeyError] * 1000)
        self.assertEqual(made.statistics()["callbacks"], 1000)

    def test_onnxruntimes_rules_are_the_same(self):
        made, seen = ort.InferenceSession(relu_model()), []
        before = sys.unraisablehook
        sys.unraisablehook = lambda u: seen.append(u.exc_type)
        try:
            made.run_async(None, {"x": X}, lambda *_: 1 / 0, None)
            made.run_async(None, {"x": X[0]}, lambda *_: 1 / 0, None)  # Refused, by callback.
            made.close()
            for thread in threading.enumerate():
                if thread.name == "corelane-refused":
                    thread.join()
        finally:
            sys.unraisablehook = before
        self.assertEqual(seen, [ZeroDivisionError] * 2)


class End(unittest.TestCase):
    def test_close_delivers_what_was_accepted(self):
        made, said = session("null:rk3588?a=20ms", schedule=[0], max_queue_size=16), Callbacks()
        for i in range(4):
            made.run_async(None, {"x": X}, said, i)
        made.close()
        self.assertEqual(said.tags(), [0, 1, 2, 3])
        with self.assertRaises(RuntimeError) as caught:
            made.run(None, {"x": X})
        self.assertIn("closed", str(caught.exception))
        made.close()

    def test_dropping_the_session_delivers_too(self):
        made, said = session("null:rk3588?a=20ms", schedule=[0], max_queue_size=16), Callbacks()
        for i in range(4):
            made.run_async(None, {"x": X}, said, i)
        del made
        gc.collect()
        self.assertEqual(said.tags(), [0, 1, 2, 3])

    def test_close_with_a_limit_cancels_what_waits(self):
        made, said = session("null:rk3588?a=300ms&name=limit", schedule=[0], max_queue_size=16), Callbacks()
        for i in range(4):
            made.run_async(None, {"x": X}, said, i)
        with self.assertRaises(ort.Timeout):
            made.close(0.01)
        made.close()  # Waits for the one that runs.
        self.assertEqual(said.tags(), [0, 1, 2, 3])
        self.assertEqual([bool(error) for _, _, error in said.entries], [False, True, True, True])
        self.assertEqual(made.statistics()["cancelled"], 3)

    def test_close_with_a_limit_closes_what_overrides_initializers_too(self):
        from onnx import helper
        model = model_of([helper.make_node("Mul", ["x", "w"], ["y"])], [("x", (1, 4)), ("w", (4,))], [("y", (1, 4))],
                         initializer=[helper.make_tensor("w", 1, (4,), [1, 2, 3, 4])])
        made, said = session("null:rk3588?a=300ms&name=both", model=model), Callbacks()
        for i, feed in enumerate(({"x": X}, {"x": X, "w": X[0]})):
            made.run_async(None, feed, said, i)
        with self.assertRaises(ort.Timeout):
            made.close(0)
        self.assertEqual([native.closed for native in made._overriding.end()], [True])
        made.close()
        self.assertEqual(sorted(said.tags()), [0, 1])

    def test_close_takes_seconds(self):
        made = session()
        for timeout in ("a", True, float("nan"), [1]):
            with self.assertRaises(TypeError) as caught:
                made.close(timeout)
            self.assertIn("seconds", str(caught.exception))
        made.close(np.float32(5))

    def test_with_closes(self):
        with session("null:rk3588?a=5ms") as made:
            said = Callbacks()
            made.run_async(None, {"x": X}, said, 0)
        self.assertEqual((said.tags(), made.closed), ([0], True))


if __name__ == "__main__":
    unittest.main()
