#!/usr/bin/env python3
"""Draws time over floor by shape, one panel for each regime, from CSVs of `octet bench`.

    bench/plot.py [RESULTS.csv ...] [--baseline PEERS.csv ...] -o over_floor.svg

Shapes are grouped by weight (N x K), M growing to the right; 1 is the floor, lower is better. Drawn
are plain launches, dependent ones, and cuBLASLt's per-tensor arm of the same run. A baseline adds
the peers of its day (columns m, n, k, floor_us and those of PEERS). Needs matplotlib.
"""
import argparse
import csv
import itertools
import os
import re
import statistics
import sys

try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("bench/plot.py: needs matplotlib (pip install matplotlib)")

PROBLEM = re.compile(r"([a-z]+)_(?:g(\d+))?m(\d+)n(\d+)k(\d+)((?:_\w+)*)$")
PEERS = (("deepgemm_us", "DeepGEMM (baseline)", "x"),
         ("cublaslt_per_tensor_us", "cuBLASLt per tensor (baseline)", "+"))
ARMS = (("us", "", dict(marker="o")),
        ("pdl_us", ", dependent launch", dict(marker="o", mfc="none")),
        ("cublaslt_us", ", cuBLASLt", dict(marker="^", alpha=0.45)))
COLOURS = ("#1f5fa8", "#c4531c", "#3a7d44", "#7b4ea3")


def regime(kind, m):
    size = "decode, M <= 64" if m <= 64 else "mid, M 128-2048" if m <= 2048 else "large, M >= 4096"
    return size if kind == "dense" else kind


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


class Figure:
    """Series of (shape, over floor), sorted into regimes as they come."""

    def __init__(self):
        self.regimes, self.styles = {}, {}  # regime -> {series -> {shape -> over floor}}

    def add(self, shape, series, style, us, floor):
        if us and float(us) > 0 and float(floor) > 0:
            self.styles.setdefault(series, style)
            points = self.regimes.setdefault(regime(shape[0], shape[4]), {})
            points.setdefault(series, {})[shape] = float(us) / float(floor)

    def results(self, path, name, colour):
        for row in rows(path):
            match = PROBLEM.match(row["problem"])
            if not match or row.get("candidate") not in (None, "", "0"):
                continue
            kind, g, m, n, k, options = match.groups()
            shape = (kind, int(g or 1), int(n), int(k), int(m), options)
            for column, suffix, style in ARMS:
                series = name + suffix if suffix != ", cuBLASLt" else "cuBLASLt beside " + name
                self.add(shape, series, dict(color=colour, **style), row.get(column),
                         row["floor_us"])

    def baseline(self, path):
        for row in rows(path):
            try:
                shape = ("dense", 1, int(row["n"]), int(row["k"]), int(row["m"]), "")
            except (KeyError, ValueError):
                sys.exit(f"{path}: a baseline has the columns m, n, k and floor_us")
            for column, series, marker in PEERS:
                style = dict(color="#777777", marker=marker)
                self.add(shape, series, style, row.get(column), row["floor_us"])

    def draw(self, path):
        shapes = {name: sorted(set().union(*series.values()))
                  for name, series in self.regimes.items()}
        order = sorted(shapes, key=lambda r: (shapes[r][0][0] != "dense", shapes[r][0][4]))
        size = (max(8, 0.17 * max(map(len, shapes.values())) + 4), 2.6 * len(order) + 0.8)
        figure, axes = plt.subplots(len(order), squeeze=False, layout="constrained", figsize=size)
        for axis, name in zip(axes[:, 0], order):
            self.panel(axis, name, shapes[name])
        lines = {line.get_label(): line for axis in axes[:, 0] for line in axis.lines
                 if line.get_label() in self.styles}
        figure.legend(handles=lines.values(), loc="outside upper center", ncols=3)
        figure.savefig(path, dpi=150)

    def panel(self, axis, name, shapes):
        places = {shape: i for i, shape in enumerate(shapes)}
        means = ""
        for label, points in self.regimes[name].items():
            axis.plot([places[s] for s in points], points.values(), linestyle="none", label=label,
                      **self.styles[label])
            means += f"   {label} {statistics.geometric_mean(points.values()):.2f}"
        starts = [i for i, s in enumerate(shapes) if i == 0 or s[:4] != shapes[i - 1][:4]]
        for i in starts[1:]:
            axis.axvline(i - 0.5, color="#dddddd", lw=0.8, zorder=0)
        axis.axhline(1, color="#222222", lw=0.8, zorder=0)
        axis.set_xticks(starts, ["{2}x{3}".format(*shapes[i]) for i in starts], ha="left")
        axis.grid(axis="y", color="#eeeeee", lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_ylabel("time / floor", fontsize=7)
        axis.set_title(f"{name}:{means}", fontsize=7, loc="left")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("results", nargs="*", help="CSVs of `octet bench --csv`")
    parser.add_argument("--baseline", action="append", default=[], help="a peers' baseline CSV")
    parser.add_argument("-o", "--output", required=True, help="the picture: .png, .svg or .pdf")
    arguments = parser.parse_args()
    figure = Figure()
    for path in arguments.baseline:
        figure.baseline(path)
    for path, colour in zip(arguments.results, itertools.cycle(COLOURS)):
        name = "Octet" if len(arguments.results) == 1 else os.path.splitext(os.path.basename(path))[0]
        figure.results(path, name, colour)
    if not figure.regimes:
        sys.exit("nothing to draw: give CSVs of `octet bench --csv`, or --baseline")
    figure.draw(arguments.output)


if __name__ == "__main__":
    main()
