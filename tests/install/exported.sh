#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints what a library exports, in the form of the lists of symbols (src/version-script.sh); a symbol
# without a version has "none" there: exported.sh LIBRARY
set -euo pipefail
nm -D --defined-only --with-symbol-versions "$1" | awk '$2 != "A" {
        parts = split($3, name, /@+/)
        version = parts > 1 ? name[2] : "none"
        sub(/^PTXGEN_(FILES_)?/, "", version)
        print name[1] (version == "0.1" ? "" : " " version)
    }' | LC_ALL=C sort
