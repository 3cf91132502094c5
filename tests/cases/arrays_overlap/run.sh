cc_program "$CASE/overlap.c" overlap && ./overlap
