#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a C file with the hash of all sources that plans and PTX come from, and of what compiles them:
#
#   revision.sh ROOT OUTPUT DEPFILE COMPILER
set -eu
root=$1 output=$2 depfile=$3 compiler=$4
files=$(cd "$root" && find meson.build include src/ptxgen src/kernels src/runtime -type f \
    \( -name '*.[ch]' -o -name '*.def' -o -name meson.build \) | LC_ALL=C sort)
hash=$({ echo "$compiler"; cd "$root" && echo "$files" | tr '\n' '\0' | xargs -0 sha256sum; } | sha256sum)
cat >"$output" <<END
extern const char library_revision[];
const char library_revision[] = "${hash%% *}";
END
{
    printf '%s:' "$output"
    echo "$files" | sed "s|^|$root/|; s| |\\\\ |g; s|^| |" | tr -d '\n'
    echo
} >"$depfile"
