cp "$CASE"/*.gguf .
for file in m-00001-of-00002.gguf m-00002-of-00002.gguf .; do
    "$PTXGEN" run rmsnorm_q4k --device cpu:sm_80 --gguf $file --tensor w --norm g || exit 1
done
rm m-00002-of-00002.gguf
"$PTXGEN" run rmsnorm_q4k --device cpu:sm_80 --gguf m-00001-of-00002.gguf --tensor w --norm g 2>said
[ $? = 4 ] && grep -q 'm-00002-of-00002.gguf' said || { cat said; exit 1; }
