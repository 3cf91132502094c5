/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_report.h"

#include "json_draft.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- lines ---- */

static void print_mix(const struct profile_section *s)
{
    int column = printf("    mix:");
    for (unsigned i = 0; i < s->kind_count; i++) {
        char item[64];
        int width = snprintf(item, sizeof item, " %s %.1f %%%s", s->kinds[i].name,
                             100.0 * (double)s->kinds[i].warps / (double)s->warps,
                             i + 1 < s->kind_count ? "," : "");
        if (column + width > 100)
            column = printf("\n        ") - 1;
        column += width;
        fputs(item, stdout);
    }
    putchar('\n');
}

static void print_section(const struct profile_section *s)
{
    printf("  %s\n    %" PRIu64 " warp instructions, %.1f lanes active on average\n", s->name,
           s->warps, s->warps ? (double)s->lanes / (double)s->warps : 0);
    if (!s->warps)
        return;
    print_mix(s);
    if (s->sectors)
        printf("    global memory: %" PRIu64 " transactions of 32 bytes, %" PRIu64
               " bytes moved for %" PRIu64 " needed\n",
               s->sectors, s->bytes_moved, s->bytes_needed);
    if (s->shared_accesses)
        printf("    shared memory: %" PRIu64 " passes, and %" PRIu64 " more for bank conflicts\n",
               s->shared_accesses, s->conflicts);
}

void profile_report_lines(const struct profile_report *report)
{
    const char *kernel = "";
    printf("%s %s on %s\n", report->family, report->check->problem, report->device);
    for (size_t i = 0; i < report->tally->count; i++) {
        const struct profile_section *section = &report->tally->sections[i];
        if (strcmp(kernel, section->kernel) != 0)
            printf("%s\n", section->kernel);
        kernel = section->kernel;
        print_section(section);
    }
    if (!check_passed(report->check))
        printf("WRONG: %s\n", report->check->where);
}

/* ---- JSON ---- */

static void add_section(struct json_draft *json, cJSON *sections, const struct profile_section *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"warp_instructions", s->warps},          {"lane_instructions", s->lanes},
        {"global_transactions", s->sectors},      {"global_bytes_moved", s->bytes_moved},
        {"global_bytes_needed", s->bytes_needed}, {"shared_passes", s->shared_accesses},
        {"bank_conflicts", s->conflicts},
    };
    cJSON *object = json_append_object(json, sections);
    json_add_string(json, object, "section", s->name);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_add_number(json, object, numbers[i].name, (double)numbers[i].value);
    cJSON *mix = json_add_object(json, object, "mix");
    for (unsigned i = 0; i < s->kind_count; i++)
        json_add_number(json, mix, s->kinds[i].name, (double)s->kinds[i].warps);
}

ptxgen_status profile_report_json(const struct profile_report *report, ptxgen_error *err)
{
    struct json_draft json;
    cJSON *sections = NULL;
    const char *kernel = "";
    json_start(&json);
    json_add_string(&json, json.root, "family", report->family);
    json_add_string(&json, json.root, "problem", report->check->problem);
    json_add_string(&json, json.root, "device", report->device);
    json_add_bool(&json, json.root, "right", check_passed(report->check));
    cJSON *kernels = json_add_array(&json, json.root, "kernels");
    for (size_t i = 0; i < report->tally->count; i++) {
        const struct profile_section *section = &report->tally->sections[i];
        if (strcmp(kernel, section->kernel) != 0) {
            cJSON *object = json_append_object(&json, kernels);
            json_add_string(&json, object, "kernel", section->kernel);
            sections = json_add_array(&json, object, "sections");
        }
        kernel = section->kernel;
        add_section(&json, sections, section);
    }
    ptxgen_status status = json_print(&json, err);
    json_free(&json);
    return status;
}
