run() { "$PTXGEN" run marlin --device cpu:sm_80 --safetensors "$1" --layer l --input x --expect y || exit 1; }
run "$CASE/in.safetensors"
for format in packed gptq marlin; do
    "$PTXGEN" convert "$CASE/in.safetensors" "$format.safetensors" --to "$format" || exit 1
    run "$format.safetensors"
done
