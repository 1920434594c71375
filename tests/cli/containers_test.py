"""inspect and validate on containers: those that this tree writes, and the vendor's by segment.

python containers_test.py BUILD/bin/corelane
"""
import json
import struct

import onnx
from onnx import TensorProto, helper

from cli_support import CliTest, main, small_model


def vendor_container(parts, base=0x7F0000001000):
    """In the form of the vendor's compiler, with generated content; parts: (name, bytes, split)."""
    names, blobs, at = [], [], 40 + 32 * len(parts)
    for name, _, _ in parts:
        names.append(at)
        at = (at + len(name) + 8) // 8 * 8
    for _, data, _ in parts:
        blobs.append(at)
        at = (at + len(data) + 7) // 8 * 8
    file = bytearray(at)
    struct.pack_into("<IBBHQQQQ", file, 0, 0x00A1CD7C, 0, 1, 1, at, base, len(parts), base + 40)
    for i, (name, data, split) in enumerate(parts):
        struct.pack_into("<QQQQ", file, 40 + 32 * i, len(data), split, base + names[i], base + blobs[i])
        file[names[i]:names[i] + len(name)] = name.encode()
        file[blobs[i]:blobs[i] + len(data)] = data
    return bytes(file)


class Containers(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.vendors = cls.path / "vendors.bin"
        cls.vendors.write_bytes(vendor_container([("network.elf", b"\x7fELF" + bytes(60), 0),
                                                  ("constants.bin", bytes(100), 64),
                                                  ("odd\x1b[2Jname", b"abc", 0)]))

    def compiled(self):
        small_model(self.path / "fixed.onnx", (1, 3, 8, 8))
        small_model(self.path / "sizes.onnx", ("n", 4))
        folder = self.path / "two"
        self.ok("compile", self.path / "fixed.onnx", self.path / "sizes.onnx", "--target", "aic100", "-o", folder,
                "--cores", "4", "--shape-set", "sizes:1,4", "--shape-set", "sizes:3,4", "--partial", "sizes:x")
        return folder

    def test_validate_lists_programs_buffers_specializations_and_cores(self):
        folder = self.compiled()
        text = self.ok("validate", folder).stdout
        for part in ("valid, all checksums", "Program 0 'fixed': 4 cores", "Program 1 'sizes': 4 cores",
                     "buffer 0   input  x: f32 [1,3,8,8], 768 bytes", "48 bytes, partial allowed",
                     "specialization 1: [[3,4]]", "Constants", "Cores needed: 4"):
            self.assertIn(part, text)
        out = json.loads(self.ok("validate", folder / "programqpc.bin", "--json").stdout)
        self.assertEqual((out["valid"], out["cores_needed"], len(out["programs"])), (True, 4, 2))
        sizes = out["programs"][1]
        self.assertEqual([b["direction"] for b in sizes["buffers"]], ["input", "output"])
        self.assertEqual(sizes["specializations"], [[[1, 4]], [[3, 4]]])
        same = json.loads(self.ok("inspect", folder / "programqpc.bin", "--buffers", "--json").stdout)["container"]
        self.assertEqual(same["programs"], out["programs"])
        self.assertNotIn("container", json.loads(self.ok("inspect", folder / "programqpc.bin", "--json").stdout))

    def test_validate_lists_states_and_that_they_may_be_left_out(self):
        model = self.path / "kept.onnx"
        small_model(model, (1, 4))
        name = onnx.load(model).graph.output[0].name
        self.ok("compile", model, "--state", f"{name}=x", "--target", "aic100", "-o", self.path / "kept")
        result = self.ok("validate", self.path / "kept")
        self.assertIn(f"State: output '{name}' is input 'x' of the next run", result.stdout)
        self.assertEqual(result.stdout.count("partial allowed"), 2)
        report = json.loads(self.ok("validate", self.path / "kept", "--json").stdout)
        program = report["programs"][0]
        self.assertEqual(program["states"], [{"output": name, "input": "x"}])
        self.assertEqual([buffer["partial_allowed"] for buffer in program["buffers"]], [True, True])

    def test_what_the_object_runtime_refuses_is_said(self):
        self.ok("compile", self.path / "small.onnx", "-o", self.path / "open.rknn")
        text = self.ok("validate", self.path / "open.rknn").stdout
        self.assertIn("no fixed size", text)
        self.assertIn("refused by the object runtime: input 'x' has no fixed size: compile with --shape-set", text)

    def test_types_that_the_object_runtime_refuses_are_said(self):
        for elem, why in ((TensorProto.STRING, "is a tensor(string), for which the API has no buffer"),
                          (TensorProto.DOUBLE, "is of f64, for which the API has no number: add a Cast")):
            values = [helper.make_tensor_value_info(name, elem, [2]) for name in ("x", "y")]
            graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "typed", values[:1], values[1:])
            source = self.path / "typed.onnx"
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8), source)
            self.ok("compile", source, "-o", self.path / "typed.rknn")
            text = self.ok("validate", self.path / "typed.rknn").stdout
            self.assertIn(f"refused by the object runtime: 'x' {why}", text)

    def test_validate_finds_damage_that_inspect_does_not_look_for(self):
        file = self.compiled() / "programqpc.bin"
        damaged = bytearray(file.read_bytes())
        segments = json.loads(self.ok("inspect", file, "--json").stdout)["segments"]
        damaged[next(s["offset"] for s in segments if s["kind"] == "graph")] ^= 1
        (self.path / "damaged.bin").write_bytes(damaged)
        self.ok("inspect", self.path / "damaged.bin")
        self.fails(4, "validate", self.path / "damaged.bin")
        self.fails(3, "validate", self.path / "small.onnx", parts=("ONNX model",))
        self.fails(3, "validate", self.path / "none.bin", parts=("none.bin",))
        self.fails(3, "inspect", self.path / "small.onnx", "--buffers", parts=("--buffers",))

    def test_the_vendors_container_is_listed_by_segment(self):
        for command in ("inspect", "validate"):
            text = self.ok(command, self.vendors).stdout
            for part in ("container of the vendor's compiler", "Version 0.1", "Segment network.elf", "static 64 bytes",
                         "odd\\x1b[2Jname"):
                self.assertIn(part, text)
            self.assertNotIn("\x1b", text)
        out = json.loads(self.ok("inspect", self.vendors, "--json").stdout)["container"]
        self.assertEqual([(s["name"], s["bytes"]) for s in out["segments"]][:2],
                         [("network.elf", 64), ("constants.bin", 100)])
        self.fails(4, "inspect", self.vendors, "--load", parts=("only its segments are listed",))
        self.fails(4, "run", self.vendors, "--random")

    def test_a_damaged_one_is_refused_with_the_field(self):
        good = self.vendors.read_bytes()
        cut = self.path / "cut.bin"
        cut.write_bytes(good[:100])
        for command in ("inspect", "validate"):
            self.fails(4, command, cut, parts=("it says that it has",))
        lies = bytearray(good)
        struct.pack_into("<Q", lies, 24, 2**63)
        cut.write_bytes(lies)
        self.fails(4, "inspect", cut, parts=("segments, at most 1024",))
        struct.pack_into("<Q", lies, 24, 3)
        lies[4] = 7
        cut.write_bytes(lies)
        self.fails(4, "inspect", cut, parts=("version 7.1",))


if __name__ == "__main__":
    main()
