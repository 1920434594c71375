"""Feeds each check of structure.py a tree that breaks it, and a tree that does not."""

import tempfile
import unittest
from pathlib import Path

import structure

HEADER = "/// What it means.\n#pragma once\n"

GOOD = {
    "CMakeLists.txt": 'set(CORELANE_DRIVERS null virtual CACHE STRING "Drivers")\n',
    "include/corelane/base/status.h": HEADER,
    "include/corelane/tensor/shape.h": HEADER + '#include "corelane/base/status.h"\n',
    "include/corelane/program/network.h": HEADER + '#include "corelane/tensor/shape.h"\n',
    "include/corelane/device/device.h": HEADER + '#include "corelane/tensor/shape.h"\n',
    "src/base/status.cpp": '#include "corelane/base/status.h"\n\n#include <string>\n',
    "src/base/status_test.cpp": '#include "corelane/base/status.h"\n',
    "src/runtime/program/program.cpp": '#include "corelane/program/network.h"\n#include "corelane/device/device.h"\n',
    "src/drivers/CMakeLists.txt": "# A driver is a folder here.\nforeach(driver IN LISTS CORELANE_DRIVERS)\n",
    "src/drivers/null/CMakeLists.txt": "corelane_driver(null BUILTIN)\n",
    "src/drivers/null/null_device.cpp": '#include "corelane/device/device.h"\n',
    "src/drivers/virtual/CMakeLists.txt": "corelane_driver(virtual MODULE LIBS openvino::runtime)\n",
    "src/drivers/virtual/engine.cpp": "#include <openvino/openvino.hpp>\nov::Core core;\n",
    "src/drivers/validating/CMakeLists.txt": "corelane_floor(validating)\n",
    "apps/common/npy.h": HEADER + '#include "corelane/base/status.h"\n',
    "apps/cli/main.cpp": '#include "common/npy.h"\n// ov::Core and rknn_init are only words here.\n',
    "docs/architecture.md": "The work/ folder is not a place.\n",
}


class StructureTest(unittest.TestCase):
    def violations(self, check, changes):
        """What `check` says of the good tree with `changes` (None removes a file)."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**GOOD, **changes}.items():
                if text is not None:
                    file = Path(root, path)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text, encoding="utf-8")
            return list(check(structure.Tree(root)))

    def assert_caught(self, check, changes, *words):
        found = self.violations(check, changes)
        self.assertEqual(1, len(found), found)
        for word in words:
            self.assertIn(word, found[0])

    def test_good_tree_passes_every_check(self):
        for check in structure.CHECKS:
            self.assertEqual([], self.violations(check, {}), check.__name__)

    def test_every_check_is_broken_here(self):
        source = Path(__file__).read_text(encoding="utf-8")
        for check in structure.CHECKS:
            self.assertIn(f"structure.{check.__name__},", source)

    # Rule 1.
    def test_upward_include_is_caught(self):
        self.assert_caught(structure.check_floors,
                           {"src/base/log.cpp": '#include "corelane/tensor/shape.h"\n'}, "log.cpp", "tensor")

    def test_upward_include_of_a_test_is_caught(self):
        self.assert_caught(structure.check_floors,
                           {"src/base/log_test.cpp": '#include "corelane/device/device.h"\n'}, "device")

    def test_contract_that_includes_a_driver_is_caught(self):
        self.assert_caught(structure.check_floors, {
            "src/drivers/null/null_device.h": HEADER,
            "src/device/registry/registry.cpp": '#include "drivers/null/null_device.h"\n'}, "drivers/null")

    def test_neighbour_include_is_caught(self):
        for one, other in (("session", "scheduler"), ("drivers/null", "drivers/virtual"),
                           ("adapters/rknn", "adapters/qaic")):
            self.assert_caught(structure.check_floors, {
                f"src/{other}/thing.h": HEADER, f"src/{one}/user.cpp": f'#include "{other}/thing.h"\n'}, other)

    def test_folder_that_is_no_floor_is_caught(self):
        self.assert_caught(structure.check_floors, {"src/util/strings.cpp": "int x;\n"}, "util")

    def test_include_that_leads_nowhere_is_caught(self):
        self.assert_caught(structure.check_floors, {"src/base/log.cpp": '#include "base/nothing.h"\n'}, "nothing")

    def test_include_of_a_test_helper_is_caught(self):
        self.assert_caught(structure.check_floors, {
            "tests/smoke/helper.h": HEADER, "src/base/log.cpp": '#include "tests/smoke/helper.h"\n'}, "outside")

    # Rule 2.
    def test_foreign_name_outside_its_adapter_is_caught(self):
        for name in ("rknn_context c;", "int a = RKNN_SUCC;", "qaic::rt::Context c;", "ggml_tensor* t;",
                     "PyObject* o;"):
            self.assert_caught(structure.check_foreign, {"src/runtime/context/context.cpp": name + "\n"}, "stops in")
            self.assertEqual([], self.violations(structure.check_foreign, {
                "src/adapters/rknn/api.cpp": "rknn_context c;\n", "src/adapters/qaic/api.cpp": "qaic::rt::Context c;\n"}))

    def test_foreign_header_outside_its_adapter_is_caught(self):
        self.assert_caught(structure.check_foreign,
                           {"src/session/task.cpp": '#include <rknn_api.h>\n'}, "rknn_api.h")

    def test_headers_of_a_foreign_api_serve_the_floors_that_speak_it(self):
        api = {"include/rknn/rknn_api.h": "int rknn_init(void);\n"}
        use = '#include "rknn_api.h"\n'
        spoken = {**api, "src/adapters/rknn/api/rknn_edge.cpp": use, "src/drivers/rknn/vendor.cpp": use}
        for check in (structure.check_floors, structure.check_foreign):
            self.assertEqual([], self.violations(check, spoken))
        self.assert_caught(structure.check_foreign, {**api, "src/session/task.cpp": use}, "stops in")

    # Rule 3.
    def test_contract_that_includes_a_program_is_caught(self):
        self.assert_caught(structure.check_contract,
                           {"src/device/queue.cpp": '#include "corelane/program/network.h"\n'}, "program")

    def test_driver_that_includes_a_program_is_caught(self):
        self.assert_caught(structure.check_contract,
                           {"src/drivers/null/image.cpp": '#include "corelane/program/network.h"\n'}, "opaque")

    def test_second_meeting_of_program_and_device_is_caught(self):
        self.assert_caught(structure.check_contract, {
            "src/runtime/context/context.cpp": '#include "corelane/program/network.h"\n#include "corelane/device/device.h"\n'},
            "context.cpp")

    def test_scheduler_that_meets_the_npu_twice_is_caught(self):
        use = '#include "corelane/device/device.h"\n'
        self.assert_caught(structure.check_contract,
                           {"src/scheduler/npu.cpp": use, "src/scheduler/policy.cpp": use}, "policy.cpp")

    # Rule 4.
    def test_engine_outside_its_driver_is_caught(self):
        for text in ("#include <openvino/openvino.hpp>\n", '#include "dnnl.hpp"\n', "ov::Core core;\n",
                     "#include <tbb/task.h>\n"):
            self.assert_caught(structure.check_engine, {"src/runtime/context/context.cpp": text}, "context.cpp")

    def test_linked_engine_outside_its_driver_is_caught(self):
        self.assert_caught(structure.check_engine, {
            "apps/cli/CMakeLists.txt": "target_link_libraries(cli openvino::runtime)\n"}, "openvino::")

    def test_rival_in_a_benchmark_is_allowed(self):
        self.assertEqual([], self.violations(structure.check_engine, {
            "benchmarks/rival.cpp": "#include <openvino/openvino.hpp>\n"}))

    # Rule 5.
    def test_driver_that_is_not_listed_is_caught(self):
        self.assert_caught(structure.check_drivers,
                           {"src/drivers/board/CMakeLists.txt": "corelane_driver(board MODULE)\n"}, "board")

    def test_listed_driver_without_folder_is_caught(self):
        self.assert_caught(structure.check_drivers, {"src/drivers/null/CMakeLists.txt": None}, "null")

    def test_driver_listed_twice_is_caught(self):
        self.assert_caught(structure.check_drivers, {
            "CMakeLists.txt": 'set(CORELANE_DRIVERS null virtual null CACHE STRING "")\n'}, "more than once")

    def test_missing_list_is_caught(self):
        self.assert_caught(structure.check_drivers, {"CMakeLists.txt": "project(x)\n"}, "0 lists")

    def test_driver_known_outside_its_folder_is_caught(self):
        for path, text in (("src/device/registry/registry.cpp", "auto m = driver_null();\n"),
                           ("src/drivers/CMakeLists.txt", "add_subdirectory(null)\n"),
                           ("apps/cli/CMakeLists.txt", "target_link_libraries(x corelane_driver_null)\n"),
                           ("apps/cli/devices.cpp", '#include "drivers/null/null_device.h"\n')):
            self.assert_caught(structure.check_drivers, {path: text}, "knows the driver null")

    # Rule 9.
    def test_include_cycle_is_caught(self):
        self.assert_caught(structure.check_cycles, {
            "src/base/a.h": HEADER + '#include "base/b.h"\n', "src/base/b.h": HEADER + '#include "base/a.h"\n'},
            "a.h -> src/base/b.h -> src/base/a.h")

    def test_long_include_chain_is_caught(self):
        def chain(length):
            files = {f"src/base/h{i}.h": HEADER + f'#include "base/h{i + 1}.h"\n' for i in range(1, length)}
            return {**files, f"src/base/h{length}.h": HEADER, "src/base/top.cpp": '#include "base/h1.h"\n'}
        self.assertEqual([], self.violations(structure.check_cycles, chain(structure.MAX_CHAIN)))
        self.assert_caught(structure.check_cycles, chain(structure.MAX_CHAIN + 1), "top.cpp", "11 includes")

    def test_long_file_is_caught(self):
        for path in ("src/base/log.cpp", "tests/smoke/run.py", "cmake/Thing.cmake"):
            self.assertEqual([], self.violations(structure.check_sizes, {path: "\n" * structure.MAX_LINES}))
            self.assert_caught(structure.check_sizes, {path: "\n" * (structure.MAX_LINES + 1)}, path)

    def test_high_median_is_caught(self):
        files = {f"src/base/f{i}.cpp": "\n" * structure.MAX_MEDIAN for i in range(30)}
        self.assert_caught(structure.check_sizes, files, "median")

    def test_stem_used_twice_is_caught(self):
        self.assert_caught(structure.check_stems, {"src/runtime/status.cpp": "int x;\n"}, "'status'")

    # Names and headers.
    def test_machine_path_is_caught(self):
        for text in ("see /" + "work/main\n", "a ." + "library b\n", "https://py" + "pi.org/simple\n"):
            self.assert_caught(structure.check_names, {"docs/note.md": text}, "note.md:1")

    def test_camel_case_file_is_caught(self):
        self.assert_caught(structure.check_names, {"src/base/MyLog.cpp": "int x;\n"}, "MyLog")

    def test_public_header_without_a_meaning_is_caught(self):
        self.assert_caught(structure.check_headers,
                           {"include/corelane/base/log.h": "#pragma once\n/// late\n"}, "opens with")

    def test_public_header_without_a_guard_is_caught(self):
        self.assert_caught(structure.check_headers, {"include/corelane/base/log.h": "/// What.\n"}, "pragma")

    def test_strip_drops_comments_and_literals_only(self):
        text = 'a(); // ov::x\n/* b\n */ c("ov::\\"y"); R"(ov::z)"; d();\n'
        self.assertEqual(['a();', 'c("");', '"";', "d();"], structure.strip(text).split())


if __name__ == "__main__":
    unittest.main()
