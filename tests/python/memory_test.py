"""Memory of callers: read and written in place, copied where it must be."""
import ctypes
import gc
import threading
import unittest

import numpy as np

import corelane as ort
from python_support import NPU, X, Y, child, relu_model, session

BIG = (1, 1 << 20)


def strict(shape=("N", 4), kind=1):
    return ort.InferenceSession(relu_model(shape, kind))


def traced_peak(function):
    """Bytes of arrays that numpy made meanwhile, at most."""
    import tracemalloc
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


class Inputs(unittest.TestCase):
    def test_no_array_is_made_of_an_array(self):
        made = session("null:rk3588", shape=BIG)
        x = np.ones(BIG, np.float32)
        made.run(None, {"x": x})
        self.assertGreaterEqual(traced_peak(x.copy), x.nbytes)  # It would be seen.
        value, binding = ort.OrtValue.ortvalue_from_numpy(x), made.io_binding()
        for feed in ({"x": x}, [x], x, {"x": value}, {"x": x.view()}, {"x": memoryview(x)}):
            self.assertLess(traced_peak(lambda: made.run(None, feed)), x.nbytes // 4)
        self.assertLess(traced_peak(lambda: binding.bind_ortvalue_input("x", value)), x.nbytes // 4)

    def test_no_float64_is_made_of_integers_and_lists(self):
        made = session("null:rk3588", shape=BIG)
        x = np.ones(BIG, np.int32)
        made.run(None, {"x": x})
        self.assertLess(traced_peak(lambda: made.run(None, {"x": x})), x.nbytes // 4)
        rows = [[1.0] * 1000]
        small = session("virtual:rk3588", shape=(1, 1000))
        small.run(None, {"x": rows})
        self.assertLess(traced_peak(lambda: small.run(None, {"x": rows})), 8000)

    def test_arrays_are_taken_in_any_form(self):
        made = session()
        wide = np.arange(-4, 4, dtype=np.float32).reshape(1, 8)[:, ::2]
        for feed, y in (({"x": X}, Y), ([X], Y), ((X,), Y), (X, Y), ({"x": X.tolist()}, Y),
                        ({"x": wide}, np.maximum(wide, 0)), ({"x": np.asfortranarray(X)}, Y),
                        ({"x": ort.OrtValue.ortvalue_from_numpy(X)}, Y),
                        ({"x": X.astype(np.float16)}, Y), ({"x": memoryview(X)}, Y)):
            np.testing.assert_array_equal(made.run(None, feed)[0], y)

    def test_read_only_arrays_are_read(self):
        frozen = X.copy()
        frozen.flags.writeable = False
        np.testing.assert_array_equal(session().run(None, {"x": frozen})[0], Y)

    def test_scalars_and_empty_arrays(self):
        np.testing.assert_array_equal(strict(()).run(None, {"x": np.float32(-3)})[0], 0)
        self.assertEqual(strict().run(None, {"x": np.ones((0, 4), np.float32)})[0].shape, (0, 4))

    def test_values_that_are_not_arrays_are_named(self):
        for value in (object(), np.array(["a"]), np.array([None]), X.astype(">f4"), {"a": 1}):
            with self.assertRaises((TypeError, RuntimeError)) as caught:
                session().run(None, {"x": value})
            self.assertIn("x", str(caught.exception))
        for run in (strict().run, session().run):
            with self.assertRaises(TypeError) as caught:
                run(None, None)
            self.assertIn("input_feed", str(caught.exception))

    def test_feeds_are_checked_by_name(self):
        made = session()
        for feed, text in (({"x": X, "z": X}, "z"), ({}, "Missing input: x"), ([X, X], "2"), ([], "x"),
                           ({"z": X}, "x"), ({1: X}, "string")):
            with self.assertRaises((RuntimeError, TypeError)) as caught:
                made.run(None, feed)
            self.assertIn(text, str(caught.exception))

    def test_names_of_outputs(self):
        made = session()
        for names in (None, [], ["y"], ("y",)):
            self.assertEqual(len(made.run(names, {"x": X})), 1)
        self.assertEqual(len(made.run(["y", "y", "y"], {"x": X})), 3)
        with self.assertRaises(TypeError):
            made.run("y", {"x": X})
        with self.assertRaises(TypeError):
            made.run([3], {"x": X})
        with self.assertRaises(RuntimeError) as caught:
            made.run(["q"], {"x": X})
        self.assertIn("Unknown output name: q", str(caught.exception))


class Outputs(unittest.TestCase):
    def test_are_fresh_and_writable(self):
        made = session()
        (first,), (second,) = made.run(None, {"x": X}), made.run(None, {"x": X})
        self.assertTrue(first.flags.writeable and first.flags.c_contiguous)
        first[:] = 7
        np.testing.assert_array_equal(second, Y)
        self.assertFalse(np.shares_memory(first, second))

    def test_outlive_the_session(self):
        made = session()
        (y,) = made.run(None, {"x": X})
        made.close()
        del made
        gc.collect()
        y += 1
        np.testing.assert_array_equal(y, Y + 1)

    def test_of_all_element_types(self):
        for number, kind in ((10, np.float16), (6, np.int32), (7, np.int64), (3, np.int8)):
            made = strict(("N", 4), number)
            self.assertEqual(made.get_outputs()[0].type, made.get_inputs()[0].type)
            (y,) = made.run(None, {"x": X.astype(kind)})
            self.assertEqual(y.dtype, kind)
            np.testing.assert_array_equal(y, Y.astype(kind))


class OrtValues(unittest.TestCase):
    def test_share_the_memory_of_arrays(self):
        array = X.copy()
        value = ort.OrtValue.ortvalue_from_numpy(array)
        self.assertEqual(value.data_ptr(), array.ctypes.data)
        self.assertTrue(np.shares_memory(value.numpy(), array))
        value.update_inplace(Y)
        np.testing.assert_array_equal(array, Y)
        with self.assertRaises(RuntimeError):
            value.update_inplace(Y.astype(np.float64))

    def test_describe_themselves(self):
        value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float16)
        self.assertEqual((value.shape(), value.element_type(), value.data_type(),
                          value.tensor_size_in_bytes()),
                         ([2, 3], 10, "tensor(float16)", 12))
        self.assertEqual((value.device_name(), value.is_tensor(), value.has_value()), ("cpu", True, True))
        host = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
        value = ort.OrtValue.ortvalue_from_shape_and_type([2], np.float32, memory_info=host)
        self.assertEqual((value.device_name(), value.shape()), ("cpu", [2]))
        number = ort.OrtValue.ortvalue_from_shape_and_type([1], 7)
        self.assertEqual(number.numpy().dtype, np.int64)
        with self.assertRaises(RuntimeError):
            ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0)
        with self.assertRaises(RuntimeError):
            ort.OrtValue.ortvalue_from_numpy(X, "cpu", 1)

    def test_go_in_and_come_out(self):
        made = session()
        (y,) = made.run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(X)})
        np.testing.assert_array_equal(y.numpy(), Y)

    def test_dlpack_both_ways_without_a_copy(self):
        array = X.copy()
        value = ort.OrtValue.from_dlpack(array)
        self.assertEqual(value.data_ptr(), array.ctypes.data)
        self.assertTrue(np.shares_memory(np.from_dlpack(value), array))
        self.assertEqual(value.__dlpack_device__(), (1, 0))
        (y,) = session().run(None, {"x": X})
        self.assertTrue(np.shares_memory(np.from_dlpack(y), y))

    def test_dlpack_of_others_is_taken_as_input(self):
        class Foreign:  # As another library's tensor: no __array__, no buffer.
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **kwargs):
                return self.array.__dlpack__(**kwargs)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        np.testing.assert_array_equal(session().run(None, {"x": Foreign(X)})[0], Y)
        big, made = Foreign(np.ones(BIG, np.float32)), session("null:rk3588", shape=BIG)
        made.run(None, {"x": big})
        self.assertLess(traced_peak(lambda: made.run(None, {"x": big})), 1 << 20)


class Bindings(unittest.TestCase):
    def test_bound_arrays_are_read_at_each_run(self):
        for made, bind in ((strict(), "bind_cpu_input"), (strict(), "bind_ortvalue_input"),
                           (session(), "bind_ortvalue_input")):
            binding, x = made.io_binding(), X.copy()
            value = x if bind == "bind_cpu_input" else ort.OrtValue.ortvalue_from_numpy(x)
            getattr(binding, bind)("x", value)
            binding.bind_output("y")
            for scale in (1, 2, 3):
                x[:] = X * scale
                made.run_with_iobinding(binding)
                np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y * scale)

    def test_rknn_users_bind_copies_of_arrays(self):
        made, x = session(), X.copy()
        binding = made.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        x[:] = 9
        for _ in range(2):
            made.run_with_iobinding(binding)
            np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y)

    def test_bound_outputs_are_written_in_place(self):
        made, into = session(), np.zeros_like(X)
        value = ort.OrtValue.ortvalue_from_numpy(into)
        binding = made.io_binding()
        binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(X))
        binding.bind_ortvalue_output("y", value)
        made.run_with_iobinding(binding)
        np.testing.assert_array_equal(into, Y)
        self.assertEqual(binding.get_outputs()[0].data_ptr(), into.ctypes.data)

    def test_of_memory_larger_than_an_open_output_the_part_that_was_written_is_given(self):
        made = session(shape=("N", 4))
        target = ort.OrtValue.ortvalue_from_shape_and_type([5, 4], np.float32)
        binding, rows = made.io_binding(), np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
        binding.bind_cpu_input("x", rows)
        binding.bind_ortvalue_output("y", target)
        made.run_with_iobinding(binding)
        (given,) = binding.get_outputs()
        self.assertEqual((given.shape(), given.data_ptr()), ([3, 4], target.data_ptr()))
        for output in (given.numpy(), binding.copy_outputs_to_cpu()[0], target.numpy()[:3]):
            np.testing.assert_array_equal(output, np.maximum(rows, 0))

    def test_memory_smaller_than_an_open_output_is_an_invalid_argument(self):
        made = session(shape=("N", 4))
        binding = made.io_binding()
        binding.bind_cpu_input("x", np.ones((3, 4), np.float32))
        binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32))
        with self.assertRaisesRegex(ort.capi.onnxruntime_pybind11_state.InvalidArgument, "output 'y'"):
            made.run_with_iobinding(binding)

    def test_addresses(self):
        source, target = (ctypes.c_float * 4)(-1, 2, -3, 4), (ctypes.c_float * 4)()
        made = strict()
        binding = made.io_binding()
        binding.bind_input("x", "cpu", 0, np.float32, [1, 4], ctypes.addressof(source))
        binding.bind_output("y", "cpu", 0, np.float32, [1, 4], ctypes.addressof(target))
        made.run_with_iobinding(binding)
        self.assertEqual(list(target), [0, 2, 0, 4])
        source[0] = 9
        made.run_with_iobinding(binding)
        self.assertEqual(target[0], 9)

    def test_arrays_stay_while_they_are_bound(self):
        made = session()
        binding = made.io_binding()
        binding.bind_cpu_input("x", X * np.float32(2))
        binding.bind_output("y")
        gc.collect()
        np.zeros((1, 4), np.float32)
        made.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), Y * 2)

    def test_inputs_with_strides_are_copied_when_bound(self):
        wide = np.arange(-4, 4, dtype=np.float32).reshape(1, 8)[:, ::2]
        made = session()
        binding = made.io_binding()
        binding.bind_cpu_input("x", wide)
        binding.bind_output("y")
        made.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], np.maximum(wide, 0))

    def test_mistakes_are_named(self):
        made, other = session(), session()
        binding = made.io_binding()
        binding.bind_output("y")
        with self.assertRaises(RuntimeError) as caught:
            made.run_with_iobinding(binding)
        self.assertIn("'x' is not bound", str(caught.exception))
        with self.assertRaises(ValueError):
            other.run_with_iobinding(binding)
        with self.assertRaises(RuntimeError):
            binding.bind_cpu_input("z", X)
        with self.assertRaises(RuntimeError):
            binding.bind_output("z")
        with self.assertRaises(RuntimeError):
            binding.bind_output("y", "cuda")
        with self.assertRaises(RuntimeError):
            binding.bind_input("x", "cpu", 1, np.float32, [1, 4], X.ctypes.data)
        with self.assertRaises(ValueError):
            binding.bind_output("y", buffer_ptr=X.ctypes.data)
        for address in (1.5, str(X.ctypes.data), None, X):
            with self.assertRaises(TypeError):
                binding.bind_input("x", "cpu", 0, np.float32, [1, 4], address)
            if address is not None:
                with self.assertRaises(TypeError):
                    binding.bind_output("y", "cpu", 0, np.float32, [1, 4], address)
        with self.assertRaises(RuntimeError):
            binding.bind_cpu_input("x", X[:, :3])
        frozen = Y.copy()
        frozen.flags.writeable = False
        with self.assertRaises(RuntimeError):
            binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(frozen))

    def test_threads_take_turns(self):
        made = session(schedule=[0, 1])
        binding, wrong = made.io_binding(), []
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")

        def work():
            for _ in range(300):
                made.run_with_iobinding(binding)
                if not np.array_equal(binding.get_outputs()[0].numpy(), Y):
                    wrong.append(1)
                binding.bind_output("y")

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual((wrong, made.statistics()["completed"]), ([], 1200))

    def test_clearing(self):
        made = session()
        binding = made.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")
        binding.clear_binding_outputs()
        with self.assertRaises(RuntimeError):
            made.run_with_iobinding(binding)
        binding.bind_output("y")
        binding.clear_binding_inputs()
        with self.assertRaises(RuntimeError):
            made.run_with_iobinding(binding)

    def test_outlives_the_name_of_its_session(self):
        made = session()
        binding = made.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")
        made.run_with_iobinding(binding)
        del made
        gc.collect()
        np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), Y)


class Types(unittest.TestCase):
    def test_lenient_inputs_are_converted(self):
        made = ort.InferenceSession(relu_model((1, 4)), providers=[NPU])
        for kind in (np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, bool):
            x = np.array([[0, 1, 1, 0]]).astype(kind)
            np.testing.assert_array_equal(made.run(None, {"x": x})[0], x.astype(np.float32))

    def test_others_are_refused_and_named(self):
        made = ort.InferenceSession(relu_model((1, 4)), providers=[NPU])
        for kind, name in ((np.float64, "f64"), (np.uint64, "u64"), (">f4", ">f4"),
                           (np.complex64, "complex64")):
            with self.assertRaises(RuntimeError) as caught:
                made.run(None, {"x": X.astype(kind)})
            self.assertIn(name, str(caught.exception))


class Shapes(unittest.TestCase):
    def test_memory_stays_where_shapes_keep_changing(self):
        """Two products with up to 8 MB between them, in 280 sizes in turn."""
        done = child("""
            from onnx import TensorProto, helper, numpy_helper
            rng = np.random.default_rng(3)
            weights = [numpy_helper.from_array(rng.normal(size=size).astype(np.float32), name)
                       for name, size in (("w", (256, 1024)), ("v", (1024, 256)))]
            nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Sigmoid", ["a"], ["b"]),
                     helper.make_node("MatMul", ["b", "v"], ["y"])]
            value = helper.make_tensor_value_info
            graph = helper.make_graph(nodes, "sizes", [value("x", TensorProto.FLOAT, ["n", 256])],
                                      [value("y", TensorProto.FLOAT, ["n", 256])], weights)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
            s = ort.InferenceSession(model.SerializeToString(), providers=["RKNPU2ExecutionProvider"],
                                     provider_options=[{"device": "virtual:generic:1", "engine": "onnxruntime"}])
            def private_mb():
                with open("/proc/self/status") as status:
                    return int(next(line for line in status if line.startswith("RssAnon")).split()[1]) / 1024
            def run(n):
                s.run(None, {"x": np.zeros((int(n), 256), np.float32)})
            run(2000)
            sizes = rng.permutation(np.arange(1, 2000, 7))
            for n in sizes[:120]:
                run(n)
            before = private_mb()
            for n in sizes[120:]:
                run(n)
            print("grown by", private_mb() - before)
        """)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertLess(float(done.stdout.split()[-1]), 8)


if __name__ == "__main__":
    unittest.main()
