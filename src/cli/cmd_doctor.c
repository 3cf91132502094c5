/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptxgen doctor: what a kernel needs on its way to the device, tried step by step, and what helps
 * where a step fails. Each step that others need is tried with the library's own calls.
 */
#include "bench_peer.h"
#include "command.h"
#include "exit_code.h"
#include "json_draft.h"
#include "options.h"
#include "../harness/problem.h"

#include <ptxgen/cache.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_DEVICE = OPTION_COMMAND_KEYS, KEY_JSON };

struct doctor_options {
    const char *device;
    bool json;
};

enum finding { FINE, NOTE, FAILURE };
static const char *const finding_names[] = {"ok", "note", "FAILED"};

struct examination {
    const struct doctor_options *options;
    struct json_draft draft;
    cJSON *steps;
    enum exit_code code;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct doctor_options *o = state->input;
    switch (key) {
    case KEY_DEVICE: o->device = arg; return 0;
    case KEY_JSON: o->json = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Reports a step: what was found, and what helps, which may be NULL. */
static void report(struct examination *e, const char *step, enum finding finding, const char *text,
                   const char *advice)
{
    if (!e->options->json) {
        printf("%-6s  %-8s %s\n", finding_names[finding], step, text);
        if (advice)
            printf("%17s%s\n", "", advice);
        return;
    }
    cJSON *object = json_append_object(&e->draft, e->steps);
    json_add_string(&e->draft, object, "step", step);
    json_add_string(&e->draft, object, "finding", finding_names[finding]);
    json_add_string(&e->draft, object, "text", text);
    if (advice)
        json_add_string(&e->draft, object, "advice", advice);
}

static void report_error(struct examination *e, const char *step, const ptxgen_error *err,
                         const char *advice)
{
    report(e, step, FAILURE, err->message, advice);
    if (e->code == EXIT_OK)
        e->code = exit_code_of(err->status);
}

/* ---- the steps ---- */

static const char *driver_advice(ptxgen_status status)
{
    switch (status) {
    case PTXGEN_ERROR_NO_DRIVER:
        return "install NVIDIA's driver, in a container mount it (--gpus all); libcuda.so.1 must "
               "be found by the dynamic linker. Without a GPU --device cpu runs on the emulator";
    case PTXGEN_ERROR_DRIVER_TOO_OLD: return "a driver of CUDA 11.0 (450.36) or newer is needed";
    case PTXGEN_ERROR_NO_DEVICE:
        return "nvidia-smi should list a GPU; CUDA_VISIBLE_DEVICES may hide it";
    default: return "nvidia-smi should run; a reboot helps after an update of the driver";
    }
}

static bool examine_device(struct examination *e, struct device *device)
{
    char text[512];
    ptxgen_error err;
    if (device_open(e->options->device, device, &err) != PTXGEN_OK) {
        report_error(e, "driver", &err, driver_advice(err.status));
        return false;
    }
    const ptxgen_device_facts *f = &device->facts;
    snprintf(text, sizeof text, "CUDA %d.%d, which assembles PTX up to %d.%d",
             f->driver_version / 1000, f->driver_version % 1000 / 10, f->max_ptx_version / 10,
             f->max_ptx_version % 10);
    report(e, "driver", FINE, text, NULL);
    const ptxgen_target target = ptxgen_device_target(f);
    snprintf(text, sizeof text, "%s, planned for as sm_%d%.1s", f->name, target.ptx.sm,
             &target.ptx.suffix);
    bool lacks_wgmma = f->compute_capability == 90 && !target.ptx.suffix;
    report(e, "device", lacks_wgmma ? NOTE : FINE, text,
           lacks_wgmma ? "wgmma needs PTX 8.0: a driver of CUDA 12.0 or newer is much faster"
                       : NULL);
    return true;
}

static void examine_cache(struct examination *e)
{
    const char *advice = "kernels are compiled anew in every process; PTXGEN_CACHE names another "
                         "folder, and off turns the cache off";
    const char *setting = getenv("PTXGEN_CACHE");
    char text[PTXGEN_MESSAGE_SIZE + 64];
    ptxgen_cache *cache = NULL;
    ptxgen_cache_removed removed;
    ptxgen_error err;
    if (setting && (!strcmp(setting, "off") || !strcmp(setting, "0"))) {
        report(e, "cache", NOTE, "turned off by PTXGEN_CACHE", advice);
        return;
    }
    ptxgen_status status = ptxgen_cache_open(NULL, &cache, &err);
    if (status ==
        PTXGEN_OK) /* takes the lock, as a store does, and removes what is above the limit */
        status = ptxgen_cache_prune(cache, ptxgen_cache_max_bytes(cache), &removed, &err);
    if (status == PTXGEN_OK) {
        snprintf(text, sizeof text, "%s, up to %llu MiB", ptxgen_cache_folder(cache),
                 (unsigned long long)(ptxgen_cache_max_bytes(cache) >> 20));
        report(e, "cache", FINE, text, NULL);
    } else
        report_error(e, "cache", &err, advice);
    ptxgen_cache_close(cache);
}

/* A random problem of each family, compiled, launched and compared with its reference. */
static void examine_families(struct examination *e, struct device *device)
{
    const struct family *family;
    char text[sizeof((struct check *)NULL)->problem + 96];
    for (size_t i = 0; (family = family_at(i)); i++) {
        struct check check = {0};
        ptxgen_error err = {0};
        if (problem_run_random(family->harness, 1, device, &check, &err) != PTXGEN_OK) {
            snprintf(text, sizeof text, "%s: %.200s", family->name, err.message);
            ptxgen_fail(&err, err.status, "%s", text);
            report_error(e, "kernel", &err, "this is a fault of ptxgen or of the driver");
            continue;
        }
        snprintf(text, sizeof text, "%s %s", family->name, check.problem);
        report(e, "kernel", check_passed(&check) ? FINE : FAILURE, text,
               check_passed(&check) ? NULL : check.where);
        if (!check_passed(&check) && e->code == EXIT_OK)
            e->code = EXIT_WRONG_NUMBERS;
    }
}

static void examine_peer(struct examination *e, struct device *device)
{
    char why[256];
    struct peer *peer = device->emulated ? NULL : peer_open(device, NULL, why, sizeof why);
    if (device->emulated)
        report(e, "peer", NOTE, "bench has no peer on the emulator", NULL);
    else if (peer)
        report(e, "peer", FINE, peer_name(peer), NULL);
    else
        report(e, "peer", NOTE, why, "only bench needs it: --cublas names the library's file");
    peer_close(peer);
}

static int doctor(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {.name = "device",
         .key = KEY_DEVICE,
         .arg = "NAME",
         .doc = "gpu (default), gpu:1, cpu, cpu:sm_80; `ptxgen devices` prints them"},
        {.name = "json", .key = KEY_JSON, .doc = "Print JSON"},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc = "Tries what a kernel needs on its way to the device: the driver, the device, the "
               "disk cache, and a small problem of each family, compiled, launched and compared. "
               "Says what helps where something fails, and exits with the code of the first "
               "failure."};
    struct doctor_options o = {.device = "gpu"};
    struct examination e = {.options = &o, .code = EXIT_OK};
    struct device device;
    ptxgen_error err = {0};
    parse_arguments(&argp, argc, argv, 0, &o);
    json_start(&e.draft);
    e.steps = json_add_array(&e.draft, e.draft.root, "steps");
    bool has_device = examine_device(&e, &device);
    examine_cache(&e);
    if (has_device) {
        examine_families(&e, &device);
        examine_peer(&e, &device);
        device_close(&device);
    }
    if (o.json && json_print(&e.draft, &err) != PTXGEN_OK)
        e.code = report_failure(&err);
    json_free(&e.draft);
    return (int)e.code;
}

const struct command doctor_command = {"doctor", "[--device NAME] [--json]",
                                       "try all that kernels need here, and say what helps",
                                       doctor};
