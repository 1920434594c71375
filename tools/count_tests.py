"""Counts the tests of a ctest run and prints them in one closing line: `N passed, N failed`.

usage: count_tests.py <junit file of ctest>

A GoogleTest or unittest program counts as its cases, read from what it printed; any other test
counts as one. A program that fails without naming a case (a crash, a time limit) is one failure.
Exits with 1 where something failed or nothing ran.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

GTEST_PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.", re.M)
GTEST_FAILED = re.compile(r"^\[  FAILED  \] (\d+) tests?, listed below", re.M)
GTEST_SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) tests?, listed below", re.M)
UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ", re.M)
UNITTEST_BAD = re.compile(r"\b(?:failures|errors)=(\d+)")


def total(pattern, text):
    return sum(int(number) for number in pattern.findall(text))


def count(case):
    """(passed, failed, skipped) of one ctest test."""
    text = case.findtext("system-out") or ""
    status = case.get("status")
    if status == "disabled":
        return 0, 0, 1
    if status == "notrun":
        # ctest also calls a missing program or a failed fixture "skipped"; only its message tells.
        skip = case.find("skipped")
        asked = skip is not None and skip.get("message", "").startswith("SKIP_")
        return (0, 0, 1) if asked else (0, 1, 0)
    skipped = total(GTEST_SKIPPED, text)
    failed = total(GTEST_FAILED, text)
    passed = total(GTEST_PASSED, text)
    ran = total(UNITTEST_RAN, text)
    if ran:
        bad = total(UNITTEST_BAD, text)
        passed, failed = passed + ran - bad, failed + bad
    if status == "run":
        return (passed if passed or skipped else 1), failed, skipped
    return passed, max(failed, 1), skipped


def main(path):
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"count_tests: cannot read {path}: {error}", file=sys.stderr)
        cases = []
    passed = failed = skipped = 0
    for case in cases:
        p, f, s = count(case)
        passed, failed, skipped = passed + p, failed + f, skipped + s
        if f:
            print(f"failed: {case.get('name')} ({f})")
    if not cases:
        print("count_tests: no test ran", file=sys.stderr)
        failed = 1
    if skipped:
        print(f"skipped: {skipped}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
