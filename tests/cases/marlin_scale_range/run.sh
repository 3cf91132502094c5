fail() {
    echo "$*"
    cat output
    exit 1
}
make() { "$PYTHON" "$CASE/make.py" "$@" || exit 1; }
run() { "$PTXGEN" run marlin --layer l --input x --expect y "$@" >output 2>&1; }

while read -r type zero scale; do # admitted: right in every tile
    for rows in 1 16 96; do
        make "$type" "$zero" "$scale" "$rows" in.safetensors
        for device in sm_80 sm_90 sm_120; do
            run --device "cpu:$device" --safetensors in.safetensors ||
                fail "$type zero $zero scale $scale, $rows rows on $device"
        done
    done
done <<LIST
F16 8 8188
F16 0 -4364
F16 8 5.960464477539063e-08
BF16 8 33423360
BF16 5 -33423360
LIST

while read -r type zero scale words; do # refused, whatever M is
    make "$type" "$zero" "$scale" 1 in.safetensors
    "$PTXGEN" run marlin --layer l --device cpu:sm_80 --safetensors in.safetensors >output 2>&1
    [ $? = 2 ] && grep -q "$words" output || fail "running $type zero $zero scale $scale"
    "$PTXGEN" convert in.safetensors out.safetensors --to packed >output 2>&1
    [ $? = 2 ] && grep -q "l: .*$words" output || fail "converting $type zero $zero scale $scale"
done <<LIST
F16 8 8192 scale 8192 of weights, group 0, feature 0, with the zero point 8 makes weights up to 65536
F16 0 -4368 with the zero point 0 makes weights up to 65520
F16 8 inf is not finite as f16
F16 8 nan is not finite as f16
BF16 8 33554432 is not between -2^25 and 2^25
BF16 5 -1e30 is not between -2^25 and 2^25
LIST

# a packed file whose scales another program wrote
make F16 8 8188 1 in.safetensors
"$PTXGEN" convert in.safetensors packed.safetensors --to packed >output 2>&1 || fail "packing 8188"
"$PYTHON" - <<'END' || exit 1
import numpy as np
raw = open('packed.safetensors', 'rb').read()
old, new = np.float16(8188).tobytes() * 8, np.float16(8192).tobytes() * 8
assert old in raw
open('packed.safetensors', 'wb').write(raw.replace(old, new))
END
run --device cpu:sm_80 --safetensors packed.safetensors
[ $? = 2 ] && grep -q "scale 8192 of weights, group 0, feature 0" output || fail "running packed scales of 8192"
