#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times two builds of the command turn about on one card, and compares them row by row.

    tests/bench/interleave.py OLD NEW SECONDS < BENCHES

OLD and NEW are two `ptxgen` commands. BENCHES has one bench a line, as the words after `ptxgen bench`:

    marlin --shape 8192x8192 --m 1,16,64

Each bench runs as OLD, NEW, OLD, NEW, without peers. A row of the table that comes out has the
medians of the two runs of each build in microseconds, how much slower NEW is in per cent (the mean of
its runs against the mean of OLD's), and how far OLD's two runs are apart in per cent. A row is marked
where NEW is slower by more than 1 % and by more than OLD differs from itself. After SECONDS no further
bench is begun, and those left are named. The exit status is 0 when all ran and no row is marked.
"""
import json
import subprocess
import sys
import time

RUNS = ("old", "new", "old", "new")
OPTIONS = ["--json", "--no-peer", "--no-tuning", "--replays", "7"]


def rows(command, bench):
    """The rows of one run: (what was timed, microseconds), of plain and of overlapped launches."""
    run = subprocess.run([command, "bench", *bench.split(), *OPTIONS], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{command} bench {bench}: exit status {run.returncode}\n{run.stderr}")
    for row in json.loads(run.stdout)["rows"]:
        for kind in ("time", "overlapped"):
            if kind in row:
                name = row["shape"] + (" overlapped" if kind == "overlapped" else "")
                yield name, row[kind]["median_us"]


def compare(commands, bench):
    """Prints the rows of one bench; how many are marked."""
    times = {}
    for run in RUNS:
        for name, microseconds in rows(commands[run], bench):
            times.setdefault(name, {"old": [], "new": []})[run].append(microseconds)
    marked = 0
    for name, of in times.items():
        old, new = (sum(of[build]) / len(of[build]) for build in ("old", "new"))
        slower = 100 * (new / old - 1)
        spread = 100 * (max(of["old"]) / min(of["old"]) - 1)
        mark = "SLOWER" if slower > max(1, spread) else ""
        marked += bool(mark)
        each = ["%.2f %.2f" % tuple(of[build]) for build in ("old", "new")]
        family = bench.split()[0]
        print(f"{family} {name} | {each[0]} | {each[1]} | {slower:+.1f} % | {spread:.1f} % | {mark}", flush=True)
    return marked


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    commands = {"old": sys.argv[1], "new": sys.argv[2]}
    end = time.monotonic() + float(sys.argv[3])
    missing = marked = 0
    print("row | old | new | new slower by | old differs by |")
    for bench in filter(None, map(str.strip, sys.stdin)):
        if time.monotonic() > end:
            print(f"missing: {bench}")
            missing += 1
            continue
        marked += compare(commands, bench)
    print(f"{marked} rows slower, {missing} benches missing")
    sys.exit(bool(marked or missing))


main()
