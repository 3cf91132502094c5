# The block's three extents.
gives "00000020 00000001 00000001" run_ptx "$CASE/vector.ptx" k cpu:sm_80 32 3
