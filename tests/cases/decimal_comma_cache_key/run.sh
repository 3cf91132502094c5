# A cache that is warmed in the C locale serves a program with a decimal comma.
set -e
export PTXGEN_CACHE_DIR=$PWD/cache
mkdir -m 700 cache
cc_program "$CASE/origin.c" origin
gives "origin 0" ./origin
gives "origin 1" ./origin
gives "origin 1" ./origin comma
gives 1 sh -c 'ls cache | grep -c cubin'
