"""Fetches and builds the host of the ggml plugin's tests: shared ggml with backends as plugins, and its own
test-backend-ops. Once a version: a host that is there is left alone.

usage: build_host.py [--fetch] [folder]      default: .cache/ggml of the repository

Prints the folder of the host's programs and libraries; --fetch only downloads what the build needs.
Environment: CMAKE, JOBS.
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
    found = re.search(r"^([\w-]+)==([\w.]+)", REQUIREMENTS.read_text(encoding="utf-8"), re.M)
    return found.group(1), found.group(2)


def fetch(folder):
    """The source distribution of the list, by pip and its index."""
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
                    "--no-build-isolation", "--require-hashes", "--dest", folder, "-r", REQUIREMENTS], check=True)
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


def build(tree, folder, *options):
    cmake = os.environ.get("CMAKE", "cmake")
    launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")
                if shutil.which("ccache")]
    subprocess.run([cmake, "-S", pathlib.Path(__file__).parent / "host", "-B", folder, "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON", f"-DGGML_TREE={tree}",
                    *launcher, *options],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([cmake, "--build", folder, "--parallel", os.environ.get("JOBS", str(os.cpu_count()))],
                   check=True, stdout=subprocess.DEVNULL)


def home_of(folder):
    """The host's own folder, one for each version."""
    return pathlib.Path(folder) / "-".join(pinned())


def fetched(folder):
    """The source distribution; None where the host is built already."""
    home = home_of(folder)
    if (home / "ready").exists():
        return None
    home.mkdir(parents=True, exist_ok=True)
    return next(home.glob("*.tar.gz"), None) or fetch(home)


class BuiltHost:
    """The host; made where it is not there."""

    def __init__(self, folder):
        home = home_of(folder)
        self.tree, self.programs = home / "llama.cpp" / "ggml", home / "build" / "bin"
        archive = fetched(folder)
        if archive is not None:
            print(f"building the host of the ggml plugin in {home}: a few minutes, once", file=sys.stderr)
            unpack(archive, home / "llama.cpp")
            archive.unlink()
            build(home / "llama.cpp", home / "build")
            (home / "ready").touch()

    def command(self, program):
        return [self.programs / program]

    def folder(self):
        """It finds its CPU beside its programs, from any folder."""
        return None


if __name__ == "__main__":
    only_fetch = "--fetch" in sys.argv[1:2]
    arguments = sys.argv[1 + only_fetch:]
    where = arguments[0] if arguments else ROOT / ".cache" / "ggml"
    if only_fetch:
        fetched(where)
    else:
        print(BuiltHost(where).programs)
