"""Runs when a Python starts below a program under corelane.alias, which puts this folder into PYTHONPATH: there, too,
the first import of an aliased name gives Corelane. Nothing is imported before that.

Python knows one module of this name: the one that would have run without this folder runs after it."""

import os
import sys


class _Names:
    """Finds the aliased names, each until it was imported once."""

    def __init__(self, names):
        self.corelane_names = names

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in self.corelane_names:
            return None
        import importlib.machinery
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        alias = _alias()
        del sys.modules[name]  # The import takes what stands there in the end.
        alias.install(name)
        self.corelane_names.discard(name)


def _alias():
    """corelane.alias, from the package that this file is of where the child finds none by itself."""
    import importlib.machinery
    import importlib.util
    if "corelane" not in sys.modules and importlib.machinery.PathFinder.find_spec("corelane") is None:
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        spec = importlib.util.spec_from_file_location("corelane", os.path.join(folder, "__init__.py"),
                                                      submodule_search_locations=[folder])
        package = importlib.util.module_from_spec(spec)
        sys.modules["corelane"] = package
        try:
            spec.loader.exec_module(package)
        except BaseException:
            del sys.modules["corelane"]
            raise
    return importlib.import_module("corelane.alias")


def _next():
    """Runs the sitecustomize that this one stands before."""
    import importlib.machinery
    import importlib.util
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_python, _, _names = os.environ.get("CORELANE_ALIAS_CHILDREN", "").partition(":")
if _names and _python == sys.implementation.cache_tag:  # Another Python cannot load the package.
    sys.meta_path.insert(0, _Names(set(_names.split(","))))
_next()
