# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside it: a step that fails shows what it printed and is named.
#
#   quietly COMMAND…      prints what the command printed, to stderr, only when it fails
#   step NAME COMMAND…    when the command fails, says so with its exit status, and returns it
#   totals_in LOG         the two numbers of the last line of the form "N passed, N failed", else 0 0

quietly() {
    local output status=0
    output=$("$@" 2>&1 </dev/null) || status=$?
    [ "$status" = 0 ] || printf '%s\n' "$output" >&2
    return "$status"
}

step() {
    local name=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" = 0 ] || echo "$(basename "$0"): $name failed with exit status $status: $*" >&2
    return "$status"
}

totals_in() {
    sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed$/\1 \2/p' "$1" | tail -n 1 | grep . || echo 0 0
}
