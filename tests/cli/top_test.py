"""top: the cores of a device by who holds them, with figures of another process.

python top_test.py BUILD/bin/corelane
"""
import json
import os
import pty
import signal
import subprocess
import termios
import time

import cli_support
from cli_support import CliTest, main

DEVICE = "virtual:generic:4?lease=1&name=watched"


class Top(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.path / "run").mkdir(mode=0o700)
        cls.env = {"CORELANE_RUN_DIR": str(cls.path / "run")}
        result = cli_support.run("compile", cls.path / "fixed.onnx", "--target", "aic100", "-o", cls.path / "net",
                                 "--cores", "2")
        assert result.returncode == 0, result.stderr

    def worker(self):
        """A process that holds two cores and works, until it is ended."""
        process = subprocess.Popen([cli_support.CORELANE, "qaic-runner", "-t", str(self.path / "net"), "-d", DEVICE,
                                    "--time", "100", "-l", "-r", "200"], stderr=subprocess.PIPE, text=True,
                                   stdout=subprocess.DEVNULL, env={**os.environ, **self.env})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stderr.readline()
        process.stderr.readline()  # It has published by now.
        return process

    def test_without_holders_there_is_one_plain_table(self):
        text = self.ok("top", DEVICE, "--period", "0.1", env=self.env).stdout
        self.assertEqual(text.count("busy"), 1)
        self.assertIn("no core is held by a lease", text)
        self.assertEqual([line.split()[0] for line in text.splitlines()[2:6]], ["0", "1", "2", "3"])
        self.assertNotIn("\x1b", text)

    def test_figures_of_another_process_come_through_its_leases(self):
        process = self.worker()
        out = json.loads(self.ok("top", DEVICE, "-n", "2", "--period", "0.6", "--json", env=self.env).stdout)
        self.assertEqual(len(out["rounds"]), 2)
        last = out["rounds"][-1]
        held = [c for c in last["cores"] if c["process"]]
        self.assertEqual([c["process"] for c in held], [str(process.pid)] * 2)
        for core in held:
            self.assertGreater(core["jobs"], 0)
            self.assertGreater(core["jobs_per_second"], 0)
            self.assertTrue(0 < core["busy"] <= 1, core)
            self.assertGreaterEqual(core["waiting"], 0)
        self.assertEqual(len(last["sets"]), 1)
        self.assertEqual(last["sets"][0]["cores"], [c["core"] for c in held])
        self.assertTrue(last["sets"][0]["set"])
        text = self.ok("top", DEVICE, "--period", "0.3", env=self.env).stdout
        self.assertIn(f"{process.pid} (corelane)", text)
        process.kill()
        process.wait()
        self.assertIn("no core is held", self.ok("top", DEVICE, "--period", "0.1", env=self.env).stdout)

    def test_ctrl_c_leaves_a_terminal_as_it_was(self):
        master, slave = pty.openpty()
        before = termios.tcgetattr(slave)
        process = subprocess.Popen([cli_support.CORELANE, "top", DEVICE, "--period", "0.1"], stdout=slave,
                                   stderr=subprocess.PIPE, env={**os.environ, **self.env})
        written = b""
        while written.count(b"busy") < 2:  # A table, and one over it.
            written += os.read(master, 4096)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        self.assertEqual(process.wait(60), 130)
        process.stderr.close()
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(termios.tcgetattr(slave), before)
        os.close(slave)
        try:
            while True:
                chunk = os.read(master, 4096)
                if not chunk:
                    break
                written += chunk
        except OSError:
            pass
        os.close(master)
        # Only the cursor goes up and what follows is cleared: no other screen, no hidden cursor, no colour.
        self.assertEqual(set(written.split(b"\x1b")[1:]) - {s for s in written.split(b"\x1b")[1:]
                                                            if s.startswith((b"[7A", b"[J"))}, set())
        self.assertTrue(written.endswith(b"\n"))

    def test_mistakes_have_their_way_out(self):
        self.fails(2, "top", "-n", "0", parts=("1 to",))
        self.fails(2, "top", "--period", "0", parts=("0.05 to 3600",))
        self.fails(3, "top", "nonsense:1", parts=("nonsense",))


if __name__ == "__main__":
    main()
