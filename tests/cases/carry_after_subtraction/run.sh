# Differences, sums, and the flags that they leave.
set -e
gives "00000002 00000001 00000008 ffffffff" run_ptx "$CASE/carry.ptx" k cpu:sm_80 1 4 5 3
gives "fffffffe 00000000 00000008 ffffffff" run_ptx "$CASE/carry.ptx" k cpu:sm_80 1 4 3 5
gives "fffffffe 00000001 00000000 00000000" run_ptx "$CASE/carry.ptx" k cpu:sm_80 1 4 0xffffffff 1
