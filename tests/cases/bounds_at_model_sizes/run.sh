set -e
cc_program "$CASE/spread.c" ./spread
./spread
