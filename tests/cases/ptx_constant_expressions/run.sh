# The values of three expressions, one of them stored through a fourth.
gives "00000022 00000025 ffffffff" run_ptx "$CASE/constants.ptx" k cpu:sm_80 1 3
