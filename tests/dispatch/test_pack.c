/* SPDX-License-Identifier: Apache-2.0 */
/* Packs: what is found in them, what is not, and that no damage to one is believed. */
#define _GNU_SOURCE
#include "cache_bench.h"

#include <ptxgen/marlin.h>
#include <ptxgen/device.h>
#include <ptxgen/pack.h>

#include "src/runtime/blake2b.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The emulator's own assembler, as one that runs ahead of time. */
static ptxgen_status assemble(void *user, const char *ptx, const char *sm, ptxgen_cubin *cubin,
                              ptxgen_error *err)
{
    struct bench *bench = user;
    assert_string_equal(sm, "sm_90a");
    return ptxgen_assemble(&bench->device.driver, ptx, NULL, cubin, err);
}

static ptxgen_target target_of(const struct bench *bench)
{
    ptxgen_device_facts facts;
    assert_int_equal(ptxgen_device_read(&bench->device.driver, 0, &facts, NULL), PTXGEN_OK);
    return ptxgen_device_target(&facts);
}

/* A copy, malloc'ed, of a pack of spec `a` for so many families and with texts or cubins. */
static unsigned char *make_pack(struct bench *bench, const uint32_t *a, size_t count, bool cubins,
                                const ptxgen_target *target, size_t *size)
{
    ptxgen_pack_builder *builder;
    const void *bytes;
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_pack_builder_create(&builder, &err), PTXGEN_OK);
    for (size_t i = 0; i < count; i++) {
        struct toy_spec spec = {.a = a[i], .b = 5};
        if (ptxgen_pack_add(builder, &toy_plus, &spec, target, cubins ? assemble : NULL, bench,
                            &err) != PTXGEN_OK)
            fail_msg("%s", err.message);
    }
    assert_int_equal(ptxgen_pack_finish(builder, &bytes, size, &err), PTXGEN_OK);
    unsigned char *copy = malloc(*size);
    memcpy(copy, bytes, *size);
    ptxgen_pack_builder_destroy(builder);
    return copy;
}

/* Where the kernel comes from, with these packs and no cache; it computes the right thing. */
static ptxgen_origin get(struct bench *bench, ptxgen_pack *const *packs, size_t count, uint32_t a,
                         const ptxgen_dispatch_options *others)
{
    struct toy_spec spec = {.a = a, .b = 5};
    ptxgen_dispatch_options options = others ? *others : (ptxgen_dispatch_options){0};
    ptxgen_dispatcher *dispatcher = NULL;
    ptxgen_loaded *loaded = NULL;
    ptxgen_error err = {0};
    options.packs = packs;
    options.pack_count = count;
    options.no_cache = true;
    options.log = bench_keep_log;
    options.log_user = bench;
    bench->log[0] = '\0';
    if (ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, &err) ||
        ptxgen_dispatch(dispatcher, bench->family ? bench->family : &toy_plus, &spec, &loaded,
                        &err))
        fail_msg("%s", err.message);
    ptxgen_origin origin = ptxgen_loaded_report(loaded)->origin;
    assert_true(toy_computes(&bench->device.driver, loaded, &spec));
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
    return origin;
}

static void a_kernel_in_a_pack_is_neither_emitted_nor_looked_for(void **state)
{
    struct bench *bench = *state;
    static const uint32_t specs[] = {7, 8, 9};
    ptxgen_target target = target_of(bench);
    for (int cubins = 0; cubins < 2; cubins++) {
        ptxgen_pack *pack;
        size_t size;
        unsigned char *bytes = make_pack(bench, specs, 3, cubins, &target, &size);
        assert_int_equal(ptxgen_pack_read(bytes, size, &pack, NULL), PTXGEN_OK);
        assert_int_equal(ptxgen_pack_count(pack), 3);
        assert_int_equal(ptxgen_pack_verify(pack, NULL), PTXGEN_OK);
        unsigned emissions = toy_emissions();
        for (uint32_t a = 7; a < 10; a++)
            assert_int_equal(get(bench, &pack, 1, a, NULL), PTXGEN_ORIGIN_PACK);
        assert_int_equal(toy_emissions(), emissions);
        assert_string_equal(bench->log, "");
        assert_int_equal(get(bench, &pack, 1, 10, NULL), PTXGEN_ORIGIN_ASSEMBLER);
        ptxgen_pack_close(pack);
        free(bytes);
    }
}

static void packs_are_looked_into_in_order(void **state)
{
    struct bench *bench = *state;
    static const uint32_t specs[] = {1, 2};
    ptxgen_target target = target_of(bench);
    ptxgen_pack *packs[2];
    unsigned char *bytes[2];
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        bytes[i] = make_pack(bench, &specs[i], 1, false, &target, &size[i]);
        assert_int_equal(ptxgen_pack_read(bytes[i], size[i], &packs[i], NULL), PTXGEN_OK);
    }
    assert_int_equal(get(bench, packs, 2, 1, NULL), PTXGEN_ORIGIN_PACK);
    assert_int_equal(get(bench, packs, 2, 2, NULL), PTXGEN_ORIGIN_PACK);
    assert_int_equal(get(bench, packs, 1, 2, NULL), PTXGEN_ORIGIN_ASSEMBLER);
    for (int i = 0; i < 2; i++) {
        ptxgen_pack_close(packs[i]);
        free(bytes[i]);
    }
}

static void only_the_same_chip_version_and_spec_are_served(void **state)
{
    struct bench *bench = *state;
    static const uint32_t one[] = {3};
    ptxgen_target target = target_of(bench), other = target;
    ptxgen_family newer = toy_plus, revised = toy_plus;
    ptxgen_pack *pack;
    size_t size;
    newer.plan_version++;
    revised.revision = "another";
    other.multiprocessors--;
    unsigned char *bytes = make_pack(bench, one, 1, false, &other, &size);
    assert_int_equal(ptxgen_pack_read(bytes, size, &pack, NULL), PTXGEN_OK);
    assert_int_equal(get(bench, &pack, 1, 3, NULL), PTXGEN_ORIGIN_ASSEMBLER);
    ptxgen_pack_close(pack);
    free(bytes);
    target.ptx.max_ptx = 78; /* of another driver */
    bytes = make_pack(bench, one, 1, false, &target, &size);
    assert_int_equal(ptxgen_pack_read(bytes, size, &pack, NULL), PTXGEN_OK);
    assert_int_equal(get(bench, &pack, 1, 3, NULL), PTXGEN_ORIGIN_PACK);
    bench->family = &newer;
    assert_int_equal(get(bench, &pack, 1, 3, NULL), PTXGEN_ORIGIN_ASSEMBLER);
    bench->family = &revised;
    assert_int_equal(get(bench, &pack, 1, 3, NULL), PTXGEN_ORIGIN_ASSEMBLER);
    bench->family = NULL;
    const ptxgen_dispatch_options options[] = {
        {.max_registers = 64}, {.line_info = true}, {.dump_folder = bench->folder}};
    for (int i = 0; i < 3; i++)
        assert_int_equal(get(bench, &pack, 1, 3, &options[i]), PTXGEN_ORIGIN_ASSEMBLER);
    ptxgen_pack_close(pack);
    free(bytes);
}

static void the_bytes_depend_on_what_was_added_alone(void **state)
{
    struct bench *bench = *state;
    static const uint32_t up[] = {1, 2, 3, 2}, down[] = {3, 2, 1};
    ptxgen_target target = target_of(bench);
    size_t size, again;
    unsigned char *bytes = make_pack(bench, up, 4, true, &target, &size);
    unsigned char *other = make_pack(bench, down, 3, true, &target, &again);
    assert_int_equal(size, again);
    assert_memory_equal(bytes, other, size);
    free(bytes);
    free(other);
}

/* Every byte matters: a pack with any of them changed is refused, or its kernel is not used. */
static void no_damage_is_believed(void **state)
{
    struct bench *bench = *state;
    static const uint32_t one[] = {4};
    ptxgen_target target = target_of(bench);
    ptxgen_error err = {0};
    size_t size, refused = 0, unused = 0;
    unsigned char *bytes = make_pack(bench, one, 1, false, &target, &size);
    for (size_t i = 0; i < size; i += i < 300 ? 1 : 37) {
        ptxgen_pack *pack;
        bytes[i] ^= 0x20;
        if (ptxgen_pack_read(bytes, size, &pack, &err) != PTXGEN_OK) {
            assert_true(err.status == PTXGEN_ERROR_MALFORMED ||
                        err.status == PTXGEN_ERROR_UNSUPPORTED);
            assert_null(pack);
            refused++;
        } else {
            assert_int_equal(get(bench, &pack, 1, 4, NULL), PTXGEN_ORIGIN_ASSEMBLER);
            assert_log(bench,
                       "a kernel of toy_plus in a pack is not used: it has the wrong checksum");
            assert_int_equal(ptxgen_pack_verify(pack, &err), PTXGEN_ERROR_MALFORMED);
            assert_string_equal(err.message, "the pack's kernel 0 has the wrong checksum");
            unused++;
        }
        ptxgen_pack_close(pack);
        bytes[i] ^= 0x20;
    }
    assert_true(refused >= 240 && unused > 10);
    for (size_t cut = 0; cut < size; cut += cut < 300 ? 1 : 37) {
        ptxgen_pack *pack;
        unsigned char *exact = malloc(cut + !cut); /* whose end a sanitizer guards */
        memcpy(exact, bytes, cut);
        assert_int_equal(ptxgen_pack_read(exact, cut, &pack, &err), PTXGEN_ERROR_MALFORMED);
        free(exact);
    }
    free(bytes);
}

static void write_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static void what_is_wrong_with_a_pack_is_said(void **state)
{
    struct bench *bench = *state;
    static const uint32_t two[] = {4, 5};
    ptxgen_target target = target_of(bench);
    ptxgen_pack *pack;
    ptxgen_error err = {0};
    size_t size;
    char says[200];
    unsigned char *bytes = make_pack(bench, two, 2, false, &target, &size);
    assert_int_equal(ptxgen_pack_read("junk", 4, &pack, &err), PTXGEN_ERROR_MALFORMED);
    assert_string_equal(err.message, "a pack begins with \"ptxgenPK\" and 88 bytes of header");
    assert_int_equal(ptxgen_pack_read(bytes, size - 1, &pack, &err), PTXGEN_ERROR_MALFORMED);
    snprintf(says, sizeof says, "the pack has %zu bytes, but its header says %zu", size - 1, size);
    assert_string_equal(err.message, says);
    write_u32(bytes + 8, 2);
    assert_int_equal(ptxgen_pack_read(bytes, size, &pack, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_string_equal(err.message, "the pack has format version 2, this library reads version 1");
    write_u32(bytes + 8, 1);
    write_u32(bytes + 12, 0x10000000);
    assert_int_equal(ptxgen_pack_read(bytes, size, &pack, &err), PTXGEN_ERROR_MALFORMED);
    snprintf(says, sizeof says, "the pack's %zu bytes cannot hold an index of 268435456 kernels",
             size);
    assert_string_equal(err.message, says);
    write_u32(bytes + 12, 1);
    assert_int_equal(ptxgen_pack_read(bytes, size, &pack, &err), PTXGEN_ERROR_MALFORMED);
    assert_string_equal(err.message, "the pack's index has the wrong checksum");
    free(bytes);
}

/* An index whose checksum is right, but whose records lie: by the library's own hash. */
static void an_index_that_lies_is_refused(void **state)
{
    enum { HEADER = 88, RECORD = 160, OFFSET = 128, CODE = OFFSET + 16 };
    struct bench *bench = *state;
    static const uint32_t two[] = {4, 5};
    ptxgen_target target = target_of(bench);
    ptxgen_pack *pack;
    ptxgen_error err = {0};
    size_t size;
    char says[200];
    for (int lie = 0; lie < 3; lie++) {
        unsigned char *bytes = make_pack(bench, two, 2, false, &target, &size),
                      *first = bytes + HEADER;
        if (lie == 0)
            write_u32(first + OFFSET + 4, 0x7fffffff);
        else if (lie == 1)
            write_u32(first + CODE, 0x0fffffff);
        else
            memcpy(first + RECORD, first, RECORD);
        memcpy(bytes + 24, digest_of(first, 2 * RECORD).hex, DIGEST_HEX);
        assert_int_equal(ptxgen_pack_read(bytes, size, &pack, &err), PTXGEN_ERROR_MALFORMED);
        snprintf(says, sizeof says, "the pack's kernel 0 does not lie within its %zu bytes", size);
        assert_string_equal(err.message,
                            lie == 2 ? "the pack's kernels 0 and 1 are not by rising keys" : says);
        free(bytes);
    }
}

static void a_pack_is_opened_by_path(void **state)
{
    struct bench *bench = *state;
    static const uint32_t one[] = {6};
    ptxgen_target target = target_of(bench);
    char path[FOLDER_PATH + 16], says[FOLDER_PATH + 100];
    ptxgen_pack *pack;
    ptxgen_pack_entry entry;
    ptxgen_error err = {0};
    size_t size;
    unsigned char *bytes = make_pack(bench, one, 1, true, &target, &size);
    snprintf(path, sizeof path, "%s/kernels.pack", bench->folder);
    file_write(path, bytes, size);
    free(bytes);
    assert_int_equal(ptxgen_pack_open(path, &pack, &err), PTXGEN_OK);
    assert_int_equal(get(bench, &pack, 1, 6, NULL), PTXGEN_ORIGIN_PACK);
    assert_true(ptxgen_pack_at(pack, 0, &entry));
    assert_false(ptxgen_pack_at(pack, 1, &entry));
    assert_int_equal(entry.cubin_sm, 90);
    assert_non_null(memmem(entry.subject, entry.subject_bytes, "spec: a=6 b=5\n", 14));
    ptxgen_pack_close(pack);
    file_write(path, "", 0);
    assert_int_equal(ptxgen_pack_open(path, &pack, &err), PTXGEN_ERROR_FILE);
    snprintf(says, sizeof says, "the pack %s is empty", path);
    assert_string_equal(err.message, says);
    file_write(path, "junk", 4);
    assert_int_equal(ptxgen_pack_open(path, &pack, &err), PTXGEN_ERROR_MALFORMED);
    snprintf(says, sizeof says, "%s: a pack begins with \"ptxgenPK\" and 88 bytes of header", path);
    assert_string_equal(err.message, says);
    assert_int_equal(ptxgen_pack_open(bench->folder, &pack, &err), PTXGEN_ERROR_FILE);
    snprintf(says, sizeof says, "the pack %s is no regular file", bench->folder);
    assert_string_equal(err.message, says);
    unlink(path);
    assert_int_equal(ptxgen_pack_open(path, &pack, &err), PTXGEN_ERROR_FILE);
    snprintf(says, sizeof says, "the pack %s cannot be opened: No such file or directory", path);
    assert_string_equal(err.message, says);
    assert_null(pack);
}

static void a_kernel_that_does_not_load_is_compiled(void **state)
{
    struct bench *bench = *state;
    struct toy_spec spec = {.a = 2, .b = 5, .trouble = TOY_UNASSEMBLABLE};
    ptxgen_target target = target_of(bench);
    ptxgen_pack_builder *builder;
    ptxgen_pack *pack;
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    const void *bytes;
    size_t size;
    assert_int_equal(ptxgen_pack_builder_create(&builder, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_pack_add(builder, &toy_plus, &spec, &target, NULL, NULL, NULL),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_pack_finish(builder, &bytes, &size, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_pack_read(bytes, size, &pack, NULL), PTXGEN_OK);
    toy_set_mended(1);
    const ptxgen_dispatch_options options = {.packs = &pack,
                                             .pack_count = 1,
                                             .no_cache = true,
                                             .log = bench_keep_log,
                                             .log_user = bench};
    assert_int_equal(ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, NULL),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_dispatch(dispatcher, &toy_plus, &spec, &loaded, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_loaded_report(loaded)->origin, PTXGEN_ORIGIN_ASSEMBLER);
    assert_log(bench, "a kernel of toy_plus in a pack is not used: ");
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
    toy_set_mended(0);
    ptxgen_pack_close(pack);
    ptxgen_pack_builder_destroy(builder);
}

/* Gives bytes that are no cubin: as many as `user` says. */
static ptxgen_status give_junk(void *user, const char *ptx, const char *sm, ptxgen_cubin *cubin,
                               ptxgen_error *err)
{
    (void)ptx;
    (void)sm;
    (void)err;
    cubin->size = *(const size_t *)user;
    cubin->bytes = calloc(1, 64);
    return PTXGEN_OK;
}

static void what_an_assembler_gives_is_checked(void **state)
{
    struct bench *bench = *state;
    ptxgen_target target = target_of(bench);
    ptxgen_pack_builder *builder;
    ptxgen_error err = {0};
    struct toy_spec spec = {.a = 1};
    size_t size = 64;
    assert_int_equal(ptxgen_pack_builder_create(&builder, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_pack_add(builder, &toy_plus, &spec, &target, give_junk, &size, &err),
                     PTXGEN_ERROR_MALFORMED);
    assert_string_equal(err.message,
                        "toy_plus: what the assembler gave: the 64 bytes are not a cubin: they do not "
                        "open with the header of a 64-bit little-endian ELF file for CUDA");
    size = (256u << 20) + 1;
    assert_int_equal(ptxgen_pack_add(builder, &toy_plus, &spec, &target, give_junk, &size, &err),
                     PTXGEN_ERROR_UNSUPPORTED);
    assert_string_equal(err.message, "toy_plus: the assembler's cubin has 268435457 bytes, more "
                                     "than the 268435456 of a pack");
    ptxgen_pack_builder_destroy(builder);
}

/* As many entries as a pack cannot name. */
static ptxgen_status emit_many(const void *plan, ptx_module *module, ptxgen_error *err)
{
    (void)plan;
    for (int i = 0; i < 500; i++) {
        char name[60];
        snprintf(name, sizeof name, "an_entry_of_many_that_have_long_names_%d", i);
        ptx_kernel *k = ptx_kernel_begin(module, name);
        ptx_kernel_reqntid(k, 32, 1, 1);
        ptx_kernel_end(k);
    }
    return ptx_module_status(module, err);
}

static void what_is_too_long_for_a_pack_is_refused(void **state)
{
    struct bench *bench = *state;
    ptxgen_target target = target_of(bench);
    ptxgen_pack_builder *builder;
    ptxgen_error err = {0};
    struct toy_spec spec = {.a = 1};
    static const char revision[] = "0123456789012345678901234567890123456789012345678901234567890123+";
    ptxgen_family family = toy_plus;
    assert_int_equal(ptxgen_pack_builder_create(&builder, &err), PTXGEN_OK);
    family.emit = emit_many;
    assert_int_equal(ptxgen_pack_add(builder, &family, &spec, &target, NULL, NULL, &err),
                     PTXGEN_ERROR_UNSUPPORTED);
    assert_string_equal(err.message,
                        "toy_plus: the names of 500 entries are too long for a pack");
    family = toy_plus;
    family.revision = revision;
    assert_int_equal(ptxgen_pack_add(builder, &family, &spec, &target, NULL, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message,
                        "toy_plus: a revision of 65 characters, more than the 64 of a hash");
    family.revision = revision + 1;
    assert_int_equal(ptxgen_pack_add(builder, &family, &spec, &target, NULL, NULL, &err),
                     PTXGEN_OK);
    ptxgen_pack_builder_destroy(builder);
}

static void refusals_reach_the_caller(void **state)
{
    struct bench *bench = *state;
    ptxgen_target target = target_of(bench);
    ptxgen_error err = {0};
    ptxgen_pack_builder *builder;
    ptxgen_pack *none = NULL, *pack;
    ptxgen_dispatcher *dispatcher;
    struct toy_spec spec = {.trouble = TOY_UNPLANNABLE};
    ptxgen_marlin_spec marlin = {.k = 100, .n = 64, .group_size = 128};
    const void *bytes;
    size_t size;
    assert_int_equal(ptxgen_pack_builder_create(&builder, &err), PTXGEN_OK);
    assert_int_not_equal(ptxgen_pack_add(builder, &toy_plus, &spec, &target, NULL, NULL, &err),
                         PTXGEN_OK);
    assert_int_equal(
        ptxgen_pack_add(builder, ptxgen_marlin_family(), &marlin, &target, NULL, NULL, &err),
        PTXGEN_ERROR_UNSUPPORTED);
    assert_int_equal(ptxgen_pack_add(builder, &toy_plus, NULL, &target, NULL, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "ptxgen_pack_add: builder, family, spec or target is NULL");
    static unsigned char long_spec[8000];
    ptxgen_family long_family = toy_plus;
    long_family.spec_bytes = sizeof long_spec;
    assert_int_equal(ptxgen_pack_add(builder, &long_family, long_spec, &target, NULL, NULL, &err),
                     PTXGEN_ERROR_UNSUPPORTED);
    assert_string_equal(err.message,
                        "toy_plus: the spec of 8000 bytes is too long for a key of a pack");
    assert_int_equal(ptxgen_pack_finish(builder, &bytes, &size, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_pack_read(bytes, size, &pack, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_pack_count(pack), 0);
    ptxgen_pack_close(pack);
    assert_int_equal(ptxgen_pack_finish(builder, NULL, &size, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "ptxgen_pack_finish: builder, bytes or size is NULL");
    ptxgen_pack_builder_destroy(builder);
    assert_int_equal(ptxgen_pack_builder_create(NULL, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "ptxgen_pack_builder_create: builder is NULL");
    assert_int_equal(ptxgen_pack_read(NULL, 0, &pack, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "ptxgen_pack_read: bytes or pack is NULL");
    assert_int_equal(ptxgen_pack_open(NULL, &pack, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "ptxgen_pack_open: path or pack is NULL");
    assert_int_equal(ptxgen_pack_verify(NULL, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "ptxgen_pack_verify: pack is NULL");
    ptxgen_dispatch_options options = {.packs = &none, .pack_count = 1, .no_cache = true};
    assert_int_equal(ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "packs[0] is NULL");
    options.packs = NULL;
    assert_int_equal(ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "packs is NULL, but pack_count is 1");
}

/* The product of a family of the library, from a pack, with the driver's limits in place. */
static void a_familys_kernel_computes_from_a_pack(void **state)
{
    struct bench *bench = *state;
    ptxgen_target target = target_of(bench);
    ptxgen_marlin_spec spec = {
        .k = 128, .n = 64, .group_size = 128, .max_m = 8, .type = PTXGEN_F16};
    ptxgen_pack_builder *builder;
    ptxgen_pack *pack;
    ptxgen_dispatcher *dispatcher;
    ptxgen_marlin *kernel;
    ptxgen_error err = {0};
    const void *bytes;
    size_t size;
    assert_int_equal(ptxgen_pack_builder_create(&builder, &err), PTXGEN_OK);
    assert_int_equal(
        ptxgen_pack_add(builder, ptxgen_marlin_family(), &spec, &target, NULL, NULL, &err),
        PTXGEN_OK);
    assert_int_equal(ptxgen_pack_finish(builder, &bytes, &size, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_pack_read(bytes, size, &pack, &err), PTXGEN_OK);
    const ptxgen_dispatch_options options = {.packs = &pack, .pack_count = 1, .no_cache = true};
    assert_int_equal(ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, &err),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_marlin_dispatch(dispatcher, &spec, &kernel, &err), PTXGEN_OK);
    const ptxgen_load_report *report = ptxgen_loaded_report((const ptxgen_loaded *)kernel);
    assert_int_equal(report->origin, PTXGEN_ORIGIN_PACK);
    assert_string_equal(report->not_kept, "its code is in a pack");
    assert_non_null(ptxgen_marlin_attributes(kernel, 8));
    ptxgen_marlin_destroy(kernel);
    ptxgen_dispatcher_destroy(dispatcher);
    ptxgen_pack_close(pack);
    ptxgen_pack_builder_destroy(builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(a_kernel_in_a_pack_is_neither_emitted_nor_looked_for),
        claim(packs_are_looked_into_in_order),
        claim(only_the_same_chip_version_and_spec_are_served),
        claim(the_bytes_depend_on_what_was_added_alone),
        claim(no_damage_is_believed),
        claim(what_is_wrong_with_a_pack_is_said),
        claim(an_index_that_lies_is_refused),
        claim(a_pack_is_opened_by_path),
        claim(a_kernel_that_does_not_load_is_compiled),
        claim(what_an_assembler_gives_is_checked),
        claim(what_is_too_long_for_a_pack_is_refused),
        claim(refusals_reach_the_caller),
        claim(a_familys_kernel_computes_from_a_pack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
