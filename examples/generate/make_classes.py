#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints classes_table.h: the letters and numbers of Unicode, by PyPI's unicodedata2.

    python3 examples/generate/make_classes.py >examples/generate/classes_table.h
"""

import sys

import unicodedata2 as unicodedata


def ranges(category):
    found = []
    for character in range(sys.maxunicode + 1):
        if unicodedata.category(chr(character))[0] != category:
            continue
        if found and found[-1][1] == character - 1:
            found[-1][1] = character
        else:
            found.append([character, character])
    return found


def print_table(name, category):
    print("\nstatic const struct range %s[] = {" % name)
    line = "   "
    for first, last in ranges(category):
        item = " {0x%X, 0x%X}," % (first, last)
        if len(line) + len(item) > 100:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* Letters and numbers of Unicode %s, by make_classes.py. */" % unicodedata.unidata_version)
print("/* clang-format off */")
print_table("letters", "L")
print_table("numbers", "N")
