#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program itself: command.sh GENERATE MODEL, where MODEL is tests/golden/gemma3_tiny.gguf. A build
# that does a part of the whole (PTXGEN_TEST_SHARE, tests/share.h) leaves the second run out.
set -u
generate=$1 model=$2
logits=$(mktemp)
trap 'rm -f "$logits"' EXIT
failed=0

# says WHAT DUE GOT
same() {
    [ "$2" = "$3" ] && return
    printf '%s: due is\n%s\nand came\n%s\n' "$1" "$2" "$3"
    failed=1
}

t1=89,203,123,97,19,264,315,187,138,191,282,254,70,143,317,125,44,70,41,12,63,250,219,215
t2=135,310,22,249,122,191,81,191,202,238,77,315,115,112,299,316,300,48,83,275,160,168,294,37

same "two sequences, the second twice" $'279,138,104\n158,96,165\n158,96,165' \
    "$("$generate" "$model" --ids $t1 --ids $t2 --batch 3 --count 3 --type f32 \
        --cache f16 --device cpu --logits "$logits" 2>/dev/null)"
same "logits of three steps of three sequences" $((3 * 3 * 320 * 4)) "$(stat -c %s "$logits")"
[ "${PTXGEN_TEST_SHARE:-1}" -gt 1 ] ||
    same "the likeliest token alone, drawn at random" 279,138 \
    "$("$generate" "$model" --ids $t1 --count 2 --type f32 --temperature 0.5 --top-p 0 \
        --device cpu 2>/dev/null)"

refuses() {
    same "${*:2}" "generate: $1" "$("$generate" "${@:2}" --device cpu 2>&1 >/dev/null | tail -n 1)"
}
refuses "the file has no key \"tokenizer.ggml.tokens\"" "$model" --text hello
refuses "token 320 is not in the vocabulary of 320" "$model" --ids 1,320
refuses "prompt and answer are 257 tokens; the model was made for 256" "$model" --ids 1 --count 256
refuses "--ids 1,x: ids with commas between them are due" "$model" --ids 1,x
refuses "--type f8: f32, f16 or bf16 is due" "$model" --ids 1 --type f8
refuses "--stream f16: f32 or bf16 is due" "$model" --ids 1 --stream f16
refuses "--batch 9: a number from 1 to 8 is due" "$model" --ids 1 --batch 9
refuses "all prompts are ids, or all are texts" "$model" --ids 1 --text hello
exit $failed
