"""Lists what is compiled into Corelane's libraries, or shipped beside them, and its notices.

usage: make_sbom.py [--engines] [--packages FOLDER]... OUT_FOLDER

Writes OUT_FOLDER/corelane.cdx.json, a bill of materials (CycloneDX 1.5), and OUT_FOLDER/NOTICES.txt, the licence of
each part. The parts are those that docs/dependencies.md marks as links or headers, and the Python packages whose
code ends up in ours (nanobind with its robin_map, onnx's messages); --engines adds the engines, which Debian packages
carry and the wheel depends on. Versions and texts come from the packages that this machine builds with: Debian's
from dpkg, Python's from the site-packages folders given and this Python's. The same input gives the same output.
Standard library only.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import sysconfig
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| (`[^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.M)
# Python packages whose code is compiled in, and those that are shipped or needed as they are.
COMPILED_IN = ("nanobind", "onnx")
ENGINES = ("onnxruntime", "openvino")
TOOLS = ("protobuf-compiler", "flatbuffers-compiler")
COMMON = pathlib.Path("/usr/share/common-licenses")


def debian_parts():
    """(package, licence) of each Debian package that an installed library or program links or is compiled with."""
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").partition("## Python packages")[0]
    for names, _, use, licences in ROW.findall(page):
        if not re.match(r"(links|headers)\b", use) or use.startswith("links (demo)"):
            continue
        packages = re.findall(r"`([^`]+)`", names)
        each = licences.split("; ")
        for i, package in enumerate(packages):
            if package not in TOOLS:
                yield package, each[i].strip() if len(each) == len(packages) else licences.strip()


def python_licences():
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").partition("## Python packages")[2]
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        names = re.findall(r"`([^`]+)`", cells[0])
        each = cells[-1].split("; ")
        for i, name in enumerate(names):
            yield name, each[i].strip() if len(each) == len(names) else cells[-1].strip()


def pinned():
    """{name: version} of the packages that the build takes from Python."""
    pins = {}
    for name in ("engine", "python"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
        pins.update(re.findall(r"^([\w.-]+)==([^\s\\]+)", text, re.M))
    return pins


def debian_version(package):
    """(version, architecture) as installed; None where this machine has no such package."""
    try:
        result = subprocess.run(["dpkg-query", "-W", "-f", "${Version} ${Architecture}", package],
                                capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return tuple(result.stdout.split()) if result.returncode == 0 and result.stdout.strip() else None


def component(name, version, licence, purl):
    part = {"type": "library", "bom-ref": purl, "name": name}
    if version:
        part["version"] = version
    part["licenses"] = [{"license": {"name": licence}}]
    part["purl"] = purl
    return part


def from_debian(package, licence):
    """(component, text of its licence)."""
    found = debian_version(package)
    purl = f"pkg:deb/debian/{package}"
    if found:
        purl += f"@{urllib.parse.quote(found[0], safe='')}?arch={found[1]}"
    file = pathlib.Path("/usr/share/doc", package, "copyright")
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else f"Licence: {licence}\n"
    return component(package, found[0] if found else None, licence, purl), text


def python_text(name, version, folders, licence):
    for folder in folders:
        information = folder / f"{name}-{version}.dist-info"
        texts = sorted(p for pattern in ("licenses/**/*", "LICENSE*", "NOTICE*") for p in information.glob(pattern)
                       if p.is_file())
        if not texts and information.exists():
            texts = sorted((folder / name).glob("LICENSE*"))
        if texts:
            return "\n\n".join(p.read_text(encoding="utf-8", errors="replace") for p in texts)
    return f"Licence: {licence}\n"


def robin_map(folders):
    """What nanobind carries in its tree; its licence stands at the head of the header."""
    for folder in folders:
        header = folder / "nanobind/ext/robin_map/include/tsl/robin_map.h"
        if header.exists():
            head = re.match(r"/\*\*?(.*?)\*/", header.read_text(encoding="utf-8"), re.S)
            if head:
                return "\n".join(line.strip().lstrip("* ") for line in head.group(1).strip().splitlines()) + "\n"
    return "Licence: MIT\n"


def parts(folders, engines):
    """(component, text) of each part."""
    yield from (from_debian(package, licence) for package, licence in debian_parts())
    pins, licences = pinned(), dict(reversed(list(python_licences())))
    for name in (*COMPILED_IN, *(ENGINES if engines else ())):
        purl = f"pkg:pypi/{name}@{pins[name]}"
        yield (component(name, pins[name], licences[name], purl),
               python_text(name, pins[name], folders, licences[name]))
    yield component("robin-map", None, "MIT", "pkg:github/Tessil/robin-map"), robin_map(folders)


def version():
    text = (ROOT / "include/corelane/base/api.h").read_text(encoding="utf-8")
    return re.search(r'#define CORELANE_VERSION_STRING "([^"]+)"', text).group(1)


def bill(components):
    own = {"type": "library", "bom-ref": "corelane", "name": "corelane", "version": version(),
           "licenses": [{"license": {"id": "Apache-2.0"}}]}
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": own},
            "components": components,
            "dependencies": [{"ref": "corelane", "dependsOn": [part["bom-ref"] for part in components]},
                             *({"ref": part["bom-ref"]} for part in components)]}


def general_licences(texts):
    """The licences that Debian's files name by their place, which a machine of a user may lack."""
    names = {name.rstrip(".") for text in texts for name in re.findall(rf"{COMMON}/([\w.-]+)", text)}
    for name in sorted(names):
        if (COMMON / name).exists():
            yield name, (COMMON / name).read_text(encoding="utf-8", errors="replace")


def write(bill_folder, notices_folder, folders, engines):
    """Both files. `folders`: site-packages besides this Python's own."""
    found = sorted(parts([*folders, pathlib.Path(sysconfig.get_paths()["purelib"])], engines),
                   key=lambda part: part[0]["name"])
    for folder in (bill_folder, notices_folder):
        folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(bill([part for part, _ in found]), indent=2) + "\n"
    (bill_folder / "corelane.cdx.json").write_text(text, encoding="utf-8")
    heads = [(f"{part['name']} {part.get('version', '')}".strip(), notice) for part, notice in found]
    heads += general_licences([notice for _, notice in heads])
    rule = "=" * 100
    notices = "Corelane is licensed under Apache-2.0 (LICENSE). Compiled into it, or shipped with it:\n\n"
    notices += "".join(f"{rule}\n{head}\n{rule}\n\n{notice.rstrip()}\n\n" for head, notice in heads)
    (notices_folder / "NOTICES.txt").write_text(notices, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="bill of materials and notices")
    parser.add_argument("--engines", action="store_true", help="the engines are shipped, too")
    parser.add_argument("--packages", action="append", default=[], type=pathlib.Path, help="a site-packages folder")
    parser.add_argument("out", type=pathlib.Path)
    given = parser.parse_args()
    write(given.out, given.out, given.packages, given.engines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
