"""What ONNX Runtime's own Python test file asks of a package: one case for each of its tests that asks
anything on a machine without other devices, in words and with models of our own.

python suite_test.py onnxruntime|corelane
"""
import gc
import importlib
import json
import os
import pathlib
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from python_support import PATIENCE, model_of

ENGINE = sys.argv.pop(1) if len(sys.argv) > 1 else "corelane"
ort = importlib.import_module(ENGINE)
state = importlib.import_module(f"{ENGINE}.capi.onnxruntime_pybind11_state")
collection = importlib.import_module(f"{ENGINE}.capi.onnxruntime_inference_collection")

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
ALL = ort.get_available_providers()


def floats(*rows):
    return [numpy_helper.from_array(np.array(values, np.float32), name) for name, values in rows]


def mul(shape=(3, 2)):
    """Y = X * W, with the constant W = [[1, 2], [3, 4], [5, 6]]."""
    return model_of([helper.make_node("Mul", ["X", "W"], ["Y"])], [("X", shape)], [("Y", shape)],
                    initializer=floats(("W", X)))


def matmul(rows=3):
    """Y = X @ [[1], [2]]."""
    return model_of([helper.make_node("MatMul", ["X", "W"], ["Y"])], [("X", (rows, 2))], [("Y", (rows, 1))],
                    initializer=floats(("W", [[1], [2]])))


def both():
    """output:0 = input1:0 and input:0, whose order is not that of the alphabet."""
    kind = TensorProto.BOOL
    return model_of([helper.make_node("And", ["input1:0", "input:0"], ["output:0"])],
                    [("input1:0", (2, 2), kind), ("input:0", (2, 2), kind)], [("output:0", (2, 2), kind)])


def open_model():
    """y = |x| for x [Dim1, Dim2, 5], whose dimensions are marked as batch and channel."""
    model = onnx.load_from_string(model_of([helper.make_node("Abs", ["x"], ["y"])],
                                           [("x", ("Dim1", "Dim2", 5))], [("y", ("Dim1", "Dim2", 5))]))
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[0].denotation, dims[1].denotation = "DATA_BATCH", "DATA_CHANNEL"
    return model.SerializeToString()


def stored(name="weights.bin"):
    """Y = X * W whose W lies in a file of that name."""
    (weights,) = floats(("W", X))
    onnx.external_data_helper.set_external_data(weights, name, offset=0, length=24)
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    return model_of([helper.make_node("Mul", ["X", "W"], ["Y"])], [("X", (3, 2))], [("Y", (3, 2))],
                    initializer=[weights])


class Suite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        before = os.getcwd()
        os.chdir(folder.name)
        self.addCleanup(os.chdir, before)

    def session(self, model, options=None, providers=ALL):
        return ort.InferenceSession(model, options, providers=providers)

    # --- Names and lists.

    def test_versions_and_device(self):
        self.assertTrue(ort.get_version_string())
        self.assertIn("Build Info", ort.get_build_info())
        self.assertIn("CPU", ort.get_device())
        ort.disable_telemetry_events()
        ort.enable_telemetry_events()

    def test_all_providers_at_once_mean_the_default(self):
        self.assertEqual(ort.get_all_providers()[-1], "CPUExecutionProvider")
        for providers in (ALL, [name for name in ALL], tuple(ALL), sorted(ALL)):
            session = self.session(mul(), providers=providers)
            self.assertIn("CPUExecutionProvider", session.get_providers())
            with self.assertRaises(state.InvalidArgument):  # The rules are onnxruntime's.
                session.run(None, {"X": X.astype(np.float64)})

    def test_unknown_provider_of_a_session_that_exists(self):
        with self.assertRaises(RuntimeError) as caught:
            self.session(mul(), providers=["CPUExecutionProvider"]).set_providers(["InvalidProvider"])
        self.assertIn("Unknown Provider Type: InvalidProvider", str(caught.exception))

    def test_lists_of_providers_are_normalized(self):
        check = collection.check_and_normalize_provider_args
        known = ["a", "b", "c"]
        self.assertEqual(check(None, None, known), ([], []))
        self.assertEqual(check(["a", "b"], None, known), (["a", "b"], [{}, {}]))
        self.assertEqual(check([("a", {1: 2}), "b"], None, known), (["a", "b"], [{"1": "2"}, {}]))
        self.assertEqual(check(["a", "b"], [{1: 2}, {}], known), (["a", "b"], [{"1": "2"}, {}]))
        with self.assertWarns(UserWarning):
            self.assertEqual(check(["a", "b", "a"], [{"x": 1}, {}, {"y": 2}], known),
                             (["a", "b"], [{"x": "1"}, {}]))
        for wrong in ((3, None), ([3], None), (["a"], 3), (["a"], ["not dict"]), (["a", "b"], [{1: 2}]),
                      ([("a", {1: 2})], [{3: 4}])):
            with self.assertRaises(ValueError):
                check(*wrong, known)

    # --- Runs.

    def test_paths_and_bytes(self):
        with open("mul.onnx", "wb") as file:
            file.write(mul())
        for model in (pathlib.Path("mul.onnx"), "mul.onnx", mul()):
            np.testing.assert_array_equal(self.session(model).run(["Y"], {"X": X})[0], X * X)

    def test_descriptions_of_memory(self):
        session = self.session(mul())
        for infos in (session.get_input_memory_infos(), session.get_output_memory_infos()):
            self.assertEqual(len(infos), 1)
            self.assertIsNotNone(infos[0])
        self.assertEqual(len(session.get_input_epdevices()), 1)
        self.assertEqual([(n.name, n.shape) for n in session.get_inputs() + session.get_outputs()],
                         [("X", [3, 2]), ("Y", [3, 2])])

    def test_callbacks(self):
        options, done, seen = ort.SessionOptions(), threading.Event(), []
        options.intra_op_num_threads = 2

        def callback(outputs, data, error):
            seen.append((outputs, data, error))
            done.set()

        self.session(mul(), options).run_async(["Y"], {"X": X}, callback, 123)
        self.assertTrue(done.wait(PATIENCE))
        (outputs, data, error), = seen
        np.testing.assert_array_equal(outputs[0], X * X)
        self.assertEqual((data, error), (123, ""))

    def test_strides_and_lists(self):
        backwards = X[:, [1, 0]][:, [1, 0]]
        np.testing.assert_array_equal(self.session(matmul()).run(None, {"X": backwards})[0], X @ [[1], [2]])
        np.testing.assert_array_equal(self.session(mul()).run([], {"X": X.tolist()})[0], X * X)

    def test_open_dimensions_keep_their_names(self):
        session = self.session(matmul("None"))
        self.assertEqual([session.get_inputs()[0].shape, session.get_outputs()[0].shape],
                         [["None", 2], ["None", 1]])
        np.testing.assert_array_equal(session.run(["Y"], {"X": X})[0], X @ [[1], [2]])

    def test_truth_values_in_the_order_of_the_model(self):
        session = self.session(both())
        self.assertEqual([(n.name, n.shape, n.type) for n in session.get_inputs()],
                         [("input1:0", [2, 2], "tensor(bool)"), ("input:0", [2, 2], "tensor(bool)")])
        a, b = np.array([[True, True], [False, False]]), np.array([[True, False], [True, False]])
        np.testing.assert_array_equal(session.run(None, {"input1:0": a, "input:0": b})[0], a & b)
        with self.assertRaises(ValueError) as caught:
            session.run([], {"input:0": a})
        self.assertIn("Required inputs (['input1:0']) are missing from input feed (['input:0'])",
                      str(caught.exception))

    def test_threads_share_a_session(self):
        session, results = self.session(mul()), []

        def work(name):
            options = ort.RunOptions()
            options.logid = name
            results.append(session.run([], {"X": X}, run_options=options)[0])

        threads = [threading.Thread(target=work, args=(name,)) for name in ("1", "2")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(results, [X * X] * 2)

    def test_outputs_never_alias_inputs(self):
        model = model_of([helper.make_node("Add", ["x", "ten"], ["plus"])], [("x", (1, 2, 2, 2))],
                         [("plus", (1, 2, 2, 2)), ("x", (1, 2, 2, 2))], initializer=floats(("ten", 10)))
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session, kept = self.session(model, options, ["CPUExecutionProvider"]), []
        for number in range(7):
            given = np.full((1, 2, 2, 2), number, np.float32)
            kept.append(session.run(None, {"x": given}))
            self.assertFalse(np.shares_memory(kept[-1][1], given))
        for number, (plus, same) in enumerate(kept):
            np.testing.assert_array_equal((plus, same), [np.full((1, 2, 2, 2), number + 10),
                                                         np.full((1, 2, 2, 2), number)])

    def test_outputs_are_views_of_the_sessions_memory(self):
        self.assertIsNotNone(self.session(mul()).run(None, {"X": X})[0].base)

    def test_arena_entries_are_taken(self):
        options = ort.RunOptions()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self.assertEqual(options.get_run_config_entry("memory.enable_memory_arena_shrinkage"), "cpu:0")
        self.session(mul()).run([], {"X": X}, options)

    def test_initializers_that_are_inputs_too(self):
        model = model_of([helper.make_node("Mul", ["X", "W"], ["Y"])], [("X", (3, 2)), ("W", (3, 2))],
                         [("Y", (3, 2))], initializer=floats(("W", X)))
        np.testing.assert_array_equal(self.session(model).run(None, {"X": X}, ort.RunOptions())[0], X * X)

    # --- Options of sessions.

    def test_levels_and_modes(self):
        options = ort.SessionOptions()
        self.assertEqual(options.graph_optimization_level, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
        self.assertEqual(options.execution_mode, ort.ExecutionMode.ORT_SEQUENTIAL)
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        self.assertEqual(options.execution_mode, ort.ExecutionMode.ORT_PARALLEL)
        self.session(both(), options)

    def test_entries(self):
        options = ort.SessionOptions()
        options.add_session_config_entry("KEY", "VALUE")
        self.assertEqual(options.get_session_config_entry("KEY"), "VALUE")
        with self.assertRaises(RuntimeError) as caught:
            options.get_session_config_entry("OTHER")
        self.assertIn("SessionOptions does not have configuration with key: OTHER", str(caught.exception))

    def test_dimensions_by_name_and_by_denotation(self):
        by_name, by_denotation = ort.SessionOptions(), ort.SessionOptions()
        by_name.add_free_dimension_override_by_name("Dim1", 4)
        by_name.add_free_dimension_override_by_name("Dim2", 6)
        by_denotation.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
        by_denotation.add_free_dimension_override_by_denotation("DATA_CHANNEL", 5)
        self.assertEqual(self.session(open_model(), by_name).get_inputs()[0].shape, [4, 6, 5])
        self.assertEqual(self.session(open_model(), by_denotation).get_inputs()[0].shape, [3, 5, 5])

    def test_initializers_of_the_caller(self):
        options = ort.SessionOptions()
        value = ort.OrtValue.ortvalue_from_numpy(np.array([[2, 1], [4, 3], [6, 5]], np.float32))
        options.add_initializer("W", value)
        unknown = ort.OrtValue.ortvalue_from_numpy(np.ones(1, np.float32))
        options.add_initializer("nothing of that name", unknown)
        with self.assertRaises(RuntimeError):
            options.add_initializer("W", value)
        session = self.session(mul(), options, ["CPUExecutionProvider"])
        np.testing.assert_array_equal(session.run(["Y"], {"X": X})[0], [[2, 2], [12, 12], [30, 30]])

    def test_initializers_of_files_that_are_not_there(self):
        value, content = ort.OrtValue.ortvalue_from_numpy(X), X.tobytes()
        by_value, by_file = ort.SessionOptions(), ort.SessionOptions()
        by_value.add_external_initializers(["W"], [value])
        by_file.add_external_initializers_from_files_in_memory(["weights.bin"], [content], [24])
        for options in (by_value, by_file):
            session = self.session(stored(), options, ["CPUExecutionProvider"])
            np.testing.assert_array_equal(session.run(None, {"X": X})[0], X * X)
        for name in ("absent", "W"):  # Which does not lie in a file there.
            options = ort.SessionOptions()
            options.add_external_initializers([name], [value])
            with self.assertRaises(state.Fail):
                self.session(mul(), options, ["CPUExecutionProvider"])

    def test_settings_that_the_model_holds(self):
        model = onnx.load_from_string(mul())
        entry = model.metadata_props.add()
        entry.key, entry.value = "ort_config", json.dumps({"session_options": {
            "inter_op_num_threads": 5, "intra_op_num_threads": 2, "graph_optimization_level": 99,
            "enable_profiling": 1}})
        with mock.patch.dict(os.environ, ORT_LOAD_CONFIG_FROM_MODEL="1"):
            session = self.session(model.SerializeToString())
        options = session.get_session_options()
        self.assertEqual((options.inter_op_num_threads, options.intra_op_num_threads, options.enable_profiling),
                         (5, 2, True))
        os.remove(session.end_profiling())

    def test_the_model_is_written(self):
        options = ort.SessionOptions()
        options.optimized_model_filepath = "written.onnx"
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        self.session(mul(), options)
        np.testing.assert_array_equal(self.session("written.onnx").run(None, {"X": X})[0], X * X)

    def test_the_model_is_written_in_parts(self):
        os.mkdir("folder")
        source = mul()
        for target, least in (("one.onnx", "1"), ("folder/two.onnx", "10"), ("three.onnx", "1")):
            options = ort.SessionOptions()
            options.optimized_model_filepath = target
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
            other = target.rpartition("/")[2] + ".bin"
            options.add_session_config_entry("session.optimized_model_external_initializers_file_name", other)
            options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes",
                                             least)
            self.session(source, options)
            self.assertTrue(os.path.isfile(os.path.join(os.path.dirname(target), other)))
            if isinstance(source, str):
                os.remove(source)  # What was written does not refer to what it was made from.
            source = target
        np.testing.assert_array_equal(self.session(source).run(None, {"X": X})[0], X * X)

    def test_nodes_by_provider(self):
        model = model_of([helper.make_node("Add", ["x", "W"], ["a"], name="add_0"),
                          helper.make_node("Mul", ["a", "W"], ["b"], name="mul_0"),
                          helper.make_node("Add", ["b", "W"], ["y"], name="add_1")], [("x", (3, 2))],
                         [("y", (3, 2))], initializer=floats(("W", X)))
        with self.assertRaises(state.Fail) as caught:
            self.session(model).get_provider_graph_assignment_info()
        self.assertIn("Session configuration entry 'session.record_ep_graph_assignment_info' must be set to "
                      '"1"', str(caught.exception))
        options = ort.SessionOptions()
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        parts = self.session(model, options).get_provider_graph_assignment_info()
        self.assertEqual({part.ep_name for part in parts}, {"CPUExecutionProvider"})
        self.assertCountEqual([(n.domain, n.op_type, n.name) for part in parts for n in part.get_nodes()],
                              [("", "Add", "add_0"), ("", "Mul", "mul_0"), ("", "Add", "add_1")])

    def test_profiles(self):
        starts = []
        for _ in range(3):
            options = ort.SessionOptions()
            options.enable_profiling = True
            session = self.session(mul(), options)
            starts.append(session.get_profiling_start_time_ns())
            session.run([], {"X": X})
            path = session.end_profiling()
            with open(path, encoding="utf-8") as file:
                lines = file.readlines()
            os.remove(path)
            self.assertIn("[", lines[0])
            self.assertIn("]", lines[-1])
            for line in lines[1:-1]:
                for tag in ("pid", "dur", "ts", "ph", "X", "name", "args"):
                    self.assertIn(tag, line)
        self.assertEqual(starts, sorted(starts))

    # --- Values and memory.

    def test_values(self):
        value = ort.OrtValue.ortvalue_from_numpy(X)
        self.assertEqual((value.device_name(), value.shape(), value.data_type(), value.is_tensor(),
                          value.tensor_size_in_bytes()), ("cpu", [3, 2], "tensor(float)", True, 24))
        session = self.session(mul())
        np.testing.assert_array_equal(session.run(["Y"], {"X": value})[0], X * X)
        vector = session._sess.run_with_ort_values({"X": value._get_c_value()}, ["Y"], state.RunOptions())
        self.assertIsInstance(vector, state.OrtValueVector)
        np.testing.assert_array_equal(vector[0].numpy(), X * X)
        np.testing.assert_array_equal(value.numpy(), X)
        typed = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(X, 1)
        self.assertEqual((typed.is_tensor(), typed.element_type(), typed.shape()), (True, 1, [3, 2]))

    def test_vectors(self):
        session, fetches = self.session(mul()), state.OrtValueVector()
        feeds = state.OrtValueVector()
        value = ort.OrtValue.ortvalue_from_numpy(X)
        feeds.push_back(value._ortvalue)
        session.run_with_ortvaluevector(ort.RunOptions(), ["X"], feeds, ["Y"], fetches,
                                        [ort.OrtDevice.make("cpu", 0)._get_c_device()]
                                        if hasattr(ort.OrtDevice, "_get_c_device") else [])
        np.testing.assert_array_equal(fetches[0].numpy(), X * X)
        self.assertEqual(fetches.element_type_at(0), 1)

    def test_memory_goes_through_capsules(self):
        value = ort.OrtValue.ortvalue_from_numpy(X)
        inner = value._ortvalue
        for capsule in (inner.to_dlpack(), inner.__dlpack__()):
            self.assertFalse(state.is_dlpack_uint8_tensor(capsule))
            other = state.OrtValue.from_dlpack(capsule, False)
            self.assertEqual(other.data_ptr(), inner.data_ptr())
            np.testing.assert_array_equal(other.numpy(), X)
        self.assertEqual(inner.__dlpack_device__(), (1, 0))
        self.assertEqual(value.__dlpack_device__(), (1, 0))
        np.testing.assert_array_equal(ort.OrtValue.from_dlpack(value.__dlpack__()).numpy(), X)

    def test_empty_memory_goes_through_capsules(self):
        for shape in ((1, 8, 0, 128), (0,), (0, 4), (4, 0)):
            value = state.OrtValue.from_dlpack(np.zeros(shape, np.float32).__dlpack__(), False)
            self.assertEqual(list(value.shape()), list(shape))
            again = state.OrtValue.from_dlpack(
                ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32))._ortvalue.to_dlpack(), False)
            self.assertEqual(list(again.shape()), list(shape))

    def test_values_of_values(self):
        given = np.arange(4, dtype=np.float32)
        first = ort.OrtValue.from_dlpack(given)
        np.testing.assert_array_equal(first.numpy(), given)
        source = ort.OrtValue.ortvalue_from_numpy(given)
        other = ort.OrtValue.from_dlpack(source)
        self.assertEqual(source.data_ptr(), other.data_ptr())
        truths, octets = np.array([True, False, True]), np.array([1, 2, 255], np.uint8)
        for array in (truths, octets):
            result = ort.OrtValue.from_dlpack(ort.OrtValue.ortvalue_from_numpy(array)).numpy()
            np.testing.assert_array_equal(result, array)
            self.assertEqual(result.dtype, array.dtype)

    def test_values_are_arrays(self):
        value = ort.OrtValue.ortvalue_from_numpy(X)
        for array in (np.asarray(value), np.asarray(value, dtype=np.float32)):
            self.assertEqual(array.ctypes.data, value.data_ptr())
            np.testing.assert_array_equal(array, X)
        np.testing.assert_array_equal(np.array(value), X)
        wide = np.asarray(value, dtype=np.float64)
        self.assertEqual(wide.dtype, np.float64)
        np.testing.assert_array_equal(wide, X)
        for array in (np.array([1, 2, 3]), np.array([True, False])):
            given = np.asarray(ort.OrtValue.ortvalue_from_numpy(array))
            self.assertEqual(given.dtype, array.dtype)
            np.testing.assert_array_equal(given, array)

    def test_devices(self):
        cpu, cuda = ort.OrtDevice.make("cpu", 0), ort.OrtDevice.make("cuda", 0)
        self.assertEqual((cpu.device_id(), cpu.device_type(), cpu.device_mem_type()), (0, 0, 0))
        self.assertEqual(cpu.device_vendor_id(), ort.OrtDeviceVendorId.NONE)
        self.assertEqual(cuda.device_vendor_id(), ort.OrtDeviceVendorId.NVIDIA)
        self.assertEqual(ort.OrtDeviceVendorId.NVIDIA, 0x10DE)

    def test_descriptions_of_allocators(self):
        arena = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR
        short = ort.OrtMemoryInfo("Cpu", arena, 0, ort.OrtMemType.DEFAULT)
        long = ort.OrtMemoryInfo.create_v2("Cpu", ort.OrtMemoryInfoDeviceType.CPU, 0, 0,
                                           ort.OrtDeviceMemoryType.DEFAULT, 128, arena)
        for info in (short, long):
            self.assertEqual((info.name, info.device_id, info.device_vendor_id), ("Cpu", 0, 0))
            self.assertEqual((info.mem_type, info.allocator_type), (ort.OrtMemType.DEFAULT, arena))
            self.assertEqual(info.device_mem_type, ort.OrtDeviceMemoryType.DEFAULT)
        ort.create_and_register_allocator(short, None)
        options = ort.SessionOptions()
        options.add_session_config_entry("session.use_env_allocators", "1")
        self.session(mul(), options)

    def test_sizes_of_arenas(self):
        four = ort.OrtArenaCfg(8, 0, 4, 2)
        self.assertEqual((four.max_mem, four.arena_extend_strategy, four.initial_chunk_size_bytes,
                          four.max_dead_bytes_per_chunk), (8, 0, 4, 2))
        sizes = {"max_mem": 32, "arena_extend_strategy": 11, "initial_chunk_size_bytes": 18,
                 "max_dead_bytes_per_chunk": 14, "initial_growth_chunk_size_bytes": 12,
                 "max_power_of_two_extend_bytes": 17}
        self.assertEqual({name: getattr(ort.OrtArenaCfg(sizes), name) for name in sizes}, sizes)
        with self.assertRaises(RuntimeError):
            ort.OrtArenaCfg({"nothing": 1})

    def sparse(self, make, form, *indices):
        cpu = ort.OrtDevice.make("cpu", 0)
        for values, name in ((np.array([1, 2, 3], np.float32), "sparse_tensor(float)"),
                             (np.array(["x", "y", "z"]), "sparse_tensor(string)")):
            tensor = make([9, 9], values, *indices, cpu)
            self.assertEqual((tensor.format(), tensor.dense_shape(), tensor.data_type(), tensor.device_name()),
                             (form, [9, 9], name, "cpu"))
            np.testing.assert_array_equal(tensor.values(), values)
            with self.assertRaises(RuntimeError):
                tensor.to_cuda(ort.OrtDevice.make("cuda", 0))
        return make([9, 9], np.array([1, 2, 3], np.float32), *indices, cpu)

    def test_sparse_coordinates(self):
        tensor = self.sparse(ort.SparseTensor.sparse_coo_from_numpy, ort.OrtSparseFormat.ORT_SPARSE_COO,
                             np.array([3, 5, 15]))
        value = ort.OrtValue.ort_value_from_sparse_tensor(tensor)
        indices = value.as_sparse_tensor().as_coo_view().indices()
        values = tensor.values()
        del tensor, value
        gc.collect()
        np.testing.assert_array_equal(indices, [3, 5, 15])
        self.assertFalse(indices.flags.writeable or values.flags.writeable)

    def test_sparse_rows(self):
        outer = np.array([0, 1, 2, 3, 3, 3, 3, 3, 3, 3])
        tensor = self.sparse(ort.SparseTensor.sparse_csr_from_numpy, ort.OrtSparseFormat.ORT_SPARSE_CSRC,
                             np.array([1, 1, 1]), outer)
        np.testing.assert_array_equal(tensor.as_csrc_view().inner(), [1, 1, 1])
        np.testing.assert_array_equal(tensor.as_csrc_view().outer(), outer)
        with self.assertRaises(RuntimeError):
            tensor.as_coo_view()

    def test_adapter_file(self):
        made = ort.AdapterFormat()
        made.set_adapter_version(1)
        made.set_model_version(1)
        value = ort.OrtValue.ortvalue_from_numpy(X)
        made.set_parameters({"p": value})
        made.export_adapter("a.onnx_adapter")
        read = ort.AdapterFormat.read_adapter("a.onnx_adapter")
        self.assertEqual((read.get_adapter_version(), read.get_model_version()), (1, 1))
        ((name, other),) = read.get_parameters().items()
        self.assertEqual((name, other.is_tensor(), other.element_type(), other.shape()), ("p", True, 1, [3, 2]))
        np.testing.assert_array_equal(other.numpy(), X)

    # --- What is not served.

    def strings(self, given, read=np.asarray):
        kind = TensorProto.STRING
        session = self.session(model_of([helper.make_node("Identity", ["x"], ["y"])], [("x", (2, 2), kind)],
                                        [("y", (2, 2), kind)]))
        np.testing.assert_array_equal(read(session.run(None, {"x": given})[0]), given)

    def test_strings(self):
        self.strings(np.array([["this", "is"], ["a", "test"]]))

    def test_lists_of_strings(self):
        self.strings([["this", "is"], ["a", "test"]])

    def test_other_alphabets(self):
        self.strings(np.array([["ж", "ü"], ["水", "Ω"]]))

    def test_objects_are_strings(self):
        self.strings(np.array([["this", "is"], ["a", "test"]], object))

    def test_bytes_are_strings(self):
        self.strings(np.array([[b"ab", b"cd"], [b"ef", b"gh"]]), lambda result: result.astype("S2"))

    def test_void_is_strings(self):
        self.strings(np.array([[b"ab", b"cd"], [b"ef", b"gh"]], np.void),
                     lambda result: np.array([[text.encode() for text in row] for row in result], np.void))

    def sequences(self, op, inputs, output, feed):
        def value(name, kind, shape):
            if kind == "seq":
                return helper.make_tensor_sequence_value_info(name, TensorProto.INT64, None)
            return helper.make_tensor_value_info(name, TensorProto.INT64, shape)

        graph = helper.make_graph([helper.make_node(op, [name for name, _ in inputs], ["y"])], "g",
                                  [value(name, kind, [2]) for name, kind in inputs], [value("y", output, [])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
        return self.session(model.SerializeToString()).run(None, feed)[0]

    def test_length_of_a_sequence(self):
        self.assertEqual(self.sequences("SequenceLength", [("x", "seq")], "tensor",
                                        {"x": [np.arange(2)] * 2}), 2)

    def test_sequence_of_tensors(self):
        self.assertEqual(len(self.sequences("SequenceConstruct", [("a", "tensor"), ("b", "tensor")], "seq",
                                            {"a": np.arange(2), "b": np.arange(2)})), 2)

    def test_insertion_into_a_sequence(self):
        self.assertEqual(len(self.sequences("SequenceInsert", [("x", "seq"), ("a", "tensor")], "seq",
                                            {"x": [], "a": np.arange(2)})), 1)

    def test_optional_sequence(self):
        self.assertEqual(len(self.sequences("Identity", [("x", "seq")], "seq", {"x": [np.arange(2)]})), 1)

    def test_trees(self):
        node = helper.make_node(
            "TreeEnsembleClassifier", ["X"], ["label", "probs"], domain="ai.onnx.ml", nodes_treeids=[0],
            nodes_nodeids=[0], nodes_featureids=[0], nodes_values=[0.0], nodes_modes=["LEAF"],
            nodes_truenodeids=[0], nodes_falsenodeids=[0], nodes_missing_value_tracks_true=[0],
            nodes_hitrates=[1.0], class_treeids=[0], class_nodeids=[0], class_ids=[0], class_weights=[0.0],
            classlabels_int64s=[0, 1], post_transform="LOGISTIC", base_values=[-0.405])
        model = model_of([node], [("X", (1, 3))], [("label", (1,), TensorProto.INT64), ("probs", (1, 2))])
        self.session(model).run(None, {"X": np.ones((1, 3), np.float32)})


if __name__ == "__main__":
    unittest.main()
