"""Failures: Python reads their codes and details, and never a message."""
import os
import queue
import re
import unittest
from pathlib import Path
from unittest import mock

import corelane
from corelane import _errors, _native
from corelane._errors import StatusError, translated
from corelane._native import Code
from python_support import X, relu_model

MESSAGES = ("", "some other words", "cannot be prepared with open dimensions", "terminated by CallControl")


class Failures(unittest.TestCase):
    def failure_of(self, **options):
        with self.assertRaises(StatusError) as caught:
            _native.Session(relu_model(), {"device": "null:rk3566", **options})
        return caught.exception

    def test_every_code_has_an_exception(self):
        self.assertEqual(set(_errors._BY_CODE), set(Code) - {Code.OK})

    def test_code_and_details_come_from_the_library(self):
        unknown = self.failure_of(dims={"Q": 1})
        self.assertIs(unknown.code, Code.NOT_FOUND)
        self.assertEqual(unknown.details["dimension"], "Q")
        missing = self.failure_of(tp_mode="0,1")
        self.assertIs(missing.code, Code.OUT_OF_CORES)
        self.assertEqual(missing.details, {"given": "tp_mode 0,1", "limit": "1 core"})
        terms = _native.Terms()
        terms.terminate()
        session = _native.Session(relu_model(), {"device": "null:rk3566"})
        with self.assertRaises(StatusError) as caught:
            session.run(None, {"x": X}, terms)
        self.assertTrue(caught.exception.terminated)

    def test_a_short_result_is_a_failure_and_no_data(self):
        names = {"CORELANE_FAULTS": "short=1", "CORELANE_DEVICE": "virtual:rk3588?name=short"}
        with mock.patch.dict(os.environ, names):
            session = corelane.InferenceSession(relu_model(), providers=["CPUExecutionProvider"])
            native = _native.Session(relu_model(), {"device": names["CORELANE_DEVICE"]})
        for run in (lambda: session.run(None, {"x": X}),
                    lambda: session.run_with_iobinding(self.bound(session))):
            with self.assertRaises(corelane.capi.onnxruntime_pybind11_state.EngineError):
                run()
        done = queue.SimpleQueue()
        session.run_async(None, {"x": X}, lambda outputs, user, error: done.put((outputs, error)), None)
        outputs, error = done.get(timeout=60)
        self.assertFalse(outputs)
        self.assertIn("short", error)
        with self.assertRaises(StatusError) as caught:
            native.run(None, {"x": X})
        self.assertIs(caught.exception.code, Code.BAD_RESULT)

    @staticmethod
    def bound(session):
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")
        return binding

    def test_messages_decide_nothing(self):
        for message in MESSAGES:
            with self.subTest(message=message):
                for code, details, text in (
                        (Code.CANCELLED, {"given": "terminate"}, "terminate flag"),
                        (Code.UNSUPPORTED_MODEL, {"dimension": "N"}, "add_free_dimension_override_by_name")):
                    self.assertIn(text, str(translated(StatusError(code, message, details), strict=True)))
                    self.assertNotIn(text, str(translated(StatusError(code, message), strict=True)))

    def test_no_module_looks_into_a_message(self):
        looks = re.compile(r"\bin str\(|\bstr\((error|problem|raised)\)\s*[.\[]|\bimport re\b")
        for path in sorted(Path(corelane.__file__).parent.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if path.name == "onnx_edit.py":
                text = text.replace("import re\n", "")  # It reads equations.
            with self.subTest(path=path.name):
                self.assertIsNone(looks.search(text))


if __name__ == "__main__":
    unittest.main()
