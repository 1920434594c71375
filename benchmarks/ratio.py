"""What the benchmarks in Python make of times, as harness.h does for those in C++."""
import numpy as np


def interval(ratios, rng):
    """The median, and the bounds of its 95 % bootstrap interval."""
    medians = sorted(float(np.median(rng.choice(ratios, len(ratios)))) for _ in range(2000))
    return float(np.median(ratios)), medians[50], medians[1949]


def verdict(low, high, target, at_most):
    if low > target if at_most else high < target:
        return "missed"
    return "met" if (high <= target if at_most else low >= target) else "open"
