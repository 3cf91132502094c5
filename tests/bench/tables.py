#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of what times.sh (or `ptxgen bench --json`) measured, as Markdown.

    tests/bench/tables.py FOLDER-OR-FILE ...

A row for each shape, a column for each M: microseconds, in brackets how many times as fast as the
peer, after a comma those of launches that overlap the one before, and of the read ceiling in per
cent. Below each table the longest JIT.
"""
import json
import pathlib
import sys


def files(arguments):
    for path in map(pathlib.Path, arguments):
        yield from sorted(path.glob("*.json")) if path.is_dir() else [path]


def three_digits(time):
    return f"{time:.0f}" if time >= 100 else f"{time:.3g}"


def cell(row, ceiling):
    time = row["time"]["median_us"]
    text = three_digits(time)
    if "peer" in row:
        text += f" ({row['peer']['median_us'] / time:.2f})"
    if "overlapped" in row:
        overlapped = row["overlapped"]["median_us"]
        of_ceiling = 100 * row["bytes"] / ceiling / (overlapped * 1e-6)
        text += f", {three_digits(overlapped)} {of_ceiling:.0f} %"
    return text


def table(name, report):
    ceiling = report["read_ceiling"]["bytes_per_second"]
    shapes, counts = {}, []
    for row in report["rows"]:
        shapes.setdefault((row["k"], row["n"]), {})[row["m"]] = cell(row, ceiling)
        if row["m"] not in counts:
            counts.append(row["m"])
    print(f"\n{name}: {report['device']['name']}, {ceiling / 1e12:.2f} TB/s, peer {report['peer']}\n")
    print("| K x N | " + " | ".join(map(str, counts)) + " |")
    print("|---" * (len(counts) + 1) + "|")
    for (k, n), cells in shapes.items():
        print(f"| {k} x {n} | " + " | ".join(cells.get(m, "") for m in counts) + " |")
    print("\nJIT at most {:.0f} ms".format(max(row["jit_ms"] for row in report["rows"])))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in files(sys.argv[1:]):
        table(path.stem, json.loads(path.read_text()))


main()
