"""A host of the ggml plugin that is not ours in any part: ggml, llama.cpp and whisper.cpp as Debian's development
release has them. Its packages are unpacked below .cache/ggml/debian; nothing is installed, and no root is needed.

usage: debian_host.py [folder]      default: .cache/ggml/debian of the repository

Fetches what is not there and prints the version of ggml. The release moves: a folder that is complete stays as it
is; remove it to fetch today's packages. Exit status 3: it cannot be had here, and why.

The mirror is the one from which this machine has its own release. The programs run on their own C library, which is
newer than the machine's: its loader starts them, in the folder where ggml looks for its CPU backends.
"""
import pathlib
import shutil
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements" / "ggml-debian.txt"
KEYS = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITE = "sid"
UNAVAILABLE = 3


class Unavailable(Exception):
    """The host cannot be had on this machine."""


class DebianHost:
    """The unpacked packages."""

    def __init__(self, folder):
        self.home = pathlib.Path(folder).resolve()
        self.root = self.home / "root"
        self.libraries = self.root / "usr" / "lib" / (sysconfig.get_config_var("MULTIARCH") or "")

    def complete(self):
        return (self.home / "complete").exists()

    def version(self):
        """Of ggml: the end of its library's file name."""
        found = sorted(self.libraries.glob("libggml-base.so.*.*"))
        return found[-1].name.removeprefix("libggml-base.so.") if found else "none"

    def folder(self):
        """Where the host finds its CPU backends: in the folder that it runs in."""
        return next(self.libraries.glob("ggml/backends*"))

    def command(self, program):
        """What starts a program of the host, by its loader."""
        loader = next(self.libraries.glob("ld-linux-*.so.*"))
        found = [self.root / "usr" / "bin" / program,
                 *sorted((self.root / "usr" / "libexec").glob(f"*/ggml/{program}"))]
        path = next((path for path in found if path.exists()), None)
        if path is None:
            raise Unavailable(f"the packages in {self.root} have no program {program}")
        return [loader, "--library-path", f"{self.libraries}:{self.libraries / 'llama'}", path]


def packages():
    lines = (line.partition("#")[0].strip() for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def release():
    """ID and VERSION_CODENAME of this machine."""
    lines = pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    values = {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}
    return values.get("ID"), values.get("VERSION_CODENAME")


def mirror():
    """The archive from which this machine has its own release."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"this machine has no {tool}")
    name, codename = release()
    if name != "debian":
        raise Unavailable(f"this machine is {name}, and only a Debian knows a mirror of Debian")
    if not KEYS.exists():
        raise Unavailable(f"{KEYS} is not there: the package debian-archive-keyring has it")
    rows = subprocess.run(["apt-get", "indextargets", "--no-release-info", "--format",
                           "$(REPO_URI) $(RELEASE) $(COMPONENT) $(CREATED_BY)"],
                          capture_output=True, text=True, check=True).stdout.split("\n")
    for row in rows:
        address, *rest = row.split(" ")
        if rest == [codename, "main", "Packages"]:
            return address
    raise Unavailable(f"apt has no archive with {codename} main")


def apt(folder, *arguments, **options):
    """apt-get with a list, a state and a cache of its own; proxies and mirrors stay the machine's."""
    for name in ("lists/partial", "cache/archives/partial", "packages"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    settings = {"Dir::Etc::SourceList": folder / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
                "Dir::Etc::Preferences": "/dev/null", "Dir::Etc::PreferencesParts": "/dev/null",
                "Dir::State": folder, "Dir::State::Lists": folder / "lists", "Dir::State::Status": folder / "status",
                "Dir::Cache": folder / "cache", "APT::Sandbox::User": "", "Acquire::Languages": "none"}
    chosen = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    done = subprocess.run(["apt-get", "-q", *chosen, *arguments], capture_output=True, text=True, check=False,
                          **options)
    if done.returncode != 0:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise Unavailable(f"apt-get {arguments[0]} of {SUITE} did not succeed: {last}")


def fetch(folder):
    """The host in this folder, fetched where it is not there."""
    host = DebianHost(folder)
    if host.complete():
        return host
    address = mirror()
    shutil.rmtree(host.home, ignore_errors=True)
    state = host.home / "apt"
    state.mkdir(parents=True)
    (state / "sources.list").write_text(f"deb [signed-by={KEYS}] {address} {SUITE} main\n", encoding="utf-8")
    apt(state, "update", "--error-on=any")
    apt(state, "download", *packages(), cwd=state / "packages")
    for package in sorted((state / "packages").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, host.root], check=True)
    fetched = sorted(path.name for path in (state / "packages").glob("*.deb"))
    shutil.rmtree(state)
    (host.home / "complete").write_text("\n".join(fetched) + "\n", encoding="utf-8")
    return host


if __name__ == "__main__":
    try:
        print("ggml", fetch(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".cache" / "ggml" / "debian").version())
    except Unavailable as why:
        print(f"Debian's {SUITE} cannot be had as a host: {why}", file=sys.stderr)
        sys.exit(UNAVAILABLE)
