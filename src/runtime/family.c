/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/family.h"

#include "src/kernels/gemm/empty.h"

#include <stddef.h>
#include <string.h>

/* ---- loading ---- */

ptxgen_status family_load(const struct family *f, const ptxgen_driver *driver, const void *plan,
                          const ptxgen_module_options *options, ptxgen_loaded **loaded,
                          ptxgen_error *err)
{
    if (!driver || !f->is_plan(plan) || !loaded)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: driver, a plan that was made, and kernel must be given",
                           f->table.name);
    const void *target = (const char *)plan + f->plan_target;
    return loaded_from_plan(driver, &f->table, plan, target, options, loaded, err);
}

/* Whether all outputs are made without products, by the plan's one entry. */
static bool is_empty(const struct family *f, const void *plan)
{
    return f->planner && gemm_is_empty(f->planner, plan);
}

static int entry_for(const struct family *f, const void *plan, uint64_t m)
{
    uint32_t ctas = 0;
    if (!is_empty(f, plan))
        return f->entry(plan, m);
    return gemm_ctas(f->planner, plan, m, &ctas, NULL) == PTXGEN_OK && ctas ? 0 : -1;
}

const ptxgen_kernel_attributes *family_attributes(const struct family *f,
                                                  const ptxgen_loaded *loaded, uint64_t m)
{
    int entry = loaded ? entry_for(f, loaded->plan, m) : -1;
    return entry < 0 ? NULL : ptxgen_kernel_get_attributes(loaded->entries[entry]);
}

/* ---- a launch's arguments ---- */

/* What a member of the arguments says, or `otherwise` where there is no such member. */
static uint64_t member(const void *args, int offset, uint64_t otherwise)
{
    uint64_t value = otherwise;
    if (offset != FAMILY_HAS_NONE)
        memcpy(&value, (const char *)args + offset, sizeof value);
    return value;
}

static void give_strides_their_meaning(const struct family_arrays *a)
{
    for (unsigned i = 0; i < a->count; i++)
        if (a->arrays[i].stride && !*a->arrays[i].stride)
            *a->arrays[i].stride = a->arrays[i].columns;
}

static bool is_nothing(const struct family *f, const void *plan, const void *args)
{
    uint32_t n;
    memcpy(&n, (const char *)plan + f->plan_n, sizeof n);
    return !n || !member(args, f->args.m, 1);
}

static const struct launch_array *find_array(const struct family_arrays *a, const char *name)
{
    static const struct launch_array none = {.address = 0};
    for (unsigned i = 0; i < a->count; i++)
        if (a->arrays[i].used && !strcmp(a->arrays[i].name, name))
            return &a->arrays[i];
    return &none;
}

/* The launch where K is 0 (gemm/empty.h), from the arrays that all products name alike. */
static ptxgen_status list_empty(const struct family *f, const void *plan, uint64_t m,
                                const struct family_arrays *a, struct launch_list *to,
                                ptxgen_error *err)
{
    uint32_t ctas;
    const struct launch_array *y = find_array(a, "y"), *residual = find_array(a, "residual");
    to->entries[to->count++] = (struct launch_entry){
        .index = 0,
        .shape = launch_line(m, GEMM_EMPTY_THREADS, 0, 1),
        .params = GEMM_EMPTY_PARAMS,
        .wide = GEMM_EMPTY_PARAMS,
        .values = {[GEMM_EMPTY_Y] = y->address,
                   [GEMM_EMPTY_BIAS] = find_array(a, "bias")->address,
                   [GEMM_EMPTY_UP_BIAS] = find_array(a, "up_bias")->address,
                   [GEMM_EMPTY_RESIDUAL] = residual->address,
                   [GEMM_EMPTY_Y_STRIDE] = y->stride ? *y->stride : 0,
                   [GEMM_EMPTY_RESIDUAL_STRIDE] = residual->stride ? *residual->stride : 0}};
    return gemm_ctas(f->planner, plan, m, &ctas, err); /* refuses an m that is not served */
}

/* A launch of at least one token, worked out and not yet checked. */
struct work {
    struct family_arrays arrays;
    struct launch_list list;
};

static ptxgen_status work_out(const struct family *f, const void *plan, void *args, struct work *w,
                              ptxgen_error *err)
{
    ptxgen_status status = f->arrays(plan, args, &w->arrays, err);
    if (status != PTXGEN_OK)
        return status;
    give_strides_their_meaning(&w->arrays);
    w->list.count = w->list.map_count = 0;
    w->list.workspace_bytes = 0;
    w->list.part = w->list.parts = 0;
    if (is_empty(f, plan))
        return list_empty(f, plan, member(args, f->args.m, 1), &w->arrays, &w->list, err);
    return f->list(plan, args, &w->list, err);
}

static ptxgen_status check_workspace(const struct family *f, const void *args, struct work *w,
                                     ptxgen_error *err)
{
    const uint64_t needed = w->list.workspace_bytes;
    const uint64_t bytes = member(args, f->args.workspace_bytes, needed);
    w->arrays.arrays[w->arrays.count++] = (struct launch_array)LAUNCH_BYTES(
        "workspace", needed > 0, LAUNCH_OUTPUT, member(args, f->args.workspace, 0), 0,
        f->workspace_align, needed);
    if (bytes >= needed)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "%s: a workspace of %llu bytes is below the %llu that m = %llu needs",
                       f->table.name, (unsigned long long)bytes, (unsigned long long)needed,
                       (unsigned long long)member(args, f->args.m, 0));
}

/* Of entries that take strides as numbers of 32 bits. The arrays are checked: no stride is 0. */
static ptxgen_status check_narrow_strides(const struct family *f, const struct family_arrays *a,
                                          ptxgen_error *err)
{
    for (unsigned i = 0; i < a->count; i++)
        if (a->arrays[i].used && a->arrays[i].stride && *a->arrays[i].stride > UINT32_MAX)
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                               "%s: the row stride of %s, %llu, is above the %u elements that the "
                               "kernel takes",
                               f->table.name, a->arrays[i].name,
                               (unsigned long long)*a->arrays[i].stride, UINT32_MAX);
    return PTXGEN_OK;
}

/* ---- what families' functions share ---- */

ptxgen_status family_workspace_bytes(const struct family *f, const ptxgen_loaded *loaded,
                                     void *args, uint64_t *bytes, ptxgen_error *err)
{
    if (!loaded || !args || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: kernel, args and bytes must be given", f->table.name);
    struct work w = {.list = {.workspace_bytes = 0}};
    ptxgen_status status =
        is_nothing(f, loaded->plan, args) ? PTXGEN_OK : work_out(f, loaded->plan, args, &w, err);
    if (status == PTXGEN_OK)
        *bytes = w.list.workspace_bytes;
    return status;
}

/* Enqueues the list that is worked out, then those that follow it. */
static ptxgen_status run_all(const struct family *f, const ptxgen_loaded *loaded, const void *args,
                             struct launch_list *list, ptxgen_cu_stream stream, ptxgen_error *err)
{
    ptxgen_status status = launch_list_run(loaded, list, stream, err);
    for (uint32_t part = 1; status == PTXGEN_OK && part < list->parts; part++) {
        list->count = list->map_count = 0;
        list->part = part;
        status = f->list(loaded->plan, args, list, err);
        if (status == PTXGEN_OK)
            status = launch_list_run(loaded, list, stream, err);
    }
    return status;
}

ptxgen_status family_launch(const struct family *f, const ptxgen_loaded *loaded, void *args,
                            ptxgen_cu_stream stream, ptxgen_error *err)
{
    if (!loaded || !args)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: kernel and args must be given",
                           f->table.name);
    if (is_nothing(f, loaded->plan, args))
        return PTXGEN_OK;
    struct work w;
    ptxgen_status status = work_out(f, loaded->plan, args, &w, err);
    if (status == PTXGEN_OK && f->args.workspace != FAMILY_HAS_NONE)
        status = check_workspace(f, args, &w, err);
    if (status == PTXGEN_OK)
        status = launch_check_arrays(f->table.name, w.arrays.arrays, w.arrays.count, err);
    if (status == PTXGEN_OK && f->has_narrow_strides)
        status = check_narrow_strides(f, &w.arrays, err);
    return status == PTXGEN_OK ? run_all(f, loaded, args, &w.list, stream, err) : status;
}

/* ---- for descriptions ---- */

ptxgen_status family_check_maps(const ptxgen_driver *driver, bool needed, ptxgen_error *err)
{
    return needed ? ptxgen_driver_require(driver, offsetof(ptxgen_driver, tensor_map_encode_tiled),
                                          err)
                  : PTXGEN_OK;
}

static const ptxgen_tile *variants_of(const struct gemm_planner *planner, const void *plan)
{
    return (const ptxgen_tile *)(const void *)((const char *)plan + planner->variants);
}

bool family_takes_maps(const struct gemm_planner *planner, const void *plan)
{
    uint32_t count;
    memcpy(&count, (const char *)plan + planner->variant_count, sizeof count);
    for (uint32_t i = 0; i < count; i++)
        if (variants_of(planner, plan)[i].kind != PTXGEN_MMA)
            return true;
    return false;
}

int family_product_entry(const struct gemm_planner *planner, const void *plan, uint64_t m)
{
    const ptxgen_tile *v = gemm_choose(planner, plan, m);
    return v ? (int)(v - variants_of(planner, plan)) : -1;
}

const char *family_element(uint8_t type)
{
    static const char *const names[] = {"f32", "f16", "bf16", "f64"};
    return type < sizeof names / sizeof *names ? names[type] : "?";
}

const char *family_activation(uint8_t activation)
{
    static const char *const words[] = {"", " silu", " gelu", " gelu_tanh", " relu"};
    return activation < sizeof words / sizeof *words ? words[activation] : " ?";
}
