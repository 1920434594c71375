"""The plugin libggml-rknn.so in a host that is not ours in any part: Debian's ggml, with its own test-backend-ops.

usage: ggml_debian_test.py <libggml-rknn.so> <librknnrt.so> <C++ compiler> [<unittest arguments>]

`./dev ggml` runs it; it is not a part of `./dev test`: the release moves, and may not be at hand.
"""
import pathlib
import struct
import tempfile

import plugged
from debian_case import DebianCase
from plugged import Built


class MulMat(DebianCase):
    def test_all_cases_as_a_user_has_them(self):
        self.pass_all(claimed=1000, compared=950)

    def test_products_that_fail_are_computed_on_the_cpu_and_told_once(self):
        # All but the few whose results are hundreds of megabytes.
        self.pass_with_failures(r"n=\d{1,4},", 950, 0.01)

    def test_no_other_operator_is_claimed(self):
        self.claim_products_alone()


class Loading(DebianCase):
    def test_a_vendor_library_without_products(self):
        stub = pathlib.Path(Built.library).with_name("stub") / "libstub_vendor.so"
        self.assertIn("has no function rknn_matmul", self.refused(GGML_RKNN_LIBRARY=str(stub)))


def write_empty_model(path):
    """A file for whisper.cpp with the sizes of Whisper's tiny.en and no weights, which whisper.cpp takes for tests:
    its sizes, filters of zeros, and a vocabulary of numbers."""
    words, bins, spectrum = 50257, 80, 201
    with open(path, "wb") as file:
        file.write(struct.pack("<12i", 0x67676D6C, words + 1607, 1500, 384, 6, 4, 448, 384, 6, 4, bins, 1))
        file.write(struct.pack("<2i", bins, spectrum) + bytes(4 * bins * spectrum))
        file.write(struct.pack("<i", words))
        for word in range(words):
            file.write(struct.pack("<i", 5) + b"%05d" % word)


class Whisper(DebianCase):
    def test_the_products_of_a_model_of_the_size_of_tiny_go_to_the_npu(self):
        with tempfile.TemporaryDirectory() as place:
            model = pathlib.Path(place) / "empty.bin"
            write_empty_model(model)
            done = plugged.run([*self.host.command("whisper-bench"), "-m", model, "-t", "1"], self.host.folder(),
                               GGML_RKNN_MIN_ROWS="8")
        self.assertEqual(done.code, 0, done.log[-2000:])
        self.assertTrue(done.loaded())
        self.assertIn("using RKNN backend", done.log)
        self.assertGreater(done.stats["offloaded"]["weights"], 600)
        self.assertEqual(done.stats["offloaded"]["other"], 0)
        self.assertEqual(done.stats["products"]["failed"], 0)


if __name__ == "__main__":
    plugged.main()
