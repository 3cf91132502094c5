for type in F16 BF16; do
    option=$(echo "$type" | tr A-Z a-z)
    for rows in 1 96; do
        "$PYTHON" "$CASE/../marlin_scale_range/make.py" "$type" 3 0.0234375 "$rows" in.safetensors || exit 1
        for target in sm_80 sm_90a sm_120; do
            "$PTXGEN" run marlin --layer l --input x --expect y --safetensors in.safetensors \
                --device "cpu:${target%a}" || exit 1
            words="scales are multiplied into sums, in f32"
            [ "$rows" = 1 ] || words="weights are scaled and rounded to $option"
            "$PTXGEN" inspect marlin --k 4096 --n 4096 --group-size 64 --zeros --type "$option" \
                --target "$target" --m "$rows" >output || exit 1
            grep -q "$words" output || { tail -n 3 output; exit 1; }
        done
    done
done
