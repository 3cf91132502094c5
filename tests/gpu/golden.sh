#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The golden files of all families, a million tokens, equal bits over replays on two streams and
# from many threads, on a GPU:
#
#     tests/gpu/golden.sh BUILD [DEVICE [REPLAYS]]       gpu and 100 by default
#
# BUILD is a folder that meson built, or one with copies of the programs. A line for each command,
# its exit status first. Exits with 0 when all have ended with 0, 1 when some have not, 2 for usage.
set -u

if [ $# -lt 1 ] || [ ! -d "$1" ]; then
    echo "usage: $0 BUILD [DEVICE [REPLAYS]]" >&2
    exit 2
fi
readonly build=$1 device=${2:-gpu} replays=${3:-100}
golden=$(dirname "$0")/../golden
readonly golden

program() {
    find "$build" -name "$1" -type f -perm -u+x | head -n 1
}

commands() {
    local ptxgen file layer x y family data
    ptxgen=$(program ptxgen)
    for file in marlin_g128 marlin_channel; do
        for layer in gptq marlin; do
            echo "$ptxgen run marlin --device $device --safetensors $golden/$file.safetensors" \
                "--layer $layer --input A --expect C"
        done
    done
    for layer in f16 bf16 s8; do
        echo "$ptxgen run sparse24 --device $device --m 1,16,64" \
            "--safetensors $golden/sparse24_torch.safetensors --layer $layer"
    done
    for x in f32 f16 bf16; do
        for y in f32 f16 bf16; do
            for data in "--input input --expect expected.output" "--m 0,1,2,3,4,5,6,7,8"; do
                echo "$ptxgen run rmsnorm_q4k --device $device --gguf $golden/q4k.gguf" \
                    "--tensor blk.0.attn_q.weight --norm blk.0.attn_norm.weight $data" \
                    "--x-type $x --y-type $y"
            done
        done
    done
    for x in f32 f16 bf16 f64; do
        echo "$ptxgen run w8a8 --device $device --safetensors $golden/w8a8.safetensors" \
            "--input activation --dtype $x"
    done
    [ "$device" != gpu ] || echo "$ptxgen run w8a8 --device gpu --m 65536,1000000 --k 256 --n 72"
    for family in marlin w8a8 sparse24; do
        echo "$(program replays) $family $device $replays"
    done
    echo "$(program dispatch_stress) $device 6"
}

check() {
    local output status
    output=$("$@" 2>&1)
    status=$?
    echo "$status | ${*##*/} | $(tail -n 1 <<<"${output//$'\r'/$'\n'}")"
    return $status
}
export -f check

commands | xargs -P 4 -L 1 bash -c 'check "$@"' check || exit 1
