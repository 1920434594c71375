"""What leaves librknnrt.so: the functions of rknn_abi.json and nothing else, under its name.

usage: rknn_exports_test.py <librknnrt.so> <rknn_abi.json> <nm> <readelf>

Standard library only.
"""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

LIBRARY, FACTS, NM, READELF = None, None, "nm", "readelf"
SONAME = "librknnrt.so"
ALIAS = "librknn_api.so"


def findings(text, facts):
    """What is wrong with a listing of `nm -D --defined-only`, one line each."""
    wanted = {f["name"] for f in facts["functions"]}
    # Names of old headers, which old binaries still look for: allowed, not asked for.
    allowed = set(facts["functions_removed_from_headers"])
    found = {}
    for line in text.splitlines():
        parts = line.split()
        if parts[-2:-1] == ["A"]:
            continue  # The name of a symbol version, not a symbol.
        found[parts[-1].split("@")[0]] = parts[-2]
    for name in sorted(wanted - set(found)):
        yield f"{name} is not exported"
    for name in sorted(set(found) - wanted - allowed):
        yield f"{name} is exported and is not a function of the API"
    for name in sorted(set(found) & (wanted | allowed)):
        if found[name] != "T":
            yield f"{name} is exported as {found[name]}, not as a function"


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


class ExportsTest(unittest.TestCase):
    def test_ExactlyTheApiIsExported(self):
        self.assertEqual(list(findings(output(NM, "-D", "--defined-only", LIBRARY), FACTS)), [])

    def test_NoSymbolHasAVersion(self):
        # Clients were linked against a library without symbol versions.
        listing = output(NM, "-D", "--defined-only", LIBRARY)
        self.assertEqual([line for line in listing.splitlines() if "@" in line], [])

    def test_SonameIsTheVendors(self):
        names = re.findall(r"\(SONAME\).*\[(.*?)\]", output(READELF, "-d", LIBRARY))
        self.assertEqual(names, [SONAME])

    def test_WhatHasThreadsStaysWhenAClientClosesTheLibrary(self):
        machines = {re.search(r"Machine: +(.*)", output(READELF, "-h", file))[1] for file in (LIBRARY, sys.executable)}
        if len(machines) > 1:
            self.skipTest(f"this Python opens no library of another machine: {machines}")
        # In a child: this process may have the library from elsewhere.
        program = ("import _ctypes, sys; _ctypes.dlclose(_ctypes.dlopen(sys.argv[1], 2)); "
                   "print('libcorelane' in open('/proc/self/maps').read())")
        self.assertEqual(output(sys.executable, "-c", program, LIBRARY).strip(), "True")

    def test_TheOldNameIsALinkToIt(self):
        alias = Path(LIBRARY).with_name(ALIAS)
        self.assertTrue(alias.is_symlink(), f"{alias} is not there")
        self.assertEqual(os.readlink(alias), SONAME)

    def test_NoEngineIsLinked(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", output(READELF, "-d", LIBRARY))
        self.assertEqual([n for n in needed if re.search("openvino|tbb|dnnl", n)], [])


class FindingsTest(unittest.TestCase):
    FACTS = {"functions": [{"name": "rknn_init"}, {"name": "rknn_run"}],
             "functions_removed_from_headers": {"rknn_destory_mem": "old"}}

    def test_TheApiAndOldNamesAreFine(self):
        listing = "0001 T rknn_init\n0002 T rknn_run\n0003 T rknn_destory_mem\n"
        self.assertEqual(list(findings(listing, self.FACTS)), [])

    def test_AMissingAForeignAndADataSymbolAreNamed(self):
        listing = "0001 T rknn_init\n0002 T _ZN8corelane3fooEv\n0003 D rknn_destory_mem\n"
        self.assertEqual(list(findings(listing, self.FACTS)), [
            "rknn_run is not exported",
            "_ZN8corelane3fooEv is exported and is not a function of the API",
            "rknn_destory_mem is exported as D, not as a function"])


if __name__ == "__main__":
    LIBRARY, NM, READELF = sys.argv[1], sys.argv[3], sys.argv[4]
    FACTS = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    unittest.main(argv=sys.argv[:1], verbosity=2)
