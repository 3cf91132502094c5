#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""declarations.py INCLUDE OUTPUT DEPFILE COMPILER…: what ptxgen's headers declare, as a module of cffi.

All public headers are preprocessed, but for the builder's emitters, and without alignments, which cffi does
not know. The standard headers are replaced by empty ones, whose types cffi knows; inline functions are left
out."""
import pathlib
import subprocess
import sys
import tempfile

import cffi
from pycparser import c_ast, c_generator, c_parser

STANDARD = {
    "uint8_t": "unsigned char", "int8_t": "signed char", "uint16_t": "unsigned short",
    "int16_t": "short", "uint32_t": "unsigned int", "int32_t": "int",
    "uint64_t": "unsigned long long", "int64_t": "long long", "size_t": "unsigned long",
    "ptrdiff_t": "long", "uintptr_t": "unsigned long", "bool": "_Bool",
}
EMPTY = {"stddef.h": "", "stdint.h": "", "stdbool.h": "", "stdarg.h": "typedef void *va_list;\n"}
LEFT_OUT = {"ptx.h"}


def preprocessed(include: pathlib.Path, headers: list, compiler: list) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for header, text in EMPTY.items():
            (folder / header).write_text(text)
        source = folder / "all.h"
        source.write_text("".join(f"#include <ptxgen/{h.name}>\n" for h in headers))
        return subprocess.run(
            [*compiler, "-E", "-P", "-nostdinc", f"-I{folder}", f"-I{include}", "-D__attribute__(x)=",
             "-D_Alignas(x)=", source],
            check=True, text=True, stdout=subprocess.PIPE).stdout


def declarations(text: str) -> str:
    known = "".join(f"typedef {meaning} {name};" for name, meaning in STANDARD.items())
    tree = c_parser.CParser().parse(known + text)
    tree.ext = [node for node in tree.ext if not isinstance(node, c_ast.FuncDef) and
                not (isinstance(node, c_ast.Typedef) and node.name in STANDARD)]
    return c_generator.CGenerator().visit(tree)


def main(include: str, output: str, depfile: str, *compiler: str) -> None:
    folder = pathlib.Path(include)
    headers = [h for h in sorted((folder / "ptxgen").glob("*.h")) if h.name not in LEFT_OUT]
    ffi = cffi.FFI()
    ffi.cdef(declarations(preprocessed(folder, headers, list(compiler))))
    ffi.set_source("ptxgen._declarations", None)
    ffi.emit_python_code(output)
    pathlib.Path(depfile).write_text(f"{output}: {' '.join(str(h) for h in headers)}\n")


main(*sys.argv[1:])
