"""What provider options accept and reject, and the rules they switch on."""
import copy
import os
import pickle
import tempfile
import unittest
import warnings

import numpy as np

import corelane as ort
from corelane._ort import options
from python_support import NPU, X, child, relu_model, threads
from python_support import session as session_on


def session(**options):
    device = options.pop("device", "virtual" if "profile" in options else "virtual:rk3588")
    return session_on(device, **options)


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        session().run(None, {"x": X})  # The device and its threads are shared by all sessions.

    def accepted(self, name, rows):
        for value, expected in rows:
            with self.subTest(option=name, value=value):
                made = session(**{name: value})
                self.assertEqual(made.get_provider_options()[NPU].get(name), expected)
                np.testing.assert_array_equal(made.run(None, {"x": X})[0], [[0, 2, 0, 4]])

    def rejected(self, name, values):
        before = threads()
        for value in values:
            with self.subTest(option=name, value=value):
                with self.assertRaises(RuntimeError) as caught:
                    session(**{name: value})
                self.assertIn(name, str(caught.exception))
        self.assertLessEqual(threads(), before)

    def test_rejected_values_leave_no_thread_and_no_context(self):
        result = child("""
            def threads():
                gc.collect()
                return len(os.listdir("/proc/self/task"))
            before = threads()
            for device in ("null:rk3588", "virtual:rk3588", "null:rk3566"):
                for options in (dict(schedule=[0, 5]), dict(schedule=[64]), dict(schedule="abc"),
                                dict(schedule=[-1]),
                                dict(schedule=[0], tp_mode="auto"), dict(tp_mode="0,2"),
                                dict(threads_per_core=0),
                                dict(threads_per_core=65), dict(max_queue_size=0), dict(submit_timeout_ms=0),
                                dict(layout="chwn"), dict(placement="best"), dict(max_pending_callbacks=0),
                                dict(output_form="text"), dict(precision="f8"),
                                dict(custom_operators=[print])):
                    try:
                        session(device, **options)
                        print("accepted", device, options)
                    except RuntimeError:
                        pass
            print(threads() - before)
        """)
        self.assertEqual((result.stdout, result.stderr), ("0\n", ""))

    def test_schedule(self):
        self.accepted("schedule", [
            (0, "0"), (2, "2"), ("0,1,2", "0,1,2"), ("[0, 1]", "0,1"), ("0 1", "0,1"), ("2", "2"),
            ([0, 1], "0,1"), ((0, 0, 1), "0,0,1"), (range(3), "0,1,2"), (["0", "1"], "0,1"),
            (np.int64(1), "1"), (np.array([0, 1]), "0,1"), ([np.int32(2)], "2"), (None, None)])
        self.rejected("schedule", [
            [], (), "", "abc", -1, [0, -1], [0.0], 1.5, {0, 1}, True, b"\x00\x01", "0;1", "0,x,1", [64], 3,
            [0, 5], [True], [None], "0,", ",0",
            [10**30], "9" * 30, [[0]], iter([0])])

    def test_tp_mode(self):
        self.accepted("tp_mode", [(m, m) for m in ("auto", "all", "0", "1", "2", "0,1", "0,1,2")]
                      + [(" auto ", "auto"), ("AUTO", "auto"), ("0, 1", "0,1"), (None, "auto")])
        self.rejected("tp_mode", ["1,0", "0,2", "1,2", "", 0, 1, "3", "core0"])

    def test_schedule_and_tp_mode_exclude_each_other(self):
        with self.assertRaises(RuntimeError):
            session(schedule=[0], tp_mode="auto")
        with self.assertRaises(ValueError):
            ort.make_provider_options(schedule=[0], tp_mode="auto")

    def test_threads_per_core(self):
        self.accepted("threads_per_core", [(1, "1"), (2, "2"), ("2", "2"), (True, "1")])
        self.rejected("threads_per_core", [0, -1, 2.0, None, 65, "two", 10**30])

    def test_max_queue_size(self):
        self.accepted("max_queue_size", [(1, "1"), ("16", "16")])
        self.rejected("max_queue_size", [0, -1, None, 1.5, 10**30])

    def test_submit_timeout(self):
        self.accepted("submit_timeout_ms", [(50, "50")])
        self.rejected("submit_timeout_ms", [0, -1, None, 10**30])

    def test_run_timeout(self):
        self.accepted("run_timeout_ms", [(0, "0"), (50, "50"), ("50", "50")])
        self.rejected("run_timeout_ms", [-1, None, "soon", 10**30])
        with self.assertRaises(RuntimeError) as caught:
            session(run_timeout=50)
        self.assertIn("run_timeout_ms", str(caught.exception))

    def test_limits_of_a_load(self):
        self.accepted("load_timeout_ms", [(0, "0"), (50_000, "50000"), ("50000", "50000")])
        self.rejected("load_timeout_ms", [-1, None, "soon", 10**30])
        self.accepted("load_memory", [(0, "0"), (1 << 30, str(1 << 30))])
        self.rejected("load_memory", [-1, None, "1G"])
        with self.assertRaises(RuntimeError) as caught:
            session(load_memory=1)
        self.assertIn("the option load_memory", str(caught.exception))

    def test_layout(self):
        self.accepted("layout", [("NCHW", "original"), ("original", "original"), ("nhwc", "nhwc"),
                                 ("any", "any"),
                                 ("nchw_software", "original_software"),
                                 ("Original_Software", "original_software")])
        self.rejected("layout", ["chwn", ""])

    def test_flags(self):
        for name in ("enable_pacing", "disable_dup_context", "sequential_callbacks", "time_engines", "static_forms"):
            self.accepted(name, [(True, "true"), (np.bool_(False), "false"), ("on", "true"), ("No", "false"),
                                 (1, "true")])
            self.rejected(name, [None, "maybe", 2, [], 0.5])

    def test_run_options(self):
        made = session()
        for name, values in (("corelane.timeout_ms", ["abc", "nan", "inf", "1e30", "-1", ""]),
                             ("corelane.submit_timeout_ms", ["abc", "nan", "-1"]),
                             ("corelane.priority", ["abc", "inf", "1000", "-129", "1.9", "1e12"])):
            for value in values:
                with self.assertRaises(RuntimeError, msg=(name, value)) as caught:
                    made.run(None, {"x": X}, {name: value})
                self.assertIn(f"{name}: {value!r} is not a ", str(caught.exception))
        slow = session(device="null:rk3588?a=100ms&name=least")
        with self.assertRaises(ort.Timeout):  # The least limit is not none.
            slow.run(None, {"x": X}, {"corelane.timeout_ms": "0.0001"})
        for given in ({"corelane.timeout_ms": "60000", "corelane.priority": -3}, ort.RunOptions()):
            self.assertEqual(len(made.run(None, {"x": X}, given)), 1)
        with self.assertRaises(TypeError):
            made.run(None, {"x": X}, 3)

    def test_a_run_with_a_binding_is_no_batch(self):
        made = session()
        binding = made.io_binding()
        binding.bind_cpu_input("x", X)
        with self.assertRaisesRegex(RuntimeError, "ztu_modelrt_dispatch_batch"):
            made.run_with_iobinding(binding, {"ztu_modelrt_dispatch_batch": "1"})

    def test_unknown_option_lists_the_known(self):
        with self.assertRaises(RuntimeError) as caught:
            session(nope=1)
        self.assertIn("schedule", str(caught.exception))
        with self.assertRaises(TypeError):
            ort.make_provider_options(nope=1)

    def test_defaults(self):
        shown = session().get_provider_options()[NPU]
        expected = {"tp_mode": "auto", "threads_per_core": "1", "max_queue_size": "3",
                    "submit_timeout_ms": "10000", "run_timeout_ms": "0", "sequential_callbacks": "true",
                    "enable_pacing": "false", "layout": "original"}
        self.assertEqual(expected, {k: shown[k] for k in expected})

    def test_helper_leaves_out_none(self):
        self.assertEqual(ort.make_provider_options(schedule=[0, 1], layout=None), {"schedule": [0, 1]})

    def test_device_and_profile(self):
        self.assertEqual(session(profile="generic:5").device()["cores"], 5)
        self.assertEqual(session(device="null:rk3576").device()["cores"], 2)
        both = session(device="null?a=1ms&name=left", profile="rk3576").device()
        self.assertEqual(both["instance"], "null:rk3576#left")
        with self.assertRaises(RuntimeError):
            session(device="virtual:rk3588", profile="rk3576")

    def test_contexts(self):
        stats = session(schedule=[2, 0], threads_per_core=2).statistics()
        self.assertEqual(stats["core_of_context"], [0, 2, 0, 2])


class Rules(unittest.TestCase):
    def test_inputs_are_converted(self):
        made = session()
        for kind in (np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, bool):
            x = np.array([[0, 1, 1, 0]]).astype(kind)
            np.testing.assert_array_equal(made.run(None, {"x": x})[0], x.astype(np.float32))
        for kind in (np.float64, np.uint64, ">f4"):
            with self.assertRaises(RuntimeError):
                made.run(None, {"x": X.astype(kind)})

    def test_messages(self):
        made = session()
        for feed, text in (({"x": X[:, :3]}, "shape mismatch: expected [1, 4], got [1, 3]"),
                           ({}, "Missing input: x")):
            with self.assertRaises(RuntimeError) as caught:
                made.run(None, feed)
            self.assertIn(text, str(caught.exception))
            self.assertNotIn("ONNXRuntimeError", str(caught.exception))

    def test_both_providers(self):
        made = ort.InferenceSession(relu_model(), providers=[NPU, "CPUExecutionProvider"])
        self.assertEqual(made.get_providers(), [NPU, "CPUExecutionProvider"])


class Providers(unittest.TestCase):
    def test_forms(self):
        options = {"schedule": [1], "device": "null:rk3588"}
        for providers, separate in (([(NPU, options)], None), ([NPU], [options]), (NPU, [options]),
                                    (NPU, options),
                                    ((NPU, options), None), ([(NPU, options), "CPUExecutionProvider"], None),
                                    (["CPUExecutionProvider", NPU], [{}, options]),
                                    (["RKNNExecutionProvider"], [options])):
            made = ort.InferenceSession(relu_model(), providers=providers, provider_options=separate)
            name = next(p for p in made.get_providers() if "RKN" in p)
            self.assertEqual(made.get_provider_options()[name]["schedule"], "1")
            self.assertEqual(made.get_providers(), [name, "CPUExecutionProvider"])  # In force: the first.

    def test_two_devices_are_refused(self):
        with self.assertRaises(RuntimeError) as caught:
            ort.InferenceSession(relu_model(), providers=["RKNPU2ExecutionProvider", "CPUExecutionProvider",
                                                          "RKNPU3ExecutionProvider"])
        self.assertIn("RKNPU3ExecutionProvider", str(caught.exception))

    def test_options_inline_and_separately_are_refused(self):
        with self.assertRaises(RuntimeError):
            ort.InferenceSession(relu_model(), providers=[(NPU, {"schedule": [0]})],
                                 provider_options=[{"schedule": [1]}])

    def test_a_provider_counts_when_it_is_named(self):
        every = ort.get_available_providers()
        self.assertIn(NPU, every)
        by_default = (every, tuple(every), [p for p in every if p != "CUDAExecutionProvider"],
                      ["CUDAExecutionProvider", *every], ort.get_all_providers(), [(p, {}) for p in every])
        by_name = ([NPU], [NPU, "CPUExecutionProvider"], [p for p in (NPU, "Other") if p in every], every[:1],
                   [(every[0], {"device": "null:rk3588"}), every[1]])
        for providers, names in [(p, ["CPUExecutionProvider"]) for p in by_default] + [
                (p, [NPU, "CPUExecutionProvider"]) for p in by_name]:
            with self.subTest(providers=providers), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = ort.InferenceSession(relu_model(), providers=providers)
                self.assertEqual(made.get_providers(), names)
                made.set_providers([p for p in providers if p != "CUDAExecutionProvider"])
                again = ort.InferenceSession(relu_model(), providers=made.get_providers())
                self.assertEqual(again.get_providers(), names)
        copied = pickle.loads(pickle.dumps(every))
        self.assertEqual(ort.InferenceSession(relu_model(), providers=copied).get_providers(),
                         ["CPUExecutionProvider"])

    def test_pickle_has_the_options_that_the_session_was_made_with(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "relu.onnx")
            with open(path, "wb") as file:
                file.write(relu_model((1, 4)))
            given = {"device": "null:rk3588?name=kept", "schedule": [0, 1]}
            made = ort.InferenceSession(path, providers=[NPU], provider_options=[given])
            given["device"], given["schedule"][1] = "none", 7
            for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
                self.assertEqual(again.get_provider_options(), made.get_provider_options())

    def test_session_options_give_the_same_options(self):
        options = ort.SessionOptions()
        options.add_session_config_entry("corelane.device", "null:generic:4")
        made = ort.InferenceSession(relu_model(), options)
        self.assertEqual(made.device()["cores"], 4)

    def test_values_are_shown_as_texts(self):
        shown = session_on("null:rk3588", schedule=[0, 2], enable_pacing=1).get_provider_options()[NPU]
        self.assertTrue(all(isinstance(v, str) for v in shown.values()), shown)
        self.assertEqual((shown["schedule"], shown["enable_pacing"], shown["submit_timeout_ms"]),
                         ("0,2", "true", "10000"))
        again = ort.InferenceSession(relu_model((1, 4)),
                                     providers=[(NPU, {k: v for k, v in shown.items() if k != "device"})])
        self.assertEqual(again.get_provider_options()[NPU]["schedule"], "0,2")
        every = set(options._READERS) - {"tp_mode", "profile", "custom_operators", "part"}
        self.assertEqual(every - set(shown), set())
        shown = session_on("null:rk3588", tp_mode="0,1", precision="f16", output_form="raw",
                           fast_math=True).get_provider_options()[NPU]
        self.assertEqual([shown[k] for k in ("tp_mode", "precision", "output_form", "fast_math")],
                         ["0,1", "f16", "raw", "true"])


if __name__ == "__main__":
    unittest.main()
