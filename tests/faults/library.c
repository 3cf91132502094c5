/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that use the library by its public headers. Each prints a hash of what it made, so that
 * two runs can be compared, and ends with the exit code that the command has for its status.
 */
#include "jobs.h"

#include "src/cli/exit_code.h"

#include <ptxgen/dense.h>
#include <ptxgen/device.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>
#include <ptxgen/instr.h>
#include <ptxgen/marlin.h>
#include <ptxgen/linear.h>
#include <ptxgen/marlin_repack.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_hash(const char *what, const void *bytes, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    printf("%s %016llx\n", what, (unsigned long long)hash);
}

static int end(ptxgen_status status, const ptxgen_error *err)
{
    if (status != PTXGEN_OK)
        fprintf(stderr, "%s: %s\n", ptxgen_status_name(status), err->message);
    return (int)exit_code_of(status);
}

/* Numbers that are small, and the same in every run. */
static void fill(void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)(i * 7 % 61);
}

/* ---- the builder ---- */

static void build_kernel(ptx_module *module, const char *name)
{
    ptx_kernel *k = ptx_kernel_begin(module, name);
    ptx_kernel_reqntid(k, 256, 1, 1);
    ptx_u64 x = ptx_param_u64(k, "x");
    ptx_u32 n = ptx_param_u32(k, "n");
    ptx_section(k, "which element");
    ptx_u32 cta = ptx_sreg_ctaid_x(k);
    ptx_u32 thread = ptx_sreg_tid_x(k);
    ptx_u32 i = ptx_mad_lo_u32(k, cta, ptx_imm_u32(256), thread);
    ptx_section(k, "scale it");
    ptx_if(k, ptx_setp_lt_u32(k, i, n)) {
        ptx_u64 p = ptx_add_u64(k, x, ptx_mul_wide_u32(k, i, ptx_imm_u32(4)));
        ptx_f32 value = ptx_ld_global_f32(k, p, 0);
        ptx_for_static(j, 20)
            value = ptx_mul_f32(k, value, ptx_imm_f32(2));
        ptx_st_global_f32(k, p, 0, value);
    }
    ptx_kernel_end(k);
}

static int build(int argc, char **argv)
{
    (void)argc, (void)argv;
    const ptx_target target = {.sm = 80};
    ptxgen_error err = {.message = "no module can be made, memory has run out"};
    ptx_mix_row rows[16];
    const char *text;
    size_t length, count = 0;
    ptx_module *module = ptx_module_create(&target, NULL);
    ptxgen_status status = PTXGEN_ERROR_OUT_OF_MEMORY;
    if (module) {
        build_kernel(module, "scale");
        build_kernel(module, "scale_again");
        status = ptx_module_text(module, PTX_TEXT_ANNOTATE, &text, &length, &err);
    }
    if (status == PTXGEN_OK) {
        print_hash("annotated", text, length);
        status = ptx_module_text(module, 0, &text, &length, &err);
    }
    if (status == PTXGEN_OK) {
        print_hash("plain", text, length);
        count = ptx_module_kernel_mix(module, 1, rows, 16);
        if (!count)
            status = ptxgen_fail(&err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the mix");
        printf("%zu mnemonics\n", count);
    }
    ptx_module_destroy(module);
    return end(status, &err);
}

/* ---- a device ---- */

struct device {
    ptxgen_driver cuda;
    ptxgen_device_facts facts;
    ptxgen_target target;
    ptxgen_cu_context context;
};

static ptxgen_status open_device(const char *name, struct device *d, ptxgen_error *err)
{
    int ordinal = 0;
    memset(d, 0, sizeof *d);
    ptxgen_emulator_driver(&d->cuda);
    ptxgen_status status = ptxgen_driver_start(&d->cuda, err);
    if (status == PTXGEN_OK)
        status = ptxgen_emulator_ordinal(name, &ordinal, err);
    if (status == PTXGEN_OK)
        status = ptxgen_device_read(&d->cuda, ordinal, &d->facts, err);
    if (status != PTXGEN_OK)
        return status;
    d->target = ptxgen_device_target(&d->facts);
    ptxgen_cu_result result = d->cuda.ctx_create(&d->context, 0, ordinal);
    if (result == PTXGEN_CUDA_SUCCESS)
        return PTXGEN_OK;
    d->context = NULL;
    return ptxgen_driver_fail(&d->cuda, result, err, "making a context");
}

static void close_device(struct device *d)
{
    if (d->context)
        d->cuda.ctx_destroy(d->context);
}

/* Device memory, freed with the context. */
static ptxgen_status upload(struct device *d, const void *bytes, size_t size, uint64_t *to,
                            ptxgen_error *err)
{
    ptxgen_cu_deviceptr address = 0;
    ptxgen_cu_result result = d->cuda.mem_alloc(&address, size ? size : 1);
    *to = address;
    if (result == PTXGEN_CUDA_SUCCESS && size)
        result =
            bytes ? d->cuda.memcpy_htod(address, bytes, size) : d->cuda.memset_d8(address, 0, size);
    return result == PTXGEN_CUDA_SUCCESS
               ? PTXGEN_OK
               : ptxgen_driver_fail(&d->cuda, result, err, "uploading %zu bytes", size);
}

static ptxgen_status print_result(struct device *d, const char *what, uint64_t from, size_t size,
                                  ptxgen_error *err)
{
    unsigned char bytes[4096];
    ptxgen_cu_result result = d->cuda.memcpy_dtoh(bytes, from, size);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(&d->cuda, result, err, "fetching %zu bytes", size);
    print_hash(what, bytes, size);
    return PTXGEN_OK;
}

/* ---- dispatch, the disk cache, warming and tuning ---- */

static const ptxgen_marlin_spec marlin_spec = {
    .k = 128, .n = 64, .group_size = 64, .type = PTXGEN_F16, .max_m = 8};
static const ptxgen_dense_spec dense_spec = {.n = 16, .k = 64, .type = PTXGEN_F16, .max_m = 8};
static const ptxgen_w8a8_spec w8a8_spec = {
    .k = 64, .n = 32, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32, .max_m = 4};
static const ptxgen_sparse24_spec sparse24_spec = {.n = 16, .k = 64, .max_m = 8, .tier = 1};
static const ptxgen_rmsnorm_q4k_spec q4k_spec = {
    .k = 256, .n = {8}, .epsilon = 1e-6f, .max_m = 1};

static ptxgen_status dispatch_all(ptxgen_dispatcher *dispatcher, ptxgen_error *err)
{
    const ptxgen_warm_item items[] = {
        {ptxgen_marlin_family(), &marlin_spec},   {ptxgen_dense_family(), &dense_spec},
        {ptxgen_w8a8_family(), &w8a8_spec},       {ptxgen_sparse24_family(), &sparse24_spec},
        {ptxgen_rmsnorm_q4k_family(), &q4k_spec},
    };
    enum { ITEMS = sizeof items / sizeof *items };
    ptxgen_loaded *loaded[2 * ITEMS] = {NULL};
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; status == PTXGEN_OK && i < 2 * ITEMS; i++)
        status = ptxgen_dispatch(dispatcher, items[i % ITEMS].family, items[i % ITEMS].spec,
                                 &loaded[i], err);
    for (int i = 0; i < 2 * ITEMS; i++)
        ptxgen_release(loaded[i]);
    if (status != PTXGEN_OK)
        return status;
    status = ptxgen_dispatcher_unload(dispatcher, NULL, NULL, NULL, err);
    if (status == PTXGEN_OK)
        puts("dispatched");
    return status;
}

static ptxgen_status warm_two(ptxgen_dispatcher *dispatcher, ptxgen_error *err)
{
    const ptxgen_warm_item items[] = {{ptxgen_marlin_family(), &marlin_spec},
                                      {ptxgen_rmsnorm_q4k_family(), &q4k_spec}};
    ptxgen_loaded *loaded;
    ptxgen_warm *warm;
    ptxgen_status status = ptxgen_warm_start(dispatcher, items, 2, 2, NULL, NULL, &warm, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_warm_finish(warm, false);
    for (int i = 0; status == PTXGEN_OK && i < 2; i++) {
        status = ptxgen_dispatch(dispatcher, items[i].family, items[i].spec, &loaded, err);
        if (status == PTXGEN_OK)
            ptxgen_release(loaded);
    }
    if (status == PTXGEN_OK)
        puts("warm");
    return status;
}

static int with_dispatcher(ptxgen_status (*use)(ptxgen_dispatcher *dispatcher, ptxgen_error *err))
{
    struct device d;
    ptxgen_dispatcher *dispatcher = NULL;
    ptxgen_error err = {.message = ""};
    ptxgen_status status = open_device("cpu:sm_80", &d, &err);
    if (status == PTXGEN_OK)
        status = ptxgen_dispatcher_create(&d.cuda, NULL, &dispatcher, &err);
    if (status == PTXGEN_OK)
        status = use(dispatcher, &err);
    ptxgen_dispatcher_destroy(dispatcher);
    close_device(&d);
    return end(status, &err);
}

static int dispatch(int argc, char **argv)
{
    (void)argc, (void)argv;
    return with_dispatcher(dispatch_all);
}

static int warm(int argc, char **argv)
{
    (void)argc, (void)argv;
    return with_dispatcher(warm_two);
}

/* A table that is ignored is no failure of ptxgen_tuning_load, but is one here. */
static ptxgen_status load_tuning(const ptxgen_cache *cache, struct device *d,
                                 ptxgen_tuning **tuning, ptxgen_error *err)
{
    ptxgen_status status = ptxgen_tuning_load(cache, &d->facts, tuning, err);
    if (status != PTXGEN_OK || !ptxgen_tuning_complaint(*tuning))
        return status;
    status = ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s", ptxgen_tuning_complaint(*tuning));
    ptxgen_tuning_free(*tuning);
    *tuning = NULL;
    return status;
}

/* Keeps a choice beside the one that is there, and finds both. */
static ptxgen_status tune_in(const ptxgen_cache *cache, struct device *d, ptxgen_error *err)
{
    const ptxgen_family *family = ptxgen_marlin_family();
    const ptxgen_marlin_spec old = {.k = 128, .n = 128, .group_size = 128, .type = PTXGEN_F16};
    ptxgen_marlin_spec other = old;
    ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES];
    ptxgen_marlin_plan plan;
    ptxgen_tuning *tuning = NULL;
    bool is_tuned = false;
    other.bias = 1;
    ptxgen_status status = load_tuning(cache, d, &tuning, err);
    if (status != PTXGEN_OK)
        return status;
    size_t count = ptxgen_tuning_find(tuning, family, &old, &d->target, ranges);
    printf("%zu ranges are there\n", count);
    if (count)
        status =
            ptxgen_tuning_store(cache, &d->facts, family, &other, &d->target, ranges, count, err);
    ptxgen_tuning_free(tuning);
    tuning = NULL;
    if (status == PTXGEN_OK)
        status = load_tuning(cache, d, &tuning, err);
    if (status == PTXGEN_OK)
        status = ptxgen_tuned_plan(tuning, family, &old, &d->target, &plan, &is_tuned, err);
    ptxgen_tuning_free(tuning);
    if (status == PTXGEN_OK)
        printf("tuned: %d\n", is_tuned);
    return status;
}

static int tune(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct device d;
    ptxgen_cache *cache = NULL;
    ptxgen_error err = {.message = ""};
    ptxgen_status status = open_device("cpu:sm_80", &d, &err);
    if (status == PTXGEN_OK)
        status = ptxgen_cache_open(NULL, &cache, &err);
    if (status == PTXGEN_OK)
        status = tune_in(cache, &d, &err);
    ptxgen_cache_close(cache);
    close_device(&d);
    return end(status, &err);
}

/* ---- a layer from pack to reference ---- */

enum { K = 128, N = 64, GROUPS = 2, ROWS = 3 };

struct layer {
    uint8_t codes[K * N], zeros[GROUPS * N];
    uint16_t scales[GROUPS * N], x[ROWS * K];
    ptxgen_w4_matrix matrix;
    void *blocks[8];
    int block_count;
    bool lacks_memory;
};

static void *layer_block(struct layer *l, size_t size)
{
    void *block = size ? calloc(1, size) : NULL;
    l->blocks[l->block_count++] = block;
    l->lacks_memory |= size && !block;
    return block;
}

static ptxgen_status layer_check(const struct layer *l, ptxgen_error *err)
{
    return l->lacks_memory ? ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a layer")
                           : PTXGEN_OK;
}

static void layer_free(struct layer *l)
{
    for (int i = 0; i < l->block_count; i++)
        free(l->blocks[i]);
}

static void layer_start(struct layer *l)
{
    memset(l, 0, sizeof *l);
    for (size_t i = 0; i < sizeof l->codes; i++)
        l->codes[i] = i * 7 % 16;
    for (size_t i = 0; i < sizeof l->zeros; i++)
        l->zeros[i] = 8;
    for (size_t i = 0; i < GROUPS * N; i++)
        ptxgen_element_store(PTXGEN_F16, l->scales, i, 0.01 + (double)(i % 5) / 256);
    for (size_t i = 0; i < ROWS * K; i++)
        ptxgen_element_store(PTXGEN_F16, l->x, i, (double)(i % 9) / 8 - 0.5);
    l->matrix = (ptxgen_w4_matrix){.k = K,
                                   .n = N,
                                   .group_size = K / GROUPS,
                                   .codes = l->codes,
                                   .scale_type = PTXGEN_F16,
                                   .scales = l->scales,
                                   .zeros = l->zeros};
}

/* Into a checkpoint's format and then the kernel's. */
static ptxgen_status layer_pack(struct layer *l, ptxgen_marlin_packed *packed, ptxgen_error *err)
{
    ptxgen_w4_info info;
    ptxgen_w4_checkpoint checkpoint = {.format = PTXGEN_W4_GPTQ_V1};
    const ptxgen_w4_repack_options options = {.threads = 2};
    ptxgen_status status = ptxgen_w4_describe_matrix(&l->matrix, &info, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w4_layout(&info, PTXGEN_W4_GPTQ_V1, &checkpoint, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_w4_tensor *const tensors[] = {&checkpoint.weights, &checkpoint.scales, &checkpoint.zeros,
                                         &checkpoint.g_idx};
    for (int i = 0; i < 4; i++)
        tensors[i]->data = layer_block(l, ptxgen_w4_tensor_bytes(tensors[i]));
    status = layer_check(l, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w4_pack(&l->matrix, &checkpoint, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_packed_layout(&marlin_spec, packed, err);
    if (status != PTXGEN_OK)
        return status;
    packed->codes = layer_block(l, packed->codes_bytes);
    packed->scales = layer_block(l, packed->scales_bytes);
    status = layer_check(l, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_pack(&marlin_spec, &checkpoint, NULL, packed, &options, err);
    if (status == PTXGEN_OK)
        print_hash("packed", packed->codes, packed->codes_bytes);
    return status;
}

static ptxgen_status layer_run(struct layer *l, struct device *d,
                               const ptxgen_marlin_packed *packed, ptxgen_error *err)
{
    ptxgen_marlin_plan plan;
    ptxgen_marlin *kernel = NULL;
    ptxgen_marlin_args args = {.m = ROWS};
    double c[ROWS * N], bound[ROWS * N];
    const ptxgen_marlin_operands operands = {.m = ROWS, .x = l->x, .weights = &l->matrix};
    ptxgen_status status = ptxgen_marlin_make_plan(&marlin_spec, &d->target, &plan, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_load(&d->cuda, &plan, NULL, &kernel, err);
    if (status == PTXGEN_OK)
        status = upload(d, l->x, sizeof l->x, &args.x, err);
    if (status == PTXGEN_OK)
        status = upload(d, packed->codes, packed->codes_bytes, &args.codes, err);
    if (status == PTXGEN_OK)
        status = upload(d, packed->scales, packed->scales_bytes, &args.scales, err);
    if (status == PTXGEN_OK)
        status = upload(d, NULL, ROWS * N * 2, &args.y, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_workspace_bytes(kernel, &args, &args.workspace_bytes, err);
    if (status == PTXGEN_OK)
        status = upload(d, NULL, args.workspace_bytes, &args.workspace, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_launch(kernel, &args, NULL, err);
    if (status == PTXGEN_OK)
        status = print_result(d, "y", args.y, ROWS * N * 2, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_reference(&plan, &operands, c, bound, err);
    if (status == PTXGEN_OK) {
        print_hash("reference", c, sizeof c);
        print_hash("bound", bound, sizeof bound);
    }
    ptxgen_marlin_destroy(kernel);
    return status;
}

static int run_layer(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct device d;
    static struct layer layer;
    ptxgen_marlin_packed packed;
    ptxgen_error err = {.message = ""};
    layer_start(&layer);
    ptxgen_status status = open_device("cpu:sm_90", &d, &err);
    if (status == PTXGEN_OK)
        status = layer_pack(&layer, &packed, &err);
    if (status == PTXGEN_OK)
        status = layer_run(&layer, &d, &packed, &err);
    layer_free(&layer);
    close_device(&d);
    return end(status, &err);
}

/* ---- layers of files ---- */

/* With `pair`, gate and up are the same. */
static ptxgen_status make_linear(ptxgen_dispatcher *dispatcher, const char *path, const char *name,
                                 const ptxgen_layer_choice *choice, ptxgen_element type, bool pair,
                                 ptxgen_error *err)
{
    const ptxgen_linear_options options = {.type = (uint8_t)type, .max_m = 2};
    ptxgen_files *files;
    ptxgen_layer layer;
    ptxgen_linear *linear = NULL;
    ptxgen_status status = ptxgen_files_open(path, &files, err);
    if (status == PTXGEN_OK)
        status = ptxgen_files_layer(files, name, choice, &layer, err);
    if (status == PTXGEN_OK)
        status = ptxgen_linear_from_layer(dispatcher, &layer, pair ? &layer : NULL, &options,
                                          &linear, err);
    if (status == PTXGEN_OK)
        printf("%s %u by %u\n", ptxgen_linear_family(linear), ptxgen_linear_n(linear),
               ptxgen_linear_k(linear));
    ptxgen_linear_destroy(linear);
    ptxgen_files_close(files);
    return status;
}

static ptxgen_status make_linears(ptxgen_dispatcher *dispatcher, ptxgen_error *err)
{
    static const ptxgen_layer_choice any,
        dense = {.kind = PTXGEN_LAYER_SPARSE24, .form = PTXGEN_LAYER_DENSE};
    static const struct {
        const char *path, *name;
        const ptxgen_layer_choice *choice;
        ptxgen_element type;
        bool pair;
    } rows[] = {
        {GOLDEN_DIR "/marlin_g128.safetensors", "gptq", &any, PTXGEN_F16, false},
        {GOLDEN_DIR "/w8a8.safetensors", "", &any, PTXGEN_F32, true},
        {GOLDEN_DIR "/sparse24_torch.safetensors", "f16", &dense, PTXGEN_F16, false},
        {GOLDEN_DIR "/sparse24_torch.safetensors", "s8", &any, PTXGEN_F16, false},
        {GOLDEN_DIR "/gguf_products.gguf", "q8_0", &any, PTXGEN_F32, true},
        {GOLDEN_DIR "/gguf_products.gguf", "q8_0.deq", &any, PTXGEN_F16, false},
    };
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < sizeof rows / sizeof *rows; i++)
        status = make_linear(dispatcher, rows[i].path, rows[i].name, rows[i].choice, rows[i].type,
                             rows[i].pair, err);
    return status;
}

static int linears(int argc, char **argv)
{
    (void)argc, (void)argv;
    return with_dispatcher(make_linears);
}

/* ---- other references and formats ---- */

static ptxgen_status compute_dense(ptxgen_error *err)
{
    uint16_t x[4 * 64], w[16 * 64];
    double y[4 * 16], bound[4 * 16];
    ptxgen_target target;
    ptxgen_dense_plan plan;
    for (size_t i = 0; i < 4 * 64; i++)
        ptxgen_element_store(PTXGEN_F16, x, i, (double)(i % 7) / 8);
    for (size_t i = 0; i < 16 * 64; i++)
        ptxgen_element_store(PTXGEN_F16, w, i, (double)(i % 5) / 8);
    const ptxgen_dense_operands operands = {.m = 4, .x = x, .w = w};
    ptxgen_status status = ptxgen_target_parse("sm_80", &target, err);
    if (status == PTXGEN_OK)
        status = ptxgen_dense_make_plan(&dense_spec, &target, &plan, err);
    if (status == PTXGEN_OK)
        status = ptxgen_dense_reference(&plan, &operands, y, bound, err);
    if (status == PTXGEN_OK)
        print_hash("dense", y, sizeof y);
    return status;
}

static ptxgen_status compute_w8a8(ptxgen_error *err)
{
    float w[32 * 64], scales[32], x[2 * 64], y[32];
    int8_t codes[32 * 64], x_codes[64];
    ptxgen_w8a8_token token;
    for (size_t i = 0; i < 32 * 64; i++)
        w[i] = (float)(i % 11) / 8 - 0.6f;
    for (size_t i = 0; i < 2 * 64; i++)
        x[i] = (float)(i % 13) / 8 - 0.7f;
    const ptxgen_w8a8_weights weights = {
        .n = 32, .k = 64, .type = PTXGEN_F32, .w = w, .percentile = 99};
    const ptxgen_w8a8_operands operands = {.x = x, .w = codes, .w_scale = scales, .m = 2};
    ptxgen_status status = ptxgen_w8a8_quantise(&weights, 64, codes, PTXGEN_F32, scales, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w8a8_reference_codes(&w8a8_spec, &operands, 1, x_codes, &token, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w8a8_reference(&w8a8_spec, &operands, x_codes, &token, 0, 32, y, NULL, err);
    if (status == PTXGEN_OK)
        print_hash("w8a8", y, sizeof y);
    return status;
}

static ptxgen_status compute_quantise(ptxgen_error *err)
{
    const ptxgen_quantise_spec spec = {.k = 64, .group = 128, .producer = PTXGEN_QUANTISE_SILU_MUL};
    float x[128], scale;
    int8_t codes[64];
    for (size_t i = 0; i < 128; i++)
        x[i] = (float)(i % 13) / 8 - 0.7f;
    const ptxgen_quantise_operands operands = {.m = 1, .x = x};
    const ptxgen_quantise_token token = {.codes = codes, .scales = &scale};
    ptxgen_status status = ptxgen_quantise_reference(&spec, &operands, 0, &token, err);
    if (status == PTXGEN_OK)
        print_hash("quantise", codes, sizeof codes);
    return status;
}

static ptxgen_status compute_gguf_rows(ptxgen_error *err)
{
    const ptxgen_gguf_rows_spec spec = {.k = 64, .w_type = PTXGEN_GGUF_MXFP4};
    unsigned char w[2 * 17];
    float y[64];
    fill(w, sizeof w);
    const ptxgen_gguf_rows_operands operands = {.m = 1, .n = 1, .w = w};
    ptxgen_status status = ptxgen_gguf_rows_reference(&spec, &operands, 0, y, err);
    if (status == PTXGEN_OK)
        print_hash("gguf_rows", y, sizeof y);
    return status;
}

static ptxgen_status compute_sparse24(ptxgen_error *err)
{
    uint16_t weight[16 * 64], pruned[16 * 64], values[16 * 32];
    unsigned char metadata[16 * 64 / 4], bits[16 * 64 / 8];
    const ptxgen_sparse24_shape shape = {PTXGEN_SPARSE24_F16, 16, 64};
    fill(weight, sizeof weight);
    ptxgen_status status = ptxgen_sparse24_prune(&shape, (ptxgen_const_span){weight, sizeof weight},
                                                 (ptxgen_span){pruned, sizeof pruned}, err);
    if (status == PTXGEN_OK)
        status =
            ptxgen_sparse24_compress(&shape, (ptxgen_const_span){pruned, sizeof pruned},
                                     (ptxgen_span){values, sizeof values}, PTXGEN_SPARSE24_BYTES,
                                     (ptxgen_span){metadata, sizeof metadata}, err);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_convert(
            &shape, PTXGEN_SPARSE24_BYTES, (ptxgen_const_span){metadata, sizeof metadata},
            PTXGEN_SPARSE24_BITMASK, (ptxgen_span){bits, sizeof bits}, err);
    if (status == PTXGEN_OK)
        print_hash("sparse24", bits, sizeof bits);
    return status;
}

static int compute(int argc, char **argv)
{
    (void)argc, (void)argv;
    ptxgen_error err = {.message = ""};
    ptxgen_status status = compute_dense(&err);
    if (status == PTXGEN_OK)
        status = compute_w8a8(&err);
    if (status == PTXGEN_OK)
        status = compute_quantise(&err);
    if (status == PTXGEN_OK)
        status = compute_gguf_rows(&err);
    if (status == PTXGEN_OK)
        status = compute_sparse24(&err);
    return end(status, &err);
}

/* ---- repacking on the device ---- */

static ptxgen_status repack_on(struct device *d, ptxgen_error *err)
{
    const ptxgen_marlin_repack_spec spec = {.k = K,
                                            .n = N,
                                            .group_size = K / GROUPS,
                                            .type = PTXGEN_F16,
                                            .format = PTXGEN_W4_GPTQ_V1,
                                            .scale_type = PTXGEN_F16};
    static unsigned char codes[K * N / 2], scales[GROUPS * N * 2];
    ptxgen_marlin_repack_plan plan;
    ptxgen_marlin_repack *kernel = NULL;
    ptxgen_marlin_repack_args args = {.order = 0};
    fill(codes, sizeof codes);
    fill(scales, sizeof scales);
    ptxgen_status status = ptxgen_marlin_repack_make_plan(&spec, &d->target, &plan, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_repack_load(&d->cuda, &plan, NULL, &kernel, err);
    if (status == PTXGEN_OK)
        status = upload(d, codes, sizeof codes, &args.weights.weights, err);
    if (status == PTXGEN_OK)
        status = upload(d, scales, sizeof scales, &args.weights.scales, err);
    if (status == PTXGEN_OK)
        status = upload(d, NULL, sizeof codes, &args.codes, err);
    if (status == PTXGEN_OK)
        status = upload(d, NULL, sizeof scales, &args.scales, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_repack_launch(kernel, &args, NULL, err);
    if (status == PTXGEN_OK)
        status = print_result(d, "repacked", args.codes, sizeof codes, err);
    ptxgen_marlin_repack_destroy(kernel);
    return status;
}

static int repack(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct device d;
    ptxgen_error err = {.message = ""};
    ptxgen_status status = open_device("cpu:sm_80", &d, &err);
    if (status == PTXGEN_OK)
        status = repack_on(&d, &err);
    close_device(&d);
    return end(status, &err);
}

#define LIBRARY(name, run, varies)                                                                 \
    {                                                                                              \
        "library: " name, run, varies, true                                                        \
    }

const struct job library_jobs[] = {
    LIBRARY("build and inspect a module", build, 0),
    LIBRARY("dispatch all families", dispatch, VARIES_FILES),
    LIBRARY("warm", warm, VARIES_FILES),
    LIBRARY("tuning", tune, 0),
    LIBRARY("pack, load, launch and reference of marlin", run_layer, 0),
    LIBRARY("layers of files", linears, VARIES_FILES),
    LIBRARY("references and formats", compute, 0),
    LIBRARY("repack on the device", repack, 0),
};
const size_t library_job_count = sizeof library_jobs / sizeof *library_jobs;
