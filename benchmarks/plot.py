#!/usr/bin/env python3
"""Plots the ratios of benchmark reports: plot.py OUT.png REPORT.json... (needs matplotlib)."""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def ratios(node):
    """Every object with a ratio and an interval, in order."""
    if isinstance(node, dict):
        if "ratio" in node and "low" in node:
            yield node
        for value in node.values():
            yield from ratios(value)
    elif isinstance(node, list):
        for value in node:
            yield from ratios(value)


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    rows = [r for path in sys.argv[2:] for r in ratios(json.loads(pathlib.Path(path).read_text()))]
    if not rows:
        return 0
    rows.reverse()
    figure, axes = plt.subplots(figsize=(9, 0.34 * len(rows) + 1.2))
    for y, row in enumerate(rows):
        if "control_low" in row:  # Medians over models have none.
            axes.plot([row["control_low"], row["control_high"]], [y, y], color="#bbbbbb", lw=6,
                      solid_capstyle="butt")
        colour = {"met": "#3a9b5c", "missed": "#c0392b"}.get(row.get("verdict"), "#2a6fdb")
        axes.plot([row["low"], row["high"]], [y, y], color=colour, lw=2)
        axes.plot(row["ratio"], y, "o", color=colour, ms=5)
        if "target" in row:
            axes.plot([row["target"]] * 2, [y - 0.35, y + 0.35], color="black", lw=1)
    axes.set_yticks(range(len(rows)), [r.get("name", "") for r in rows], fontsize=8)
    axes.axvline(1.0, color="#888888", lw=0.8, ls="--")
    axes.set_xscale("log")
    axes.set_xlabel("ratio (dot: median, line: 95 % interval, grey: A/A control, tick: target)")
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=110)
    return 0


if __name__ == "__main__":
    sys.exit(main())
