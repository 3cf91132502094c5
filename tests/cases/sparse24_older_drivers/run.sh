# The sparse products of the text.
products() {
    "$PTXGEN" emit sparse24 --n=128 --k=256 --m=64 --target=sm_90a --ptx-version="$1" |
        grep -oE '^\s*(wgmma\.mma_async\.sp|mma\.sp)[.:]' | tr -d '\t :' | sed 's/\.$//' | sort -u
}
for version in 8.0 8.1; do gives mma.sp products "$version" || exit 1; done
for version in 8.2 8.3 8.6; do gives wgmma.mma_async.sp products "$version" || exit 1; done
