/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of somebody else's that uses every layer of an installed ptxgen; it is built far from
 * the source tree, as C11 and as C++17. Prints the text of a kernel of its own and of
 * rmsnorm_q4k, then what the driver says: a machine without one is no failure.
 */
#include <ptxgen/device.h>
#include <ptxgen/emulator.h>
#include <ptxgen/ptx.h>
#include <ptxgen/instr.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/version.h>

#include <stdio.h>
#include <string.h>

#if !PTXGEN_VERSION_AT_LEAST(PTXGEN_VERSION_MAJOR, PTXGEN_VERSION_MINOR, PTXGEN_VERSION_PATCH) ||  \
    PTXGEN_VERSION_AT_LEAST(PTXGEN_VERSION_MAJOR, PTXGEN_VERSION_MINOR,                            \
                            PTXGEN_VERSION_PATCH + 1) ||                                           \
    PTXGEN_VERSION_AT_LEAST(PTXGEN_VERSION_MAJOR, PTXGEN_VERSION_MINOR + 1, 0) ||                  \
    PTXGEN_VERSION_AT_LEAST(PTXGEN_VERSION_MAJOR + 1, 0, 0) || !PTXGEN_VERSION_AT_LEAST(0, 0, 9)
#error "versions are not in order"
#endif

static void build_negate(ptx_module *module)
{
    ptx_kernel *k = ptx_kernel_begin(module, "negate");
    ptx_kernel_reqntid(k, 256, 1, 1);
    ptx_u64 x = ptx_param_u64(k, "x");
    ptx_u32 n = ptx_param_u32(k, "n");
    ptx_u32 i = ptx_sreg_tid_x(k);
    ptx_if(k, ptx_setp_lt_u32(k, i, n)) {
        ptx_u64 address = ptx_add_u64(k, x, ptx_mul_wide_u32(k, i, ptx_imm_u32(4)));
        ptx_st_global_f32(k, address, 0, ptx_neg_f32(k, ptx_ld_global_f32(k, address, 0)));
    }
    ptx_kernel_end(k);
}

static ptxgen_status build_rmsnorm(ptx_module *module, ptxgen_error *err)
{
    ptxgen_rmsnorm_q4k_spec spec;
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_target target;
    memset(&spec, 0, sizeof spec);
    spec.k = 1024;
    spec.n[0] = 96;
    spec.epsilon = 1e-6f;
    ptxgen_status status = ptxgen_target_parse("sm_80", &target, err);
    if (status == PTXGEN_OK)
        status = ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, err);
    return status == PTXGEN_OK ? ptxgen_rmsnorm_q4k_emit(&plan, ~0u, module, err) : status;
}

static ptxgen_status print_device(ptxgen_error *err)
{
    ptxgen_driver driver;
    ptxgen_device_facts facts;
    ptxgen_status status = ptxgen_driver_open(&driver, NULL, err);
    if (status != PTXGEN_OK)
        return status;
    status = ptxgen_device_read(&driver, 0, &facts, err);
    if (status == PTXGEN_OK)
        printf("// device: %s\n", facts.name);
    ptxgen_driver_close(&driver);
    return status;
}

int main(void)
{
    ptxgen_error err;
    const char *text;
    ptx_target target = {80, 0, 0};
    if (strcmp(ptxgen_version(), PTXGEN_VERSION) != 0) {
        fprintf(stderr, "headers of %s, library of %s\n", PTXGEN_VERSION, ptxgen_version());
        return 1;
    }
    ptx_module *module = ptx_module_create(&target, NULL);
    build_negate(module);
    ptxgen_status status = build_rmsnorm(module, &err);
    if (status == PTXGEN_OK)
        status = ptx_module_text(module, 0, &text, NULL, &err);
    if (status == PTXGEN_OK)
        fputs(text, stdout);
    ptx_module_destroy(module);
    if (status != PTXGEN_OK) {
        fprintf(stderr, "%s: %s\n", ptxgen_status_name(status), err.message);
        return 1;
    }
    if (print_device(&err) != PTXGEN_OK)
        printf("// device: %s\n", err.message);
    return 0;
}
