export PTXGEN_CACHE_DIR=$PWD/cache # files are where a thread may be cancelled
cc_program "$CASE/cancel.c" cancel && timeout 30 ./cancel
