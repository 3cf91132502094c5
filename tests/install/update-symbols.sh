#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the list of what libptxgen.so exports: update-symbols.sh LIBRARY LIST
set -euo pipefail
nm -D --defined-only "$1" | awk '{ print $3 }' | LC_ALL=C sort >"$2"
