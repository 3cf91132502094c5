#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# generate.sh INCLUDE OUTPUT: the declarations of ptxgen's headers, but for the builder's emitters, and tests
# of each struct's layout. Needs the command of bindgen, 0.60 or later.
set -eu
include=$1 output=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for header in "$include"/ptxgen/*.h; do
    case ${header##*/} in
        ptx.h | instr.h) ;;
        *) echo "#include <ptxgen/${header##*/}>" ;;
    esac
done >"$folder/all.h"
bindgen "$folder/all.h" -o "$output" --allowlist-function 'ptxgen_.*' --allowlist-type 'ptxgen_.*' \
    --allowlist-var 'PTXGEN_.*' --blocklist-function ptxgen_vfail --no-prepend-enum-name --with-derive-default \
    --size_t-is-usize -- -I"$include"
