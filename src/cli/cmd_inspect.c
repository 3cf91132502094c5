/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen inspect: what a kernel is made of and how fast it could be, without a GPU. */
#include "chips.h"
#include "command.h"
#include "exit_code.h"
#include "inspect_report.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BANDWIDTH = OPTION_COMMAND_KEYS, KEY_CHIP, KEY_JSON, MAX_MS = 16 };

struct inspect_options {
    uint32_t ms[MAX_MS];
    unsigned m_count;
    double bandwidth; /* bytes a second; 0: the chip's */
    const struct chip *chip;
    ptxgen_target target;
    bool json;
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
    {.name = "json", .key = KEY_JSON, .doc = "Print JSON"},
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
    case KEY_JSON: o->json = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- gathering ---- */

static int sm_of(const struct inspect_options *o)
{
    return o->chip ? o->chip->sm : o->target.ptx.sm;
}

static ptxgen_status find_kernel(const ptx_module *module, unsigned index, int sm,
                                 struct inspected_kernel *found, ptxgen_error *err)
{
    ptxgen_status status = ptx_module_kernel_info(module, index, &found->info);
    if (status != PTXGEN_OK)
        return ptxgen_fail(err, status, "kernel %u of the module is unknown", index);
    size_t count = ptx_module_kernel_mix(module, index, found->mix, INSPECTED_MIX);
    if (!count)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to count instructions");
    found->mix_count = count < INSPECTED_MIX ? count : INSPECTED_MIX;
    found->architecture = architecture_find(sm);
    return PTXGEN_OK;
}

static ptxgen_status check_fits(const ptx_module *module, const char *entry, int sm,
                                ptxgen_error *err)
{
    struct inspected_kernel k = {.architecture = architecture_find(sm)};
    for (unsigned i = 0; i < ptx_module_kernels(module); i++)
        if (ptx_module_kernel_info(module, i, &k.info) == PTXGEN_OK &&
            !strcmp(k.info.name, entry) && !inspected_fits(&k))
            return ptxgen_fail(err, PTXGEN_ERROR_TARGET,
                               "%s does not fit on sm_%d: a CTA has %zu bytes of shared memory",
                               entry, sm, inspected_shared_bytes(&k));
    return PTXGEN_OK;
}

static ptxgen_status predict(const ptx_module *module, const struct family_options *family_options,
                             const struct inspect_options *o, uint32_t m, struct prediction *p,
                             ptxgen_error *err)
{
    *p = (struct prediction){.m = m};
    ptxgen_status status = family_describe(family_options, &o->target, m, &p->work, err);
    if (status == PTXGEN_OK)
        status = check_fits(module, p->work.entry, sm_of(o), err);
    const struct chip *chip = o->chip ? o->chip : chip_of(o->target.ptx.sm);
    p->bandwidth = o->bandwidth > 0 ? o->bandwidth : chip ? chip->bandwidth : 0;
    p->data_sheet = o->bandwidth > 0 || !chip ? NULL : chip->name;
    return status;
}

static ptxgen_status inspect_all(const struct family *family,
                                 const struct family_options *family_options,
                                 const struct inspect_options *o, ptx_module *module,
                                 struct inspect_report *report, ptxgen_error *err)
{
    const char *text;
    size_t length;
    ptxgen_status status = family_emit(family_options, &o->target, 0, module, err);
    if (status == PTXGEN_OK)
        status = ptx_module_text(module, 0, &text, &length, err);
    if (status != PTXGEN_OK)
        return status;
    inspect_report_start(report, family->name, &o->target.ptx, ptx_module_ptx_version(module),
                         length);
    for (unsigned i = 0; status == PTXGEN_OK && i < ptx_module_kernels(module); i++) {
        struct inspected_kernel kernel;
        status = find_kernel(module, i, sm_of(o), &kernel, err);
        if (status == PTXGEN_OK)
            inspect_report_kernel(report, &kernel);
    }
    for (unsigned i = 0; status == PTXGEN_OK && i < o->m_count; i++) {
        struct prediction prediction;
        status = predict(module, family_options, o, o->ms[i], &prediction, err);
        if (status == PTXGEN_OK)
            inspect_report_prediction(report, &prediction);
    }
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
    struct inspect_report report = {.json = o->json};
    ptx_module *module = ptx_module_create(&o->target.ptx, NULL);
    ptxgen_status status =
        module ? inspect_all(family, family_options, o, module, &report, err)
               : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a module");
    ptx_module_destroy(module);
    return inspect_report_end(&report, status, err);
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
