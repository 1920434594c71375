"""The names, defaults and answers of ztu_somemodelruntime_ez_rknn_async: what its users' programs write."""
import mmap
import os
import unittest
import warnings

import numpy as np

import corelane
import corelane.ez_rknn_async as ez
from python_support import X, Y, Callbacks, relu_model

DEVICE = "rknpu2"
MODEL = relu_model((1, 4))
PICTURE = np.arange(30, dtype=np.float32).reshape(1, 3, 2, 5) - 9
DEFAULTS = {"layout": "original", "zero_copy_layout": "nhwc", "max_queue_size": 3, "threads_per_core": 1,
            "submit_timeout_ms": 10000, "sequential_callbacks": True, "enable_pacing": False,
            "disable_dup_context": False, "custom_op_default_path": False}


def opened(model=MODEL, **options):
    return ez.InferenceSession(model, provider_options=[options] if options else None)


class Refusing(unittest.TestCase):
    def refused(self, words, call, kind=RuntimeError):
        with self.assertRaises(kind) as caught:
            call()
        for word in words:
            self.assertIn(word, str(caught.exception))


class Options(Refusing):
    def test_helpers_fill_in_defaults(self):
        self.assertEqual(ez.make_provider_options(), DEFAULTS)
        self.assertEqual(ez.make_rknpu2_provider_options(schedule=[0, 1]), {**DEFAULTS, "schedule": [0, 1]})
        self.assertEqual(ez.make_rknpu3_provider_options(device_id=0),
                         {"priority": 0, "run_timeout_ms": 0, "run_core_mask": "auto", "device_id": 0})
        self.assertEqual(ez.make_provider_options(device="null:rk3588")["device"], "null:rk3588")

    def test_helpers_take_keywords_alone(self):
        for helper in (ez.make_provider_options, ez.make_rknpu2_provider_options, ez.make_rknpu3_provider_options):
            self.refused(["positional"], lambda: helper([0]), TypeError)
        self.refused(["schedule", "tp_mode"], lambda: ez.make_provider_options(schedule=[0], tp_mode="all"),
                     ValueError)
        self.refused(["tp_mod"], lambda: ez.make_provider_options(tp_mod="all"), TypeError)

    def test_what_the_helpers_make_opens_a_session(self):
        for options in (ez.make_provider_options(), [ez.make_provider_options()], [], {}, None,
                        ez.make_provider_options(schedule=[0, 1], threads_per_core=2, custom_op_paths=[])):
            with self.subTest(options=options):
                made = ez.InferenceSession(MODEL, provider_options=options)
                np.testing.assert_array_equal(made.run(None, {"x": X})[0], Y)

    def test_options_without_a_counterpart_are_checked(self):
        for name, good, bad in (("zero_copy_layout", ["nhwc", "native"], ["nchw", "NHWC", None, 3]),
                                ("custom_op_path", [None, []], ["/nowhere.so", ["/nowhere.so"]]),
                                ("custom_op_paths", [None, []], ["/nowhere.so", __file__]),
                                ("custom_op_default_path", [False, "0"], [None, "maybe"]),
                                ("load_custom_ops_from_default_path", [False], [None])):
            for value in good:
                opened(**{name: value})
                corelane.InferenceSession(MODEL, providers=[("RKNPU2ExecutionProvider", {name: value})])
            for value in bad:
                with self.subTest(option=name, value=value):
                    self.refused([name], lambda: opened(**{name: value}))
        self.refused(["custom_operators"], lambda: opened(custom_op_paths=__file__))
        with self.assertWarns(UserWarning):
            opened(custom_op_default_path=True)

    def test_two_names_of_one_option_are_refused(self):
        for one, other in (("custom_op_path", "custom_op_paths"),
                           ("custom_op_default_path", "load_custom_ops_from_default_path")):
            self.refused([one, other], lambda: opened(**{one: False, other: False}))

    def test_options_of_the_third_generation(self):
        def third(**options):
            return ez.InferenceSession(MODEL, providers=["RKNPU3ExecutionProvider"],
                                       provider_options=[ez.make_rknpu3_provider_options(**options)])

        for mask, mode in (("auto", "auto"), ("all", "all"), (0, "auto"), (1, "0"), (4, "2"), (3, "0,1"), (7, "0,1,2")):
            made = third(run_core_mask=mask, priority=3, run_timeout_ms=60000)
            np.testing.assert_array_equal(made.run(None, {"x": X})[0], Y)
            shown = made.get_provider_options()["RKNPU3ExecutionProvider"]
            self.assertIn(shown["tp_mode"], (mode, "0,1,2" if mode == "all" else mode))
        for options in (dict(run_core_mask=5), dict(run_core_mask="some"), dict(priority="a"),
                        dict(runtime_library="/lib.so"), dict(device_id=1), dict(weight_path="/w"),
                        dict(run_core_mask=[0]), dict(run_core_mask=None), dict(device_id=np.zeros(2)),
                        dict(priority=np.zeros(2))):
            self.refused(list(options), lambda: third(**options))
        for name, value in (("zero_copy_layout", np.array([1, 2])), ("custom_op_path", 5), ("custom_op_paths", [5])):
            self.refused([name], lambda: opened(**{name: value}))
        self.refused(["priority"], lambda: opened(priority=1))

    def test_the_time_limit_of_the_third_generation_ends_a_run(self):
        made = ez.InferenceSession(MODEL, providers=["RKNPU3ExecutionProvider"], provider_options=[
            {"run_timeout_ms": 20, "device": "null:rk3588?a=300ms&name=third"}])
        with self.assertRaises(TimeoutError) as caught:
            made.run(None, {"x": X})
        self.assertIn("run_timeout_ms", str(caught.exception))
        self.assertEqual(made.get_provider_options()["RKNPU3ExecutionProvider"]["run_timeout_ms"], "20")

    def test_providers_are_named_as_there(self):
        self.assertEqual(opened().get_providers(), ["RKNPU2ExecutionProvider"])
        for name in ("RKNNExecutionProvider", "RKNPU2ExecutionProvider"):
            self.assertEqual(ez.InferenceSession(MODEL, providers=[name]).get_providers(),
                             ["RKNPU2ExecutionProvider"])
        self.assertEqual(ez.InferenceSession(MODEL, providers=ez.get_available_providers()).get_providers(),
                         ["RKNPU2ExecutionProvider"])
        (shown,) = opened(**DEFAULTS).get_provider_options().items()
        self.assertEqual(shown[0], "RKNPU2ExecutionProvider")
        self.assertEqual([name for name in DEFAULTS if name not in shown[1]], [])

    def test_names(self):
        for name in ("IOBinding", "InferenceSession", "ModelMetadata", "NodeArg", "OrtValue", "RknnProviderOptions",
                     "Rknpu2ProviderOptions", "Rknpu3ProviderOptions", "SessionIOBinding"):
            self.assertIn(name, ez.__all__)
            self.assertTrue(isinstance(getattr(ez, name), type), name)


class Shapes(unittest.TestCase):
    def test_listed_shapes_make_arrays(self):
        model = corelane.compile(relu_model(("N", 3, "H", 5)),
                                 shape_sets=[[[1, 3, 2, 5]], [[1, 3, 4, 5]]])
        for layout, shape in (("original", [1, 3, 2, 5]), ("nhwc", [1, 2, 5, 3])):
            made = opened(model, layout=layout)
            (node,) = made.get_inputs()
            self.assertEqual(node.shape, shape)
            self.assertEqual(made.run(None, {"x": np.zeros(node.shape, np.float32)})[0].shape, (1, 3, 2, 5))
        self.assertEqual(made.run(None, {"x": np.zeros((1, 4, 5, 3), np.float32)})[0].shape, (1, 3, 4, 5))
        fixed = opened(relu_model((1, 3, 2, 5)))
        self.assertEqual(fixed.get_inputs()[0].shape, [1, 3, 2, 5])


class DeviceValues(Refusing):
    def setUp(self):
        self.session = opened()

    def on_device(self, array=X, session=None, **changed):
        terms = {"session": session or self.session, "name": "x", "io_kind": "input", **changed}
        return ez.OrtValue.ortvalue_from_numpy(array, terms.pop("device_type", DEVICE), terms.pop("device_id", 0),
                                               **terms)

    def output(self, **changed):
        terms = {"session": self.session, "name": "y", "io_kind": "output", **changed}
        return ez.OrtValue.ortvalue_from_shape_and_type(terms.pop("shape", [1, 4]),
                                                        terms.pop("element_type", np.float32), DEVICE, 0, **terms)

    def bound(self, given, target=None, **output):
        binding = self.session.io_binding()
        binding.bind_ortvalue_input("x", given)
        if target is None:
            binding.bind_output("y", **output)
        else:
            binding.bind_ortvalue_output("y", target)
        self.session.run_with_iobinding(binding)
        return binding

    def test_values_of_the_device_are_read_and_written(self):
        given, target = self.on_device(), self.output()
        binding = self.bound(given, target)
        np.testing.assert_array_equal(target.numpy(), Y)
        self.assertIs(binding.get_outputs()[0], target)
        given.update_inplace(X * 2)
        given.sync_to_device()
        self.session.run_with_iobinding(binding)
        target.sync_from_device()
        np.testing.assert_array_equal(target.numpy(), Y * 2)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y * 2)
        np.testing.assert_array_equal(self.session.run(None, {"x": given})[0], Y * 2)

    def test_values_describe_themselves(self):
        value, plain = self.on_device(), ez.OrtValue.ortvalue_from_numpy(X)
        self.assertEqual((value.device_name(), value.device_type(), value.device_id(), value.shape(),
                          value.element_type()), (DEVICE, DEVICE, 0, [1, 4], "tensor(float)"))
        info = value.memory_info()
        self.assertEqual((info["device_type"], info["size"], info["offset"], info["dmabuf_backed"],
                          info["virt_addr"]), (DEVICE, 16, 0, False, value.data_ptr()))
        with mmap.mmap(info["fd"], 16) as same:  # The memory is that of the descriptor.
            np.testing.assert_array_equal(np.frombuffer(same[:], np.float32), X[0])
        self.assertEqual(plain.memory_info(), {"device_type": "cpu", "device_id": 0})
        plain.sync_to_device()
        self.assertEqual(corelane.OrtValue.ortvalue_from_numpy(X).element_type(), 1)

    def test_numpy_is_a_copy(self):
        value = self.on_device()
        value.numpy()[...] = 9
        np.testing.assert_array_equal(value.numpy(), X)

    def test_arrays_of_other_types_are_converted(self):
        for dtype in (np.int8, np.float16, np.float64):
            np.testing.assert_array_equal(self.on_device(X.astype(dtype)).numpy(), X)

    def test_descriptors_are_given_back(self):
        def count():
            return len(os.listdir("/proc/self/fd"))

        self.bound(self.on_device(), self.output())
        before = count()
        for _ in range(20):
            self.bound(self.on_device(), self.output())
        self.assertLessEqual(count(), before + 4)  # Those of the last binding.

    def test_outputs_are_made_on_the_device_when_bound(self):
        for options in ({}, {"layout": "onnx", "mem_flags": "non_cacheable"}, {"shape": [1, 4], "mem_flags": 1},
                        {"element_type": np.float32}):
            binding = self.bound(self.on_device(), device_type=DEVICE, **options)
            (value,) = binding.get_outputs()
            self.assertEqual((value.device_name(), value.element_type()), (DEVICE, "tensor(float)"))
            np.testing.assert_array_equal(value.numpy(), Y)
        self.assertEqual(self.bound(self.on_device()).get_outputs()[0].device_name(), "cpu")

    def test_what_does_not_fit_is_refused(self):
        for words, changed in ((["io_kind", "'Input'"], {"io_kind": "Input"}), (["q", "x"], {"name": "q"}),
                               (["device_id", "1"], {"device_id": 1}), (["session, name and io_kind"], {"name": None}),
                               (["[1, 4]", "[1, 5]"], {"array": np.ones((1, 5), np.float32)}),
                               (["layout", "native"], {"layout": "nope"}), (["cuda"], {"device_type": "cuda"}),
                               (["RKNN provider"], {"session": corelane.InferenceSession(MODEL)})):
            self.refused(words, lambda: self.on_device(**changed))
        for words, changed in ((["tensor(int8)"], {"element_type": np.int8}), (["[1, 5]"], {"shape": [1, 5]}),
                               (["mem_flags"], {"mem_flags": "nope"})):
            self.refused(words, lambda: self.output(**changed))
            self.refused(words, lambda: self.bound(self.on_device(), device_type=DEVICE, **changed))
        other = opened()
        self.refused(["another session"], lambda: other.io_binding().bind_ortvalue_input("x", self.on_device()))

    def test_channels_last(self):
        for layout, array in (("original", PICTURE), ("nhwc", PICTURE.transpose(0, 2, 3, 1))):
            self.session = opened(relu_model((1, 3, 2, 5)), layout=layout)
            for form, given in (("onnx", array), ("native", array)):
                value = self.on_device(given, layout=form)
                np.testing.assert_array_equal(self.bound(value).copy_outputs_to_cpu()[0], np.maximum(PICTURE, 0))
        self.session = opened(relu_model((1, 3, 2, 5)))
        value = self.on_device(PICTURE.transpose(0, 2, 3, 1), layout="nhwc")
        np.testing.assert_array_equal(self.bound(value).copy_outputs_to_cpu()[0], np.maximum(PICTURE, 0))
        self.refused(["layout='nhwc'"], lambda: ez.OrtValue.ortvalue_from_shape_and_type(
            [1, 2, 5, 3], np.float32, DEVICE, session=self.session, name="x", io_kind="input"))

    def imported(self, fd, element_type=np.float32, **changed):
        terms = {"size": 8192, "session": self.session, "name": "x", "io_kind": "input", **changed}
        return ez.OrtValue.ortvalue_from_dmabuf(fd, terms.pop("shape", [1, 4]), element_type, **terms)

    def test_memory_of_a_descriptor_is_read_where_it_lies(self):
        fd = os.memfd_create("picture")
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, 8192)
        with mmap.mmap(fd, 8192) as memory:
            for offset in (0, 64, 4096, 8192 - 16):
                value = self.imported(fd, offset=offset)
                info = value.memory_info()
                self.assertEqual((info["fd"], info["offset"], info["dmabuf_backed"]), (fd, offset, True))
                binding = self.bound(value)
                for factor in (1, 3):  # What is written later is read by the next run.
                    memory[offset:offset + 16] = (X * factor).tobytes()
                    self.session.run_with_iobinding(binding)
                    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y * factor)
            opened().io_binding().bind_ortvalue_input("x", value)  # Any session may import it.
            for words, terms in ((["takes 16 bytes"], {"size": 8}), (["takes 16 bytes"], {"offset": 8190}),
                                 (["tensor(int8)"], {"element_type": np.int8}), (["session"], {"session": None})):
                self.refused(words, lambda: self.imported(fd, **terms))
        self.refused(["cannot be mapped"], lambda: self.imported(99999))
        for descriptor, offset in ((-1, 0), (fd, -16)):
            self.refused([f"descriptor {descriptor}", "0 or more"], lambda: self.imported(descriptor, offset=offset))
        self.assertGreaterEqual(os.fstat(fd).st_size, 8192)  # It stays the caller's.

    def test_memory_that_the_caller_has_mapped(self):
        array = np.zeros(8, np.float32)
        array[4:] = X[0]
        value = self.imported(0, size=32, offset=16, virt_addr=array.ctypes.data)
        np.testing.assert_array_equal(self.bound(value).copy_outputs_to_cpu()[0], Y)


class Calls(unittest.TestCase):
    def test_callbacks_need_no_user_data(self):
        said = Callbacks()
        opened().run_async(None, {"x": X}, said)
        self.assertTrue(said.wait(1))
        np.testing.assert_array_equal(said.entries[0][0][0], Y)

    def test_values_of_calls_are_of_this_name(self):
        value = opened().run_with_ort_values(None, {"x": ez.OrtValue.ortvalue_from_numpy(X)})[0]
        self.assertEqual((type(value), value.element_type()), (ez.OrtValue, "tensor(float)"))

    def test_nothing_warns(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            opened(**DEFAULTS).run(None, X)


if __name__ == "__main__":
    unittest.main()
