golden=$PTXGEN_SOURCE/tests/golden/marlin_g128.safetensors
fail() {
    echo "$1"
    exit 1
}
echo precious >a.ptx
"$PTXGEN" emit dense --n 4096 --k 4096 -o a.ptx
[ $? = 4 ] && [ "$(cat a.ptx)" = precious ] || fail "emit -o replaced a file without --force"

# A limit stands for a full disk: the write fails, whatever the user may mount.
(ulimit -f 4 && exec "$PTXGEN" emit dense --n 4096 --k 4096 -o a.ptx --force)
[ $? = 4 ] && [ "$(cat a.ptx)" = precious ] || fail "emit -o lost the old file"
[ "$(ls -A)" = a.ptx ] || fail "emit -o left $(ls -A)"
if mkdir t && mount -t tmpfs -o size=64k tmpfs t 2>/dev/null; then
    echo precious >t/a.ptx
    "$PTXGEN" emit dense --n 4096 --k 4096 -o t/a.ptx --force
    code=$? left=$(ls -A t) text=$(cat t/a.ptx)
    umount t
    [ $code = 4 ] && [ "$left" = a.ptx ] && [ "$text" = precious ] || fail "a full disk: $code, $left, $text"
fi

cp "$golden" a
chmod 600 a
"$PTXGEN" convert a a --layer gptq --to packed --force || fail "convert in place failed"
[ "$(stat -c %a a)" = 600 ] || fail "convert in place widened the modes to $(stat -c %a a)"

# Ended by a signal at some time, and by a limit.
"$PTXGEN" convert "$golden" b --layer gptq --to packed &
kill -TERM $! 2>/dev/null
wait $!
(ulimit -f 20 && exec "$PTXGEN" convert "$golden" c --layer gptq --to packed) && fail "it fitted"
[ ! -e c ] || fail "a part of c was left"
left=$(find . -name '.ptxgen-*')
[ -z "$left" ] || fail "left: $left"
