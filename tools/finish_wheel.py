"""Makes a wheel that stands alone: finish_wheel.py RAW_WHEEL OUT_FOLDER

auditwheel copies the shared libraries that the wheel links into corelane/lib, gives it its manylinux tag
and lists them (sboms/). The engine stays outside: it is the openvino wheel's, a dependency. Then the
licence of each copied library is added, from the Debian package that the list names, and what make_sbom.py
says of the code that is compiled in.
"""
import json
import re
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

import make_sbom

from auditwheel.wheeltools import InWheel

EXCLUDED = "libopenvino*"
DOCUMENTS, COMMON = Path("/usr/share/doc"), Path("/usr/share/common-licenses")


def debian_packages(information: Path) -> list[str]:
    """The Debian packages whose libraries were copied, as auditwheel lists them."""
    listed = json.loads((information / "sboms" / "auditwheel.cdx.json").read_text(encoding="utf-8"))
    names = set()
    for component in listed["components"]:
        kind, _, rest = component["purl"].removeprefix("pkg:").partition("/")
        if kind == "deb":
            names.add(urllib.parse.unquote(rest.rpartition("/")[2].partition("@")[0]))
    return sorted(names)


def add_licences(root: Path) -> int:
    """Adds the licences to the unpacked wheel; how many libraries' packages there are."""
    information = next(root.glob("*.dist-info"))
    libraries = (root / "corelane" / "lib").glob("*.so*")
    copied = [p.name for p in libraries if re.search(r"-[0-9a-f]{8}\.so", p.name)]
    packages = debian_packages(information)
    if len(packages) != len(copied):
        sys.exit(f"finish_wheel: error: {len(copied)} libraries were copied ({', '.join(copied)}), the "
                 f"list names {len(packages)} Debian packages ({', '.join(packages)}); each needs a licence")
    folder = information / "licenses" / "bundled"
    folder.mkdir(parents=True, exist_ok=True)
    general = set()
    for package in packages:
        source = DOCUMENTS / package / "copyright"
        if not source.exists():
            sys.exit(f"finish_wheel: error: {source} is not there, which holds the licence of {package}; "
                     f"apt-get install --reinstall {package}")
        text = source.read_text(encoding="utf-8")
        (folder / f"{package}.txt").write_text(text, encoding="utf-8")
        general.update(name.rstrip(".") for name in re.findall(rf"{COMMON}/([\w.-]+)", text))
    for name in sorted(general):
        (folder / f"{name}.txt").write_bytes((COMMON / name).read_bytes())
    return len(packages)


def add_notices(root: Path) -> None:
    """The list of what is compiled in, and its notices."""
    information = next(root.glob("*.dist-info"))
    make_sbom.write(information / "sboms", information / "licenses", [], False)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    raw, out = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--exclude", EXCLUDED,
                               "--lib-sdir", "/lib", "--wheel-dir", scratch, str(raw)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"finish_wheel: error: auditwheel repair failed:\n{done.stdout}{done.stderr}")
        repaired = next(Path(scratch).glob("*.whl"))
        finished = out / repaired.name
        with InWheel(repaired, finished) as root:
            count = add_licences(Path(root))
            add_notices(Path(root))
    print(f"finish_wheel: {finished}, {count} libraries bundled, {finished.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
