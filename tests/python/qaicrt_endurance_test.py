"""corelane.qaicrt for long: memory and threads stay level over 20,000 inferences, 1,000 contexts and 6,000
profiling handles of each kind."""
import ctypes
import gc
import os
import sys
import unittest

import numpy as np

from corelane import qaicrt
from qaicrt_support import X, Y, program, relu

INFERENCES, CONTEXTS, HANDLES = 20_000, 1_000, 6_000
ALLOWED = 4 << 20  # Bytes: a leak of 210 bytes an inference, or of 4 KiB a context, is more.


def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # Else megabytes of free heap go, or stay, at any time.
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Endurance(unittest.TestCase):
    def level(self, step, count, warm):
        """`step(n)`, so many times after `warm` ones: neither memory nor references nor threads grow."""
        for n in range(warm):
            step(n)
        before = resident(), len(os.listdir("/proc/self/task")), sys.getrefcount(X), len(gc.get_objects())
        for n in range(count):
            step(n)
        after = resident(), len(os.listdir("/proc/self/task")), sys.getrefcount(X), len(gc.get_objects())
        self.assertLess(after[0] - before[0], ALLOWED)
        self.assertLess(after[1] - before[1], 20)  # A device starts its threads when their cores are used.
        self.assertLessEqual(after[2], before[2] + 4)
        self.assertLess(after[3] - before[3], 100)

    def test_inferences_of_an_execution_object(self):
        context, qpc = qaicrt.Context(0), qaicrt.Qpc(relu())
        queue, program = qaicrt.Queue(context, 0), qaicrt.Program(context, 0, qpc)
        object_ = qaicrt.ExecObj(context, program)

        def step(n):
            y = bytes(16) if n % 2 else np.empty_like(X)
            self.assertEqual(object_.setData([qaicrt.QBuffer(X.tobytes()), y], [(4, [1, 4])] * 2), 0)
            self.assertEqual((queue.enqueue(object_), object_.waitForCompletion()), (0, 0))
            found = np.frombuffer(object_.getData()[1][1], np.float32)
            self.assertEqual(found[1], Y[0, 1])

        self.level(step, INFERENCES // 2, 1000)

    def test_inferences_of_a_set(self):
        context, qpc = qaicrt.Context(0), qaicrt.Qpc(relu())
        made, vector = qaicrt.InferenceSet(context, qpc, 0, 2, 1), qaicrt.InferenceVector(qpc)

        def step(n):
            if n % 2:
                self.assertEqual(made.submit(vector, n), 0)
            else:
                handle = made.getAvailable()[1]
                self.assertEqual((handle.setBuffers([X, np.empty_like(X)]), made.submit(handle, n)), (0, 0))
            status, handle = made.getCompletedId(n)
            self.assertEqual((status, made.putCompleted(handle)), (0, 0))

        self.level(step, INFERENCES // 2, 1000)

    def test_contexts_with_all_that_is_made_of_them(self):
        data = bytes(qaicrt.Qpc(relu()).buffer())
        lines = []

        def step(n):
            context = qaicrt.Context(0, log=lambda level, text: lines.append(text))
            qpc = qaicrt.Qpc(data, makeCopy=bool(n % 2))
            queue = qaicrt.Queue(context, 0)
            object_ = qaicrt.ExecObj(context, qaicrt.Program(context, 0, qpc), [X, bytes(16)])
            if n % 10 == 0:  # What an activation costs, the device decides.
                self.assertEqual(queue.enqueue(object_), 0)
                made = qaicrt.InferenceSet(context, qpc, 0, 2, 1)
                self.assertEqual(made.submit(qaicrt.InferenceVector(qpc), n), 0)

        self.level(step, CONTEXTS, 100)
        self.assertEqual(lines, [])

    def test_profiling_handles(self):
        # In a process of its own, whose heap holds nothing that was freed before: 250 bytes a handle are more.
        done = program(f"""
            def resident():
                gc.collect()
                with open("/proc/self/statm", encoding="ascii") as file:
                    return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            context, qpc, program, queue = parts()
            x, reports = ExecObj(context, program, [X, X.copy()]), []
            def step(n):
                handle = ProfilingHandle(program, 1, lambda report: reports.append(n))
                stream = StreamProfilingHandle(QAIC_PROFILING_SAMPLING_RATE_FULL,
                                               QAIC_PROFILING_REPORTING_RATE_4000_MS, lambda report: None, regex="P.*")
                assert handle.start() == stream.start() == x.run() == handle.stop() == stream.stop() == QS_SUCCESS
                assert reports.pop() == n and not reports
            for n in range(1000):
                step(n)
            before = resident()
            for n in range({HANDLES}):
                step(n)
            grown = resident() - before
            print(grown < {HANDLES} * 250, len(os.listdir("/proc/self/task")) < 20)
            """, "null:generic:4?a=10us")
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "True True\n"))


if __name__ == "__main__":
    unittest.main()
