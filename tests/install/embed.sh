#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317 # functions are reached through claim
# Builds the libraries alone: as a Meson subproject of somebody else's project, which unites sources
# (-Dunity=on), has its libraries in lib64 and does without the emulator, by the wrap file and the
# meson.build that docs/embedding.md shows. Then uses what that installs. Speaks TAP, one line a claim.
#
#   embed.sh SOURCES MESON CC
set -uo pipefail
sources=$1
read -ra meson <<<"$2"
read -ra cc <<<"$3"
# shellcheck source=tests/install/claims.sh
. "$sources/tests/install/claims.sh"
export CC=${cc[*]}
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$sources/meson.build")
unset CFLAGS LDFLAGS DESTDIR MALLOC_PERTURB_
prefix=/opt/somewhere
lib=$root/to$prefix/lib64
super=$root/super
mkdir -p "$super/subprojects" && ln -s "$sources" "$super/subprojects/ptxgen" && cd "$root" || exit 1

# shown LANGUAGE: the example of docs/embedding.md that is marked so
shown() {
    sed -n "/^\`\`\`$1$/,/^\`\`\`$/{/^\`\`\`/d;p}" "$sources/docs/embedding.md" | grep .
}

# Where pkg-config finds neither libcjson nor cmocka.
configure_bare() { # configure_bare FOLDER MESON-OPTION…
    PKG_CONFIG_LIBDIR=$root "${meson[@]}" setup "$1" "$sources" "${@:2}"
}

leaves_out_what_is_missing() {
    configure_bare bare -Ddefault_library=static >said && cat said &&
        grep -qE '^ *Command *: left out by lack of libcjson$' said &&
        grep -qE '^ *Tests *: left out by lack of what they test: command, emulator, shared library$' said &&
        grep -qE '^ *Emulator *: yes$' said && grep -qE '^ *Examples *: yes$' said
}

refuses_what_is_missing() {
    ! configure_bare command -Dcli=enabled >said || return 1
    cat said
    grep -q 'Dependency "libcjson" not found' said
}

# Who has the static libraries alone gets all that they need without --static.
static_library_names_what_it_needs() {
    local words
    words=$(pkg-config --libs "$root/bare/meson-private/ptxgen.pc") && echo "$words" &&
        grep -q -- '-lptxgen ' <<<"$words " && grep -q -- '-lm ' <<<"$words "
}

is_configured() {
    cp "$sources"/tests/install/{consumer,files,absent}.c "$super"
    shown ini >"$super/subprojects/ptxgen.wrap" && shown meson >"$super/meson.build" &&
        mv "$super/consumer.c" "$super/program.c" && cat >>"$super/meson.build" <<'END' &&
foreach kind : ['shared', 'static']
  needed = dependency('ptxgen', static: kind == 'static')
  executable(kind, 'program.c', dependencies: needed)
  executable('absent_' + kind, 'absent.c', dependencies: needed)
  executable('files_' + kind, 'files.c', dependencies: dependency('ptxgen-files', static: kind == 'static'))
endforeach
END
        configure_super "$super/build" >said && cat said
}

configure_super() { # configure_super FOLDER
    "${meson[@]}" setup "$1" "$super" -Dunity=on -Doptimization=0 -Ddebug=false -Dprefix=$prefix -Dlibdir=lib64 \
            -Dwrap_mode=nodownload -Dptxgen:default_library=both -Dptxgen:emulator=disabled
}

is_built() { # is_built FOLDER
    ninja -C "$1" --quiet >said || { cat said; return 1; }
}

# The same in another folder, which sees the sources by another path, at another time and in another
# language, and compiles each of them: no object is out of a cache.
is_reproduced() {
    local again=$root/elsewhere/at/all library
    (umask 077 && export LC_ALL=C TZ=Asia/Kathmandu CCACHE_DISABLE=1 &&
        configure_super "$again" >said && is_built "$again") || { cat said; return 1; }
    for library in libptxgen.so.$version libptxgen.a src/files/libptxgen-files.so.$version src/files/libptxgen-files.a; do
        cmp "$super/build/subprojects/ptxgen/$library" "$again/subprojects/ptxgen/$library" || return 1
    done
    "$super/build/shared" >one.ptx && "$again/static" >other.ptx && cmp one.ptx other.ptx
}

has_the_libraries_alone() {
    ! find "$super/build/subprojects" -type f \( -name 'libcli*' -o -name 'libharness*' -o -name 'test_*' \
        -o -name first_kernel -o -path '*/src_cli_*' \) | grep .
}

programs_run() { # programs_run KIND
    "$super/build/$1" >out.ptx && text_is_of_kernels out.ptx &&
        "$super/build/files_$1" "$sources/tests/golden/q4k.gguf" >out && cat out &&
        grep -qx 'llama.embedding_length 1024' out && "$super/build/absent_$1"
}

program_of_the_page_runs() {
    "$super/build/program" >out.ptx && text_is_of_kernels out.ptx
}

static_programs_run() {
    programs_run static && ! readelf -d "$super/build/static" "$super/build/files_static" | grep 'NEEDED.*libptxgen'
}

exports_are_those_of_every_build() {
    "$sources/tests/install/exported.sh" "$lib/libptxgen.so" | diff -u "$sources/tests/install/ptxgen.symbols" -
}

# shellcheck disable=SC2086 # pkg-config prints words
pkg_config_links() { # pkg_config_links PROGRAM PKG-CONFIG-OPTION…
    local words
    words=$(PKG_CONFIG_LIBDIR=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root/to pkg-config --cflags --libs "${@:2}" ptxgen) &&
        echo "$words" &&
        "${cc[@]}" -std=c11 "${strict[@]}" -o "$1" "$super/program.c" $words &&
        LD_LIBRARY_PATH=$lib "./$1" >out.ptx && text_is_of_kernels out.ptx
}

pkg_config_links_statically() {
    mkdir shared && mv "$lib"/*.so* shared && pkg_config_links static --static && mv shared/* "$lib"
}

cmake_finds() {
    mkdir cmake && cp "$super/program.c" cmake && cat >cmake/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.13)
project(stranger C)
set_property(GLOBAL PROPERTY FIND_LIBRARY_USE_LIB64_PATHS TRUE) # as where distributions have lib64
find_package(ptxgen 0.1 REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE ptxgen::ptxgen)
END
    cmake -S cmake -B cmake "-DCMAKE_PREFIX_PATH=$root/to$prefix" && cmake --build cmake &&
        cmake/program >out.ptx && text_is_of_kernels out.ptx
}

claim without_libcjson_and_cmocka_the_libraries_are_configured leaves_out_what_is_missing
claim a_command_that_is_asked_for_is_not_left_out refuses_what_is_missing
claim pkg_config_names_all_that_a_static_installation_needs static_library_names_what_it_needs
claim a_subproject_is_configured_as_the_docs_have_it is_configured
claim a_subproject_builds_with_unity is_built "$super/build"
claim a_subproject_is_the_libraries_alone has_the_libraries_alone
claim the_program_of_the_docs_runs program_of_the_page_runs
claim programs_run_on_the_subprojects_shared_libraries programs_run shared
claim programs_run_on_the_subprojects_static_libraries static_programs_run
claim the_subproject_installs "${meson[@]}" install -C "$super/build" --no-rebuild --quiet --destdir "$root/to"
claim a_library_without_emulator_exports_what_others_do exports_are_those_of_every_build
claim two_builds_are_equal_byte_by_byte is_reproduced
claim libraries_name_no_path names_no_path "$lib"/libptxgen{,-files}.{a,so}
claim pkg_config_finds_lib64 pkg_config_links shared_by_pkg_config
claim pkg_config_links_statically_with_lib64 pkg_config_links_statically
if command -v cmake >/dev/null; then
    claim cmake_finds_lib64 cmake_finds
else
    echo "ok $((claims += 1)) cmake_finds_lib64 # SKIP no cmake here"
fi
echo "1..$claims"
