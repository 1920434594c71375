"""Custom operators written in Python."""
import gc
import threading
import unittest
import weakref

import numpy as np

import corelane as ort
from python_support import NPU, PATIENCE, X, child, model_of, session

Y3 = X * 3


def scale_model(outputs=1, domain="my"):
    from onnx import helper
    names = ["y"] + [f"z{i}" for i in range(1, outputs)]
    node = helper.make_node("Scale", ["x"], names, name="node", domain=domain, factor=3, words=["a", "b"],
                            weights=[0.5, 2.0], rate=0.25)
    return model_of([node], [("x", (1, 4))], [(name, (1, 4)) for name in names])


def scale(x, factor, **_):
    return x * np.float32(factor)


def run(function, model=None, **options):
    made = session(model=scale_model() if model is None else model, custom_operators={"Scale": function},
                   **options)
    return made.run(None, {"x": X})


class Functions(unittest.TestCase):
    def test_are_given_inputs_and_attributes_and_return_outputs(self):
        given = []

        def function(*inputs, **attributes):
            given.append((inputs, attributes))
            return inputs[0] * np.float32(attributes["factor"])

        np.testing.assert_array_equal(run(function)[0], Y3)
        (inputs, attributes), = given
        np.testing.assert_array_equal(inputs, [X])
        self.assertEqual(attributes, {"factor": 3, "words": ["a", "b"], "weights": [0.5, 2.0], "rate": 0.25})

    def test_may_keep_their_inputs(self):
        kept = []
        run(lambda x, **_: (kept.append(x), x)[1])
        gc.collect()
        np.testing.assert_array_equal(kept[0], X)

    def test_several_outputs(self):
        first, second = run(lambda x, **_: (x, -x), scale_model(2))
        np.testing.assert_array_equal(first, X)
        np.testing.assert_array_equal(second, -X)

    def test_lists_and_strides_are_taken(self):
        for result in (X.tolist(), np.asfortranarray(X), X.repeat(2, 1)[:, ::2]):
            np.testing.assert_array_equal(run(lambda x, **_: [result])[0], X)

    def test_by_domain_and_through_session_options(self):
        for name in ("Scale", "my.Scale"):
            options = ort.SessionOptions()
            options.add_custom_operator(name, scale)
            for providers in (None, [NPU]):
                made = ort.InferenceSession(scale_model(), options, providers)
                np.testing.assert_array_equal(made.run(None, {"x": X})[0], Y3)

    def test_program_files_bring_their_own_names(self):
        program = ort.compile(scale_model(), custom_operators=["Scale"])
        np.testing.assert_array_equal(run(scale, program)[0], Y3)
        with self.assertRaises(RuntimeError) as caught:
            session(model=program).run(None, {"x": X})
        self.assertIn("'Scale'", str(caught.exception))

    def test_run_on_all_cores_at_once(self):
        with self.assertWarns(UserWarning) as caught:
            made = session(model=scale_model(), custom_operators={"Scale": scale}, schedule=[0, 1, 2],
                           max_queue_size=64)
        self.assertIn("custom operators", str(caught.warning))
        figures = made.statistics()
        self.assertEqual((figures["contexts"], figures["duplicated"]), (3, 0))
        shown = made.get_provider_options()[NPU]
        self.assertEqual((shown["disable_dup_context"], shown["custom_operators"]), ("true", "Scale"))
        futures = [made.submit(None, {"x": X + i}) for i in range(30)]
        for i, future in enumerate(futures):
            np.testing.assert_array_equal(future.result(PATIENCE)[0], (X + i) * 3)

    def test_other_threads_go_on_while_they_wait(self):
        entered, go = threading.Event(), threading.Event()

        def patient(x, **_):
            entered.set()
            go.wait(PATIENCE)
            return x

        made = session(model=scale_model(), custom_operators={"Scale": patient})
        future = made.submit(None, {"x": X})
        self.assertTrue(entered.wait(PATIENCE))
        go.set()
        self.assertEqual(len(future.result(PATIENCE)), 1)

    def test_run_in_the_thread_that_calls_where_ctrl_c_cannot_reach_it(self):
        from onnx import helper
        # Of the first run of so many nodes with open dimensions nobody knows how long it takes: the main thread,
        # which has to hear of signals, leaves it to another one.
        names = ["x", *(f"n{i}" for i in range(401))]
        nodes = [helper.make_node("Neg", [a], [b]) for a, b in zip(names, names[1:])]
        nodes.append(helper.make_node("Scale", [names[-1]], ["y"], domain="my"))
        model = model_of(nodes, [("x", ("N", 4))], [("y", ("N", 4))])

        def ran_in_caller(start):
            ran_in = []
            made = session(model=model, engine="onnxruntime", cache=0,
                           custom_operators={"Scale": lambda x: (ran_in.append(threading.get_ident()), x)[1]})
            return start(lambda: made.run(None, {"x": X})) in ran_in

        def in_another_thread(call):
            thread = threading.Thread(target=call)
            thread.start()
            thread.join(PATIENCE)
            return thread.ident

        self.assertTrue(ran_in_caller(in_another_thread))
        self.assertFalse(ran_in_caller(lambda call: (call(), threading.get_ident())[1]))

    def test_go_with_their_session(self):
        class Function:
            def __call__(self, x, **_):
                return x

        function = Function()
        gone = weakref.ref(function)
        made = session(model=scale_model(), custom_operators={"Scale": function})
        made.run(None, {"x": X})
        del function
        made.close()
        del made
        gc.collect()
        self.assertIsNone(gone())

    def test_interpreter_may_end_with_tasks_in_them(self):
        import tempfile
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(scale_model())
            file.flush()
            result = child(f"""
                def slow(x, **_):
                    time.sleep(0.05)
                    return x
                s = ort.InferenceSession({file.name!r}, providers=[("RKNPU2ExecutionProvider",
                                         dict(custom_operators=dict(Scale=slow), schedule=[0]))])
                for i in range(3):
                    s.run_async(None, dict(x=X), lambda o, d, e: print("called", d, e), i)
            """)
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (0, "called 0 \ncalled 1 \ncalled 2 \n", ""))


class Failures(unittest.TestCase):
    def test_fail_the_task_and_nothing_else(self):
        calls = []

        def sometimes(x, **_):
            calls.append(1)
            if len(calls) % 2:
                raise KeyError("nothing here")
            return x

        made = session(model=scale_model(), custom_operators={"Scale": sometimes})
        for i in range(6):
            if i % 2:
                np.testing.assert_array_equal(made.run(None, {"x": X})[0], X)
            else:
                with self.assertRaises(RuntimeError) as caught:
                    made.run(None, {"x": X})
                for text in ("Scale", "node", "KeyError", "nothing here"):
                    self.assertIn(text, str(caught.exception))

    def test_results_must_be_those_of_the_model(self):
        for result, text in ((X.astype(np.float64), "f64"), (X[:, :2], "[1, 2]"), ((X, X), "2 outputs"),
                             ((), "0 outputs"),
                             (None, "NoneType"), ("text", "str")):
            with self.assertRaises(RuntimeError) as caught:
                run(lambda x, **_: result)
            self.assertIn(text, str(caught.exception))

    def test_operators_without_a_function_are_refused_with_the_model(self):
        with self.assertRaises(RuntimeError) as caught:
            session(model=scale_model())
        self.assertIn("Scale", str(caught.exception))

    def test_options_are_checked(self):
        for value in ({"Scale": 3}, {3: scale}, [scale], "Scale", {"": scale}):
            with self.assertRaises(RuntimeError) as caught:
                session(model=scale_model(), custom_operators=value)
            self.assertIn("custom_operators", str(caught.exception))
        with self.assertRaises(TypeError):
            ort.SessionOptions().add_custom_operator("Scale", None)

    def test_shared_weights_are_refused(self):
        from python_support import relu_model
        master = ort.InferenceSession(relu_model((1, 4)), providers=[NPU])
        with self.assertRaises(RuntimeError) as caught:
            ort.InferenceSession(scale_model(), providers=[(NPU, {"custom_operators": {"Scale": scale}})],
                                 weights_from=master)
        self.assertIn("custom operators", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
