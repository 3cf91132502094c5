#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # the quotes hold Markdown's backticks
# The README's embedding program is examples/first_kernel.c, word for word, in under 40 lines of code.
#
#   readme.sh README EXAMPLE
set -euo pipefail
shown=$(sed -n '/^## Embedding/,/^## /p' "$1" | sed -n '/^```c$/,/^```$/{/^```/d;p}')
diff <(tail -n +2 "$2") <(echo "$shown") >&2 # all but the SPDX line
[ "$(grep -c . <<<"$shown")" -lt 40 ] # blank ones aside
