# SPDX-License-Identifier: Apache-2.0
set -eu
"$PTXGEN" emit rmsnorm_q4k --k 4096 --n 14336 --target sm_121 -o sm_121.ptx
grep -q 'cp.async.bulk.tensor.2d.shared::cta' sm_121.ptx
if grep 'cp.async.bulk.tensor.2d.shared::cluster' sm_121.ptx; then exit 1; fi

ptxas=$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)
if ! [ -x "$ptxas" ]; then
    echo "no ptxas: nothing was assembled"
    exit 77
fi
for shape in '4096 --n 14336,14336 --swiglu' '8192 --n 28672' '4096 --n 4097,128256' \
    '512 --n 4097,128256' '3584 --n 4096'; do
    for target in sm_80 sm_103 sm_121; do
        echo "rmsnorm_q4k --m 8 --k $shape --target $target"
    done
done | "$PYTHON" "$PTXGEN_SOURCE/tests/spills/sweep" "$PTXGEN" --ptxas "$ptxas" --jobs 2
