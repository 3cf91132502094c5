# The line and what is missing are named.
gives "load: 218: line 8, column 1: createpolicy: an eviction priority is due, such as .L2::evict_first" \
    run_ptx "$CASE/createpolicy.ptx" k cpu:sm_90 1 2
