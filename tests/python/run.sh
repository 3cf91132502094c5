#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PACKAGE INCLUDE LIBPTXGEN LIBPTXGEN_FILES COMPILER…: runs the tests of the Python package in a copy
# beside which the declarations are made anew, with the libraries of a build.
set -euo pipefail
package=$1 include=$2
export PTXGEN_LIBRARY=$3 PTXGEN_FILES_LIBRARY=$4
shift 4
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import cffi, numpy, pycparser, pytest' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "no python3 has cffi, numpy, pycparser and pytest" >&2
    exit 1
fi
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$package/src/ptxgen" "$copy"
"$python" "$package/declarations.py" "$include" "$copy/ptxgen/_declarations.py" "$copy/declarations.d" "$@"
PYTHONPATH=$copy PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -q -p no:cacheprovider "$package/tests"
