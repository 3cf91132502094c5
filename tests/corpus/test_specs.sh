#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_specs.sh SPECS-FILE PTXGEN: the corpus has every family for every target and every option of the
# kernels that `ptxgen emit FAMILY --help` names, and no spec twice; the list is longer on request.
set -uo pipefail
specs=$1 ptxgen=$2 failed=0

wrong() {
    echo "$1"
    failed=1
}
[ "$(wc -l <"$specs")" -ge 1000 ] || wrong "fewer than 1000 specs"
[ -z "$(sort "$specs" | uniq -d)" ] || wrong "a spec twice"
"$(dirname "$0")/specs" --count 4000 | head -n "$(wc -l <"$specs")" | cmp - "$specs" ||
    wrong "a longer list begins otherwise"

families=$("$ptxgen" list | awk '{ print $1 }')
[ -n "$families" ] || wrong "no families"
for family in $families; do
    for target in sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_90a sm_100 sm_100a sm_103 sm_110a sm_120 \
        sm_120a sm_121; do
        grep -q "^$family .*--target $target$" "$specs" || wrong "no $family for $target"
    done
    options=$("$ptxgen" emit "$family" --help | sed -n '/The kernel:/,$s/^      --\([a-z0-9-]*\).*/\1/p')
    [ -n "$options" ] || wrong "$family names no options"
    for option in $options; do
        case $option in inflate | repack | usage) continue ;; esac # of bench; of all commands
        grep -q "^$family .*--$option " "$specs" || wrong "no $family with --$option"
    done
done
[ "$failed" = 0 ]
