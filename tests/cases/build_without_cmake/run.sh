# Configures the build with a PATH in which all is but cmake.
set -eu
mkdir path
IFS=:
for folder in $PATH; do
    [ -d "$folder" ] && find -L "$folder" -maxdepth 1 -type f -perm -100 \
        ! -name 'cmake*' -exec ln -s -t path {} + 2>/dev/null || true
done
PATH=$PWD/path
if command -v cmake; then
    echo "cmake is still found"
    exit 1
fi
meson setup build "$PTXGEN_SOURCE" >output 2>&1 || { tail -n 20 output; exit 1; }
meson introspect build --installed >installed
for file in ptxgenConfig.cmake ptxgenConfigVersion.cmake; do
    grep -q "cmake/ptxgen/$file" installed || { echo "$file is not installed"; exit 1; }
done
