#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh SOURCES LIBPTXGEN LIBPTXGEN_FILES FOLDER: builds and tests the crates of bindings/rust below FOLDER,
# without a registry.
set -euo pipefail
sources=$1 folder=$4
export PATH=/usr/bin:$PATH # Debian's rustc ahead of others
shared=$(realpath "$2") files=$(realpath "$3")
mkdir -p "$folder/lib"
ln -sf "$shared" "$folder/lib/libptxgen.so"
ln -sf "$files" "$folder/lib/libptxgen-files.so"
export PTXGEN_INCLUDE_DIR=$sources/include PTXGEN_LIB_DIR=$folder/lib LD_LIBRARY_PATH=${shared%/*}:${files%/*} PTXGEN_CACHE=off
cargo test --quiet --locked --offline --manifest-path "$sources/bindings/rust/Cargo.toml" --target-dir "$folder/target"
cargo run --quiet --locked --offline --manifest-path "$sources/bindings/rust/Cargo.toml" --target-dir "$folder/target" \
    --example gptq_layer "$sources/tests/golden/marlin_g128.safetensors" gptq
