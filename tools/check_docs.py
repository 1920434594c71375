"""Checks that every relative link of the Markdown files leads to a file, and every #part to a heading;
that docs/dependencies.md explains each package of requirements/; and that the unit tests which
docs/compatibility.md and the scheduler's pages call proof are there.

usage: check_docs.py [root]
"""

import re
import sys
import unicodedata
from pathlib import Path

SKIPPED = re.compile(r"^(build|build-.*|out|\.git|\.venv|\.cache)$")
PROVEN = ("../SECURITY.md", "compatibility.md", "apis/scheduler.md", "apis/scheduler-original.md")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


def pages(root):
    for path in sorted(root.rglob("*.md")):
        if not any(SKIPPED.match(part) for part in path.relative_to(root).parts):
            yield path


def prose(text):
    """The text without fenced blocks and `code`."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S))


def anchors(path):
    """The names that GitHub gives the headings of a page."""
    found = set()
    text = re.sub(r"^(```|~~~).*?^\1", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", text, re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        kept = "".join(c for c in heading if c in " -_" or unicodedata.category(c)[0] in "LN")
        name, again = kept.replace(" ", "-"), 0
        while (name if not again else f"{name}-{again}") in found:
            again += 1
        found.add(name if not again else f"{name}-{again}")
    return found


def broken(root):
    for page in pages(root):
        for link in LINK.findall(prose(page.read_text(encoding="utf-8"))):
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue  # An address elsewhere.
            name, _, part = link.partition("#")
            target = (root / name[1:]) if name.startswith("/") else (page.parent / name) if name else page
            if not target.exists():
                yield f"{page.relative_to(root)}: the link {link} leads nowhere"
            elif part and target.suffix == ".md" and part not in anchors(target):
                yield f"{page.relative_to(root)}: {name or page.name} has no heading #{part}"


def unexplained(root):
    page = root / "docs" / "dependencies.md"
    named = set(re.findall(r"`([^`]+)`", page.read_text(encoding="utf-8"))) if page.exists() else set()
    for path in sorted((root / "requirements").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            package = re.split(r"[\s=<>#]", line)[0]
            if package and package not in named:
                yield f"{path.relative_to(root)}: docs/dependencies.md does not say why {package} is needed"


def unproven(root):
    tests = set()
    for path in [path for folder in ("src", "apps", "tests") for path in root.glob(f"{folder}/**/*_test.cpp")]:
        tests.update(re.findall(r"\b(?:TEST(?:_F|_P)?|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)\s*[,)]",
                                path.read_text(encoding="utf-8")))
    suites = {suite for suite, _ in tests}
    for page in filter(Path.exists, (root / "docs" / name for name in PROVEN)):
        for suite, name in re.findall(r"`([A-Z]\w*)\.([A-Z]\w*|\*)`", page.read_text(encoding="utf-8")):
            if (suite, name) not in tests and not (name == "*" and suite in suites):
                yield f"{page.relative_to(root)}: there is no test {suite}.{name}"


def main(root):
    root = Path(root).resolve()
    found = [*broken(root), *unexplained(root), *unproven(root)]
    for line in found:
        print(line, file=sys.stderr)
    print(f"docs: {sum(1 for _ in pages(root))} pages, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
