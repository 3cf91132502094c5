#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Problems of every family under compute-sanitizer's four tools, on a GPU:
#
#     tests/gpu/sanitize.sh build/src/cli/ptxgen [REPORTS]
#
# A line for each, which is given $LIMIT seconds (120). What a tool says of a problem that it finds
# fault with, or does not end, is kept whole in the folder REPORTS (sanitizer-reports). Exits with 0
# when all are clean, 1 when some are not, 2 for usage.
set -u

if [ $# -lt 1 ] || [ ! -x "$1" ]; then
    echo "usage: $0 PTXGEN [REPORTS]" >&2
    exit 2
fi
if ! command -v compute-sanitizer >/dev/null; then
    echo "$0: compute-sanitizer is not on the path" >&2
    exit 2
fi
export PTXGEN=$1 REPORTS=${2:-sanitizer-reports} LIMIT=${LIMIT:-120}
mkdir -p "$REPORTS"

# Tails, and below them whole tiles whose rings of stages are gone through several times. Of marlin's
# pairs of CTAs that is as much as racecheck (CUDA 13.0) gets through: 48 CTAs that fill four slots
# twice take it 9 s; 36 that fill them four times did not end in 40, 72 with five stages in 45, with
# eight in 230.
problems() {
    cat <<'X'
marlin --m 1 --k 512 --n 264 --group-size 128
marlin --m 17 --k 272 --n 72 --group-size 16 --type bf16 --zeros --act-order
marlin --m 65 --k 1024 --n 512 --group-size 128 --bias
marlin --m 130 --k 1024 --n 768 --group-size 32 --zeros
marlin --m 300 --k 1024 --n 512 --group-size 64 --swiglu
w8a8 --m 1 --k 528 --n 100
w8a8 --m 33 --k 1024 --n 256
w8a8 --m 130 --k 1024 --n 384
w8a8 --m 8 --k 1024 --n 264 --asymmetric
w8a8 --m 15 --k 1024 --n 512 --tile tile_m=16,tile_n=64,kind=1
w8a8 --m 17 --k 2048 --n 256 --tile tile_m=32,tile_n=64,wn=4,wm=1,wk=2,cluster=2
w8a8 --m 200 --k 1024 --n 640 --tile tile_m=128,tile_n=64,wn=2,wm=4,wk=1
w8a8 --m 40 --k 1041 --n 200 --scales quantised --residual
w8a8 --m 256 --k 1024 --n 512 --tile tile_m=128,tile_n=128,wn=1,kind=1
w8a8 --m 300 --k 1024 --n 512 --tile tile_m=256,tile_n=128,wn=1,kind=1
w8a8 --m 300 --k 1024 --n 384 --codes e4m3 --tile tile_m=256,tile_n=128,kind=1
w8a8 --m 33 --k 1024 --n 256 --codes e4m3 --e5m2 --swiglu
w8a8 --m 3,33,130 --k 1040 --n 264 --codes e4m3 --groups
sparse24 --m 1 --k 512 --n 264
sparse24 --m 33 --k 1024 --n 256
sparse24 --m 130 --k 1024 --n 512
sparse24 --m 200 --k 1024 --n 512 --dtype s8
dense --m 33 --k 1024 --n 256
dense --m 300 --k 1024 --n 512
rmsnorm_q4k --m 1 --k 2048 --n 300
quantise --m 33 --k 4100 --groups --producer silu-mul
quantise --m 33 --k 4100 --producer rmsnorm --residual
gguf_rows --m 33 --k 4352 --w-type q6_k --indexed
gguf_rows --m 33 --k 4128 --w-type mxfp4
gguf_linear --m 1 --k 14336 --n 320 --w-type q6_k
gguf_linear --m 1 --k 4096 --n 512,128,128 --w-type q4_k,q4_k,q6_k --x-type f32 --rmsnorm --residual before --residual-out
gguf_linear --m 8 --k 4096 --n 300 --w-type q8_0
gguf_linear --m 5 --k 1280 --n 200,200 --w-type q5_1 --swiglu --bias
gguf_linear --m 3 --k 640 --n 70,40 --w-type q5_0,f16
gguf_linear --m 40 --k 640 --n 300 --w-type q5_0
gguf_linear --m 12 --k 4096 --n 600 --w-type q6_k
gguf_linear --m 70 --k 1024 --n 300,300 --w-type q4_k --geglu --rmsnorm
gguf_linear --m 300 --k 2048 --n 600 --w-type mxfp4
rmsnorm_q4k --m 8 --k 1024 --n 100
marlin --m 1 --k 4096 --n 7168 --group-size 128 --tile tile_m=8,warp_n=32,wn=7,wk=2,stages=3,steps=1,ctas=1,pass_m=8,kind=2
marlin --m 16 --k 8192 --n 1024 --group-size 128
marlin --m 16 --k 4096 --n 7168 --group-size 128 --tile tile_m=16,warp_n=32,wn=7,wk=2,stages=3,steps=1,ctas=1,pass_m=16,kind=2
marlin --m 64 --k 8192 --n 384 --group-size 128
marlin --m 192 --k 4096 --n 512 --group-size 128
w8a8 --m 16 --k 8192 --n 1024
w8a8 --m 128 --k 4096 --n 1024
sparse24 --m 64 --k 4096 --n 1024
dense --m 64 --k 4096 --n 1024
dense --m 300 --k 1024 --n 512 --tile warp_m=64,warp_n=64,wm=4,wn=2,pass_m=16,stages=3,kind=2,cluster=2
dense --m 300 --k 1024 --n 512 --tile warp_m=64,warp_n=64,wm=2,wn=4,pass_m=32
dense --m 64 --k 1024 --n 256 --tile warp_m=64,warp_n=32,wm=1,wn=2,wk=4,pass_m=16
rmsnorm_q4k --m 1 --k 4096 --n 8192
X
}

check() {
    local tool=$1 report status verdict=clean
    shift
    report=$REPORTS/$tool$(printf ' %s' "$@" | tr -cs 'a-z0-9\n' _).txt
    timeout "$LIMIT" compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$PTXGEN" run "$@" --device gpu >"$report" 2>&1
    status=$?
    if [ $status -eq 0 ]; then
        rm "$report"
    elif [ $status -eq 124 ]; then
        verdict="not ended in $LIMIT s"
    else
        verdict=$(grep 'SUMMARY' "$report" | tail -1 | sed 's/^=* *//')
        verdict=${verdict:-failed}
    fi
    echo "$tool | $* | $verdict"
    [ "$verdict" = clean ]
}
export -f check

for tool in memcheck racecheck synccheck initcheck; do
    problems | sed "s/^/$tool /"
done | xargs -P 4 -L 1 bash -c 'check "$@"' check || exit 1
