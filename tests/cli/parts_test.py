"""Several networks in one program file, from the command line.

python parts_test.py BUILD/bin/corelane
"""
import json
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cli_support import CliTest, main, small_model

TABLE = np.arange(64 * 1024, dtype=np.float32).reshape(64, 1024)


def table_model(path, scale):
    """y = (table + x) * scale; the table takes 256 KiB."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 1024])
    graph = helper.make_graph(
        [helper.make_node("Add", ["table", "x"], ["sum"]), helper.make_node("Mul", ["sum", "scale"], ["y"])],
        "main_graph", [x], [y], [numpy_helper.from_array(TABLE, "table"),
                                 numpy_helper.from_array(np.array([scale], np.float32), "scale")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Parts(CliTest):
    def setUp(self):
        for scale, name in ((1, "decoder"), (2, "encoder")):
            table_model(self.path / f"{name}.onnx", scale)

    def compiled(self, *words):
        program = self.path / "both.rknn"
        out = json.loads(self.ok("compile", *words, "-o", program, "--json").stdout)
        return program, out

    def run_part(self, program, *words):
        np.save(self.path / "x.npy", np.array([10], np.float32))
        self.ok("run", program, *words, "-i", self.path / "x.npy", "-o", self.path / "out")
        return np.load(self.path / "out/y.npy")

    def test_two_models_are_one_file_with_their_constants_once(self):
        program, out = self.compiled(self.path / "decoder.onnx", self.path / "encoder.onnx")
        self.assertLess(program.stat().st_size, TABLE.nbytes * 3 // 2)
        self.assertEqual(out["program"]["part"], "decoder")
        self.assertEqual([p["part"] for p in out["other_parts"]], ["encoder"])
        np.testing.assert_array_equal(self.run_part(program), TABLE + 10)
        np.testing.assert_array_equal(self.run_part(program, "--part", "encoder"), (TABLE + 10) * 2)
        self.ok("doctor", program)
        self.ok("bench", program, "--part", "encoder", "-n", "3", "--warm-up", "0")
        self.ok("compare", program, "--part", "encoder")
        self.fails(3, "run", program, "--part", "nobody", "--random", parts=("'decoder'", "'encoder'"))

    def test_inspect_lists_them(self):
        program, _ = self.compiled(self.path / "decoder.onnx", f"--part=e={self.path / 'encoder.onnx'}")
        out = json.loads(self.ok("inspect", program, "--json", "--verify", "--load").stdout)
        self.assertEqual([p["name"] for p in out["parts"]], ["decoder", "e"])
        self.assertEqual([p["nodes"] for p in out["parts"]], [2, 2])
        self.assertEqual(out["program"]["part"], "decoder")
        graphs = [s["part"] for s in out["segments"] if s["kind"] == "graph"]
        self.assertEqual(graphs, ["decoder", "e"])
        self.assertEqual(sum(s["kind"] == "constants" for s in out["segments"]), 1)
        text = self.ok("inspect", program, "--part", "e").stdout
        self.assertIn("Part decoder", text)
        self.assertIn("Of part e:", text)

    def test_one_model_is_written_as_before_unless_it_has_a_name(self):
        program, out = self.compiled(self.path / "decoder.onnx")
        self.assertNotIn("part", out["program"])
        self.assertLess(program.read_bytes()[10], 3)
        self.fails(3, "run", program, "--part", "decoder", "--random", parts=("one network",))
        program, out = self.compiled("--part", f"alone={self.path / 'decoder.onnx'}")
        self.assertEqual(out["program"]["part"], "alone")
        self.assertEqual(program.read_bytes()[10], 3)

    def test_items_may_be_for_one_part(self):
        small_model(self.path / "small.onnx")
        program, _ = self.compiled(self.path / "small.onnx", self.path / "decoder.onnx", "--dim", "small:N=2",
                                   "--cores", "2")
        first = json.loads(self.ok("inspect", program, "--json").stdout)["program"]
        other = json.loads(self.ok("inspect", program, "--json", "--part", "decoder").stdout)["program"]
        self.assertEqual(first["inputs"][0]["shape"], [2, 3, 8, 8])
        self.assertEqual((first["cores"], other["cores"]), (2, 2))

    def test_what_cannot_be_is_refused(self):
        both = (self.path / "decoder.onnx", self.path / "encoder.onnx")
        output = ("-o", self.path / "x.rknn")
        self.fails(2, "compile", *output, parts=("model",))
        self.fails(3, "compile", *both, parts=("--output",))
        self.fails(3, "compile", both[0], both[0], *output, parts=("'decoder'", "--part NAME=FILE"))
        self.fails(3, "compile", *both, *output, "--attach", f"rknn={both[0]}", parts=("one network",))
        self.fails(3, "compile", *both, "-o", both[1], parts=("which this command reads",))
        self.fails(3, "run", both[0], "--part", "x", "--random", parts=("only program files have parts",))


class Chain(CliTest):
    """One network that is cut into parts."""

    def setUp(self):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])
        graph = helper.make_graph(
            [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"]),
             helper.make_node("Sub", ["b", "a"], ["y"])], "skipping", [x], [y])
        self.model = self.path / "net.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.model)
        np.save(self.path / "x.npy", np.array([[1, -2, 3, -4]], np.float32))

    def test_a_cut_network_runs_as_the_whole_and_its_parts_alone(self):
        program = self.path / "net.rknn"
        out = json.loads(self.ok("compile", self.model, "--cut", "b,a", "-o", program, "--json").stdout)
        self.assertEqual(out["program"]["part"], "net")
        self.assertEqual([p["part"] for p in out["other_parts"]], ["net/0", "net/1"])
        self.ok("run", program, "-i", self.path / "x.npy", "-o", self.path / "out")
        np.testing.assert_array_equal(np.load(self.path / "out/y.npy"), [[-2, 0, -6, 0]])
        self.ok("run", program, "--part", "net/0", "-i", self.path / "x.npy", "-o", self.path / "part")
        np.testing.assert_array_equal(np.load(self.path / "part/a.npy"), [[1, 0, 3, 0]])
        shown = self.ok("inspect", program, "--load").stdout
        self.assertIn("Chain", shown)
        self.assertIn("net/0 -> [", shown)
        self.assertIn("constants: ", shown)
        self.assertEqual(json.loads(self.ok("inspect", program, "--json").stdout)["chain"], ["net/0", "net/1"])
        self.fails(3, "run", program, "-i", self.path / "x.npy", "--expose", "a",
                   parts=("'net' was cut into parts", "part net/0"))
        self.ok("doctor", program)
        self.ok("bench", program, "-n", "3", "--warm-up", "0")

    def test_compare_of_a_cut_network_asks_for_the_model(self):
        program = self.path / "compared.rknn"
        self.ok("compile", self.model, "--cut", "b,a", "-o", program)
        words = ("compare", program, "--python", sys.executable)
        for more in ((), ("--onnx", self.model, "--layers")):
            self.fails(3, *words, *more, parts=("cut into parts", "--onnx", "without --layers", "--part"))
        self.ok(*words, "--onnx", self.model)
        self.ok(*words, "--part", "net/0")

    def test_a_cut_that_is_none_is_refused(self):
        program = self.path / "net.rknn"
        self.fails(3, "compile", self.model, "--cut", "b", "-o", program, parts=("'a'", "--cut b,a"))
        self.fails(3, "compile", self.model, "--cut", "c", "-o", program, parts=("'c'",))
        self.fails(3, "compile", self.model, self.model, "--cut", "a", "-o", program)


if __name__ == "__main__":
    main()
