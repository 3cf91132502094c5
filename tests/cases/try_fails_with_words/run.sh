# .ci/try among commands of which one fails.
set -u
mkdir -p tree/.ci tree/build/src/cli path
cp "$PTXGEN_SOURCE"/.ci/* tree/.ci/
printf '#!/bin/sh\nexit 0\n' >tree/.ci/setup
chmod +x tree/.ci/setup
status=0

stub() { # stub PATH OUTPUT STATUS
    printf '#!/bin/sh\necho "%s"\nexit %d\n' "$2" "$3" >"$1"
    chmod +x "$1"
}
# fails_at COMMAND STEP WORDS: try says the words and the step, and ends with the command's status
fails_at() {
    for command in path/meson path/ninja tree/build/src/cli/ptxgen; do
        stub "$command" "${command##*/} did its part" 0
    done
    stub "$1" "the words of ${1##*/}" 7
    PATH=$PWD/path:$PATH bash tree/.ci/try >output 2>&1 </dev/null
    local ended=$?
    if [ "$ended" != 7 ] || ! grep -q "the words of ${1##*/}" output ||
        ! grep -q "$2 failed with exit status 7" output || [ "$(grep -c failed output)" != 1 ]; then
        echo "$1 failed with exit status 7, .ci/try with $ended, and printed:"
        cat output
        status=1
    fi
}
fails_at path/meson "configuring the build"
fails_at path/ninja "building the command"
fails_at tree/build/src/cli/ptxgen "emitting the kernel"
exit $status
