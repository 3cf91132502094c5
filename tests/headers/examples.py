#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the examples in the public headers, so that none of them can be wrong.

    examples.py HEADERS-FOLDER PROLOGUES-FOLDER INCLUDE-FOLDER… -- COMPILER…

An example is an indented block of a comment that holds C: a line of it ends with ; or { or }, or
calls a function of the library. Other indented blocks are formulas and tables. What an example
takes for granted (a driver, a target, an `err`) is declared in the prologue of its header,
PROLOGUES-FOLDER/NAME.h. Definitions of functions, types and static objects are compiled where they
may stand, everything else as the body of a function that returns int. An ellipsis stands for

    a line of words, as "…copy it to the device…" or "…", which is left out
    a value, as ".x = …", which is ELIDED
    the body of a function, as "{ … }", which is ELIDED_BODY

of which the prologue defines the last. Nothing else may be left out. A header is read where it is
installed, so none may point to a file of the source tree.
"""
import os
import re
import subprocess
import sys
import tempfile

INDENT = 4
CALL = re.compile(r"\b(ptx|ptxgen)_[a-z0-9_]+\(")
ELLIPSIS_LINE = re.compile(r"^\s*…(.*…)?$")


def without_comment(line):
    return line.split("//")[0].rstrip()


def comment_lines(text):
    """Line numbers and texts, less ' * ', of all block comments' inner lines."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("/*"):
            inside = "*/" not in line
        elif inside:
            if "*/" in line:
                inside = False
            match = re.match(r"^\s*\* ?(.*)$", line)
            yield number, match.group(1) if match else line
        else:
            yield number, None


def blocks(text):
    """Indented blocks, each a list of (line number, line less the indent)."""
    block = []
    for number, line in comment_lines(text):
        if line and line.startswith(" " * INDENT):
            block.append((number, line[INDENT:]))
        elif line == "" and block:
            block.append((number, ""))
        elif block:
            yield block
            block = []
    if block:
        yield block


def is_code(block):
    lines = [without_comment(line) for _, line in block]
    return any(line.endswith((";", "{", "}")) or CALL.search(line) for line in lines)


def fill_in(number, line, header):
    code = without_comment(line)
    if ELLIPSIS_LINE.match(code):
        return ""
    code = re.sub(r"\{ … \}", "{ ELIDED_BODY }", code)
    code = re.sub(r"= …", "= ELIDED", code)
    if "…" in code:
        raise ValueError(f"{header}:{number}: an ellipsis that stands for nothing known: {line}")
    return code


def split(block, header):
    """The lines for file scope, and those for a function's body."""
    outside, inside, depth, target = [], [], 0, None
    for number, line in block:
        code = fill_in(number, line, header)
        if depth == 0 and (target is None or target is inside):
            target = outside if re.match(r"(static |struct \w+ \{)", code) else inside
        target.append((number, code))
        depth += code.count("{") + code.count("(") - code.count("}") - code.count(")")
        if depth == 0 and code.endswith((";", "}")):
            target = None
    return outside, inside


def numbered(lines, header):
    return "".join(f'#line {number} "{header}"\n{code}\n' for number, code in lines if code)


def unit(path, prologue):
    """A translation unit with all examples of a header, and how many they are."""
    header = os.path.basename(path)
    with open(path, encoding="utf-8") as file:
        examples = [block for block in blocks(file.read()) if is_code(block)]
    text = f"#include <ptxgen/{header}>\n"
    if os.path.exists(prologue):
        text += f'#include "{prologue}"\n'
    text += "enum { ELIDED };\n"
    for i, block in enumerate(examples):
        outside, inside = split(block, path)
        text += numbered(outside, path)
        text += f"int example_{i}(void);\nint example_{i}(void)\n{{\n"
        text += numbered(inside, path) + "return 0;\n}\n"
    return text, len(examples)


def paths_into_the_tree(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if re.search(r"\b(src|tests|docs|examples)/", line):
                yield f"{path}:{number}: names a file that is not installed: {line.strip()}"


def check(path, prologue, compiler):
    problems = list(paths_into_the_tree(path))
    try:
        text, count = unit(path, prologue)
    except ValueError as problem:
        return problems + [str(problem)], 0
    with tempfile.NamedTemporaryFile("w", suffix=".c", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        result = subprocess.run(compiler + [file.name], capture_output=True, text=True)
    if result.returncode:
        problems += result.stderr.split("\n")
    return problems, count


def main():
    at = sys.argv.index("--")
    headers, prologues, *includes = map(os.path.abspath, sys.argv[1:at])
    compiler = sys.argv[at + 1:] + [
        "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable",
        "-Wno-unused-but-set-variable", "-Wno-unused-function", "-Wno-unused-parameter",
        *(f"-I{folder}" for folder in includes)]
    names = sorted(name for name in os.listdir(headers) if name.endswith(".h"))
    print(f"1..{len(names)}")
    failed = total = 0
    for i, name in enumerate(names, 1):
        problems, count = check(os.path.join(headers, name), os.path.join(prologues, name),
                                compiler)
        total += count
        failed += bool(problems)
        print(f"{'not ' if problems else ''}ok {i} - {count} examples of {name}")
        for line in problems:
            print(f"# {line}")
    print(f"# {total} examples")
    return 1 if failed or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
