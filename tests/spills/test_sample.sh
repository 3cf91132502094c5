#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No text spills or has a stack frame: of those that did once, and of a sample of all specs. A whole
# sweep, by hand: tests/corpus/specs --no-m --no-tile | tests/spills/sweep COMMAND --targets all
#
#   test_sample.sh COMMAND SPECS PTXAS        SPECS prints specs; without a ptxas nothing is done
set -euo pipefail

if [ -z "$3" ]; then
    echo "no ptxas: nothing was assembled"
    exit 77
fi
here=$(cd "$(dirname "$0")" && pwd)
{ cat "$here/found" && "$2" --count 30 --no-m --no-tile; } | "$here/sweep" "$1" --ptxas "$3" --jobs 2
