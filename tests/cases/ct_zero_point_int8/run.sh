run() { "$PTXGEN" run marlin --device cpu:sm_80 --safetensors "$1" --layer l --input x --expect y || exit 1; }
for file in symmetric asymmetric; do
    run "$CASE/$file.safetensors"
    for format in packed pack-quantized awq; do
        "$PTXGEN" convert "$CASE/$file.safetensors" "$file.$format.safetensors" --to "$format" || exit 1
        run "$file.$format.safetensors"
    done
done
