# The scripts of .ci among commands of which one fails.
set -u
mkdir -p tree/.ci path
cp "$PTXGEN_SOURCE"/.ci/* tree/.ci/
status=0

stub() { # stub NAME OUTPUT STATUS
    printf '#!/bin/sh\necho "%s"\nexit %d\n' "$2" "$3" >"path/$1"
    chmod +x "path/$1"
}
# says SCRIPT ARGUMENT PATTERN…: the script, with `search` as PATH, fails and prints a line of each pattern
search=$PATH
says() {
    local script=$1 argument=$2 pattern
    shift 2
    if PATH=$search "$BASH" "tree/.ci/$script" "$argument" >output 2>&1 </dev/null; then
        echo "$script $argument did not fail"
        status=1
    fi
    for pattern; do
        grep -qe "$pattern" output && continue
        printf '%s\n' "$script $argument does not say \"$pattern\", but:" "$(cat output)"
        status=1
    done
}

# A machine with none of the packages, whose apt-get fails, for root and for others.
for tool in bash sh cat env rm mktemp basename dirname; do
    ln -s "$(command -v $tool)" path/
done
search=$PWD/path
stub apt-get 'no such mirror' 100
stub id 0 0
says setup build 'no such mirror' 'setup: apt-get failed' 'installing build-essential'
stub id 1000 0
says setup build 'no sudo; install as root'
search=$PWD/path:$PATH
says setup nonsense 'nonsense is no part'
rm path/*

stub python3 'no such wheel' 9
says fetch-ptxas wheels 'no such wheel' \
    'downloading .*cu11.* failed with exit status 9'
rm path/*

printf '#!/bin/sh\nexit 0\n' >tree/.ci/setup
chmod +x tree/.ci/setup
stub meson 'no compiler' 1
PTXAS=none says test clang 'no compiler' 'FAILED: clang' '^0 passed, 1 failed$'
PTXAS=none says test threads 'no compiler' 'FAILED: threads' '^0 passed, 1 failed$'
says test texts 'texts: first gcc' 'FAILED: texts' '^0 passed, 1 failed$'
says test nonsense 'no part is named nonsense'

# Where no root of a bare Debian can be made, that is skipped, but not in CI, and gcc is run.
stub id 1000 0
CI='' says bare '' 'only root can make'
CI='' PTXAS=none says test bare 'only root can make' 'SKIP bare' 'no compiler' '^0 passed, 1 failed$'
CI=true PTXAS=none says test bare 'FAILED: bare: CI has to' '^0 passed, 2 failed$'
rm path/id

# Texts that differ are named.
for compiler in gcc clang; do
    for i in $(seq 1200); do
        echo "$i$([ "$i$compiler" = 7clang ] && echo a) spec $i"
    done >tree/build-ci/texts-$compiler
done
says test texts '^1 of 1200 texts differ' '^spec 7$' '^0 passed, 1 failed$'
cp tree/build-ci/texts-gcc tree/build-ci/texts-clang
if ! bash tree/.ci/test texts >output 2>&1 || ! grep -qx '1 passed, 0 failed' output; then
    echo "equal texts are not passed:"
    cat output
    status=1
fi
exit $status
