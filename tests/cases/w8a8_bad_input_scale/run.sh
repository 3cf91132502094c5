check() {
    "$PTXGEN" run w8a8 --device cpu:sm_80 --safetensors "$CASE/$1.safetensors" --layer l --input x >said 2>&1
    [ $? = 2 ] && grep -q "\"l.input_scale\" is $2 " said || { cat said; exit 1; }
}
check negative -0.0199999996
check zero 0
check nan nan
check unset -3.40282347e+38
