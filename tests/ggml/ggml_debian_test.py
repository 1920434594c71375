"""The plugin libggml-rknn.so in a host that is not ours in any part: Debian's ggml, with its own test-backend-ops.

usage: ggml_debian_test.py <libggml-rknn.so> <librknnrt.so> <C++ compiler> [<unittest arguments>]

`./dev ggml` runs it; it is not a part of `./dev test`: the release moves, and may not be at hand.
"""
import pathlib

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


if __name__ == "__main__":
    plugged.main()
