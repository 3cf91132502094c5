/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen profile: what a kernel does on the emulator, section by section. */
#include "command.h"
#include "exit_code.h"
#include "options.h"
#include "profile_report.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEY_DEVICE = OPTION_COMMAND_KEYS, KEY_SEED, KEY_JSON };

struct profile_options {
    const char *device;
    struct run_request request;
    bool json;
};

static const struct argp_option options_table[] = {
    {.name = "device", .key = KEY_DEVICE, .arg = "NAME", .doc = "cpu (default), cpu:sm_80 ..."},
    {.name = "m",
     .key = OPTION_ROWS,
     .arg = "M",
     .doc = "Tokens (1, or as many as the input file has)"},
    {.name = "seed", .key = KEY_SEED, .arg = "S", .doc = "Of the random data (1)"},
    {.name = "json", .key = KEY_JSON, .doc = "Print JSON"},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct profile_options *o = state->input;
    switch (key) {
    case KEY_DEVICE: o->device = arg; return 0;
    case OPTION_ROWS:
        parse_rows(state, arg, 1, &o->request.m, 1);
        o->request.m_given = true;
        return 0;
    case KEY_SEED: o->request.seed = parse_number(state, "--seed", arg, 0, UINT64_MAX); return 0;
    case KEY_JSON: o->json = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static ptxgen_status run_counted(const struct family_options *family_options,
                                 const struct profile_options *o, struct device *device,
                                 struct check *check, ptxgen_emulator_profile **profile,
                                 ptxgen_error *err)
{
    const ptxgen_emulator_options counting = {.profile = true};
    if (!device->emulated)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "--device %s: only the emulator counts; name cpu or cpu:SM", o->device);
    ptxgen_status status = ptxgen_emulator_set_options(device->context, &counting, err);
    if (status == PTXGEN_OK)
        status = family_run(family_options, &o->request, device, check, err);
    if (status == PTXGEN_OK)
        status = ptxgen_emulator_profile_take(device->context, profile, err);
    return status;
}

/* The text that the run has loaded, with its annotations. */
static ptxgen_status annotated_text(const struct family_options *family_options,
                                    const struct device *device, ptx_module **module,
                                    const char **text, ptxgen_error *err)
{
    const ptxgen_target target = ptxgen_device_target(&device->facts);
    *module = ptx_module_create(&target.ptx, NULL);
    if (!*module)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a module");
    ptxgen_status status = family_emit(family_options, &target, 0, *module, err);
    if (status == PTXGEN_OK)
        status = ptx_module_text(*module, PTX_TEXT_ANNOTATE, text, NULL, err);
    return status;
}

static ptxgen_status profile_family(const struct family *family,
                                    const struct family_options *family_options,
                                    const struct profile_options *o, struct device *device,
                                    enum exit_code *code, ptxgen_error *err)
{
    ptxgen_emulator_profile *profile = NULL;
    ptx_module *module = NULL;
    struct profile_tally tally = {0};
    struct check check = {.once = true};
    const char *text = NULL;
    ptxgen_status status = run_counted(family_options, o, device, &check, &profile, err);
    if (status == PTXGEN_OK)
        status = annotated_text(family_options, device, &module, &text, err);
    if (status == PTXGEN_OK)
        status = profile_tally_make(profile, text, &tally, err);
    if (status == PTXGEN_OK) {
        const struct profile_report report = {family->name, device->facts.name, &check, &tally};
        *code = check_passed(&check) ? EXIT_OK : EXIT_WRONG_NUMBERS;
        if (!o->json)
            profile_report_lines(&report);
        else
            status = profile_report_json(&report, err);
    }
    profile_tally_free(&tally);
    ptx_module_destroy(module);
    ptxgen_emulator_profile_free(profile);
    return status;
}

static int profile(int argc, char **argv)
{
    static const struct argp argp = {.options = options_table, .parser = parse};
    struct profile_options o = {.device = "cpu", .request = {.m = 1, .seed = 1}};
    const struct family_arguments arguments = {.command = &argp, .input = &o, .with_data = true};
    struct family_options *family_options;
    const struct family *family = parse_family(argc, argv, &arguments, &family_options);
    struct device device;
    ptxgen_error err = {0};
    enum exit_code code = EXIT_OK;
    if (device_open(o.device, &device, &err) != PTXGEN_OK)
        code = report_undone(family->name, "profiled", &err);
    else if (profile_family(family, family_options, &o, &device, &code, &err) != PTXGEN_OK)
        code = report_failure(&err);
    device_close(&device);
    free(family_options);
    return code;
}

const struct command profile_command = {"profile", "FAMILY [OPTION...]",
                                        "what a kernel does on the emulator, by section", profile};
