#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the lists of what libraries export; what was in no list gets this version of ptxgen, MAJOR.MINOR:
#
#   update-symbols.sh VERSION {LIBRARY LIST}…
set -euo pipefail
version=" $1"
[ "$1" != 0.1 ] || version=''
shift
while [ $# -gt 0 ]; do
    exported=$("$(dirname "$0")/exported.sh" "$1")
    echo "${exported// none/$version}" >"$2"
    shift 2
done
