"""Programs for an API that looks for them in a folder, and inputs that may be brought in part.

python target_test.py BUILD/bin/corelane
"""
import json

import onnx
from onnx import TensorProto, helper

from cli_support import CliTest, main, small_model


def sum_model(path):
    """y = a + b"""
    a, b, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "aby")
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "sum", [a, b], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Target(CliTest):
    def setUp(self):
        sum_model(self.path / "sum.onnx")

    def test_the_folder_is_made_and_holds_a_program_file(self):
        folder = self.path / "new/program"
        compiled = self.ok("compile", self.path / "sum.onnx", "--target", "aic100", "-o", folder, "--json")
        out = json.loads(compiled.stdout)
        self.assertEqual(out["output"], str(folder / "programqpc.bin"))
        self.ok("run", folder / "programqpc.bin", "--random")
        small_model(self.path / "small.onnx", (1, 3, 8, 8))
        # Over the old one, which is in a folder that is there.
        self.ok("compile", self.path / "sum.onnx", self.path / "small.onnx", "--target", "aic100", "-o", folder)
        out = json.loads(self.ok("inspect", folder / "programqpc.bin", "--json").stdout)
        self.assertEqual([p["name"] for p in out["parts"]], ["sum", "small"])
        self.assertEqual(json.loads(self.ok("inspect", folder, "--json").stdout), out)

    def test_the_name_of_the_folder_is_no_command(self):
        folder = self.path / "a b; touch made $(touch made)"
        self.ok("compile", self.path / "sum.onnx", "--target", "aic100", "-o", folder)
        self.assertTrue((folder / "programqpc.bin").is_file())
        self.assertFalse((self.path / "made").exists())

    def test_mistakes_have_their_way_out(self):
        self.fails(2, "compile", self.path / "sum.onnx", "--target", "rk3588", "-o", self.path, parts=("aic100",))
        self.fails(3, "compile", self.path / "sum.onnx", "--target", "aic100", parts=("--output",))
        self.fails(5, "compile", self.path / "sum.onnx", "--target", "aic100", "-o", self.path / "sum.onnx",
                   parts=("is not a folder",))

    def test_partial_inputs_are_recorded(self):
        program = self.path / "sum.rknn"
        self.ok("compile", self.path / "sum.onnx", "--partial", "b", "-o", program)
        out = json.loads(self.ok("inspect", program, "--json").stdout)
        self.assertEqual([i.get("partial_allowed", False) for i in out["program"]["inputs"]], [False, True])
        self.assertIn("partial allowed", self.ok("inspect", program).stdout)
        self.fails(3, "compile", self.path / "sum.onnx", "--partial", "c", "-o", program, parts=("a, b",))

    def test_state_is_recorded_and_bad_declarations_are_named(self):
        program = self.path / "sum.rknn"
        self.ok("compile", self.path / "sum.onnx", "--state", "y=b", "-o", program)
        out = json.loads(self.ok("inspect", program, "--json").stdout)
        self.assertEqual(out["program"]["states"], [{"output": "y", "input": "b"}])
        self.assertIn("State: output 'y' is input 'b' of the next run", self.ok("inspect", program).stdout)
        self.ok("run", program, "--random")
        for given, word in (("z=b", "there is no output 'z'; the outputs are 'y'"),
                            ("y=c", "there is no input 'c'; the inputs are 'a', 'b'"), ("y", "NAME=VALUE")):
            self.fails(3, "compile", self.path / "sum.onnx", "--state", given, "-o", program, parts=(word,))
        self.fails(3, "compile", self.path / "sum.onnx", "--state", "y=a", "--state", "y=b", "-o", program,
                   parts=("is in a state already",))
        # Of several models, the one whose name comes first.
        sum_model(self.path / "other.onnx")
        self.ok("compile", self.path / "sum.onnx", self.path / "other.onnx", "--state", "other:y=a", "-o", program)
        out = json.loads(self.ok("inspect", program, "--part", "other", "--json").stdout)
        self.assertEqual(out["program"]["states"], [{"output": "y", "input": "a"}])


if __name__ == "__main__":
    main()
