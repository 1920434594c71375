"""Where tasks run and when: mapping, contexts, order, pace and pressure."""
import time
import unittest

import corelane as ort
from python_support import NPU, PATIENCE, X, Callbacks, session


class Mapping(unittest.TestCase):
    def test_task_t_runs_on_schedule_t_modulo_its_length(self):
        for k, schedule in enumerate(([0, 1, 2], [0, 0, 1], [2, 0], [1])):
            with self.subTest(schedule=schedule):
                made = session(f"null:rk3588?name=map{k}", schedule=schedule, max_queue_size=16)
                made.set_trace(300)
                for _ in range(300):
                    made.run_async(None, {"x": X}, lambda *_: None, None)
                made.close()
                self.assertEqual({r["task_id"]: r["core_bits"] for r in made.read_trace()},
                                 {t: 1 << schedule[t % len(schedule)] for t in range(300)})
                figures = made.statistics()
                by_core = dict.fromkeys(schedule, 0)
                for core, tasks in zip(figures["core_of_context"], figures["tasks_by_context"]):
                    by_core[core] += tasks
                self.assertEqual(by_core, {c: 300 * schedule.count(c) // len(schedule) for c in by_core})

    def test_all_kinds_of_calls_draw_from_one_counter(self):
        made = session("null:rk3588?name=kinds", schedule=[0, 1, 2], max_queue_size=16)
        made.set_trace(64)
        made.run(None, {"x": X})
        self.assertEqual(made.submit(None, {"x": X}).task_id, 1)
        made.run_async(None, {"x": X}, lambda *_: None, None)
        made.run_pipeline(X)
        made.run(None, {"x": X.repeat(4, 0)}, {"ztu_modelrt_dispatch_batch": "1"})
        with self.assertRaises(RuntimeError):
            made.run(None, {"x": X[:, :3]})  # Refused calls draw none.
        self.assertEqual(made.try_run_async(None, {"x": X}, lambda *_: None), 8)
        made.close()
        self.assertEqual(sorted((r["task_id"], r["core_bits"]) for r in made.read_trace()),
                         [(t, 1 << t % 3) for t in range(9)])

    def test_contexts_are_threads_times_unique_cores(self):
        for options, cores in (({"schedule": [0]}, [0]),
                               ({"schedule": [2, 0]}, [0, 2]),
                               ({"schedule": [0, 0, 1]}, [0, 1]),
                               ({"schedule": [2, 0], "threads_per_core": 2}, [0, 2, 0, 2]),
                               ({"schedule": [0, 1, 2], "threads_per_core": 3}, [0, 1, 2] * 3),
                               ({}, [-1]),
                               ({"threads_per_core": 4}, [-1] * 4),
                               ({"tp_mode": "0,1,2", "threads_per_core": 2}, [-1] * 2)):
            with self.subTest(**options):
                figures = session("null:rk3588", **options).statistics()
                self.assertEqual(figures["core_of_context"], cores)
                self.assertEqual((figures["contexts"], figures["duplicated"]), (len(cores), len(cores) - 1))

    def test_contexts_may_load_the_model_each(self):
        figures = session("null:rk3588", schedule=[0, 1], disable_dup_context=True).statistics()
        self.assertEqual((figures["contexts"], figures["duplicated"]), (2, 0))

    def test_tp_mode_is_a_set_of_cores(self):
        for mode, bits in (("1", 2), ("0,1", 3), ("0,1,2", 7)):
            made = session(f"null:rk3588?name=tp{mode.replace(',', '')}", tp_mode=mode)
            made.set_trace(8)
            made.run(None, {"x": X})
            self.assertEqual([r["core_bits"] for r in made.read_trace()], [bits])

    def test_least_loaded_takes_the_idle_core(self):
        made = session("null:rk3588?a=1ms&core0=500&name=least", schedule=[0, 1], placement="least_loaded",
                       sequential_callbacks=False, max_queue_size=1)
        said = Callbacks()
        for i in range(8):  # With the formula the third submission would wait for core 0.
            made.run_async(None, {"x": X}, said, i)
        self.assertTrue(said.wait(7))
        self.assertEqual(said.tags()[:7], list(range(1, 8)))

    def test_cores_that_are_not_there_raise_and_nothing_else_happens(self):
        for device, schedule, core in (("null:rk3588", [0, 5], "5"), ("null:rk3566", [0, 1], "1")):
            with self.subTest(device=device):
                with self.assertRaises(RuntimeError) as caught:
                    session(device, schedule=schedule)
                self.assertIn(f"core {core}", str(caught.exception))
                self.assertEqual(len(session(device, schedule=[0]).run(None, {"x": X})), 1)

    def test_single_core_takes_auto_and_core_0(self):
        for mode in ("auto", "0"):
            self.assertEqual(len(session("null:rk3566", tp_mode=mode).run(None, {"x": X})), 1)
        for mode in ("all", "1", "0,1", "0,1,2"):
            with self.assertRaises(RuntimeError, msg=mode):
                session("null:rk3566", tp_mode=mode)


class Order(unittest.TestCase):
    def order(self, name, sequential):
        made = session(f"null:rk3588?a=5ms&core0=50&name={name}", schedule=[0, 1, 2],
                       sequential_callbacks=sequential, max_queue_size=16)
        said = Callbacks()
        for i in range(6):
            made.run_async(None, {"x": X}, said, i)
        made.close()
        return said.tags()

    def test_callbacks_come_in_order_of_submission(self):
        self.assertEqual(self.order("ordered", True), list(range(6)))

    def test_callbacks_may_come_as_tasks_are_done(self):
        order = self.order("unordered", False)
        self.assertEqual(sorted(order), list(range(6)))
        for fast in (1, 2, 4, 5):
            self.assertLess(order.index(fast), order.index(0))

    def test_failed_task_keeps_its_place(self):
        made = session("null:rk3588?a=1ms&fail=3&name=place", schedule=[0, 1, 2], max_queue_size=16)
        said = Callbacks()
        for i in range(9):
            made.run_async(None, {"x": X}, said, i)
        made.close()
        self.assertEqual(said.tags(), list(range(9)))
        failed = [(outputs, bool(error)) for outputs, _, error in said.entries if error]
        self.assertEqual(failed, [(None, True)] * 3)
        self.assertEqual(made.statistics()["failed"], 3)

    def test_slow_core_does_not_delay_the_others(self):
        made = session("null:rk3588?a=1ms&core0=500&name=head", schedule=[0, 1], sequential_callbacks=False,
                       max_queue_size=16)
        said = Callbacks()
        for i in range(10):
            made.run_async(None, {"x": X}, said, i)
        self.assertTrue(said.wait(5))
        self.assertEqual(said.tags()[:5], [1, 3, 5, 7, 9])
        with self.assertRaises(TimeoutError):
            made.close(0)  # The others are still waiting for core 0.


class Pace(unittest.TestCase):
    def test_average_is_that_of_the_seed(self):
        made = session("null:rk3588?a=2ms&core1=2&name=average", schedule=[0, 1, 1], enable_pacing=True)
        made.set_trace(64)
        for _ in range(20):
            made.run(None, {"x": X})
        average = 0.0
        for record in sorted(made.read_trace(), key=lambda r: r["task_id"]):
            sample = (record["ended_ns"] - record["started_ns"]) * 1e-9
            average = sample if average == 0 else 0.95 * average + 0.05 * sample
        self.assertGreater(average, 0.002)
        self.assertAlmostEqual(made.statistics()["average_device_time"] / average, 1, delta=0.02)

    def test_submissions_are_spread_over_the_cores(self):
        for k, (schedule, cores) in enumerate((([0], 1), ([0, 1, 2], 3), ([0, 0, 1], 2))):
            with self.subTest(schedule=schedule):
                made = session(f"null:rk3588?a=6ms&name=pace{k}", schedule=schedule, enable_pacing=True,
                               max_queue_size=64)
                made.run(None, {"x": X})  # Nothing is paced before the first sample.
                said = Callbacks()
                begin, used = time.monotonic(), time.process_time()
                for i in range(30):
                    made.run_async(None, {"x": X}, said, i)
                took, used = time.monotonic() - begin, time.process_time() - used
                made.close()
                figures = made.statistics()
                # Never faster than the pace; how much slower is for benchmarks.
                self.assertGreaterEqual(took, 29 * 0.006 / cores * 0.9)
                self.assertLess(used, took / 2)  # It sleeps. 5 % is for benchmarks.
                self.assertGreaterEqual(figures["paced"], 25)
                self.assertEqual((len(said.entries), figures["completed"], figures["rejected"]), (30, 31, 0))

    def test_pace_counts_against_the_timeout(self):
        made = session("null:rk3588?a=500ms&name=strict", schedule=[0, 1], enable_pacing=True,
                       submit_timeout_ms=20)
        made.run(None, {"x": X})
        with self.assertRaises(TimeoutError) as caught:
            for _ in range(10):
                made.submit(None, {"x": X})
        self.assertIn("pace", str(caught.exception))

    def test_failed_tasks_do_not_count_in_the_average(self):
        made = session("null:rk3588?a=5ms&fail=1&name=failed", enable_pacing=True)
        for _ in range(3):
            with self.assertRaises(RuntimeError):
                made.run(None, {"x": X})
        self.assertEqual(made.statistics()["average_device_time"], 0)

    def test_try_run_async_says_that_it_is_too_early(self):
        made = session("null:rk3588?a=200ms&name=early", enable_pacing=True)
        made.run(None, {"x": X})
        self.assertEqual(made.try_run_async(None, {"x": X}, lambda *_: None), 1)
        self.assertIsNone(made.try_run_async(None, {"x": X}, lambda *_: None))
        self.assertEqual(made.statistics()["rejected"], 1)


class Pressure(unittest.TestCase):
    def test_full_queue_times_out_and_accepted_tasks_are_called_back(self):
        made = session("null:rk3588?a=300ms&name=full", schedule=[0], max_queue_size=3, submit_timeout_ms=50)
        said, accepted = Callbacks(), 0
        with self.assertRaises(ort.Timeout) as caught:
            for accepted in range(100):
                begin = time.monotonic()
                made.run_async(None, {"x": X}, said, accepted)
        took = time.monotonic() - begin
        self.assertGreaterEqual(took, 0.05)
        self.assertLess(took, 0.5)
        self.assertGreaterEqual(accepted, 4)  # One that runs, and three that wait.
        self.assertIsInstance(caught.exception, TimeoutError)
        self.assertIsInstance(caught.exception, RuntimeError)
        self.assertIn("max_queue_size", str(caught.exception))
        made.close()
        self.assertEqual([(d, e) for _, d, e in said.entries], [(i, "") for i in range(accepted)])
        self.assertEqual(made.statistics()["rejected"], 1)

    def test_run_option_overrides_the_timeout(self):
        made = session("null:rk3588?a=300ms&name=override", schedule=[0], max_queue_size=1)
        with self.assertRaises(TimeoutError):
            for _ in range(20):
                made.submit(None, {"x": X}, {"corelane.submit_timeout_ms": "10"})

    def test_run_option_of_0_is_no_limit(self):
        made = session("null:rk3588?a=200ms&name=unlimited", schedule=[0], max_queue_size=1, submit_timeout_ms=10)
        futures = [made.submit(None, {"x": X}, {"corelane.submit_timeout_ms": "0"}) for _ in range(3)]
        self.assertEqual([len(future.result(PATIENCE)) for future in futures], [1, 1, 1])

    def test_slow_callbacks_hold_submissions_up(self):
        import threading
        gate = threading.Event()
        for name, limit in (("eight", 8), ("two", 2)):
            gate.clear()
            options = {} if limit == 8 else {"max_pending_callbacks": limit}
            made = session(f"null:rk3588?name={name}", max_queue_size=3, submit_timeout_ms=50, **options)
            accepted = 0
            with self.assertRaises(TimeoutError) as caught:
                while accepted < 100:
                    made.run_async(None, {"x": X}, lambda *_: gate.wait(PATIENCE), None)
                    accepted += 1
            self.assertIn("max_pending_callbacks", str(caught.exception))
            self.assertGreaterEqual(accepted, limit)
            self.assertLessEqual(accepted, limit + 4)  # One that runs, and a queue of three.
            gate.set()
            made.close()
            self.assertEqual(made.statistics()["callbacks"], accepted)

    def test_onnxruntime_users_meet_no_limit(self):
        options = ort.SessionOptions()
        options.add_session_config_entry("corelane.device", "null:rk3588?a=1ms&name=unlimited")
        from python_support import relu_model
        made = ort.InferenceSession(relu_model(), options)
        self.assertNotIn(NPU, made.get_providers())
        said = Callbacks()
        for i in range(100):
            made.run_async(None, {"x": X}, said, i)
        made.close()
        self.assertEqual(said.tags(), list(range(100)))


if __name__ == "__main__":
    unittest.main()
