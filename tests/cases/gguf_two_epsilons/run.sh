run() {
    "$PTXGEN" run rmsnorm_q4k --device cpu:sm_80 --gguf "$@" --norm g --input x --expect y \
        --x-type f32 --y-type f32
}
run "$CASE/in.gguf" --tensor w >said || { cat said; exit 1; }
grep -q 'eps=1e-06' said || { cat said; exit 1; }

refused() {
    run "$@" --tensor w >said 2>&1
    [ $? = 4 ] && grep -q 'say --epsilon' said || { cat said; exit 1; }
}
# The architecture is another, or is not said.
sed 's/general.architecture\(.\{12\}\)glmocr/general.architecture\1glmocX/' "$CASE/in.gguf" >other.gguf
cmp -s other.gguf "$CASE/in.gguf" && { echo "the file was not changed"; exit 1; }
refused other.gguf
sed 's/general.architecture/general.architecturX/' "$CASE/in.gguf" >none.gguf
refused none.gguf
run none.gguf --tensor w --epsilon 1e-6
