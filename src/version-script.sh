#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the linker's version script of a library from the list of its symbols:
#
#   version-script.sh LIST OUTPUT
#
# LIST has a symbol a line, and behind it the version of ptxgen that brought it, where that is not 0.1.
# A symbol that is not in LIST is exported without a version.
set -eu
node=$(basename "$1" .symbols | tr a-z- A-Z_)
awk '{ print (NF > 1 ? $2 : "0.1"), $1 }' "$1" | LC_ALL=C sort -k1,1V -k2,2 | awk -v node="$node" '
    $1 != version { end(); before = version; version = $1; print node "_" version " {\n  global:" }
    { print "    " $2 ";" }
    END { end() }
    function end() { if (version) print "}" (before ? " " node "_" before : "") ";" }' >"$2"
