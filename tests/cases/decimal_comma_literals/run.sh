# The constants in the C locale, and where numbers have a decimal comma.
set -e
wanted="3e200000 3ac49ba6 00000000 40040000"
gives "$wanted" run_ptx "$CASE/literals.ptx" k cpu:sm_80 1 4
export RUN_PTX_COMMA=1
gives "$wanted" run_ptx "$CASE/literals.ptx" k cpu:sm_80 1 4
