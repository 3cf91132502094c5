export PTXGEN_CACHE=off
cc_program "$CASE/cancel.c" cancel && timeout 30 ./cancel
