for layer in 3 4; do
    "$PTXGEN" run w8a8 --device cpu:sm_90 --safetensors "$CASE/in.safetensors" --dtype f32 \
        --layer model.layers.$layer.self_attn.o_proj --input x --expect y.$layer >said ||
        { cat said; exit 1; }
    grep -q 'dynamic groups codes=e4m3' said && grep -q "file's expected output" said || { cat said; exit 1; }
done
