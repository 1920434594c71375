"""Tests on Debian's host: skipped, and said so, where it cannot be had or is another release than the tested one."""
import functools
import unittest

import debian_host
import plugged

TESTED = "0.27.0"


@functools.cache
def found():
    """The host, or why it cannot be had: asked for once."""
    try:
        return debian_host.fetch(plugged.CACHE / "debian")
    except debian_host.Unavailable as why:
        return why


class DebianCase(plugged.BackendOps, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = found()
        if isinstance(cls.host, debian_host.Unavailable):
            plugged.skip(cls, f"Debian's {debian_host.SUITE} cannot be had: {cls.host}")
        if cls.host.version() != TESTED:
            plugged.skip(cls, f"{TESTED} is tested; this is ggml {cls.host.version()}, {cls('how_far').how_far()}")

    def how_far(self):
        """What an untested release comes to: it may be refused, and must not fail."""
        done = self.ops("test", "-b", "RKNN", "-o", "MUL_MAT", "-p", "type_a=f16,type_b=f32,m=16")
        if not done.listed():
            self.assertIn(f"this host is ggml {self.host.version()}", " ".join(done.told()))
            return "which the plugin refuses"
        self.expect_passed(done, 50)
        return f"where {done.passed} cases passed"
