cc_program "$CASE/null.c" null && ./null
