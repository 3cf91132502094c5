printf '\ndense --n 64 --k 64\n' >list
wrong=0
expect() { # WHAT WORDS: of the last command, whose status is in $code
    grep -q "$2" errors && [ $code = 4 ] && return
    echo "$1: exit status $code"
    cat errors
    wrong=1
}
(ulimit -f 1; trap '' XFSZ; exec "$PTXGEN" cache warm list --device cpu --folder full) \
    >/dev/null 2>errors
code=$?
expect "disk full" 'list:2: the kernel is not kept: .* cannot be written to'
PTXGEN_CACHE_SIZE=1 "$PTXGEN" cache warm list --device cpu --folder small >/dev/null 2>errors
code=$?
expect "a limit of 1 byte" 'list:2: the kernel is not kept: .* larger than the whole cache'
PTXGEN_CACHE=off "$PTXGEN" cache warm list --device cpu --folder off >/dev/null 2>errors
code=$?
expect "PTXGEN_CACHE=off" 'list:2: the kernel is not kept: PTXGEN_CACHE switches'
mkdir -m 700 locked
flock -x locked/.lock "$PTXGEN" cache warm list --device cpu --folder locked >/dev/null 2>errors
code=$?
expect "locked" 'list:2: the kernel is not kept: .* cannot be locked'
"$PTXGEN" cache warm locked --device cpu --folder kept >/dev/null 2>errors
code=$?
expect "a folder as the list" 'cannot be read: Is a directory'
"$PTXGEN" cache warm list --device cpu --folder kept >/dev/null || wrong=1
exit $wrong
