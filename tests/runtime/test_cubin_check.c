/* SPDX-License-Identifier: Apache-2.0 */
/* Cut and damaged cubins, which some drivers do not survive. A real one comes from the build. */
#include "tests/runtime/check.h"
#include "tests/runtime/tiny_cubin.h"

#include "src/runtime/cubin_check.h"

#include <stdio.h>
#include <stdlib.h>

static ptxgen_error err;

/* In a block of its exact size, so that a sanitiser sees any read past the end. */
static ptxgen_status check_copy(const void *bytes, size_t size)
{
    void *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    ptxgen_status status = cubin_check(copy, size, &err);
    free(copy);
    return status;
}

static void a_whole_cubin_passes(void **state)
{
    (void)state;
    struct tiny_cubin cubin = tiny_cubin_make();
    assert_int_equal(check_copy(&cubin, sizeof cubin), PTXGEN_OK);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    struct tiny_cubin cubin = tiny_cubin_make();
    for (size_t size = 0; size < sizeof cubin; size++)
        assert_int_equal(check_copy(&cubin, size), PTXGEN_ERROR_MALFORMED);
}

static void text_is_no_cubin(void **state)
{
    (void)state;
    char text[256] = ".version 7.0\n.target sm_80\n";
    assert_fails(cubin_check(text, sizeof text, &err), PTXGEN_ERROR_MALFORMED, err,
                 "are not a cubin");
}

static void an_elf_file_for_another_machine_is_no_cubin(void **state)
{
    (void)state;
    struct tiny_cubin cubin = tiny_cubin_make();
    cubin.header.e_machine = EM_X86_64;
    assert_fails(cubin_check(&cubin, sizeof cubin, &err), PTXGEN_ERROR_MALFORMED, err,
                 "are not a cubin");
}

static void offsets_that_wrap_around_are_refused(void **state)
{
    (void)state;
    struct tiny_cubin cubin = tiny_cubin_make();
    cubin.sections[1].sh_offset = UINT64_MAX - 8;
    char says[100];
    snprintf(says, sizeof says,
             "the cubin is cut short or damaged: it refers to bytes beyond its %zu", sizeof cubin);
    assert_fails(cubin_check(&cubin, sizeof cubin, &err), PTXGEN_ERROR_MALFORMED, err, says);
    cubin = tiny_cubin_make();
    cubin.segment.p_filesz = UINT64_MAX;
    assert_int_equal(check_copy(&cubin, sizeof cubin), PTXGEN_ERROR_MALFORMED);
    cubin = tiny_cubin_make();
    cubin.header.e_shoff = UINT64_MAX - 1;
    assert_int_equal(check_copy(&cubin, sizeof cubin), PTXGEN_ERROR_MALFORMED);
}

/* Variables that are zero have no bytes; code and the names of sections cannot be without. */
static void code_and_names_without_bytes_are_refused(void **state)
{
    (void)state;
    struct tiny_cubin cubin = tiny_cubin_make();
    cubin.sections[2].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    assert_int_equal(check_copy(&cubin, sizeof cubin), PTXGEN_ERROR_MALFORMED);
    cubin.sections[2].sh_flags = SHF_ALLOC | SHF_WRITE;
    assert_int_equal(check_copy(&cubin, sizeof cubin), PTXGEN_OK);
    cubin.header.e_shstrndx = 2;
    assert_int_equal(check_copy(&cubin, sizeof cubin), PTXGEN_ERROR_MALFORMED);
}

static void entries_smaller_than_the_format_are_refused(void **state)
{
    (void)state;
    struct tiny_cubin cubin = tiny_cubin_make();
    cubin.header.e_shentsize = 1;
    assert_int_equal(check_copy(&cubin, sizeof cubin), PTXGEN_ERROR_MALFORMED);
    cubin = tiny_cubin_make();
    cubin.header.e_phentsize = 1;
    assert_int_equal(check_copy(&cubin, sizeof cubin), PTXGEN_ERROR_MALFORMED);
    cubin = tiny_cubin_make();
    cubin.header.e_shstrndx = 3;
    assert_int_equal(check_copy(&cubin, sizeof cubin), PTXGEN_ERROR_MALFORMED);
}

/* No byte of the header, whatever its value, leads to a read outside. */
static void no_damaged_header_is_followed_outside(void **state)
{
    (void)state;
    struct tiny_cubin cubin = tiny_cubin_make();
    unsigned char *bytes = (unsigned char *)&cubin;
    for (size_t at = 0; at < sizeof cubin; at++) {
        unsigned char kept = bytes[at];
        for (int value = 0; value < 256; value += 15) {
            bytes[at] = (unsigned char)value;
            check_copy(&cubin, sizeof cubin);
        }
        bytes[at] = kept;
    }
}

static void a_real_cubin_passes_and_every_truncation_of_it_is_refused(void **state)
{
    (void)state;
    static unsigned char bytes[1 << 16];
    if (!*REAL_CUBIN) {
        print_message("no ptxas: there is no real cubin\n");
        skip();
    }
    FILE *file = fopen(REAL_CUBIN, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(size, 1, sizeof bytes - 1);
    assert_int_equal(check_copy(bytes, size), PTXGEN_OK);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(check_copy(bytes, cut), PTXGEN_ERROR_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_cubin_passes),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(text_is_no_cubin),
        cmocka_unit_test(an_elf_file_for_another_machine_is_no_cubin),
        cmocka_unit_test(offsets_that_wrap_around_are_refused),
        cmocka_unit_test(code_and_names_without_bytes_are_refused),
        cmocka_unit_test(entries_smaller_than_the_format_are_refused),
        cmocka_unit_test(no_damaged_header_is_followed_outside),
        cmocka_unit_test(a_real_cubin_passes_and_every_truncation_of_it_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
