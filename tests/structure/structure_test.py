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


class TreeTest(unittest.TestCase):
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


class StructureTest(TreeTest):
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

    def test_include_that_is_not_on_the_list_is_caught(self):
        self.assert_caught(structure.check_rooms,
                           {"src/dispatch/pacer.cpp": '#include "corelane/tensor/shape.h"\n'}, "rooms.py", "dispatch")

    def test_every_room_of_the_list_is_a_floor(self):
        for room in structure.ROOMS:
            self.assertIn(room.split("/")[0], structure.FLOORS, room)

    # Rule 2.
    def test_foreign_name_outside_its_adapter_is_caught(self):
        for name in ("rknn_context c;", "int a = RKNN_SUCC;", "qaic::rt::Context c;", "ggml_tensor* t;",
                     "PyObject* o;"):
            self.assert_caught(structure.check_foreign, {"src/runtime/context/context.cpp": name + "\n"}, "stops in")
            self.assertEqual([], self.violations(structure.check_foreign, {
                "src/adapters/rknn/api.cpp": "rknn_context c;\n",
                "src/adapters/qaic/api.cpp": "qaic::rt::Context c;\n"}))

    def test_foreign_header_outside_its_adapter_is_caught(self):
        self.assert_caught(structure.check_foreign,
                           {"src/session/task.cpp": "#include <rknn_api.h>\n"}, "rknn_api.h")

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
            "src/runtime/context/context.cpp":
                '#include "corelane/program/network.h"\n#include "corelane/device/device.h"\n'},
            "context.cpp")

    def test_scheduler_that_meets_the_npu_twice_is_caught(self):
        use = '#include "corelane/device/device.h"\n'
        self.assert_caught(structure.check_contract,
                           {"src/scheduler/npu.cpp": use, "src/scheduler/policy.cpp": use}, "policy.cpp")

    def test_vendor_word_in_a_message_is_caught(self):
        for text in ('auto s = "set RKNN_FLAG_X";\n', 'bool f = takes(info, "rknn");\n', "int rknn_batch = 1;\n"):
            self.assert_caught(structure.check_words, {"src/runtime/program/load.cpp": text}, "one vendor")

    def test_vendor_word_in_its_adapter_in_a_comment_or_as_a_suffix_is_allowed(self):
        for path, text in (("src/adapters/rknn/x.cpp", 'auto s = "RKNN";\n'),
                           ("src/runtime/x.cpp", "// As RKNN does.\n"),
                           ("src/runtime/x.cpp", 'auto s = "model.rknn";\n'),
                           ("src/program/program_format.h", 'auto s = "RKNN";\n')):
            self.assertEqual([], self.violations(structure.check_words, {path: text}))

    # Rule 4.
    def test_engine_outside_its_driver_is_caught(self):
        for text in ("#include <openvino/openvino.hpp>\n", '#include "dnnl.hpp"\n', "ov::Core core;\n",
                     "#include <tbb/task.h>\n"):
            self.assert_caught(structure.check_engine, {"src/runtime/context/context.cpp": text}, "context.cpp")

    def test_native_module_that_imports_its_package_is_caught(self):
        native = "src/adapters/python/py_arrays.cpp"
        self.assert_caught(structure.check_package, {native: 'import_("corelane._arrays");\n'}, native)
        self.assertEqual(self.violations(structure.check_package, {native: 'import_("numpy");\n'}), [])

    def test_room_of_the_package_that_imports_another_is_caught(self):
        rooms = {"python/corelane/_one/a.py": "from .._errors import Fail\n", "python/corelane/_two/b.py": ""}
        self.assertEqual(self.violations(structure.check_package, rooms), [])
        for text in ("from .._two.b import x\n", "from .. import _native, _two\n", "import corelane._two.b\n"):
            self.assert_caught(structure.check_package, {**rooms, "python/corelane/_one/a.py": text}, "a.py")

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

    def test_adapter_is_a_folder_and_a_name(self):
        root = 'set(CORELANE_DRIVERS null virtual CACHE STRING "")\nset(CORELANE_ADAPTERS door CACHE STRING "")\n'
        door = {"CMakeLists.txt": root, "src/adapters/door/CMakeLists.txt": "\n"}
        self.assertEqual([], self.violations(structure.check_adapters, door))
        self.assert_caught(structure.check_adapters, {"CMakeLists.txt": root}, "door")
        self.assert_caught(structure.check_adapters, {"src/adapters/gate/CMakeLists.txt": "\n"}, "gate")
        self.assert_caught(structure.check_adapters, {
            **door, "cmake/Install.cmake": 'include("src/adapters/door/install/x.cmake")\n'}, "knows the adapter door")

    def test_rows_of_a_driver_outside_its_folder_are_caught(self):
        rows = {"src/drivers/null/rows.cpp": 'auto c = {{"npu2", 2, 1\'000}};\nd.files = {{"blob", "BLOB"}};\n'}
        self.assertEqual([], self.violations(structure.check_rows, rows))
        for text, name in (('auto t = "null:npu2";\n', "npu2"), ('auto k = "blob";\n', '"blob"')):
            self.assert_caught(structure.check_rows, {**rows, "src/runtime/trace.cpp": text}, name)
        self.assertEqual([], self.violations(structure.check_rows, {
            **rows, "src/runtime/trace.cpp": "// as npu2\n", "src/runtime/trace_test.cpp": 'auto t = "npu2";\n'}))

    # Rule 9.
    def test_include_cycle_is_caught(self):
        self.assert_caught(structure.check_cycles, {
            "src/base/a.h": HEADER + '#include "base/b.h"\n', "src/base/b.h": HEADER + '#include "base/a.h"\n'},
            "a.h -> src/base/b.h -> src/base/a.h")

    def test_cycle_of_python_imports_is_caught_inside_functions_too(self):
        self.assert_caught(structure.check_cycles, {
            "python/corelane/_ort/a.py": "from .b import name\nfrom .. import other\n",
            "python/corelane/_ort/b.py": "def use():\n    from . import a\n",
            "python/corelane/other.py": ""}, "a.py -> python/corelane/_ort/b.py -> python/corelane/_ort/a.py")

    def test_long_include_chain_is_caught(self):
        def chain(length):
            files = {f"src/base/h{i}.h": HEADER + f'#include "base/h{i + 1}.h"\n' for i in range(1, length)}
            return {**files, f"src/base/h{length}.h": HEADER, "src/base/top.cpp": '#include "base/h1.h"\n'}
        self.assertEqual([], self.violations(structure.check_cycles, chain(structure.MAX_CHAIN)))
        self.assert_caught(structure.check_cycles, chain(structure.MAX_CHAIN + 1), "top.cpp", "10 includes")

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
        self.assertEqual(["a();", 'c("");', '"";', "d();"], structure.strip(text).split())


class ShapeTest(TreeTest):
    """Rule 10 and the walks: what the code's shape says."""

    def test_room_of_too_many_files_is_caught(self):
        self.assert_caught(structure.check_room_sizes,
                           {f"src/base/thing_{i}.h": HEADER for i in range(structure.MAX_ROOM + 1)}, "src/base")

    def test_long_function_is_caught(self):
        body = "".join(f"  call({i});\n" for i in range(structure.MAX_FUNCTION))
        text = f"void Clock::run(int a) const {{\n{body}}}\n"
        self.assert_caught(structure.check_functions, {"src/base/x.cpp": text}, "Clock::run", "62 lines")

    def test_long_function_in_a_class_with_initialisers_is_caught(self):
        body = "".join(f"    call({i});\n" for i in range(structure.MAX_FUNCTION))
        text = f"namespace a {{\nclass X {{\n  X(int a) : a_(a), b_{{1}} {{\n{body}  }}\n}};\n}}\n"
        self.assert_caught(structure.check_functions, {"src/base/x.cpp": text}, "X")

    def test_long_table_is_no_function(self):
        rows = "".join(f"  {{{i}}},\n" for i in range(100))
        self.assertEqual([], self.violations(structure.check_functions,
                                             {"src/base/x.cpp": f"constexpr Row kRows[] = {{\n{rows}}};\n"}))

    def test_class_of_too_many_fields_is_caught_unless_it_says_why(self):
        body = "".join(f"  int f{i}_ = 0;\n" for i in range(structure.MAX_FIELDS + 1))
        self.assert_caught(structure.check_classes, {"src/base/x.h": f"{HEADER}class X {{\n{body}}};\n"}, "X", "fields")
        self.assertEqual([], self.violations(structure.check_classes, {
            "src/base/x.h": f"{HEADER}// Fields: one for each register.\nclass X {{\n{body}}};\n"}))

    def test_class_of_too_many_sources_is_caught(self):
        sources = {f"src/base/x_{i}.cpp": f"void X::f{i}() {{}}\n" for i in range(structure.MAX_SOURCES + 1)}
        self.assert_caught(structure.check_classes, {"src/base/x.h": HEADER + "class X {\n  int a_;\n};\n", **sources},
                           "X", "sources")

    def test_public_function_without_a_comment_is_caught(self):
        text = HEADER + ("namespace c {\n/// A thing.\nclass X {\n public:\n  /// Says it.\n  int said() const;\n"
                         "  int one = 1;\n  int bare(int a);\n  ~X();\n  X(const X&) = delete;\n"
                         " private:\n  int hidden();\n};\n}\n")
        for path in ("include/corelane/base/x.h", "include/qaic/QAicX.hpp", "include/rknn/rknn_x.h"):
            self.assert_caught(structure.check_comments, {path: text}, f"{path}:10: bare")
        self.assertEqual([], self.violations(structure.check_comments, {"src/adapters/qaic/x.h": text}))

    def test_public_function_after_a_nested_class_or_before_a_deleted_one_needs_a_comment(self):
        text = HEADER + ("/// A thing.\nclass X {\n public:\n  /// A part.\n  class Y {\n   private:\n    int a();\n"
                         "  };\n  int bare() { return 1; }\n  X(const X&) = delete;\n};\n")
        self.assert_caught(structure.check_comments, {"include/corelane/base/x.h": text}, "bare")

    def test_rank_without_a_line_in_the_page_is_caught(self):
        tree = {"src/base/lock_rank.h": HEADER + "enum class LockRank {\n  kTimer = 110,\n};\n",
                "src/base/timer.cpp": "Mutex mutex{LockRank::kTimer};\n"}
        self.assert_caught(structure.check_locks, tree, "kTimer", "docs/locks.md")
        listed = {**tree, "docs/locks.md": "| `kTimer` | timers |\n"}
        self.assertEqual([], self.violations(structure.check_locks, listed))
        self.assert_caught(structure.check_locks, {**listed, "src/base/timer.cpp": "int x;\n"}, "no mutex")

    def test_bare_mutex_is_caught(self):
        self.assert_caught(structure.check_locks, {"src/base/timer.cpp": "std::mutex mutex;\n"}, "std::mutex mutex")
        outsider = {"docs/locks.md": "", "src/adapters/ggml/a.cpp": "std::mutex mutex;\n"}
        self.assertEqual([], self.violations(structure.check_locks, outsider))

    def test_environment_read_elsewhere_is_caught(self):
        for call in ("std::getenv", "secure_getenv"):
            self.assert_caught(structure.check_environment, {"src/base/a.cpp": f'f({call}("A"));\n'}, "getenv(", ":1")
        fine = {"src/base/trust/secure_environment.h": HEADER + 'secure_getenv("A");\n',
                "src/adapters/ggml/a.cpp": 'secure_getenv("A");\n', "src/base/b_test.cpp": 'getenv("A");\n'}
        self.assertEqual([], self.violations(structure.check_environment, fine))
        self.assert_caught(structure.check_environment, {"src/adapters/ggml/a.cpp": 'getenv("A");\n'}, "getenv(")

    def test_client_of_a_public_api_that_includes_the_house_is_caught(self):
        tree = {"src/adapters/ggml/a.cpp": '#include "base/sync.h"\n', "src/base/sync.h": ""}
        self.assert_caught(structure.check_rooms, tree, "may include nothing")

    def walk(self, steps, limit=2):
        return {"docs/architecture.md": f"### a. A value (at most {limit} files)\n" + "".join(
            f"{i}. `{name}` in `{path}`\n" for i, (name, path) in enumerate(steps, 1)),
                "src/base/one.cpp": "void first() {\n  second(1);\n}\n",
                "src/base/two.cpp": "void X::second(int a) {}\n"}

    def test_walk_that_is_true_passes(self):
        steps = [("first", "src/base/one.cpp"), ("X::second", "src/base/two.cpp")]
        self.assertEqual([], self.violations(structure.check_walks, self.walk(steps)))

    def test_walk_to_a_function_that_is_gone_or_not_called_is_caught(self):
        for steps, word in (([("first", "src/base/one.cpp"), ("third", "src/base/two.cpp")], "third"),
                            ([("X::second", "src/base/two.cpp"), ("first", "src/base/one.cpp")], "does not call")):
            found = self.violations(structure.check_walks, self.walk(steps))
            self.assertIn(word, " ".join(found))

    def test_walk_from_a_function_to_one_of_the_same_name_needs_a_call(self):
        steps = [("X::run", "src/base/one.cpp"), ("Y::run", "src/base/two.cpp")]
        for body, ok in (("", False), ("y.run();", True), ("int run = 1;", False)):
            tree = self.walk(steps) | {"src/base/one.cpp": f"int X::run() {{\n  {body}\n}}\n",
                                       "src/base/two.cpp": "int Y::run() {}\n"}
            found = " ".join(self.violations(structure.check_walks, tree))
            self.assertEqual(ok, "does not call" not in found, found)

    def test_walk_through_too_many_files_is_caught(self):
        steps = [("first", "src/base/one.cpp"), ("X::second", "src/base/two.cpp")]
        self.assert_caught(structure.check_walks, self.walk(steps, limit=1), "2 files")


if __name__ == "__main__":
    unittest.main()
