# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # its users are elsewhere
# Sourced by the scripts beside it, which speak TAP: a claim a line, and "1..$claims" at the end. What a
# claim that does not hold printed goes to stderr. $root is a folder for the script, gone when it ends.
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
log=$root/log
claims=0
strict=(-Wall -Wextra -pedantic -Werror)

claim() { # claim SENTENCE COMMAND…: holds when the command succeeds
    local sentence=$1
    shift
    claims=$((claims + 1))
    if "$@" >"$log" 2>&1; then
        echo "ok $claims - $sentence"
    else
        echo "not ok $claims - $sentence"
        echo "$sentence:" >&2
        cat "$log" >&2
    fi
}

text_is_of_kernels() { # text_is_of_kernels FILE: what consumer.c prints
    grep -q '^\.visible \.entry negate(' "$1" && grep -q '^\.visible \.entry rmsnorm_q4k_m8(' "$1"
}

# names_no_path OBJECT…: no source of the library is named by a path of the machine that built it
names_no_path() {
    ! strings -a "$@" | grep -E "(^|[^A-Za-z0-9_.])(\.\.)?/[^ ]*src/[a-z0-9_/]+\.[ch]"
}
