#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What --truth of differential and protocols says of kept results: here of some that the emulator
# recorded, whose header is then made a card's.
#
#     truth.sh DIFFERENTIAL PROTOCOLS
set -uo pipefail
differential=$(realpath "$1") protocols=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
unset PTXGEN_TEST_SHARE
readonly sub=(--only '[lm]*_u32' --skip 'ld*')
failed=0

# expect STATUS SENTENCE COMMAND…: the command ends with the status, and its output has the sentence
expect() {
    local status=$1 sentence=$2
    shift 2
    "$@" >output 2>&1
    local got=$?
    if [ "$got" != "$status" ] || ! grep -qF -- "$sentence" output; then
        echo "FAILED: ${*##*/} ended with $got, not $status, or without: $sentence"
        tail -n 5 output
        failed=1
    fi
}

"$differential" "${sub[@]}" --record forms >/dev/null || exit 1
"$differential" --only 'ex2_approx_f*' --record bounded >/dev/null || exit 1
"$protocols" --only 'carry chain: *' --record chains >/dev/null || exit 1
expect 2 'recorded from the emulator, not from a card' "$differential" --truth forms
expect 2 'recorded from the emulator, not from a card' "$protocols" --truth chains
sed -i 's/^card .*/card of a test/' forms bounded chains

# equal results pass, others are told of
expect 0 ' 0 of them with a mismatch' "$differential" --truth forms "${sub[@]}"
expect 0 ' 0 with a mismatch' "$protocols" --truth chains --only 'carry chain: *'
expect 1 "its results are not the card's" "$differential" --truth forms "${sub[@]}" --plant
expect 1 "its results are not the card's" "$protocols" --truth chains --only 'carry chain: *' --plant

# results in a bound may differ within it, and anyhow where the card is marked as beyond it
expect 0 ' 0 of them with a mismatch' "$differential" --truth bounded --only 'ex2_approx_f*'
sed '/ - ex2_approx_f32 /,/ - / s/ 3f800000/ 3f800001/g' bounded >near
expect 0 ' 0 of them with a mismatch' "$differential" --truth near --only 'ex2_approx_f*'
cmp -s bounded near && { echo 'FAILED: no word was changed'; failed=1; }
sed '/ - ex2_approx_f32 /,/ - / s/ 3f800000/ 3f80ffff/' bounded >far
expect 1 '3f80ffff on the card' "$differential" --truth far --only 'ex2_approx_f*'
sed 's/ 3f80ffff/ !3f80ffff/' far >marked
expect 0 ' 0 of them with a mismatch' "$differential" --truth marked --only 'ex2_approx_f*'
sed '/^ /d' bounded >wordless
expect 1 'words are kept, not' "$differential" --truth wordless --only 'ex2_approx_f*'

# a form without a line, a line without a form, other inputs, another generator
sed '/ mul_hi_u32 /d' forms >less
expect 1 'mul_hi_u32 [mul.hi.u32]: no truth for this form: record it on a card' \
    "$differential" --truth less "${sub[@]}"
sed '/sum of 128/d' chains >fewer
expect 1 'carry chain: a sum of 128 bits: no truth for this protocol: record it on a card' \
    "$protocols" --truth fewer --only 'carry chain: *'
sed 's/ mul_hi_u32 / mul_hu_u32 /' forms >renamed
expect 1 'mul_hu_u32 [mul.hi.u32]: kept, but nothing has this name any more' \
    "$differential" --truth renamed
sed 's/^[0-9a-f]*\( [0-9a-f]* mul_hi_u32 \)/00000000\1/' forms >other
expect 1 'its inputs are others than those recorded; record it on a card' \
    "$differential" --truth other "${sub[@]}"
sed 's/^generator .*/generator 0/' forms >older
expect 2 'recorded with generator 0' "$differential" --truth older
expect 2 'not by protocols' "$protocols" --truth forms
expect 2 'it cannot be read' "$protocols" --truth nowhere
{ cat forms; echo nonsense; } >broken
expect 2 'is none of a form: nonsense' "$differential" --truth broken

# a share of the forms is run, and all are looked for
PTXGEN_TEST_SHARE=4 expect 0 ' 0 of them with a mismatch' "$differential" --truth forms "${sub[@]}"
PTXGEN_TEST_SHARE=4 expect 1 'mul_hi_u32 [mul.hi.u32]: no truth' "$differential" --truth less "${sub[@]}"
exit $failed
