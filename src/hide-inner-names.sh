#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Links an archive into one object whose hidden symbols are local to it, and archives that:
#
#   hide-inner-names.sh ARCHIVE OUTPUT OBJCOPY AR COMPILER…
set -eu
archive=$1 output=$2 objcopy=$3 ar=$4
shift 4
object=${output%.a}.o
"$@" -r -nostdlib -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -o "$object"
"$objcopy" --localize-hidden "$object"
rm -f "$output"
"$ar" rcsD "$output" "$object"
rm "$object"
