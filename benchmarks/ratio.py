"""What the benchmarks in Python make of times, and their report, as harness.h does for those in C++."""
import json
import pathlib

import numpy as np


def interval(ratios, rng):
    """The median, and the bounds of its 95 % bootstrap interval."""
    medians = sorted(float(np.median(rng.choice(ratios, len(ratios)))) for _ in range(2000))
    return float(np.median(ratios)), medians[50], medians[1949]


def verdict(low, high, target, at_most):
    if low > target if at_most else high < target:
        return "missed"
    return "met" if (high <= target if at_most else low >= target) else "open"


def write(report, path):
    """The report as JSON, into the file, or on stdout where the path is empty."""
    text = json.dumps(report, indent=2) + "\n"
    if path:
        pathlib.Path(path).write_text(text)
    else:
        print(text, end="")
