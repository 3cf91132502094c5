#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the tables of docs/performance.md are made of, as JSON files, the most telling first:
#
#     tests/bench/times.sh PTXGEN FOLDER [SECONDS]
#     tests/bench/tables.py FOLDER
#
# After SECONDS (1000) no further bench is begun, and the one that runs is ended; what is missing is
# named. $DEVICE (gpu) and $BENCH (options for all; --replays 5 --rounds 3, so that one odd reading does
# not count) go to `ptxgen bench`. Exits with 0 when all is there, 1 when not, 2 for usage.
set -u

if [ $# -lt 2 ] || [ ! -x "$1" ]; then
    echo "usage: $0 PTXGEN FOLDER [SECONDS]" >&2
    exit 2
fi
readonly ptxgen=$1 folder=$2 seconds=${3:-1000}
mkdir -p "$folder"
missing=0

bench() {
    local file=$folder/$1.json left=$((seconds - SECONDS))
    shift
    # shellcheck disable=SC2086
    if [ "$left" -le 0 ] || ! timeout "$left" "$ptxgen" bench "$@" --device "${DEVICE:-gpu}" --json \
        ${BENCH:---replays 5 --rounds 3} >"$file" 2>/dev/null; then
        rm -f "$file"
        echo "missing: bench $*"
        missing=1
    fi
}

rows=1,16,32,64,128,256,1024,4096
for shape in 8192x28672 8192x8192 4096x4096; do
    bench "marlin-$shape" marlin --shape $shape --m $rows
done
bench rmsnorm_q4k-1 rmsnorm_q4k --m 1 --max-m 1 \
    --shape 4096x4096,4096x14336,14336x4096,8192x8192,3584x18944,8192x28672
for shape in 8192x8192 4096x14336 14336x4096; do
    bench "sparse24-$shape" sparse24 --shape $shape --m 1,16,32,64,128,4096
done
bench w8a8-8192x8192 w8a8 --shape 8192x8192 --m 1,2,4,8,16,32,64,128,1024,4096
for kind in "" --zeros "--type bf16" "--group-size 32"; do
    name=${kind// /_}
    # shellcheck disable=SC2086
    bench "kind${name//--/-}" marlin --shape 8192x28672,8192x8192 --m 1,16,32,64 --no-peer $kind
done
for shape in 4096x4096 4096x14336 14336x4096; do
    bench "w8a8-$shape" w8a8 --shape $shape --m 1,16,32,64,128,1024,4096
done
for shape in 4096x14336 14336x4096; do
    bench "marlin-$shape" marlin --shape $shape --m $rows
done
bench rmsnorm_q4k rmsnorm_q4k --m 1,2,4,8 \
    --shape 4096x4096,4096x14336,14336x4096,8192x8192,3584x18944,8192x28672
bench dense dense --shape 4096x4096,8192x8192 --m 16,64,1024,4096,8192
bench dense-mma.sync dense --shape 4096x4096,8192x8192 --m 4096,8192 \
    --tile warp_m=64,warp_n=64,wm=4,wn=2,kind=2,pass_m=16,cluster=2
bench w8a8-f32 w8a8 --shape 8192x8192 --m 1,16,64 --dtype f32 --no-peer
bench w8a8-unaligned w8a8 --shape 4089x4096 --m 1,16,128,1024 --no-peer
exit $missing
