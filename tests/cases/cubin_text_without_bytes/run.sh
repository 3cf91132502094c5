# The damaged cubin is refused.
set -e
cc_program "$CASE/load.c" load
./load | tee output
grep -q "damaged" output
