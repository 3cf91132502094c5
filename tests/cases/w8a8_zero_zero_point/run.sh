for type in u8 f16 bf16; do
    "$PTXGEN" run w8a8 --device cpu:sm_80 --safetensors "$CASE/$type.safetensors" --layer l --input x || exit 1
done
