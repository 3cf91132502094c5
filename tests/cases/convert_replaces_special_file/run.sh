# As root the device is a new one; else /dev/null stands for it, which only root could replace.
null=null
mknod null c 1 3 2>/dev/null || null=/dev/null
mkfifo pipe
ln -s target link
echo keep >target

"$PTXGEN" convert "$CASE/in.safetensors" "$null" --to awq || exit 1
[ -c "$null" ] || { echo "$null is no device any more"; exit 1; }

# Nothing reads from the pipe: it is refused, not waited for.
timeout 20 "$PTXGEN" convert "$CASE/in.safetensors" pipe --to awq
[ $? = 4 ] && [ -p pipe ] || { echo "the pipe was replaced, or accepted without a reader"; exit 1; }
cat pipe >from_pipe &
"$PTXGEN" convert "$CASE/in.safetensors" pipe --to awq || exit 1
wait
[ -p pipe ] && [ "$(stat -c %s from_pipe)" -gt 4096 ] || { echo "the pipe did not get it"; exit 1; }

"$PTXGEN" convert "$CASE/in.safetensors" link --to awq
[ $? = 4 ] && [ "$(cat target)" = keep ] || { echo "the target was replaced without --force"; exit 1; }
"$PTXGEN" convert "$CASE/in.safetensors" link --to awq --force || exit 1
[ -L link ] && [ ! -L target ] && cmp target from_pipe
