/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen inspect: what a kernel is made of and how fast it could be, without a GPU. */
#include "chips.h"
#include "command.h"
#include "exit_code.h"
#include "options.h"
#include "plural.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BANDWIDTH = OPTION_COMMAND_KEYS, KEY_CHIP, MAX_MS = 16, MAX_MIX = 512 };

struct inspect_options {
    uint32_t ms[MAX_MS];
    unsigned m_count;
    double bandwidth; /* bytes a second; 0: the chip's */
    const struct chip *chip;
    ptxgen_target target;
};

static const struct argp_option options_table[] = {
    {.name = "m",
     .key = OPTION_ROWS,
     .arg = "M[,M...]",
     .doc = "Tokens to predict the time of (1)"},
    {.name = "bandwidth",
     .key = KEY_BANDWIDTH,
     .arg = "GB/S",
     .doc = "Predict for a memory of this many 10^9 bytes a second"},
    {.name = "chip",
     .key = KEY_CHIP,
     .arg = "NAME",
     .doc = "Predict for a product: H100-SXM, RTX-4090 ..."},
    {0},
};

static const struct chip *parse_chip(struct argp_state *state, const char *name)
{
    const struct chip *chip = chip_find(name);
    if (chip)
        return chip;
    char list[512] = "";
    size_t used = 0;
    for (size_t i = 0; (chip = chip_at(i)); i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", chip->name);
    argp_error(state, "--chip %s: expected one of %s", name, list);
    return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct inspect_options *o = state->input;
    switch (key) {
    case OPTION_ROWS: o->m_count = parse_rows(state, arg, 1, o->ms, MAX_MS); return 0;
    case KEY_BANDWIDTH: o->bandwidth = 1e9 * parse_positive(state, "--bandwidth", arg); return 0;
    case KEY_CHIP: o->chip = parse_chip(state, arg); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- a kernel of the module ---- */

static ptxgen_status print_mix(const ptx_module *module, unsigned index, ptxgen_error *err)
{
    ptx_mix_row rows[MAX_MIX];
    size_t count = ptx_module_kernel_mix(module, index, rows, MAX_MIX);
    if (!count)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to count instructions");
    int column = printf("  mix:");
    for (size_t i = 0; i < count && i < MAX_MIX; i++) {
        char item[96];
        int width = snprintf(item, sizeof item, " %s %zu%s", rows[i].mnemonic, rows[i].count,
                             i + 1 < count ? "," : "");
        if (column + width > 100)
            column = printf("\n      ") - 1;
        column += width;
        fputs(item, stdout);
    }
    putchar('\n');
    return PTXGEN_OK;
}

static size_t shared_bytes_of(const ptx_kernel_info *info)
{
    return info->static_shared_bytes + info->dynamic_shared_bytes;
}

/* What one CTA may have: a multiprocessor's, but for the 1 KB that the system takes. */
static bool fits(const struct architecture *a, const ptx_kernel_info *info)
{
    return !a || shared_bytes_of(info) <= a->shared_bytes - 1024;
}

static ptxgen_status print_kernel(const ptx_module *module, unsigned index, int sm,
                                  ptxgen_error *err)
{
    ptx_kernel_info info;
    ptxgen_status status = ptx_module_kernel_info(module, index, &info);
    if (status != PTXGEN_OK)
        return ptxgen_fail(err, status, "kernel %u of the module is unknown", index);
    size_t shared = shared_bytes_of(&info);
    printf("%s\n", info.name);
    printf("  %zu instructions, %u threads a CTA\n", info.instructions, info.threads);
    printf("  registers: %zu virtual in %u 32-bit, %u 64-bit, %u 16-bit, %u 128-bit names and %u "
           "predicates; %u live at the peak\n",
           info.virtual_registers, info.names_32, info.names_64, info.names_16, info.names_128,
           info.names_pred, info.pressure);
    printf("  shared memory: %zu bytes, %s\n", shared,
           info.dynamic_shared_bytes ? "dynamic" : "static");
    if (info.local_bytes)
        printf("  local memory: %zu bytes a thread\n", info.local_bytes);
    const struct architecture *a = architecture_find(sm);
    if (!fits(a, &info))
        printf("  does not fit on sm_%d, which has %u bytes of shared memory for a CTA\n", sm,
               a->shared_bytes - 1024);
    else if (a) {
        unsigned ctas = architecture_occupancy(a, info.threads, info.pressure, shared);
        printf("  occupancy on sm_%d, by that peak: %u CTA%s a multiprocessor, %u of %u warps\n",
               a->sm, ctas, plural(ctas), ctas * ((info.threads + 31) / 32), a->warps);
    }
    return print_mix(module, index, err);
}

/* ---- predictions ---- */

static int sm_of(const struct inspect_options *o)
{
    return o->chip ? o->chip->sm : o->target.ptx.sm;
}

static ptxgen_status check_fits(const ptx_module *module, const char *entry, int sm,
                                ptxgen_error *err)
{
    ptx_kernel_info info;
    for (unsigned i = 0; i < ptx_module_kernels(module); i++)
        if (ptx_module_kernel_info(module, i, &info) == PTXGEN_OK && !strcmp(info.name, entry) &&
            !fits(architecture_find(sm), &info))
            return ptxgen_fail(err, PTXGEN_ERROR_TARGET,
                               "%s does not fit on sm_%d: a CTA has %zu bytes of shared memory",
                               entry, sm, shared_bytes_of(&info));
    return PTXGEN_OK;
}

static ptxgen_status print_prediction(const ptx_module *module,
                                      const struct family_options *family_options,
                                      const struct inspect_options *o, uint32_t m,
                                      ptxgen_error *err)
{
    struct work work = {.entry = NULL};
    ptxgen_status status = family_describe(family_options, &o->target, m, &work, err);
    if (status == PTXGEN_OK)
        status = check_fits(module, work.entry, sm_of(o), err);
    if (status != PTXGEN_OK)
        return status;
    const struct chip *chip = o->chip ? o->chip : chip_of(o->target.ptx.sm);
    double bandwidth = o->bandwidth > 0 ? o->bandwidth : chip ? chip->bandwidth : 0;
    printf("M=%u: %s, %u CTA%s; %" PRIu64 " bytes, %.4g flops, %.3g flops a byte\n", m, work.entry,
           work.grid, plural(work.grid), work.bytes, work.flops, work.flops / (double)work.bytes);
    if (*work.explanation)
        printf("  %s\n", work.explanation);
    if (bandwidth > 0)
        printf("  floor: %.2f us at %.0f GB/s%s%s\n", 1e6 * (double)work.bytes / bandwidth,
               bandwidth / 1e9, o->bandwidth > 0 ? "" : ", the data sheet of ",
               o->bandwidth > 0 ? "" : chip->name);
    return PTXGEN_OK;
}

static ptxgen_status print_all(const struct family *family,
                               const struct family_options *family_options,
                               const struct inspect_options *o, ptx_module *module,
                               ptxgen_error *err)
{
    const char *text;
    size_t length;
    ptxgen_status status = family_emit(family_options, &o->target, 0, module, err);
    if (status == PTXGEN_OK)
        status = ptx_module_text(module, 0, &text, &length, err);
    if (status != PTXGEN_OK)
        return status;
    int version = ptx_module_ptx_version(module);
    printf("%s for sm_%d%.1s: PTX %d.%d, %zu bytes of text\n", family->name, o->target.ptx.sm,
           &o->target.ptx.suffix, version / 10, version % 10, length);
    for (unsigned i = 0; status == PTXGEN_OK && i < ptx_module_kernels(module); i++)
        status = print_kernel(module, i, sm_of(o), err);
    for (unsigned i = 0; status == PTXGEN_OK && i < o->m_count; i++)
        status = print_prediction(module, family_options, o, o->ms[i], err);
    return status;
}

static ptxgen_status check_chip(const struct inspect_options *o, ptxgen_error *err)
{
    const ptx_target *text = &o->target.ptx;
    if (!o->chip || ptx_target_runs_on(text, o->chip->sm))
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_TARGET,
                       "%s, which is sm_%d, cannot load text for sm_%d%.1s; --target names another",
                       o->chip->name, o->chip->sm, text->sm, &text->suffix);
}

static ptxgen_status inspect_module(const struct family *family,
                                    const struct family_options *family_options,
                                    const struct inspect_options *o, ptxgen_error *err)
{
    ptx_module *module = ptx_module_create(&o->target.ptx, NULL);
    ptxgen_status status =
        module ? print_all(family, family_options, o, module, err)
               : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a module");
    ptx_module_destroy(module);
    return status;
}

static int inspect(int argc, char **argv)
{
    static const struct argp argp = {.options = options_table, .parser = parse};
    struct inspect_options o = {.ms = {1}, .m_count = 1, .target = default_target()};
    const struct family_arguments arguments = {
        .command = &argp, .input = &o, .shared = &target_argp, .shared_input = &o.target};
    struct family_options *family_options;
    const struct family *family = parse_family(argc, argv, &arguments, &family_options);
    ptxgen_error err = {0};
    ptxgen_status status = check_chip(&o, &err);
    if (status == PTXGEN_OK)
        status = inspect_module(family, family_options, &o, &err);
    free(family_options);
    return status == PTXGEN_OK ? EXIT_OK : report_failure(&err);
}

const struct command inspect_command = {"inspect", "FAMILY [OPTION...]",
                                        "instruction mix, registers, occupancy, predicted time",
                                        inspect};
