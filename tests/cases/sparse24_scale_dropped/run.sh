for layer in l l.weight; do
    "$PTXGEN" run sparse24 --device cpu:sm_80 --safetensors "$CASE/in.safetensors" --layer $layer \
        --input x --expect y >said || { cat said; exit 1; }
    grep -q 's8 y=f16 bias' said && grep -q "file's expected output" said || { cat said; exit 1; }
done
