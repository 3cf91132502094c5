/* SPDX-License-Identifier: Apache-2.0 */
#include "toy.h"

#include <ptxgen/instr.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint emissions;
static atomic_int mended;

struct toy_plan {
    struct toy_spec spec;
};

unsigned toy_emissions(void)
{
    return atomic_load(&emissions);
}

void toy_set_mended(int value)
{
    atomic_store(&mended, value);
}

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    struct toy_plan *p = plan;
    (void)target;
    memcpy(&p->spec, spec, sizeof p->spec);
    if (atomic_load(&mended))
        p->spec.trouble = TOY_FINE;
    if (p->spec.trouble == TOY_UNPLANNABLE)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "toy: a = %u is not to be had",
                           p->spec.a);
    return PTXGEN_OK;
}

/* The driver's assembler refuses what the builder cannot look into. */
static void emit_nonsense(ptx_kernel *k)
{
    ptx_raw(k, "add.sideways 1", 0, NULL, 0, 0);
}

static ptxgen_status emit(const struct toy_plan *plan, bool minus, ptx_module *module,
                          ptxgen_error *err)
{
    atomic_fetch_add(&emissions, 1);
    ptx_kernel *k = ptx_kernel_begin(module, "toy");
    ptx_kernel_reqntid(k, TOY_ELEMENTS, 1, 1);
    ptx_u64 x = ptx_param_u64(k, "x"), y = ptx_param_u64(k, "y");
    ptx_u32 i = ptx_sreg_tid_x(k);
    ptx_u64 offset = ptx_mul_wide_u32(k, i, ptx_imm_u32(4));
    ptx_u32 value = ptx_ld_global_u32(k, ptx_add_u64(k, x, offset), 0);
    value = ptx_mad_lo_u32(k, value, ptx_imm_u32(plan->spec.a), i);
    value = ptx_add_u32(k, value, ptx_imm_u32(plan->spec.b));
    if (minus)
        value = ptx_sub_u32(k, ptx_mov_u32(k, ptx_imm_u32(0)), value);
    if (plan->spec.trouble == TOY_UNASSEMBLABLE)
        emit_nonsense(k);
    ptx_st_global_u32(k, ptx_add_u64(k, y, offset), 0, value);
    ptx_kernel_end(k);
    return ptx_module_status(module, err);
}

static ptxgen_status emit_plus(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return emit(plan, false, module, err);
}

static ptxgen_status emit_minus(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return emit(plan, true, module, err);
}

static void describe(const void *spec, char *text, size_t size)
{
    const struct toy_spec *s = spec;
    snprintf(text, size, "a=%u b=%u", s->a, s->b);
}

const ptxgen_family toy_plus = {.name = "toy_plus",
                                .plan_version = 1,
                                .spec_bytes = sizeof(struct toy_spec),
                                .plan_bytes = sizeof(struct toy_plan),
                                .make_plan = make_plan,
                                .emit = emit_plus,
                                .describe = describe};
const ptxgen_family toy_minus = {.name = "toy_minus",
                                 .plan_version = 1,
                                 .spec_bytes = sizeof(struct toy_spec),
                                 .plan_bytes = sizeof(struct toy_plan),
                                 .make_plan = make_plan,
                                 .emit = emit_minus};
const ptxgen_family toy_memo = {.name = "toy_memo",
                                .plan_version = 1,
                                .spec_bytes = sizeof(struct toy_spec),
                                .plan_bytes = sizeof(struct toy_plan),
                                .make_plan = make_plan,
                                .emit = emit_plus,
                                .describe = describe,
                                .revision = "0123abcd"};

static void must(int result, const char *what)
{
    if (result) {
        fprintf(stderr, "%s failed: %d\n", what, result);
        abort();
    }
}

static const char *const tile_names[] = {"a", NULL};

static bool candidate(const void *plan, size_t index, uint32_t tile[PTXGEN_TILE_NUMBERS])
{
    (void)plan;
    tile[0] = (uint32_t)index;
    return index < 100;
}

static ptxgen_status use_tile(void *plan, const ptxgen_tuned_range *ranges, size_t count,
                              ptxgen_error *err)
{
    struct toy_spec *spec = plan;
    (void)count, (void)err;
    spec->a = ranges[0].tile[0];
    return PTXGEN_OK;
}

const ptxgen_tiling toy_tiling = {.names = tile_names, .candidate = candidate, .use = use_tile};

void toy_open(struct toy_device *device, const char *name)
{
    int ordinal;
    ptxgen_emulator_driver(&device->driver);
    must(ptxgen_emulator_ordinal(name, &ordinal, NULL), "ptxgen_emulator_ordinal");
    must(ptxgen_driver_start(&device->driver, NULL), "ptxgen_driver_start");
    must(device->driver.ctx_create(&device->context, 0, ordinal), "cuCtxCreate");
}

void toy_close(struct toy_device *device)
{
    must(device->driver.ctx_destroy(device->context), "cuCtxDestroy");
}

bool toy_computes(const ptxgen_driver *driver, const ptxgen_loaded *loaded,
                  const struct toy_spec *spec)
{
    bool minus = ptxgen_loaded_family(loaded) == &toy_minus;
    uint32_t x[TOY_ELEMENTS], y[TOY_ELEMENTS];
    ptxgen_cu_deviceptr on_device[2];
    for (uint32_t i = 0; i < TOY_ELEMENTS; i++)
        x[i] = 1000 + 7 * i;
    for (int i = 0; i < 2; i++)
        must(driver->mem_alloc(&on_device[i], sizeof x), "cuMemAlloc");
    must(driver->memcpy_htod(on_device[0], x, sizeof x), "cuMemcpyHtoD");
    void *arguments[] = {&on_device[0], &on_device[1]};
    ptxgen_launch_shape shape = {.grid = {1, 1, 1}, .block = {TOY_ELEMENTS, 1, 1}};
    must(ptxgen_launch(ptxgen_loaded_entry(loaded, 0), &shape, NULL, arguments, NULL), "launch");
    must(driver->memcpy_dtoh(y, on_device[1], sizeof y), "cuMemcpyDtoH");
    for (int i = 0; i < 2; i++)
        must(driver->mem_free(on_device[i]), "cuMemFree");
    for (uint32_t i = 0; i < TOY_ELEMENTS; i++) {
        uint32_t right = x[i] * spec->a + i + spec->b;
        if (y[i] != (minus ? 0 - right : right))
            return false;
    }
    return true;
}
