"""What tests ask of the CPU they run on."""
import unittest


def sums_saturate() -> bool:
    """Whether 8-bit sums saturate on this CPU, in the engine as in onnxruntime: on x86 without VNNI. They do so in
    other places of a network, so that the two cannot be compared."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = file.read()
    return "avx2" in flags and "vnni" not in flags


# Of a test that compares int8 results of the engine with onnxruntime's.
NEEDS_EXACT_SUMS = unittest.skipIf(sums_saturate(),
                                   "this CPU has no VNNI: 8-bit sums saturate (docs/compatibility.md)")
