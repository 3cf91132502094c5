# .ci/test among commands that pass, with a log of meson's in which tests and cases are skipped.
set -u
mkdir -p tree/.ci path
cp "$PTXGEN_SOURCE"/.ci/* tree/.ci/
printf '#!/bin/sh\nexit 0\n' >tree/.ci/setup
cat >log.json <<'END'
{"name": "ptxgen:cli / cli emit", "result": "OK", "stdout": "[ RUN      ] works\n[       OK ] works\n[ RUN      ] assembles\nno ptxas\n[  SKIPPED ] assembles\n[==========] 2 test(s) run.\n", "stderr": "[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] assembles\n"}
{"name": "ptxgen:runtime / runtime_driver", "result": "OK", "stdout": "ok 1 is_whole\nok 2 the_toolkits_libcuda_has_every_symbol # SKIP no toolkit here\n"}
{"name": "ptxgen:proof / proof", "result": "SKIP", "stdout": "begins\n", "stderr": "SKIPPED: no assembler\n"}
{"name": "ptxgen:cases / cases", "result": "OK", "stdout": "right  one\nskip   two: no ptxas here\n1 passed, 0 failed\n"}
END
cat >path/meson <<'END'
#!/bin/sh
case $1 in
    setup) mkdir -p "$2/meson-logs" && touch "$2/build.ninja" ;;
    test) cp ../log.json "$3/meson-logs/testlog-setarch.json" && echo 'Ok: 3' && echo 'Skipped: 1' ;;
esac
END
chmod +x tree/.ci/setup path/meson
status=0

# ends_with STATUS LINE…: .ci/test ends so, and prints exactly these lines beside its marks of parts
ends_with() {
    local wanted=$1 got=0
    shift
    PATH=$PWD/path:$PATH PTXAS=none "$BASH" tree/.ci/test threads >output 2>&1 </dev/null || got=$?
    printf '%s\n' 'Ok: 3' 'Skipped: 1' "$@" >due
    if [ "$got" != "$wanted" ] || ! grep -v '^==' output | diff - due; then
        echo "with CI=$CI: exit status $got, due is $wanted, and the lines marked >"
        status=1
    fi
}
cli='cli emit: assembles: no ptxas (unexpected)'
toolkit='runtime_driver: the_toolkits_libcuda_has_every_symbol: no toolkit here (expected: for machines with a CUDA toolkit)'
proof='proof: SKIPPED: no assembler (unexpected)'
two='cases: two: no ptxas here (unexpected)'
count='skipped here (each is marked SKIP above): 4'
export CI=
ends_with 0 "SKIP $cli" "SKIP $toolkit" "SKIP $proof" "SKIP $two" "$count" '3 passed, 0 failed'
CI=true
ends_with 1 "SKIP $cli" "FAILED: skipped in CI: $cli" "SKIP $toolkit" \
    "SKIP $proof" "FAILED: skipped in CI: $proof" "SKIP $two" "FAILED: skipped in CI: $two" \
    "$count" '3 passed, 3 failed'
exit $status
