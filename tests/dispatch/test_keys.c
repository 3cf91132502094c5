/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel is found by, in the registry and on disk: every field of every family's spec, of
 * the target, of the device and of the options. The families here are ptxgen's own in all but the
 * emission: theirs is of one text for every spec, so that only the key tells kernels apart.
 */
#define _GNU_SOURCE
#include "cache_bench.h"
#include "key_rows.h"

#include "src/runtime/dispatcher.h"

#include <ptxgen/instr.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct keyed *const all_keyed[] = {&keyed_rmsnorm_q4k, &keyed_gguf_linear, &keyed_marlin, &keyed_repack,
                                                &keyed_w8a8,        &keyed_dense,  &keyed_sparse24,
                                                &keyed_quantise,    &keyed_gguf_rows};
enum { FAMILIES = sizeof all_keyed / sizeof *all_keyed, SPEC_BYTES = 256 };

static ptxgen_error err;

static ptxgen_target target_of(const char *name)
{
    ptxgen_target target;
    assert_int_equal(ptxgen_target_parse(name, &target, NULL), PTXGEN_OK);
    return target;
}

/* ---- rows ---- */

static void put(void *spec, const struct row *row, uint64_t value)
{
    unsigned char *at = (unsigned char *)spec + row->offset;
    const uint8_t value8 = (uint8_t)value;
    const uint16_t value16 = (uint16_t)value;
    const uint32_t value32 = (uint32_t)value;
    switch (row->bytes) {
    case 1: *at = value8; break;
    case 2: memcpy(at, &value16, 2); break;
    case 4: memcpy(at, &value32, 4); break;
    default: fail_msg("%s has %zu bytes", row->field, row->bytes);
    }
}

/* Each byte of the struct is of one row. */
static void assert_covered(const char *name, const struct row *rows, size_t bytes)
{
    unsigned char covered[SPEC_BYTES] = {0};
    assert_true(bytes <= sizeof covered);
    for (; rows->field; rows++)
        for (size_t i = 0; i < rows->bytes; i++) {
            assert_true(rows->offset + i < bytes);
            covered[rows->offset + i]++;
        }
    for (size_t i = 0; i < bytes; i++)
        if (covered[i] != 1)
            fail_msg("byte %zu of %zu of %s belongs to %d rows", i, bytes, name, covered[i]);
}

static void every_byte_has_a_row(void **state)
{
    (void)state;
    for (size_t f = 0; f < FAMILIES; f++)
        assert_covered(all_keyed[f]->family()->name, all_keyed[f]->rows,
                       all_keyed[f]->family()->spec_bytes);
    assert_covered("ptxgen_target", target_rows, sizeof(ptxgen_target));
}

static void reserved_bytes_are_refused(void **state)
{
    const ptxgen_target target = target_of("sm_90");
    (void)state;
    for (size_t f = 0; f < FAMILIES; f++) {
        const ptxgen_family *family = all_keyed[f]->family();
        void *plan = malloc(family->plan_bytes);
        for (const struct row *row = all_keyed[f]->rows; row->field; row++)
            for (size_t i = 0; row->kind == ROW_RESERVED && i < row->bytes; i++) {
                unsigned char spec[SPEC_BYTES];
                memcpy(spec, all_keyed[f]->spec, family->spec_bytes);
                spec[row->offset + i] = 1;
                if (family->make_plan(spec, &target, plan, &err) != PTXGEN_ERROR_INVALID_ARGUMENT)
                    fail_msg("%s takes byte %zu of %s", family->name, i, row->field);
            }
        free(plan);
    }
}

/* ---- every bit ---- */

/* Two specs, of which one bit differs, are two nodes of the registry and two keys on disk. */
static void every_bit_of_a_spec_is_in_both_keys(void **state)
{
    const ptxgen_target target = target_of("sm_90");
    const struct assembler assembler = {.length = 1, .lines = "x"};
    static struct origin origin, other;
    (void)state;
    for (size_t f = 0; f < FAMILIES; f++) {
        const ptxgen_family *family = all_keyed[f]->family();
        unsigned char spec[SPEC_BYTES];
        struct registry registry;
        memcpy(spec, all_keyed[f]->spec, family->spec_bytes);
        assert_true(registry_init(&registry));
        uint64_t hash = registry_hash(family, spec);
        assert_non_null(registry_insert(&registry, hash, family, spec));
        assert_true(origin_make(family, spec, &target, &assembler, &origin));
        for (size_t bit = 0; bit < 8 * family->spec_bytes; bit++) {
            spec[bit / 8] ^= (unsigned char)(1 << bit % 8);
            bool found = registry_find(&registry, hash, family, spec) != NULL;
            assert_true(origin_make(family, spec, &target, &assembler, &other));
            bool same = origin.length == other.length &&
                        memcmp(origin.lines, other.lines, origin.length) == 0;
            if (found || same || registry_hash(family, spec) == hash)
                fail_msg("%s: bit %zu is in no key", family->name, bit);
            spec[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        registry_free(&registry);
    }
}

/* ---- dispatch ---- */

static ptxgen_status emit_one_text(const void *plan, ptx_module *module, ptxgen_error *error)
{
    (void)plan;
    ptx_kernel *k = ptx_kernel_begin(module, "same");
    ptx_kernel_reqntid(k, 32, 1, 1);
    ptx_kernel_end(k);
    return ptx_module_status(module, error);
}

static ptxgen_family with_one_text(const ptxgen_family *family)
{
    ptxgen_family same = *family;
    same.emit = emit_one_text;
    same.check_driver = NULL;
    return same;
}

/* A dispatcher on the bench's device and folder. */
static ptxgen_dispatcher *create(struct bench *bench, ptxgen_dispatch_options options,
                                 ptxgen_cache **cache)
{
    ptxgen_dispatcher *dispatcher = NULL;
    assert_int_equal(
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, cache, &err), 0);
    if (!options.cache)
        options.cache = *cache;
    if (ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, &err))
        fail_msg("%s", err.message);
    return dispatcher;
}

static void destroy(ptxgen_dispatcher *dispatcher, ptxgen_cache *cache)
{
    ptxgen_dispatcher_destroy(dispatcher);
    ptxgen_cache_close(cache);
}

/* Where a spec's kernel comes from; the reference goes back. */
static ptxgen_origin origin_of(ptxgen_dispatcher *dispatcher, const ptxgen_family *family,
                               const void *spec, const char *field, const ptxgen_loaded **which)
{
    ptxgen_loaded *loaded = NULL;
    if (ptxgen_dispatch(dispatcher, family, spec, &loaded, &err) != PTXGEN_OK)
        fail_msg("%s with another %s: %s", family->name, field, err.message);
    ptxgen_origin origin = ptxgen_loaded_report(loaded)->origin;
    if (which)
        *which = loaded;
    ptxgen_release(loaded);
    return origin;
}

/* The same by a dispatcher of its own. */
static ptxgen_origin origin_with(struct bench *bench, const ptxgen_dispatch_options *options,
                                 const ptxgen_family *family, const void *spec, const char *field)
{
    ptxgen_cache *cache;
    ptxgen_dispatcher *dispatcher = create(bench, *options, &cache);
    ptxgen_origin origin = origin_of(dispatcher, family, spec, field, NULL);
    destroy(dispatcher, cache);
    return origin;
}

static void assert_origin(ptxgen_origin origin, ptxgen_origin wanted, const char *family,
                          const char *field)
{
    if (origin != wanted)
        fail_msg("%s, %s: the code comes %s", family, field,
                 origin == PTXGEN_ORIGIN_DISK ? "from disk" : "from the assembler");
}

/* All specs of a family, the base first, and those that rows bring along; how many. */
static size_t specs_of(const struct keyed *keyed, unsigned char specs[ROWS][SPEC_BYTES],
                       const char *fields[ROWS])
{
    size_t bytes = keyed->family()->spec_bytes, count = 1;
    memcpy(specs[0], keyed->spec, bytes);
    fields[0] = "nothing";
    for (const struct row *row = keyed->rows; row->field; row++) {
        if (row->kind != ROW_KEY)
            continue;
        const void *changed = row->spec ? row->spec : keyed->spec;
        if (row->spec) {
            memcpy(specs[count], row->spec, bytes);
            fields[count++] = row->field;
        }
        memcpy(specs[count], changed, bytes);
        put(specs[count], row, row->other);
        assert_memory_not_equal(specs[count], changed, bytes);
        fields[count++] = row->field;
    }
    return count;
}

static void every_field_of_a_spec_is_another_kernel_and_misses_the_disk(void **state)
{
    for (size_t f = 0; f < FAMILIES; f++) {
        const ptxgen_family family = with_one_text(all_keyed[f]->family());
        static unsigned char specs[ROWS][SPEC_BYTES];
        const char *fields[ROWS];
        const ptxgen_loaded *kernels[ROWS];
        size_t count = specs_of(all_keyed[f], specs, fields);
        for (int from_disk = 0; from_disk < 2; from_disk++) {
            ptxgen_cache *cache;
            ptxgen_dispatcher *dispatcher =
                create(*state, (ptxgen_dispatch_options){.no_tuning = true}, &cache);
            for (size_t i = 0; i < count; i++) {
                ptxgen_origin origin =
                    origin_of(dispatcher, &family, specs[i], fields[i], &kernels[i]);
                assert_origin(origin, from_disk ? PTXGEN_ORIGIN_DISK : PTXGEN_ORIGIN_ASSEMBLER,
                              family.name, fields[i]);
                for (size_t j = 0; j < i; j++)
                    assert_ptr_not_equal(kernels[i], kernels[j]);
            }
            for (size_t i = 0; i < count; i++) {
                const ptxgen_loaded *again;
                origin_of(dispatcher, &family, specs[i], fields[i], &again);
                assert_ptr_equal(again, kernels[i]);
            }
            destroy(dispatcher, cache);
        }
    }
}

/* A dumped text is found again by its name, so no two specs or targets share one. */
static void every_field_is_in_the_name_of_a_dump(void **state)
{
    struct bench *bench = *state;
    for (size_t f = 0; f < FAMILIES; f++) {
        const ptxgen_family family = with_one_text(all_keyed[f]->family());
        static unsigned char specs[ROWS][SPEC_BYTES];
        const char *fields[ROWS];
        char prefix[64];
        size_t count = specs_of(all_keyed[f], specs, fields);
        snprintf(prefix, sizeof prefix, "%s-", family.name);
        const ptxgen_dispatch_options options = {.no_cache = true, .dump_folder = bench->folder};
        ptxgen_cache *cache;
        ptxgen_dispatcher *dispatcher = create(bench, options, &cache);
        for (size_t i = 0; i < count; i++) {
            origin_of(dispatcher, &family, specs[i], fields[i], NULL);
            if (folder_count(bench->folder, prefix) != 3 * (i + 1))
                fail_msg("%s: %s is not in the name", family.name, fields[i]);
        }
        destroy(dispatcher, cache);
    }
    ptxgen_family family = with_one_text(ptxgen_dense_family());
    family.name = "targets";
    size_t dumps = 0;
    for (const struct row *row = target_rows; row->field; row++) {
        ptxgen_target target = target_of("sm_90");
        if (row->kind == ROW_PADDING)
            continue;
        for (int changed = dumps > 0; changed < 2; changed++) {
            if (changed)
                put(&target, row, row->other);
            origin_with(bench,
                        &(ptxgen_dispatch_options){
                            .no_cache = true, .dump_folder = bench->folder, .target = &target},
                        &family, &key_dense, row->field);
            if (folder_count(bench->folder, family.name) != 3 * ++dumps)
                fail_msg("%s is not in the name", row->field);
        }
    }
    family.plan_version++;
    origin_with(bench, &(ptxgen_dispatch_options){.no_cache = true, .dump_folder = bench->folder},
                &family, &key_dense, "plan version");
    assert_int_equal(folder_count(bench->folder, family.name), 3 * (dumps + 1));
}

/* ---- the family and the target ---- */

static void another_name_or_plan_version_misses_the_disk(void **state)
{
    const ptxgen_dispatch_options options = {.no_tuning = true};
    ptxgen_family families[3] = {with_one_text(ptxgen_dense_family())};
    families[1] = families[2] = families[0];
    families[1].name = "dense_too";
    families[2].plan_version++;
    for (int from_disk = 0; from_disk < 2; from_disk++)
        for (int i = 0; i < 3; i++)
            assert_origin(origin_with(*state, &options, &families[i], &key_dense, "name"),
                          from_disk ? PTXGEN_ORIGIN_DISK : PTXGEN_ORIGIN_ASSEMBLER,
                          families[i].name, i == 2 ? "plan version" : "name");
}

static void every_field_of_the_target_misses_the_disk(void **state)
{
    for (size_t f = 0; f < FAMILIES; f++) {
        const ptxgen_family family = with_one_text(all_keyed[f]->family());
        for (int from_disk = 0; from_disk < 2; from_disk++) {
            const ptxgen_origin wanted = from_disk ? PTXGEN_ORIGIN_DISK : PTXGEN_ORIGIN_ASSEMBLER;
            ptxgen_target base = target_of("sm_90");
            ptxgen_dispatch_options options = {.no_tuning = true, .target = &base};
            assert_origin(origin_with(*state, &options, &family, all_keyed[f]->spec, "target"),
                          wanted, family.name, "target");
            for (const struct row *row = target_rows; row->field; row++) {
                ptxgen_target target = base;
                options.target = &target;
                if (row->kind == ROW_KEY)
                    put(&target, row, row->other);
                assert_origin(
                    origin_with(*state, &options, &family, all_keyed[f]->spec, row->field),
                    row->kind == ROW_KEY ? wanted : PTXGEN_ORIGIN_DISK, family.name, row->field);
            }
        }
    }
}

/* ---- the device ---- */

/* What the driver says otherwise than the emulator. */
static struct lie {
    ptxgen_cu_device_attribute attribute; /* 0: none */
    int value;
    const char *name; /* NULL: the emulator's */
} lie;
static ptxgen_driver real;

static ptxgen_cu_result get_attribute(int *value, ptxgen_cu_device_attribute attribute,
                                      ptxgen_cu_device device)
{
    ptxgen_cu_result result = real.device_get_attribute(value, attribute, device);
    if (result == PTXGEN_CUDA_SUCCESS && attribute == lie.attribute)
        *value = lie.value;
    return result;
}

static ptxgen_cu_result get_name(char *name, int size, ptxgen_cu_device device)
{
    if (!lie.name)
        return real.device_get_name(name, size, device);
    snprintf(name, (size_t)size, "%s", lie.name);
    return PTXGEN_CUDA_SUCCESS;
}

static int setup_lies(void **state)
{
    int failed = bench_setup(state);
    struct bench *bench = *state;
    lie = (struct lie){.value = 0};
    real = bench->device.driver;
    bench->device.driver.device_get_attribute = get_attribute;
    bench->device.driver.device_get_name = get_name;
    return failed;
}

/* By what plan and text follow from, or the machine code's architecture. */
static bool is_in_the_key(ptxgen_cu_device_attribute attribute)
{
    switch ((int)attribute) {
    case PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    case PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    case PTXGEN_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    case PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return true;
    default: return false;
    }
}

static void of_the_devices_attributes_those_that_plans_are_made_by_miss_the_disk(void **state)
{
    static const struct {
        ptxgen_cu_device_attribute attribute;
        const char *name;
    } attributes[] = {
#define ATTRIBUTE(name, number) {PTXGEN_##name, #name},
        PTXGEN_CU_DEVICE_ATTRIBUTES(ATTRIBUTE)
#undef ATTRIBUTE
    };
    static const struct toy_spec spec = {.a = 1};
    const ptxgen_family *const families[] = {&toy_plus, &toy_memo};
    for (int f = 0; f < 2; f++) {
        lie.attribute = (ptxgen_cu_device_attribute)0;
        assert_origin(origin_with(*state, &(ptxgen_dispatch_options){0}, families[f], &spec, ""),
                      PTXGEN_ORIGIN_ASSEMBLER, families[f]->name, "nothing");
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
            lie.attribute = attributes[i].attribute;
            assert_int_equal(real.device_get_attribute(&lie.value, lie.attribute, 0), 0);
            lie.value--;
            if (lie.attribute == PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ||
                lie.attribute == PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
                continue; /* code of another architecture does not load: tested by keys alone */
            bool misses = is_in_the_key(lie.attribute);
            for (int again = 0; again < 2; again++)
                assert_origin(origin_with(*state, &(ptxgen_dispatch_options){0}, families[f], &spec,
                                          attributes[i].name),
                              misses && !again ? PTXGEN_ORIGIN_ASSEMBLER : PTXGEN_ORIGIN_DISK,
                              families[f]->name, attributes[i].name);
        }
    }
}

static void another_name_or_driver_misses_the_disk(void **state)
{
    struct bench *bench = *state;
    static const struct toy_spec spec = {.a = 1};
    const ptxgen_target target = target_of("sm_90");
    const ptxgen_dispatch_options options = {.target = &target};
    const int version = bench->device.driver.version;
    static const struct {
        const char *name;
        int newer; /* by how much the driver is */
    } cases[] = {{NULL, 0}, {"Another GPU", 0}, {"Another GPU2", 0}, {NULL, 10}, {NULL, 1000}};
    for (int f = 0; f < 2; f++)
        for (int from_disk = 0; from_disk < 2; from_disk++)
            for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                lie.name = cases[i].name;
                bench->device.driver.version = version + cases[i].newer;
                assert_origin(
                    origin_with(bench, &options, f ? &toy_memo : &toy_plus, &spec, "device"),
                    from_disk ? PTXGEN_ORIGIN_DISK : PTXGEN_ORIGIN_ASSEMBLER, "toy",
                    cases[i].newer ? "driver version" : "name");
            }
    bench->device.driver.version = version;
}

static void the_architecture_and_the_drivers_library_are_in_the_key(void **state)
{
    struct bench *bench = *state;
    ptxgen_driver *driver = &bench->device.driver;
    struct assembler base, other;
    char folder[FOLDER_PATH], path[FOLDER_PATH + 40];
    void *libraries[2];
    assembler_read(driver, 0, 0, false, &base);
    for (int i = 0; i < 2; i++) {
        lie.attribute = i ? PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
                          : PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        lie.value = 8;
        assembler_read(driver, 0, 0, false, &other);
        assert_string_not_equal(base.lines, other.lines);
        assert_non_null(strstr(other.lines, i ? "device: sm_98," : "device: sm_80,"));
    }
    lie.attribute = (ptxgen_cu_device_attribute)0;
    size_t size;
    char *library = file_read(WHOLE_DRIVER_LIBRARY, &size);
    snprintf(folder, sizeof folder, "%s.XXXXXX", WHOLE_DRIVER_LIBRARY);
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) { /* copies, called as the driver's library is */
        snprintf(path, sizeof path, "%s/libcuda.so.580.159.0%d", folder, i);
        file_write(path, library, size);
        libraries[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(libraries[i]);
        void *entry = dlsym(libraries[i], "cuLinkComplete");
        memcpy(&driver->link_complete, &entry, sizeof entry);
        assembler_read(driver, 0, 0, false, &other);
        assert_non_null(
            strstr(other.lines, i ? ", libcuda.so.580.159.01\n" : ", libcuda.so.580.159.00\n"));
    }
    for (int i = 0; i < 2; i++)
        dlclose(libraries[i]);
    free(library);
    folder_remove(folder);
    *driver = real;
}

/* ---- options ---- */

static void keep_quiet(void *user, const char *message)
{
    (void)user;
    (void)message;
}

static void every_option_misses_the_disk_or_does_not_matter(void **state)
{
    struct bench *bench = *state;
    static const struct toy_spec spec = {.a = 1};
    ptxgen_cache *elsewhere;
    char folder[FOLDER_PATH], dump[FOLDER_PATH];
    ptxgen_target target = target_of("sm_90");
    folder_make(folder);
    folder_make(dump);
    assert_int_equal(ptxgen_cache_open(&(ptxgen_cache_options){.folder = folder}, &elsewhere, NULL),
                     0);
    target.multiprocessors = 7;
#define OPTION(member, how, ...)                                                                   \
    {                                                                                              \
#member, offsetof(ptxgen_dispatch_options, member),                                        \
            sizeof(((ptxgen_dispatch_options *)0)->member), how,                                   \
        {                                                                                          \
            .member = __VA_ARGS__                                                                  \
        }                                                                                          \
    }
    ptxgen_pack *pack = NULL;
    enum { KEYED, IGNORED, UNREAD }; /* unread: the disk is not asked */
    const struct {
        const char *field;
        size_t offset, bytes;
        int how;
        ptxgen_dispatch_options options;
    } rows[] = {
        OPTION(context, IGNORED, bench->device.context),
        OPTION(target, KEYED, &target),
        OPTION(max_registers, KEYED, 64),
        OPTION(line_info, KEYED, true),
        OPTION(cache, KEYED, elsewhere),
        OPTION(no_cache, UNREAD, true),
        OPTION(no_tuning, IGNORED, true),
        OPTION(tuning, IGNORED, NULL), /* tests/dispatch/test_cache_memo.c has tables */
        OPTION(dump_folder, UNREAD, dump),
        OPTION(override_folder, IGNORED, folder),
        OPTION(log, IGNORED, keep_quiet),
        OPTION(log_user, IGNORED, bench),
        OPTION(packs, IGNORED, &pack), /* tests/dispatch/test_pack.c has some */
        OPTION(pack_count, IGNORED, 0),
    };
    size_t covered = 0, count = sizeof rows / sizeof *rows;
    for (int f = 0; f < 2; f++) {
        const ptxgen_family *family = f ? &toy_memo : &toy_plus;
        origin_with(bench, &(ptxgen_dispatch_options){0}, family, &spec, "nothing");
        for (size_t i = 0; i < count; i++)
            for (int again = 0; again < 2; again++)
                assert_origin(origin_with(bench, &rows[i].options, family, &spec, rows[i].field),
                              rows[i].how == IGNORED || (again && rows[i].how == KEYED)
                                  ? PTXGEN_ORIGIN_DISK
                                  : PTXGEN_ORIGIN_ASSEMBLER,
                              family->name, rows[i].field);
    }
    for (size_t i = 0; i < count; i++) { /* none is left out, but for padding between */
        assert_true(rows[i].offset >= covered && rows[i].offset < covered + 8);
        covered = rows[i].offset + rows[i].bytes;
    }
    assert_int_equal(covered, sizeof(ptxgen_dispatch_options));
    ptxgen_cache_close(elsewhere);
    folder_remove(folder);
    folder_remove(dump);
}

/* ---- tiles ---- */

static size_t find(const ptxgen_cache *cache, const ptxgen_device_facts *facts,
                   const ptxgen_family *family, const void *spec, const ptxgen_target *target)
{
    ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES];
    ptxgen_tuning *tuning;
    assert_int_equal(ptxgen_tuning_load(cache, facts, &tuning, NULL), 0);
    size_t count = ptxgen_tuning_find(tuning, family, spec, target, ranges);
    ptxgen_tuning_free(tuning);
    return count;
}

static void tuned_tiles_are_of_one_spec_target_and_device(void **state)
{
    static const ptxgen_tuned_range range = {.to_m = 16, .tile = {7}};
    struct bench *bench = *state;
    ptxgen_device_facts facts;
    ptxgen_cache *cache;
    ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL);
    assert_int_equal(ptxgen_device_read(&bench->device.driver, 0, &facts, NULL), 0);
    const ptxgen_target target = target_of("sm_90");
    for (size_t f = 0; f < FAMILIES; f++) {
        ptxgen_family family = with_one_text(all_keyed[f]->family());
        static unsigned char specs[ROWS][SPEC_BYTES];
        const char *fields[ROWS];
        size_t count = specs_of(all_keyed[f], specs, fields);
        family.tiling = &toy_tiling;
        assert_int_equal(
            ptxgen_tuning_store(cache, &facts, &family, specs[0], &target, &range, 1, NULL), 0);
        for (size_t i = 0; i < count; i++)
            if (find(cache, &facts, &family, specs[i], &target) != (i == 0))
                fail_msg("%s: tiles and %s", family.name, fields[i]);
        for (const struct row *row = target_rows; row->field; row++) {
            ptxgen_target other = target;
            if (row->kind == ROW_KEY)
                put(&other, row, row->other);
            if (find(cache, &facts, &family, specs[0], &other) != (row->kind == ROW_PADDING))
                fail_msg("%s: tiles and %s", family.name, row->field);
        }
        family.plan_version++;
        assert_int_equal(find(cache, &facts, &family, specs[0], &target), 0);
        family.plan_version--;
        ptxgen_device_facts other = facts;
        other.compute_capability++;
        assert_int_equal(find(cache, &other, &family, specs[0], &target), 0);
        other = facts;
        other.name[0]++;
        assert_int_equal(find(cache, &other, &family, specs[0], &target), 0);
        other = facts;
        other.driver_version += 10;
        assert_int_equal(find(cache, &other, &family, specs[0], &target), 0);
        assert_int_equal(find(cache, &facts, &family, specs[0], &target), 1);
    }
    ptxgen_cache_close(cache);
}

#define claim_of_lies(name) cmocka_unit_test_setup_teardown(name, setup_lies, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_has_a_row),
        cmocka_unit_test(reserved_bytes_are_refused),
        cmocka_unit_test(every_bit_of_a_spec_is_in_both_keys),
        claim(every_field_of_a_spec_is_another_kernel_and_misses_the_disk),
        claim(every_field_is_in_the_name_of_a_dump),
        claim(another_name_or_plan_version_misses_the_disk),
        claim(every_field_of_the_target_misses_the_disk),
        claim_of_lies(of_the_devices_attributes_those_that_plans_are_made_by_miss_the_disk),
        claim_of_lies(another_name_or_driver_misses_the_disk),
        claim_of_lies(the_architecture_and_the_drivers_library_are_in_the_key),
        claim(every_option_misses_the_disk_or_does_not_matter),
        claim(tuned_tiles_are_of_one_spec_target_and_device),
    };
    bench_clear_environment();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
