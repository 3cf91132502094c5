# SPDX-License-Identifier: Apache-2.0
"""A worker's copy of the sources with a release build of its own, as .ci/test's gcc part has it."""
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid

from limit import STOPPED

LIMIT_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "limit.py")
BUILD_SECONDS = 1800
# A test may take this many times as long as without a fault, and so many seconds more.
TIMES, MORE_SECONDS = 8, 30
BAD = ("FAIL", "TIMEOUT", "ERROR", "UNEXPECTEDPASS")


class DoesNotBuild(Exception):
    """What ninja or meson said last."""


def source_files(root):
    """Every file below root but what builds and git leave there, as sorted relative paths."""
    found = []
    for folder, folders, names in os.walk(root):
        if folder == root:
            folders[:] = [n for n in folders
                          if not n.startswith("build") and n not in (".git", ".cache", "shared")]
            names = [n for n in names if n != ".git"]
        folders[:] = [n for n in folders if n != "__pycache__"]
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
        found += [os.path.relpath(os.path.join(folder, n), root) for n in folders
                  if os.path.islink(os.path.join(folder, n))]
    return sorted(found)


def digest_of(root):
    """Of all sources, but the planted faults and what plants them."""
    whole = hashlib.sha256()
    for path in source_files(root):
        if not path.startswith("tests/mutants/"):
            whole.update(path.encode() + b"\0" + _content(os.path.join(root, path)) + b"\0")
    return whole.hexdigest()


def _content(path):
    if os.path.islink(path):
        return b"link to " + os.readlink(path).encode()
    with open(path, "rb") as file:
        return file.read()


class Test:
    """What meson knows of a test, and how long it takes without a fault, once that is known."""

    def __init__(self, facts, output_of):
        self.name = facts["name"]
        self.suites = [suite.split(":")[-1] for suite in facts["suite"]]
        self.command = " ".join(facts["cmd"])
        self.timeout = facts["timeout"]
        self.duration = None
        self.needs = [path for target in facts["depends"] for path in output_of.get(target, [])]

    def limit(self):
        return MORE_SECONDS + TIMES * (self.timeout if self.duration is None else self.duration)


class Tree:
    def __init__(self, folder, origin, processes):
        self.source = os.path.join(folder, "source")
        self.build = os.path.join(folder, "build")
        self.log = os.path.join(folder, "log")
        self.cache = os.path.join(folder, "cache")  # what tests keep for their user
        self.origin = origin
        self.processes = processes
        self.mark = "PTXGEN_REPLANT=" + uuid.uuid4().hex
        self.may_start = threading.Lock()
        self.tests = []
        self.clean = {}  # the texts that a fault has changed, by path
        os.makedirs(folder, exist_ok=True)

    # ---- sources ----

    def synchronise(self):
        """Makes the copy the origin's again, and leaves alone what is the same already."""
        files = source_files(self.origin)
        wanted = set(files)
        if os.path.isdir(self.source):
            for path in source_files(self.source):
                if path not in wanted:
                    os.remove(os.path.join(self.source, path))
        for path in files:
            here, there = os.path.join(self.origin, path), os.path.join(self.source, path)
            if os.path.lexists(there):
                if _content(here) == _content(there):
                    continue
                os.remove(there)
            os.makedirs(os.path.dirname(there), exist_ok=True)
            shutil.copy2(here, there, follow_symlinks=False)
            if not os.path.islink(there):
                os.utime(there)

    def plant(self, fault):
        texts = fault.changed(self.source)
        for path, text in texts.items():
            self.clean[path] = _content(os.path.join(self.source, path))
            self._write(path, text.encode())

    def revert(self):
        for path, text in self.clean.items():
            self._write(path, text)
        self.clean = {}

    def _write(self, path, text):
        with open(os.path.join(self.source, path), "wb") as file:
            file.write(text)

    # ---- building ----

    def configure(self, options):
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            self._run(_words("MESON", "meson") + ["setup", self.build, self.source] +
                      [f"-D{option}" for option in options])

    def read_tests(self):
        output_of = {target["id"]: [os.path.relpath(path, self.build) for path in target["filename"]]
                     for target in self._introspect("--targets")}
        self.tests = [Test(facts, output_of) for facts in self._introspect("--tests")]

    def _introspect(self, what):
        return json.loads(self._run(_words("MESON", "meson") + ["introspect", self.build, what]))

    def make(self, tests=None, processes=None):
        """Builds what the tests need, or everything; returns seconds."""
        start = time.monotonic()
        targets = sorted({path for test in tests or () for path in test.needs})
        self._run(_words("NINJA", "ninja") +
                  ["-C", self.build, "--quiet", f"-j{processes or self.processes}", *targets])
        return time.monotonic() - start

    # ---- running ----

    def run_tests(self, tests, first_only=True):
        """The outcomes, as meson's log of JSON has them, in the order in which the tests ended. With
        first_only, meson ends all when one has failed."""
        limits = os.path.join(self.build, "limits.json")
        shutil.rmtree(self.cache, ignore_errors=True)
        with open(limits, "w", encoding="utf-8") as file:
            json.dump({t.command: t.limit() for t in tests}, file)
        # meson puts the wrapper's name behind that of the log.
        logs = os.path.join(glob.escape(self.build), "meson-logs", "replant*.json")
        for log in glob.glob(logs):
            os.remove(log)
        command = _words("MESON", "meson") + [
            "test", "-C", self.build, "--no-rebuild", "--logbase", "replant", "--timeout-multiplier", "0",
            "--num-processes", str(self.processes), "--wrapper",
            f"{sys.executable} {LIMIT_PROGRAM} {limits}"]
        if first_only:
            command += ["--maxfail", "1"]
        try:
            self._run(command + [t.name for t in tests], sum(t.limit() for t in tests),
                      {"XDG_CACHE_HOME": self.cache})
        except DoesNotBuild as error:
            if not glob.glob(logs):
                raise SystemExit(f"replant: meson test does not start: {error}") from None
        with open(glob.glob(logs)[0], encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def _run(self, command, seconds=BUILD_SECONDS, variables=()):
        """Its output. Whatever it started has ended when this returns."""
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **_compiler())
        environment.update([self.mark.split("=")])
        environment.update(variables)
        with open(self.log, "w+", encoding="utf-8", errors="replace") as log:
            with self.may_start:
                process = subprocess.Popen(  # pylint: disable=consider-using-with
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                    cwd=os.path.dirname(self.log), env=environment, start_new_session=True)
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = f"no end within {seconds:.0f} s"
            self.end_processes()
            process.wait()
            log.seek(0)
            output = log.read()
        if status != 0:
            raise DoesNotBuild(f"{output}\n{' '.join(command[:4])}: {status}")
        return output

    def end_for_good(self):
        """Ends the processes as end_processes does, and lets no other start."""
        self.may_start.acquire()
        self.end_processes()

    def end_processes(self):
        """Kills what this tree's commands started, whatever process group it is in."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if self.mark.encode() in file.read().split(b"\0"):
                        os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass  # it has ended, or is another user's


def _words(variable, default):
    return os.environ.get(variable, default).split()


def uses_ccache():
    return "CC" not in os.environ and shutil.which("ccache") is not None


def _compiler():
    """What the workers' copies compile is the same, whatever folder they are in."""
    return {"CC": "ccache gcc", "CCACHE_NOHASHDIR": "1"} if uses_ccache() else {}


def failures_in(outcome):
    """(whether the test failed, its failed cases, whether it was stopped for its time)"""
    text = outcome["stdout"] + "\n" + outcome.get("stderr", "")
    stopped = STOPPED in text or outcome["result"] == "TIMEOUT"
    cases = []
    for line in text.splitlines():
        for start in ("[  FAILED  ] ", "not ok ", "WRONG  "):
            if line.startswith(start):
                case = line[len(start):].lstrip("0123456789 -").split(" (exit")[0].strip()
                if case and not case.endswith(":") and "test(s)" not in case and case not in cases:
                    cases.append(case)
    return outcome["result"] in BAD, cases, stopped


def name_of(outcome):
    """The test's name in meson's log, which names its suites before it."""
    return outcome["name"].split(" / ", 1)[-1]
