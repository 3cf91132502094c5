/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen devices: what --device can name, with the facts that plans use. */
#include "command.h"
#include "../harness/device.h"
#include "exit_code.h"
#include "json_draft.h"
#include "options.h"

#include <argp.h>
#include <stdio.h>

enum { KEY_JSON = OPTION_COMMAND_KEYS };

/* Where devices are reported: lines for people, or JSON. */
struct devices_report {
    bool json;
    struct json_draft draft;
    cJSON *devices, *missing;
    int count;
};

/* ---- lines ---- */

/* The name that --device takes. */
static void write_name(const struct device_provider *provider, const ptxgen_device_facts *f,
                       char *text, size_t size)
{
    if (provider->emulated)
        snprintf(text, size, "%s:sm_%d", provider->name, f->compute_capability);
    else
        snprintf(text, size, "%s:%d", provider->name, f->ordinal);
}

static void print_device(const struct device_provider *provider, const ptxgen_device_facts *f)
{
    char name[32];
    write_name(provider, f, name, sizeof name);
    printf("%s  %s\n", name, f->name);
    printf("    sm_%d, PTX up to %d.%d, CUDA %d.%d driver\n", f->compute_capability,
           f->max_ptx_version / 10, f->max_ptx_version % 10, f->driver_version / 1000,
           f->driver_version % 1000 / 10);
    printf("    %d multiprocessors, %d KB shared memory each, %d KB a CTA, %.1f MB L2, %.1f GB\n",
           f->sm_count, f->shared_per_sm / 1024, f->shared_per_block_optin / 1024,
           f->l2_bytes / 1048576.0, (double)f->memory_bytes / 1e9);
    double bandwidth = ptxgen_device_peak_bandwidth(f);
    if (bandwidth > 0 && !provider->emulated)
        printf("    %.0f GB/s at most, by its memory's clock and width\n", bandwidth / 1e9);
}

/* ---- JSON ---- */

static void add_device(struct devices_report *report, const struct device_provider *provider,
                       const ptxgen_device_facts *f)
{
    const double bandwidth = ptxgen_device_peak_bandwidth(f);
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"compute_capability", f->compute_capability},
        {"max_ptx_version", f->max_ptx_version},
        {"driver_version", f->driver_version},
        {"multiprocessors", f->sm_count},
        {"shared_bytes_per_multiprocessor", f->shared_per_sm},
        {"shared_bytes_per_cta", f->shared_per_block_optin},
        {"l2_bytes", f->l2_bytes},
        {"memory_bytes", (double)f->memory_bytes},
    };
    char name[32];
    write_name(provider, f, name, sizeof name);
    cJSON *object = json_append_object(&report->draft, report->devices);
    json_add_string(&report->draft, object, "device", name);
    json_add_string(&report->draft, object, "name", f->name);
    json_add_bool(&report->draft, object, "emulated", provider->emulated);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_add_number(&report->draft, object, numbers[i].name, numbers[i].value);
    if (bandwidth > 0 && !provider->emulated)
        json_add_number(&report->draft, object, "bytes_per_second", bandwidth);
}

/* ---- both ---- */

static void report_device(struct devices_report *report, const struct device_provider *provider,
                          const ptxgen_device_facts *facts)
{
    if (report->json)
        add_device(report, provider, facts);
    else
        print_device(provider, facts);
}

/* A provider without devices, or a device without facts, and why. */
static void report_missing(struct devices_report *report, const char *name, const char *reason)
{
    if (!report->json) {
        printf("%s: %s\n", name, reason);
        return;
    }
    cJSON *object = json_append_object(&report->draft, report->missing);
    json_add_string(&report->draft, object, "device", name);
    json_add_string(&report->draft, object, "reason", reason);
}

/* Reports a provider's devices, or why it has none, and adds to their count. */
static ptxgen_status report_provider(struct devices_report *report,
                                     const struct device_provider *provider, ptxgen_error *err)
{
    ptxgen_driver driver;
    char text[PTXGEN_MESSAGE_SIZE + 8];
    ptxgen_status status = provider->start(&driver, err);
    if (status == PTXGEN_ERROR_OUT_OF_MEMORY)
        return status;
    if (status != PTXGEN_OK) {
        snprintf(text, sizeof text, report->json ? "%s" : "none: %s", err->message);
        report_missing(report, provider->name, text);
        return PTXGEN_OK;
    }
    for (int i = 0; i < driver.device_count; i++) {
        ptxgen_device_facts facts;
        if (ptxgen_device_read(&driver, i, &facts, err) == PTXGEN_OK) {
            report_device(report, provider, &facts);
            continue;
        }
        snprintf(text, sizeof text, "%s:%d", provider->name, i);
        report_missing(report, text, err->message);
    }
    report->count += driver.device_count;
    ptxgen_driver_close(&driver);
    return PTXGEN_OK;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key != KEY_JSON)
        return ARGP_ERR_UNKNOWN;
    *(bool *)state->input = true;
    return 0;
}

static ptxgen_status report_all(struct devices_report *report, ptxgen_error *err)
{
    const struct device_provider *provider;
    ptxgen_status status = PTXGEN_OK;
    json_start(&report->draft);
    report->devices = json_add_array(&report->draft, report->draft.root, "devices");
    report->missing = json_add_array(&report->draft, report->draft.root, "missing");
    for (size_t i = 0; status == PTXGEN_OK && (provider = device_provider_at(i)); i++)
        status = report_provider(report, provider, err);
    if (status == PTXGEN_OK && report->json)
        status = json_print(&report->draft, err);
    json_free(&report->draft);
    return status;
}

static int devices(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {.name = "json", .key = KEY_JSON, .doc = "Print JSON"}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc = "Prints the devices that --device can name, and what is known of each."};
    struct devices_report report = {.json = false};
    ptxgen_error err = {0};
    parse_arguments(&argp, argc, argv, 0, &report.json);
    if (report_all(&report, &err) != PTXGEN_OK)
        return report_failure(&err);
    return report.count ? EXIT_OK : EXIT_NO_DEVICE;
}

const struct command devices_command = {"devices", "[--json]",
                                        "the devices there are, and their facts", devices};
