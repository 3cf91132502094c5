#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C file that calls every exported function with arguments that no caller should pass.

    calls.py SYMBOLS... HEADER... > calls.inc     lists of symbols are named NAME.symbols

Each function becomes try_NAME(h), and a row of the table `calls`. What an argument is follows from
its type in the headers, so a new function needs no row of its own; a symbol without a prototype is
an error. h says what to pass: NULL and 0; zeroed memory and 0; or memory of 0xFF bytes and ~0. Where
a structure holds pointers, 0xFF bytes would be addresses, so it is zeroed instead, and opaque
objects, which only the library makes, are NULL, but for a live module and kernel of the builder.
"""
import re
import sys

MANY = 32  # elements of an array
SCALARS = {
    'int', 'unsigned', 'unsigned int', 'size_t', 'long', 'char', 'uint8_t', 'int8_t', 'uint16_t',
    'int16_t', 'uint32_t', 'int32_t', 'uint64_t', 'int64_t', 'ptrdiff_t',
}


def read(paths):
    text = ''
    for path in paths:
        with open(path, encoding='utf-8') as file:
            text += file.read()
    text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    return re.sub(r'//[^\n]*', ' ', text)


class Types:
    def __init__(self, text):
        self.bodies = {}
        for match in re.finditer(r'typedef struct (\w+)\s*\{', text):
            end = self.close(text, match.end())
            self.bodies[match.group(1)] = text[match.end():end]
        self.enums = set(re.findall(r'\}\s*(\w+);', ''.join(
            text[m.start():self.close(text, m.end()) + 60].split(';')[0] + ';'
            for m in re.finditer(r'typedef enum \w+\s*\{', text))))
        self.handles = set(re.findall(r'typedef struct \w+ \*(\w+);', text))
        self.functions = set(re.findall(r'typedef \w+ \(\*(\w+)\)\(', text))
        self.numbers = set(re.findall(r'typedef (?:unsigned long long|int|uint64_t) (\w+);', text))

    @staticmethod
    def close(text, at):
        depth = 1
        while depth:
            depth += {'{': 1, '}': -1}.get(text[at], 0)
            at += 1
        return at - 1

    def holds_pointers(self, name):
        body = self.bodies[name]
        words = set(re.findall(r'\w+', body))
        return ('*' in body or bool(words & self.handles) or name == 'ptxgen_driver' or
                any(self.holds_pointers(w) for w in words & self.bodies.keys() if w != name))


def split(parameters):
    depth, part, parts = 0, '', []
    for c in parameters:
        depth += {'(': 1, ')': -1}.get(c, 0)
        if c == ',' and not depth:
            parts.append(part)
            part = ''
        else:
            part += c
    return [' '.join(p.split()) for p in parts + [part]]


def argument(types, parameter):
    """A C expression; each buffer is a new one."""
    if parameter == '...':
        return None
    if '(*' in parameter:
        return 'NULL'
    pointer = re.match(r'(?:const )?([\w ]+?) ?(\*(?: ?const ?)?\*?)(\w+)$', parameter) or \
        re.match(r'(?:const )?([\w ]+?) ()(\w+)\[\w+\]$', parameter)
    if pointer:
        base, stars, name = pointer.group(1), pointer.group(2), pointer.group(3)
        if base == 'ptxgen_error':
            return 'h->err'
        if stars.count('*') == 2:
            return 'place(h)'
        if base == 'char' and parameter.startswith('const'):
            return '"x"' if name == 'format' else 'text(h)'
        if base in ('ptx_module', 'ptx_kernel'):
            return 'h->' + base[4:]
        if base in types.bodies:
            fill = 'zeros' if types.holds_pointers(base) else 'bytes'
            return f'{fill}(h, sizeof({base}) * {MANY if not stars else 1})'
        if base in SCALARS | types.enums | types.numbers | {'void', 'double', 'float', 'bool'}:
            return 'bytes(h, ROOM)'
        return 'NULL'  # an opaque object
    kind = parameter.rsplit(' ', 1)[0].replace('const ', '')
    if kind in types.handles | types.functions:
        return 'NULL'
    if kind == 'bool':
        return 'h->fill != 0'
    if kind in ('double', 'float'):
        return '(h->fill ? NAN : 0)'
    if kind in types.bodies:
        fill = 'zeros' if types.holds_pointers(kind) else 'bytes'
        return f'*({kind} *)value({fill}(h, sizeof({kind})), sizeof({kind}), h)'
    if kind in SCALARS | types.enums | types.numbers:
        return f'({kind})(h->fill ? -1 : 0)'
    raise SystemExit(f'calls.py: what is "{parameter}"?')


def main():
    lists = [path for path in sys.argv[1:] if path.endswith('.symbols')]
    symbols = [line.split()[0] for path in lists for line in open(path, encoding='utf-8')]
    text = read(path for path in sys.argv[1:] if path not in lists)
    types = Types(text)
    text = re.sub(r'PTXGEN_PRINTF\([^)]*\)', '', text)
    found = {}
    nested = r'(?:[^()]|\((?:[^()]|\([^()]*\))*\))*'
    for match in re.finditer(r'PTXGEN_API\s+([\w\s]+?[\s*]+?)(\w+)\((' + nested + r')\)\s*;', text):
        found[match.group(2)] = (' '.join(match.group(1).split()), split(match.group(3)))
    missing = sorted(set(symbols) - found.keys())
    if missing:
        raise SystemExit('calls.py: no prototype of ' + ', '.join(missing))
    for name in symbols:
        result, parameters = found[name]
        if 'va_list args' in parameters or name in ('ptx_module_destroy',):
            continue
        arguments = [] if parameters == ['void'] else [argument(types, p) for p in parameters]
        call = f'{name}({", ".join(a for a in arguments if a is not None)})'
        print(f'static void try_{name}(struct how *h)\n{{')
        if result == 'ptxgen_status':
            print(f'    h->status = {call};')
        elif '*' in result:
            print(f'    h->pointer = (const void *){call};')
        else:
            print(f'    (void){call};')
        print('    (void)h;\n}\n')
    print('static const struct call calls[] = {')
    for name in symbols:
        result, parameters = found[name]
        if 'va_list args' in parameters or name in ('ptx_module_destroy',):
            continue
        takes_error = 'ptxgen_error *err' in parameters
        print(f'    {{"{name}", try_{name}, {str(result == "ptxgen_status").lower()}, '
              f'{str(takes_error).lower()}}},')
    print('};')


main()
