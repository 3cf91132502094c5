#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Random problems of families, ten to a process, on every core, since the references take the time:
#
#     tests/gpu/random_specs.sh PTXGEN [DEVICE [FAMILY:COUNT …]]      gpu, and all families by default
#
# From seed $SEED (1) on; each process is given $LIMIT seconds (120). A line for each that found
# something wrong or did not end, then one for each family. Exits with 0 when all are right, 1 when
# some are not, 2 for usage.
set -u

if [ $# -lt 1 ] || [ ! -x "$1" ]; then
    echo "usage: $0 PTXGEN [DEVICE [FAMILY:COUNT …]]" >&2
    exit 2
fi
export PTXGEN=$1 DEVICE=${2:-gpu} LIMIT=${LIMIT:-120}
shift $(($# > 1 ? 2 : 1))
[ $# -gt 0 ] || set -- marlin:500 w8a8:500 sparse24:300 dense:100 rmsnorm_q4k:200 quantise:300 gguf_rows:300 gguf_linear:300
readonly EACH=10
OUTPUTS=$(mktemp -d) && export OUTPUTS
trap 'rm -rf "$OUTPUTS"' EXIT

# FAMILY FIRST COUNT of each process, families turn about.
slices() {
    local family count first
    for family; do
        count=${family#*:}
        for ((first = 0; first < count; first += EACH)); do
            echo "$first ${family%:*} $((${SEED:-1} + first)) $((count - first < EACH ? count - first : EACH))"
        done
    done | sort -n -s -k 1,1 | cut -d ' ' -f 2-
}

check() {
    local output=$OUTPUTS/$1.$2
    timeout "$LIMIT" "$PTXGEN" run "$1" --device "$DEVICE" --seed "$2" --random-specs "$3" \
        >"$output" 2>&1 && return
    echo "$1, $3 problems from seed $2: exit status $?"
    tail -n 3 "$output"
}
export -f check

# What the last line of progress, which ends in no newline, would hide.
count() {
    tr '\r' '\n' <"$1" | sed -n 's/.*: \([0-9]*\) random problems\{0,1\} on .*, \([0-9]*\) wrong$/\1 \2/p'
}

slices "$@" | xargs -P "$(nproc)" -L 1 bash -c 'check "$@"' check
wrong=0
for family; do
    total=$(for output in "$OUTPUTS/${family%:*}".*; do count "$output"; done |
        awk '{ n += $1; wrong += $2 } END { print n + 0, wrong + 0 }')
    echo "${family%:*}: ${total% *} of ${family#*:} random problems, ${total#* } wrong"
    [ "$total" = "${family#*:} 0" ] || wrong=1
done
exit $wrong
