cc_program "$CASE/store.c" store || exit 1
$CC -shared -fPIC "$CASE/shim.c" -o shim.so || exit 1
./store kept 1024 || exit 1
cp kept/tuning before
LD_PRELOAD=./shim.so ./store kept 2048 && { echo "stored over a table that could not be read"; exit 1; }
cmp before kept/tuning || exit 1
./store kept 2048 && [ "$(grep -c '^family' kept/tuning)" = 2 ]
