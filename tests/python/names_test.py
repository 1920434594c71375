"""The names of the package: `import *` and type checkers see the names that exist."""
import ast
import unittest
from pathlib import Path

import corelane
from corelane import _native

PACKAGE = Path(corelane.__file__).parent


def public(names) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def declared(body) -> dict[str, list]:
    """The public names of a stub's module or class, and what a class holds, with its private bases of the stub."""
    private = {node.name: node.body for node in body if isinstance(node, ast.ClassDef) and node.name.startswith("_")}
    found = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            found[node.name] = sum((private.get(base, []) for base in bases), node.body)
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = []
        elif isinstance(node, (ast.AnnAssign, ast.Assign)):
            found[node.target.id if isinstance(node, ast.AnnAssign) else node.targets[0].id] = []
    return {name: inner for name, inner in found.items() if not name.startswith("_")}


class Names(unittest.TestCase):
    def test_the_list_of_names_is_written_out_for_type_checkers(self):
        tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
        lists = [n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"]
        self.assertEqual([ast.literal_eval(value) for value in lists], [corelane.__all__])

    def test_the_list_holds_every_public_name(self):
        here = {n for n in public(vars(corelane)) if not isinstance(vars(corelane)[n], type(ast))}
        self.assertEqual(here, set(corelane.__all__) | {"compile"})

    def test_importing_all_hides_no_builtin(self):
        import builtins
        self.assertEqual(set(corelane.__all__) & set(dir(builtins)), set())

    def test_the_stub_of_the_native_module_names_what_it_has(self):
        stub = declared(ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8")).body)
        self.assertEqual(public(dir(_native)), set(stub))
        for name, body in stub.items():
            if body:
                with self.subTest(name=name):
                    self.assertEqual(public(dir(getattr(_native, name))), set(declared(body)))


if __name__ == "__main__":
    unittest.main()
