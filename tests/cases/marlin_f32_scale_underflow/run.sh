refused() { # by these words, with exit status 2
    "$@" >output 2>&1
    status=$?
    if [ "$status" != 2 ] || ! grep -q 'the scale .* of weights, group 0, feature 5, is not 0, but rounds to 0 as f16' output; then
        echo "exit status $status of $*:"
        cat output
        exit 1
    fi
}
refused "$PTXGEN" convert "$CASE/in.safetensors" out.safetensors --to packed
grep -q 'l: marlin: the scale' output || { cat output; exit 1; }
[ ! -e out.safetensors ] || { echo "out.safetensors was written"; exit 1; }
refused "$PTXGEN" run marlin --device cpu:sm_80 --safetensors "$CASE/in.safetensors" --layer l --input x
"$PTXGEN" convert "$CASE/in.safetensors" out.safetensors --to packed --type bf16 || exit 1
"$PTXGEN" run marlin --device cpu:sm_80 --safetensors out.safetensors --layer l --input x
