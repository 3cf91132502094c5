# SPDX-License-Identifier: Apache-2.0
"""A planted fault: one unified diff, below lines that say what it is. README.md has the form."""
import os
import re

HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
FUZZ = 2  # how many lines of context may differ at either end of a hunk


class DoesNotApply(Exception):
    """A hunk whose place is not in the file, or is there twice."""


class Hunk:
    def __init__(self, line):
        self.line = line  # where the hunk begins in the file that the diff was made from, from 1
        self.lines = []   # (' ', '-' or '+', text)

    def sides(self, fuzz):
        """Lines before and after, without `fuzz` lines of context at either end, and how many of
        them the beginning lost."""
        kinds = [kind for kind, _ in self.lines]
        changed = [i for i, kind in enumerate(kinds) if kind != " "]
        first = min(fuzz, changed[0])
        last = max(len(kinds) - fuzz, changed[-1] + 1)
        kept = self.lines[first:last]
        return ([text for kind, text in kept if kind != "+"],
                [text for kind, text in kept if kind != "-"], first)


class Fault:
    """`name`, `sentence`, `judged` (why surviving is right; empty where it is not), `parts`: the
    hunks by the path that they change."""

    def __init__(self, path):
        self.name = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.sentence, self.judged = _head(lines)
        self.parts = {}
        self._read(lines)
        if not self.parts or not all(self.parts.values()):
            raise SystemExit(f"replant: {path} is no unified diff")

    def _read(self, lines):
        hunks = hunk = None
        for line in lines:
            start = HUNK.match(line)
            if start:
                if hunks is None:
                    raise SystemExit(f"replant: a hunk of {self.name} stands before its +++ line")
                hunk = Hunk(int(start[1]))
                hunks.append(hunk)
            elif line.startswith(("diff ", "index ", "--- ")):
                hunk = None
            elif line.startswith("+++ ") and hunk is None:
                path = line[4:].split("\t")[0].strip()
                hunks = self.parts.setdefault(path.split("/", 1)[1], [])
            elif hunk is not None and line[:1] in (" ", "+", "-"):
                hunk.lines.append((line[0], line[1:]))
            elif hunk is not None and not line:
                hunk.lines.append((" ", ""))
        for hunk in (hunk for part in self.parts.values() for hunk in part):
            while hunk.lines and hunk.lines[-1] == (" ", ""):
                hunk.lines.pop()  # empty lines at the end of the diff
            if all(kind == " " for kind, _ in hunk.lines):
                raise SystemExit(f"replant: a hunk of {self.name} changes nothing")

    def changed(self, root):
        """The texts that the fault makes of the files below root, by path."""
        return {path: _with_hunks(root, path, hunks)
                for path, hunks in self.parts.items()}


def _head(lines):
    """What stands before the diff: the sentence, and what follows "judged:"."""
    diff = next((i for i, line in enumerate(lines) if line.startswith(("--- ", "diff "))), len(lines))
    words = " ".join(" ".join(line.lstrip("# ") for line in lines[:diff]).split())
    sentence, _, judged = words.partition("judged:")
    return sentence.strip(), judged.strip()


def _with_hunks(root, path, hunks):
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines = file.read().split("\n")
    except FileNotFoundError:
        raise DoesNotApply(f"there is no {path}") from None
    moved = 0
    for hunk in hunks:
        at, before, after = _place(lines, hunk, hunk.line - 1 + moved, path)
        lines[at:at + len(before)] = after
        moved += len(after) - len(before)
    return "\n".join(lines)


def _place(lines, hunk, wanted, path):
    for fuzz in range(FUZZ + 1):
        before, after, lost = hunk.sides(fuzz)
        if not before:
            break
        places = [at for at in range(len(lines) - len(before) + 1)
                  if lines[at:at + len(before)] == before]
        if places:
            return min(places, key=lambda at: abs(at - wanted - lost)), before, after
    raise DoesNotApply(f"{path} has no such lines as those of the hunk for line {wanted + 1}")
