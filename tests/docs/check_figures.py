#!/usr/bin/env python3
"""Figures of README.md are those of the files that it names; every file that a page names is there.

    check_figures.py SOURCES OCTET

The tables of speed are computed again from the CSVs of bench/results/. Exit code 1 and a line for
each breach.
"""

import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys

failures = []


def check(right, what):
    if not right:
        failures.append(what)


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def table_after(text, heading):
    """Cells of the first table after a line that begins so, without its head."""
    lines = text[text.index(heading):].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|---"))
    cells = []
    for line in lines[first + 1:]:
        if not line.startswith("|"):
            break
        cells.append([cell.strip() for cell in line.strip("|").split("|")])
    return cells


def numbers(cell):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", cell)]


def agrees(said, computed, what):
    """A cell of one figure, rounded as its digits say; an empty one claims nothing."""
    if not said:
        return
    (number,) = numbers(said)
    digits = len(said.split()[0].partition(".")[2])
    check(abs(number - computed) <= 0.5001 * 10 ** -digits, f"{what}: {said}, measured {computed}")


CPU_ROWS = {"AVX-512": ("e4m3", "avx512"), "AVX2": ("e4m3", "avx2"),
            "portable (M = 128)": ("e4m3", "portable"),
            "AVX2, BF16 operands (M = 128)": ("bf16", "avx2")}


def check_cpu(sources, readme):
    section = readme[readme.index("## Speed of the CPU backend"):]
    files = dict(re.findall(r"([AB]): [^|]*?`(bench/results/cpu_[\w.-]+\.csv)`",
                            section[:section.index("|---")]))
    check(sorted(files) == ["A", "B"], f"README.md, CPU: names the files {files}")
    table = table_after(readme, "## Speed of the CPU backend")
    check(len(table) == len(CPU_ROWS), f"README.md, CPU: {len(table)} rows")
    for path, machine, rate, share, times, two in table:
        product, isa = CPU_ROWS[path]
        of = {(r["product"], r["isa"], r["threads"]): float(r["gmac_per_s"])
              for r in rows(sources / files[machine])}
        plain = of["plain", "avx2" if isa == "portable" else isa, "1"]
        one, what = of[product, isa, "1"], f"README.md, CPU, {path}"
        agrees(rate, one, what)
        agrees(share, 100 * one / plain, what)
        exact = {(r["product"], r["isa"], r["threads"]): r for r in rows(sources / files[machine])}
        agrees(times, float(exact[product, isa, "1"]["over_ref"]), what)
        if two:
            agrees(two, of[product, isa, "2"] / one, what)


REGIMES = [(0, 64), (65, 2048), (2049, 1 << 30)]


def check_hopper(sources, readme):
    section = readme[readme.index("## Kernels for Hopper"):]
    ours, peers = re.findall(r"`(bench/results/[\w-]+-h200-dense(?:-baseline|-second)?\.csv)`", section)[:2]
    measured = {r["problem"]: r for r in rows(sources / ours)}
    baseline = rows(sources / peers)
    check(len(baseline) == len(measured) == 108, f"{len(baseline)} and {len(measured)} shapes")
    slower, against, worst = 0, [], (0, "")
    table = table_after(readme, "## Kernels for Hopper")
    for (low, high), (name, octet, peer, ratio) in zip(REGIMES, table):
        ratios = [[], [], [], []]
        for r in baseline:
            if not low <= int(r["m"]) <= high:
                continue
            us, deepgemm, floor = (float(x) for x in (
                measured["dense_m{m}n{n}k{k}".format(**r)]["us"], r["deepgemm_us"], r["floor_us"]))
            exact = float(measured["dense_m{m}n{n}k{k}".format(**r)]["floor_us"])
            check(abs(exact - floor) <= 0.06, f"{peers}: floor {floor}, {ours}: {exact}")
            for values, x in zip(ratios, (us / exact, deepgemm / floor, deepgemm / us,
                                          float(measured["dense_m{m}n{n}k{k}".format(**r)]
                                                ["over_cublaslt"]))):
                values.append(x)
            # By cuBLASLt's time in each run, which takes the machines' difference out.
            scaled = us / float(measured["dense_m{m}n{n}k{k}".format(**r)]["cublaslt_us"]) / (
                deepgemm / float(r["cublaslt_per_tensor_us"]))
            slower += scaled > 1.02
            worst = max(worst, (scaled, "{m}x{n}x{k}".format(**r)))
        means = [statistics.geometric_mean(values) for values in ratios]
        check(f"({len(ratios[0])}" in name, f"README.md, {name}: has {len(ratios[0])} shapes")
        for said, mean in zip((octet, peer, ratio), means):
            agrees(said, mean, f"README.md, {name}")
        against.append(f"{means[3]:.2f}")
    check("{}, {} and {} of the time of cuBLASLt".format(*against) in section,
          f"README.md: cuBLASLt's ratios are {against}")
    said = f"{slower} of these shapes are more than 2 % slower than DeepGEMM, at most by " \
           f"{100 * worst[0] - 100:.0f} % ({worst[1]})"
    check(said in section, f"README.md: must say \"{said}\"")


# Rows of README's table of groups: what names them, and which rows of the peer's baseline they stand
# beside where it has no such problem.
GROUPED = [("large groups", r"(contiguous|aligned)_g[48]m(8192|4096)n.*", None),
           ("32 x 256 rows, contiguous", r"contiguous_g32m256n.*", None),
           ("32 x 256 rows, offsets", r"offsets_g32m256n.*", ("offsets", "contiguous")),
           ("masked, 32 x 192 and 6 x 1024", r"masked_g(32m192|6m1024)n.*", None),
           ("masked, 32 x 20 and 6 x 20", r"masked_g(32|6)m20n.*", None),
           ("weight gradients of one layer", r"dense_.*_f32_acc", None),
           ("weight gradients of experts", r"kgrouped_.*_f32_acc", None),
           ("the same, each group packed", r"kgrouped_.*_f32_acc_packed", ("_packed", ""))]


def check_grouped(sources, readme):
    section = readme[readme.index("Grouped problems and weight gradients"):]
    results = {}
    for kind in ("grouped", "wgrad"):
        for peer in ("", "-baseline"):
            (name,) = set(re.findall(rf"`(bench/results/[\w-]+-h200-{kind}{peer or '(?:-second)?'}\.csv)`",
                                     section))
            results.setdefault(peer, {}).update({r["problem"]: r for r in rows(sources / name)})
    (name,) = set(re.findall(r"`(bench/results/[\w-]+-h200-packed\.csv)`", section))
    results[""].update({r["problem"]: r for r in rows(sources / name)})
    table = table_after(section, "Grouped problems and weight gradients")
    check(len(table) == len(GROUPED), f"README.md, groups: {len(table)} rows")
    for (name, octet, peer, ratio), (wanted, pattern, beside) in zip(table, GROUPED):
        check(name.startswith(wanted), f"README.md, groups: {name}, wanted {wanted}")
        ours, theirs = [], []
        for problem, r in results[""].items():
            other = problem.replace(*beside) if beside else problem
            if re.fullmatch(pattern, problem) and other in results["-baseline"]:
                ours.append(float(r["us"]) / float(r["floor_us"]))
                # Where both have the same work, by the same floor.
                base = results["-baseline"][other]
                theirs.append(float(base["deepgemm_us"]) / float(r["floor_us"])
                              if problem.startswith("dense_")
                              else float(base["deepgemm_over_floor"]))
        check(bool(ours), f"README.md, groups: nothing measured for {name}")
        mean, peers = statistics.geometric_mean(ours), statistics.geometric_mean(theirs)
        for said, computed in ((octet, mean), (peer, peers), (ratio, peers / mean)):
            agrees(said, computed, f"README.md, {name}")


def check_demo(sources, octet, readme):
    """The demo's table, all but the times and what computed it."""
    said = subprocess.run([octet, "demo", "--backend", "cpu", "--samples", sources / "samples"],
                          capture_output=True, text=True, timeout=300, check=True).stdout
    start = readme.index("    encoder.layer.4.output.dense: ")
    shown = [line.strip() for line in readme[start:readme.index("\n\n", start)].splitlines()]
    without_time = lambda line: re.sub(r" +[\d.]+ ms  .*", "", line.strip())
    printed = [without_time(line) for line in said.splitlines()]
    check(len(shown) == 6 and all(without_time(line) in printed for line in shown),
          f"README.md shows another demo than {octet} prints:\n{said}")


def check_numerics(sources, octet):
    """What numerics.md says of the real layer."""
    said = json.loads(subprocess.run(
        [octet, "demo", "--backend", "cpu", "--json", "--samples", sources / "samples"],
        capture_output=True, text=True, timeout=300, check=True).stdout)
    figures = [next(r["difference"] for r in layer["results"] if r["method"] == "FP8, fine-grained")
               for layer in said]
    page = (sources / "docs/numerics.md").read_text(encoding="utf-8")
    wanted = "it is {} and {}".format(*(f"{x:.1e}".replace("e-0", "e-") for x in figures))
    check(wanted in page, f"numerics.md: must say \"{wanted}\"")


def check_names(sources):
    """Files of bench/, cases/, samples/, tables/ that a page names."""
    for page in [sources / "README.md", sources / "CONTRIBUTING.md", *sources.glob("docs/*.md")]:
        named = re.findall(r"`((?:bench|cases|samples|tables|tests|tools|docs|src|include)/[\w./-]+)`",
                           page.read_text(encoding="utf-8"))
        for name in named:
            check((sources / name).exists(), f"{page.name}: names {name}, which is not there")


def main():
    sources = pathlib.Path(sys.argv[1])
    readme = (sources / "README.md").read_text(encoding="utf-8")
    check_cpu(sources, readme)
    check_hopper(sources, readme)
    check_grouped(sources, readme)
    check_names(sources)
    check_demo(sources, sys.argv[2], readme)
    check_numerics(sources, sys.argv[2])
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
