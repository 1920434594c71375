"""Fetches and builds the host of the ggml plugin's tests: shared ggml with backends as plugins, and its own
test-backend-ops. Once a version: a host that is there is left alone.

usage: build_host.py [folder]      default: .cache/ggml of the repository

Prints the folder of the host's programs and libraries. Environment: CMAKE, JOBS.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements" / "ggml.txt"
# What is needed of the tree, below <package>/vendor/llama.cpp/.
PARTS = ("ggml/", "tests/test-backend-ops.cpp", "LICENSE")


def pinned():
    """(name, version) of the one package of the list."""
    found = re.search(r"^([\w-]+)==([\w.]+)$", REQUIREMENTS.read_text(encoding="utf-8"), re.M)
    return found.group(1), found.group(2)


def fetch(folder):
    """The source distribution of the list, by pip and its index."""
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
                    "--no-build-isolation", "--dest", folder, "-r", REQUIREMENTS], check=True)
    return next(folder.glob("*.tar.gz"))


def unpack(archive, tree):
    with tarfile.open(archive) as tar:
        for member in tar:
            _, _, path = member.name.partition("/vendor/llama.cpp/")
            if member.isfile() and path.startswith(PARTS):
                target = tree / path
                target.parent.mkdir(parents=True, exist_ok=True)
                with tar.extractfile(member) as source, open(target, "wb") as out:
                    shutil.copyfileobj(source, out)


def build(tree, folder):
    cmake = os.environ.get("CMAKE", "cmake")
    launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")
                if shutil.which("ccache")]
    subprocess.run([cmake, "-S", pathlib.Path(__file__).parent / "host", "-B", folder, "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=Release", f"-DGGML_TREE={tree}", *launcher],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([cmake, "--build", folder, "--parallel", os.environ.get("JOBS", str(os.cpu_count()))],
                   check=True, stdout=subprocess.DEVNULL)


def host(folder):
    """The folder of the host's programs; made where it is not there."""
    name, version = pinned()
    home = pathlib.Path(folder) / f"{name}-{version}"
    programs, ready = home / "build" / "bin", home / "ready"
    if not ready.exists():
        print(f"building the host of the ggml plugin in {home}: a few minutes, once", file=sys.stderr)
        home.mkdir(parents=True, exist_ok=True)
        archive = next(home.glob("*.tar.gz"), None) or fetch(home)
        unpack(archive, home / "llama.cpp")
        archive.unlink()
        build(home / "llama.cpp", home / "build")
        ready.touch()
    return programs


if __name__ == "__main__":
    print(host(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".cache" / "ggml"))
