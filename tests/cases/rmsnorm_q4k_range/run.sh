# SPDX-License-Identifier: Apache-2.0
set -eu
"$PTXGEN" run rmsnorm_q4k --k 512 --n 40 --m 1,3 --epsilon 0 --device cpu:sm_80

"$PYTHON" - "$PTXGEN_SOURCE/tests/golden/q4k.gguf" zero.gguf <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
value = data.index(b".attention.layer_norm_rms_epsilon") + len(b".attention.layer_norm_rms_epsilon") + 4
data[value:value + 4] = bytes(4)
open(sys.argv[2], "wb").write(data)
PYTHON
"$PTXGEN" run rmsnorm_q4k --gguf zero.gguf --tensor blk.0.attn_q.weight \
    --norm blk.0.attn_norm.weight --input input --device cpu:sm_80 >output
cat output
grep -q 'eps=0 ' output

cc_program "$CASE/range.c" range
./range
