export PTXGEN_CACHE_DIR=$PWD/mine
echo "dense --n 64 --k 64" >list
"$PTXGEN" cache warm list --device cpu >/dev/null || exit 1
kept=$(ls mine | wc -l)
for verb in clear prune list; do
    "$PTXGEN" cache $verb --folder ''
    code=$?
    [ $code = 2 ] || { echo "cache $verb: exit status $code"; exit 1; }
done
[ "$kept" -gt 0 ] && [ "$(ls mine | wc -l)" = "$kept" ]
