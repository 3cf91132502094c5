#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the lists of what libraries export: update-symbols.sh {LIBRARY LIST}…
set -euo pipefail
while [ $# -gt 0 ]; do
    nm -D --defined-only "$1" | awk '{ print $3 }' | LC_ALL=C sort >"$2"
    shift 2
done
