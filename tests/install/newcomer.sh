#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first product of a newcomer, six ways, each in at most three commands, on a bare Debian 12 with this
# tree in /ptxgen: prints the commands and how long each took. By hand: bash .ci/bare bash tests/install/newcomer.sh
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
tree=$(cd "$(dirname "$0")/../.." && pwd)
quiet_apt='apt-get install -y -qq --no-install-recommends'

way() { # way NAME COMMAND…
    local name=$1 folder all=0 since
    folder=$(mktemp -d)
    cd "$folder"
    shift
    echo "$name"
    for command; do
        since=$SECONDS
        if ! (eval "$command") >"$folder/log" 2>&1; then
            tail -20 "$folder/log" >&2
            echo "$name: failed: $command" >&2
            exit 1
        fi
        all=$((all + SECONDS - since))
        printf '    %4d s  %s\n' $((SECONDS - since)) "$command"
    done
    printf '    %4d s  in all; it printed: %s\n' "$all" "$(tail -1 "$folder/log" | cut -c1-100)"
}

$quiet_apt ca-certificates >/dev/null 2>&1 || { apt-get update -qq && $quiet_apt ca-certificates >/dev/null 2>&1; }
way C "$quiet_apt build-essential meson pkg-config" \
    "meson setup build $tree && meson install -C build && ldconfig" \
    "cc $tree/examples/dispatch_graph.c \$(pkg-config --cflags --libs ptxgen) && ./a.out"
way C++ "c++ -std=c++17 $tree/examples/dispatch.cpp \$(pkg-config --cflags --libs ptxgen) && ./a.out"
cat >/tmp/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(first C)
find_package(ptxgen REQUIRED)
add_executable(first $tree/examples/dispatch_graph.c)
target_link_libraries(first ptxgen::ptxgen)
END
way CMake "$quiet_apt cmake" "cmake -B build /tmp && cmake --build build" "build/first"
cat >/tmp/meson.build <<END
project('first', 'c')
executable('first', 'first.c', dependencies: dependency('ptxgen'))
END
way 'Meson subproject' \
    "cp $tree/examples/dispatch_graph.c first.c && cp /tmp/meson.build . && mkdir subprojects && cp -r $tree subprojects/ptxgen" \
    "meson setup build --force-fallback-for=ptxgen && ninja -C build" "build/first"
way Python "$quiet_apt python3-pip python3-venv" \
    "python3 -m venv v && v/bin/pip install $tree/bindings/python" \
    "sed -n '/cpu:sm_90/,/print/p' $tree/bindings/python/README.md | (echo 'import ptxgen, numpy as np'; cat) | v/bin/python"
way Rust "$quiet_apt cargo bindgen libclang-dev" \
    "cargo run --offline --manifest-path $tree/bindings/rust/Cargo.toml --target-dir target --example gptq_layer \
$tree/tests/golden/marlin_g128.safetensors gptq"
