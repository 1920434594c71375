"""The RKNN backend inside a tree of ggml: the pinned host's sources, with ours laid into a copy, built with
-DGGML_RKNN=ON as plugins and as one static program, and the host's own tests of MUL_MAT on both.

usage: ggml_in_tree_test.py <libggml-rknn.so> <librknnrt.so> <C++ compiler> [<unittest arguments>]
"""
import pathlib
import shutil
import subprocess
import sys
import unittest

import build_host
import plugged

IN_TREE = plugged.ROOT / "src" / "adapters" / "ggml" / "in_tree" / "in_tree.py"


def lay_out(tree):
    return subprocess.run([sys.executable, IN_TREE, tree], capture_output=True, text=True, check=False)


class InTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        host = build_host.BuiltHost(plugged.CACHE)
        cls.home = plugged.CACHE / "in_tree"
        tree = cls.home / "llama.cpp"
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(host.tree.parent, tree)
        for attempt in ("first", "second"):
            done = lay_out(tree)
            if done.returncode != 0:
                raise AssertionError(f"{attempt}: {done.stderr}")
        cls.tree = tree

    def test_lists_of_the_tree_have_one_line_more_after_any_number_of_runs(self):
        for name, times in (("CMakeLists.txt", 1), ("src/CMakeLists.txt", 1), ("src/ggml-backend-reg.cpp", 2)):
            text = (self.tree / "ggml" / name).read_text(encoding="utf-8")
            self.assertEqual(text.count("RKNN)") + text.count("GGML_RKNN ") + text.count("USE_RKNN"), times, name)

    def passes(self, folder, *options, **environment):
        build_host.build(self.tree, self.home / folder, "-DGGML_RKNN=ON", *options)
        done = plugged.run([self.home / folder / "bin" / "test-backend-ops", "test", "-b", "RKNN", "-o", "MUL_MAT",
                            "-p", "type_a=(f16|q8_0),type_b=f32,m=16"], GGML_BACKEND_PATH=None, **environment)
        self.assertEqual(done.code, 0, done.text[-2000:] + done.log[-2000:])
        self.assertRegex(done.text, r"(?m)^Backend \d/\d: RKNN$")
        self.assertNotIn("FAIL", done.text)
        self.assertGreaterEqual(done.stats["products"]["all"], 100)
        self.assertEqual(done.stats["products"]["failed"], 0)
        return done

    def test_as_a_plugin_that_the_host_finds_by_its_own_list(self):
        self.assertTrue(self.passes("plugins").loaded())

    def test_as_a_part_of_a_static_program(self):
        self.passes("static", "-DGGML_BACKEND_DL=OFF", "-DBUILD_SHARED_LIBS=OFF")


class NotATree(unittest.TestCase):
    def test_another_folder_is_named_and_left_alone(self):
        folder = pathlib.Path(__file__).resolve().parent
        done = lay_out(folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{folder} is not a source tree of ggml or llama.cpp", done.stderr)


if __name__ == "__main__":
    plugged.main()
