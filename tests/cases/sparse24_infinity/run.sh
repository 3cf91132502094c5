# SPDX-License-Identifier: Apache-2.0
set -eu
grep -q 'output is NaN (0·∞)' "$PTXGEN_SOURCE/include/ptxgen/sparse24.h"
cc_program "$CASE/infinity.c" infinity
./infinity
