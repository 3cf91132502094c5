#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# man.sh HELP2MAN PTXGEN OUTPUT [COMMAND [FAMILY]]: the manual page of the command, or of one of its
# commands, out of what its --help prints. The page has no date, so that a build can be repeated.
set -eu
help2man=$1 ptxgen=$2 output=$3
shift 3
name=ptxgen summary='write, inspect, run and time GPU kernels for quantised inference'
if [ $# -gt 0 ]; then
    name=$(printf 'ptxgen-%s' "$1${2:+-$2}")
    summary=$("$ptxgen" --help | sed -n "/^Commands/,/^\$/s/^  $1  *//p")${2:+": $2"}
fi
version=$("$ptxgen" --version)
SOURCE_DATE_EPOCH=0 "$help2man" --no-info \
    --name="$summary" --version-string="${version#ptxgen }" --output="$output.draft" "$ptxgen${1:+ $*}"
title=$(printf '%s' "$name" | tr '[:lower:]' '[:upper:]')
sed -e "s/^\.TH .*/.TH $title 1 \"\" \"$version\" \"User Commands\"/" \
    -e "s/^ptxgen[^\\\\]* \\\\- /$name \\\\- /" "$output.draft" >"$output"
rm "$output.draft"
cat >>"$output" <<END
.SH "SEE ALSO"
.BR ptxgen (1);
.B ptxgen help
.I COMMAND FAMILY
prints the options of a command for kernels of a family.
END
