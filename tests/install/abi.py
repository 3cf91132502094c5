#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs compiled with ptxgen's headers take for granted of the library, as text.

    abi.py KEPT BUILD/include SOURCE/include -- COMPILER...     compares with KEPT, fails where it differs
    abi.py --update KEPT ...                                    writes KEPT

That is: each structure with its size, its alignment, and offset, size and type of each member; the
value of each enumerator; each other type; each function's prototype; and the numbers of instructions
and modifiers, which emitters compile into programs, as one digest. Declarations come from the headers
by pycparser, numbers from a program that the compiler makes, so attributes count. Names of parameters
do not. All is sorted by name: moving a declaration changes nothing."""
import difflib
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    from pycparser import c_ast, c_generator, c_parser
except ImportError:
    print("this Python has no pycparser")
    sys.exit(77)

STANDARD = ["uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t",
            "size_t", "ptrdiff_t", "uintptr_t", "bool", "va_list"]
INSTRUCTIONS = "instr.h"


class WithoutParameterNames(c_ast.NodeVisitor):
    def visit_ParamList(self, node):
        for parameter in node.params:
            kind = parameter
            while not isinstance(kind, (c_ast.TypeDecl, c_ast.EllipsisParam)):
                kind = kind.type
            if isinstance(kind, c_ast.TypeDecl):
                kind.declname = None
        self.generic_visit(node)


def parsed(includes, headers, compiler):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for header in ["stddef.h", "stdint.h", "stdbool.h", "stdarg.h"]:
            (folder / header).write_text("")
        (folder / "all.h").write_text("".join(f"#include <ptxgen/{header}>\n" for header in headers))
        text = subprocess.run(
            [*compiler, "-E", "-P", "-nostdinc", f"-I{folder}", *includes, "-D__attribute__(x)=",
             "-D_Alignas(x)=", "-D__extension__=", folder / "all.h"],
            check=True, text=True, stdout=subprocess.PIPE).stdout
    known = "".join(f"typedef int {name};" for name in STANDARD)
    tree = c_parser.CParser().parse(known + text)
    WithoutParameterNames().visit(tree)
    return [node for node in tree.ext if not isinstance(node, c_ast.FuncDef) and
            not (isinstance(node, c_ast.Typedef) and node.name in STANDARD)]


def text_of(node):
    return " ".join(c_generator.CGenerator().visit(node).split())


def inner(node):
    """The structure or enumeration that a declaration declares, and the subscripts ahead of it."""
    subscripts = ""
    while isinstance(node, (c_ast.Decl, c_ast.Typedef, c_ast.TypeDecl, c_ast.ArrayDecl)):
        subscripts += "[0]" if isinstance(node, c_ast.ArrayDecl) else ""
        node = node.type
    return node, subscripts


def has_body(node):
    return isinstance(node, (c_ast.Struct, c_ast.Union)) and node.decls is not None


def member_prints(type_name, members, prefix):
    """Statements of C that print the members of a structure."""
    for member in members:
        if member.bitsize is not None:
            raise SystemExit(f"abi.py: {type_name} has a bit-field, whose place nothing can print")
        body, subscripts = inner(member)
        path = prefix + (member.name or "")
        shown = f"{type(body).__name__.lower()} {member.name or ''}" if has_body(body) else text_of(member)
        if member.name:
            yield (f'printf("    %zu %zu {shown}\\n", offsetof({type_name}, {path}), '
                   f"sizeof(({type_name} *)0)->{path});")
        if has_body(body):
            yield from member_prints(type_name, body.decls, f"{path}{subscripts}." if member.name else prefix)


class Enumerators(c_ast.NodeVisitor):
    def __init__(self):
        self.names = []

    def visit_Enumerator(self, node):
        self.names.append(node.name)


def entries(nodes):
    """(key, statements of C that print what is to say of it)"""
    for node in nodes:
        body, _ = inner(node)
        if isinstance(node, c_ast.Typedef) and has_body(body):
            name = node.name
            yield f"1 {name}", [
                f'printf("type {name}: %zu bytes, aligned to %zu\\n", sizeof({name}), _Alignof({name}));',
                *member_prints(name, body.decls, "")]
        elif isinstance(body, c_ast.Enum) and body.values is not None:
            pass
        elif isinstance(node, c_ast.Typedef):
            yield f"2 {node.name}", [f'puts("{text_of(node)}");']
        elif isinstance(node, c_ast.Decl) and node.name:
            yield f"3 {node.name}", [f'puts("{text_of(node)}");']
        elif has_body(body):
            raise SystemExit(f"abi.py: structure {body.name} has no typedef of its name")
        found = Enumerators()
        found.visit(node)
        for name in found.names:
            yield f"0 {name}", [f'printf("{name} = %lld\\n", (long long){name});']


def instructions(path):
    numbers = re.findall(r"^\s+PTX_OP_\w+.*|^#define PTX_\w+ \(UINT64_C.*", path.read_text(), re.M)
    if not numbers:
        raise SystemExit(f"abi.py: {path} has no numbers of instructions")
    digest = hashlib.sha256("\n".join(numbers).encode()).hexdigest()[:16]
    return f"{len(numbers)} numbers of instructions and modifiers: {digest}\n"


def interface(includes, compiler):
    folders = [pathlib.Path(folder) / "ptxgen" for folder in includes]
    headers = sorted(path.name for folder in folders for path in folder.glob("*.h"))
    options = [f"-I{folder}" for folder in includes]
    nodes = parsed(options, [header for header in headers if header != INSTRUCTIONS], compiler)
    statements = [line for _, lines in sorted(dict(entries(nodes)).items()) for line in lines]
    with tempfile.TemporaryDirectory() as name:
        source, program = pathlib.Path(name) / "abi.c", pathlib.Path(name) / "abi"
        source.write_text("#include <stddef.h>\n#include <stdio.h>\n" +
                          "".join(f"#include <ptxgen/{header}>\n" for header in headers) +
                          "int main(void)\n{\n" + "\n".join(statements) + "\n}\n")
        subprocess.run([*compiler, "-std=c11", *options, "-o", program, source], check=True)
        text = subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE).stdout
    return text + next(instructions(f / INSTRUCTIONS) for f in folders if (f / INSTRUCTIONS).exists())


def main(arguments):
    update = arguments[0] == "--update"
    kept, *rest = arguments[update:]
    where = rest.index("--")
    now = interface(rest[:where], rest[where + 1:])
    if update:
        pathlib.Path(kept).write_text(now)
        return 0
    lines = list(difflib.unified_diff(pathlib.Path(kept).read_text().splitlines(), now.splitlines(),
                                      "kept", "now", lineterm="", n=2))
    print("\n".join(lines))
    if lines:
        print("docs/versions.md says what a release may change. If this change is meant: ninja update-abi")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
