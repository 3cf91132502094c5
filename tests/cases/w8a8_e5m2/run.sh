for layer in model.layers.0.mlp.up_proj model.layers.0.mlp.down_proj; do
    "$PTXGEN" run w8a8 --device cpu:sm_90 --safetensors "$CASE/in.safetensors" --dtype f32 \
        --layer $layer --input x.$layer --expect y.$layer >said || { cat said; exit 1; }
    grep -q 'codes=e4m3 w=e5m2' said && grep -q "file's expected output" said || { cat said; exit 1; }
done
