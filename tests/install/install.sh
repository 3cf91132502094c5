#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317 # functions are reached through claim
# Installs a build into an empty folder and uses it as a stranger would: with the compiler and
# pkg-config alone, away from the source tree. Speaks TAP, one line a claim.
#
#   install.sh BUILD PREFIX LIBDIR SOURCES CC CXX SIZE RELEASE
#
# CXX is "none" without a C++ compiler; SIZE is "measure" where sizes count, and RELEASE "release" where
# the build is one.
set -uo pipefail
build=$1 prefix=$2 libdir=$3 sources=$4
read -ra cc <<<"$5"
read -ra cxx <<<"$6"
measure=$7 release=$8
# shellcheck source=tests/install/claims.sh
. "$sources/tests/install/claims.sh"
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root$prefix/$libdir/pkgconfig
lib=$root$prefix/$libdir
headers=$root$prefix/include/ptxgen
mkdir "$root/outside"
cp "$sources"/tests/install/{consumer,files,reopen}.c "$sources"/examples/*.{c,cpp,py} "$root/outside"
cd "$root/outside" || exit 1

everything_is_there() {
    local file
    for file in "$headers"/{status,ptx,instr,kernel,driver,rmsnorm_q4k,files,gguf}.h \
        "$lib"/libptxgen{,-files}.{a,so} "$lib"/pkgconfig/ptxgen{,-files}.pc "$lib"/cmake/ptxgen/ptxgenConfig{,Version}.cmake; do
        [ -e "$file" ] || { echo "missing: ${file#"$root"}"; return 1; }
    done
}

completion_is_installed() {
    local share=$root$prefix/share
    [ -e "$share/bash-completion/completions/ptxgen" ] && [ -e "$share/zsh/site-functions/_ptxgen" ] &&
        [ -e "$share/fish/vendor_completions.d/ptxgen.fish" ] && [ -e "$share/doc/ptxgen/LICENSE" ] &&
        [ -e "$share/doc/ptxgen/docs/embedding.md" ] && [ -e "$share/man/man1/ptxgen-run-marlin.1" ]
}

headers_compile_alone() { # headers_compile_alone LANGUAGE STANDARD COMPILER…
    local language=$1 standard=$2 header
    shift 2
    for header in "$headers"/*.h; do
        # shellcheck disable=SC2046 # pkg-config prints words
        echo "#include <ptxgen/${header##*/}>" | "$@" -x "$language" -std="$standard" "${strict[@]}" \
            $(pkg-config --cflags ptxgen) -fsyntax-only - || { echo "in ${header##*/}"; return 1; }
    done
}

compile() { # compile OUTPUT PKG-CONFIG-OPTIONS COMPILER… SOURCE
    local output=$1 options=$2
    shift 2
    # shellcheck disable=SC2046,SC2086 # pkg-config prints and takes words
    "$@" "${strict[@]}" -o "$output" $(pkg-config --cflags ptxgen) $(pkg-config --libs $options ptxgen)
}

prints_kernels() { # prints_kernels PROGRAM
    LD_LIBRARY_PATH=$lib "./$1" >out.ptx && cat out.ptx && text_is_of_kernels out.ptx
}

program_works() { # program_works OUTPUT PKG-CONFIG-OPTIONS COMPILER…
    compile "$@" && prints_kernels "$1"
}

static_program_works() {
    program_works "$@" && ! readelf -d "$1" | grep "NEEDED.*libptxgen"
}

needs_only_libc() {
    ! readelf -d "$lib/libptxgen.so" | grep NEEDED |
        grep -vE '\[(libc|libm|libdl|libpthread|ld-linux.*)\.so\.[0-9]+\]'
}

files_need_only_libc() {
    ! readelf -d "$lib/libptxgen-files.so" | grep NEEDED | grep -vE '\[libc\.so\.[0-9]+\]'
}

# Functions that fill arrays of their own check them, calls of libc are fortified, and nothing that the
# loader fills in stays writable. Who compiles without optimisation has none of that.
is_hardened() { # is_hardened LIBRARY
    local so=$lib/lib$1.so calls
    calls=$(nm -D --undefined-only "$so") && echo "$calls" && readelf -Wld "$so" >segments && cat segments &&
        grep -q GNU_RELRO segments && grep -q BIND_NOW segments &&
        grep -q __stack_chk_fail <<<"$calls" && grep -q '_chk@' <<<"$calls" || return 1
    [ "$(uname -m)" != x86_64 ] ||
        objdump -d --no-show-raw-insn "$so" | grep -A1 "<ptxgen_status_name>:" | grep -q endbr64
}

exports_are_prefixed() { # exports_are_prefixed LIBRARY
    ! nm -D --defined-only "$lib/lib$1.so" | awk '$2 != "A" { print $3 }' | grep -vE '^(ptx|ptxgen)_'
}

exports_match() { # exports_match LIBRARY
    "$sources/tests/install/exported.sh" "$lib/lib$1.so" >exports
    diff -u "$sources/tests/install/$1.symbols" exports && return
    echo "If the change is meant: ninja update-symbols"
    return 1
}

static_library_defines_only_ptx_and_ptxgen_names() { # LIBRARY
    ! nm -g --defined-only "$lib/lib$1.a" | awk 'NF == 3 { print $3 }' | grep -vE '^(ptx|ptxgen)_'
}

static_files_define_what_the_list_says() {
    nm -g --defined-only "$lib/libptxgen-files.a" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort >exports
    diff -u <(cut -d' ' -f1 "$sources/tests/install/ptxgen-files.symbols") exports
}

reads_the_golden_file() { # reads_the_golden_file PROGRAM
    LD_LIBRARY_PATH=$lib "./$1" "$sources/tests/golden/q4k.gguf" >out && cat out &&
        grep -qx 'blk.0.attn_q.weight Q4_K 96 1024' out && grep -qx 'llama.embedding_length 1024' out
}

files_program_works() { # files_program_works OUTPUT PKG-CONFIG-OPTIONS COMPILER…
    local output=$1 options=$2
    shift 2
    # shellcheck disable=SC2046,SC2086 # pkg-config prints and takes words
    "$@" "${strict[@]}" -o "$output" $(pkg-config --cflags ptxgen-files) \
        $(pkg-config --libs $options ptxgen-files) && reads_the_golden_file "$output" &&
        ! readelf -d "$output" | grep 'NEEDED.*libptxgen\.so'
}

program_of_both_libraries_works() {
    # shellcheck disable=SC2046 # pkg-config prints words
    "${cc[@]}" -std=c11 "${strict[@]}" -DBOTH -o both files.c \
        $(pkg-config --cflags --libs --static ptxgen-files ptxgen) && reads_the_golden_file both &&
        ! readelf -d both | grep 'NEEDED.*libptxgen'
}

# Code and data of the objects that the library is made of, those of the rooms of src/ given.
is_at_most() { # is_at_most BYTES ROOM|ROOM…
    find "$build"/lib{plain,small,fast}.a.p -name '*.o' | grep -E "/src_($2)_" | xargs size |
        awk -v most="$1" 'NR > 1 { bytes += $4 }
            END { print bytes " bytes of " most; exit !(bytes > 0 && bytes <= most) }'
}

cmake_program_works() { # cmake_program_works TARGET SOURCE CLAIM: of the program, which has the target's name
    mkdir "cmake_$1" && cp "$2" "cmake_$1" && cat >"cmake_$1/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.13)
project(stranger C)
find_package(ptxgen 0.1 REQUIRED)
add_executable($1 $2)
target_link_libraries($1 PRIVATE ptxgen::$1)
END
    CC=${cc[*]} cmake -S "cmake_$1" -B "cmake_$1" -DCMAKE_PREFIX_PATH="$root$prefix" &&
        cmake --build "cmake_$1" && "$3" "cmake_$1/$1"
}

cmake_version_is_judged() {
    mkdir cmake_versions && cat >cmake_versions/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.19)
project(versions C)
foreach(wanted 0 0.1 0.1.0 0.0.9...1 0.1...<0.2)
  find_package(ptxgen ${wanted} REQUIRED)
endforeach()
foreach(wanted 0.1.1 1 99 0.0.1...0.0.9 0...<0.1.0)
  find_package(ptxgen ${wanted} QUIET)
  if(ptxgen_FOUND)
    message(FATAL_ERROR "${ptxgen_VERSION} is taken for ${wanted}")
  endif()
endforeach()
END
    CC=${cc[*]} cmake -S cmake_versions -B cmake_versions -DCMAKE_PREFIX_PATH="$root$prefix"
}

# What runs on the emulator keeps nothing on disk.
runs_with_library() { # runs_with_library COMMAND…
    PTXGEN_CACHE=off LD_LIBRARY_PATH=$lib LIBPTXGEN=$lib/libptxgen.so "$@"
}

cpp_example_works() {
    compile dispatch '' "${cxx[@]}" -std=c++17 dispatch.cpp && runs_with_library ./dispatch
}

reopens() {
    # shellcheck disable=SC2046 # pkg-config prints words
    "${cc[@]}" -std=c11 -Wall -Wextra -Werror -o reopen reopen.c $(pkg-config --cflags ptxgen) \
        -ldl -lpthread && runs_with_library ./reopen "$lib/libptxgen.so"
}

claim install_succeeds meson install -C "$build" --no-rebuild --quiet --destdir "$root"
claim headers_libraries_and_pkg_config_file_are_installed everything_is_there
claim completion_pages_licence_and_documents_are_installed completion_is_installed
claim every_header_compiles_alone_as_c11 headers_compile_alone c c11 "${cc[@]}"
if [ "${cxx[*]}" = none ]; then
    echo "# no C++ compiler: nothing is built as C++"
else
    claim every_header_compiles_alone_as_cpp17 headers_compile_alone c++ c++17 "${cxx[@]}"
    claim cpp_program_runs_on_the_shared_library \
        program_works shared_cpp '' "${cxx[@]}" -std=c++17 -x c++ consumer.c -x none
fi
claim c_program_runs_on_the_shared_library program_works shared_c '' "${cc[@]}" -std=c11 consumer.c
for example in "$sources"/examples/*.c; do
    name=$(basename "$example" .c)
    files=() # the library of files, behind who reads them
    ! grep -q 'ptxgen_files_' "$example" || files=(-L"$lib" -lptxgen-files)
    claim "example_${name}_builds_outside_the_tree" compile "$name" '' \
        "${cc[@]}" -std=c11 "$name.c" -lm "${files[@]}"
done
if [ "${cxx[*]}" != none ]; then
    claim cpp_example_runs_on_the_shared_library cpp_example_works
fi
claim python_example_agrees_with_the_library runs_with_library python3 torch_rmsnorm_q4k.py --check
claim shared_library_can_be_closed_and_opened_again reopens
claim shared_library_needs_only_libc needs_only_libc
claim files_library_needs_only_libc files_need_only_libc
for library in ptxgen ptxgen-files; do
    if [ "$release" = release ]; then
        claim "lib${library}_is_hardened" is_hardened $library
        claim "lib${library}_names_no_path" names_no_path "$lib/lib$library.a" "$lib/lib$library.so"
    fi
    claim "lib${library}_exports_only_ptx_and_ptxgen_names" exports_are_prefixed $library
    claim "lib${library}_exports_what_the_list_says" exports_match $library
    claim "static_lib${library}_defines_only_ptx_and_ptxgen_names" \
        static_library_defines_only_ptx_and_ptxgen_names $library
done
claim static_files_library_defines_what_the_list_says static_files_define_what_the_list_says
claim files_program_runs_on_the_shared_library files_program_works files_shared '' "${cc[@]}" -std=c11 files.c
if [ "${cxx[*]}" != none ]; then
    claim cpp_files_program_runs_on_the_shared_library \
        files_program_works files_cpp '' "${cxx[@]}" -std=c++17 -x c++ files.c -x none
fi
if [ "$measure" = measure ]; then
    claim what_runs_on_a_gpu_is_at_most_1050_kilobytes is_at_most 1050000 'kernels|ptxgen|runtime'
    claim the_emulator_is_at_most_360_kilobytes is_at_most 360000 emulator
else
    echo "# only the size of a release by gcc counts"
fi
if command -v cmake >/dev/null; then
    claim cmake_program_runs_on_the_shared_library cmake_program_works ptxgen consumer.c prints_kernels
    claim cmake_program_runs_on_the_static_library cmake_program_works static consumer.c prints_kernels
    claim cmake_files_program_runs_on_the_shared_library \
        cmake_program_works files files.c reads_the_golden_file
    claim cmake_files_program_runs_on_the_static_library \
        cmake_program_works files_static files.c reads_the_golden_file
    claim cmake_is_given_no_version_newer_than_this cmake_version_is_judged
else
    echo "ok $((claims += 1)) cmake_programs_run # SKIP no cmake here"
fi
rm "$lib"/libptxgen*.so*
claim files_program_runs_on_the_static_library files_program_works files_static --static "${cc[@]}" -std=c11 files.c
claim program_of_both_libraries_runs_on_the_static_ones program_of_both_libraries_works
claim c_program_runs_on_the_static_library static_program_works static_c --static "${cc[@]}" -std=c11 consumer.c
if [ "${cxx[*]}" != none ]; then
    claim cpp_program_runs_on_the_static_library \
        static_program_works static_cpp --static "${cxx[@]}" -std=c++17 -x c++ consumer.c -x none
fi
echo "1..$claims"
