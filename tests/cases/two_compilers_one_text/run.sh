# The sources as they are, and with one of the expressions that were there.
set -eu
find_them() {
    "$PYTHON" "$PTXGEN_SOURCE/tests/sources/emission_order" "$PTXGEN_BUILD/include/ptxgen/instr.h" \
        "$PTXGEN_SOURCE/include/ptxgen/ptx.h" -- "$1"
}
find_them "$PTXGEN_SOURCE/src/kernels"
cp -r "$PTXGEN_SOURCE/src/kernels/dense" "$PTXGEN_SOURCE/src/kernels/gemm" .
cat >>dense/wgmma.c <<'END'
static void as_it_was(struct hopper *h, ptx_u64 w, ptx_u64 x)
{
    multiply_tile(h, 0, gemm_wgmma_advance(h->b.q.k, w, 64), gemm_wgmma_advance(h->b.q.k, x, 32));
}
END
if find_them . >found; then
    echo "not found:" && cat found
    exit 1
fi
grep -q 'dense/wgmma.c:.*two members or arguments emit' found
