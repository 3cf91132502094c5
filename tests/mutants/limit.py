# SPDX-License-Identifier: Apache-2.0
"""Runs a test program, and kills its process group, this process too, when its time is over:

    python3 limit.py LIMITS COMMAND ARGUMENT...

LIMITS is a file of JSON: seconds by the command's words joined with blanks. meson gives each test a
process group of its own."""
import json
import os
import signal
import subprocess
import sys

STOPPED = "replant: stopped after"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        seconds = json.load(file).get(" ".join(sys.argv[2:]))
    with subprocess.Popen(sys.argv[2:]) as process:
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            print(f"{STOPPED} {seconds:.0f} s", flush=True)
            os.killpg(0, signal.SIGKILL)
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()
