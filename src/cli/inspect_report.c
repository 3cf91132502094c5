/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect_report.h"

#include "plural.h"

#include <inttypes.h>
#include <stdio.h>

/* What a CTA cannot have of a multiprocessor's shared memory: the system's part. */
enum { SYSTEM_BYTES = 1024 };

size_t inspected_shared_bytes(const struct inspected_kernel *kernel)
{
    return kernel->info.static_shared_bytes + kernel->info.dynamic_shared_bytes;
}

bool inspected_fits(const struct inspected_kernel *kernel)
{
    const struct architecture *a = kernel->architecture;
    return !a || inspected_shared_bytes(kernel) <= a->shared_bytes - SYSTEM_BYTES;
}

static unsigned occupancy(const struct inspected_kernel *kernel)
{
    return architecture_occupancy(kernel->architecture, kernel->info.threads, kernel->info.pressure,
                                  inspected_shared_bytes(kernel));
}

/* Seconds that the bytes take at least; 0 where the bandwidth is unknown. */
static double floor_of(const struct prediction *p)
{
    return p->bandwidth > 0 ? (double)p->work.bytes / p->bandwidth : 0;
}

/* ---- lines ---- */

static void print_mix(const struct inspected_kernel *kernel)
{
    int column = printf("  mix:");
    for (size_t i = 0; i < kernel->mix_count; i++) {
        char item[96];
        int width = snprintf(item, sizeof item, " %s %zu%s", kernel->mix[i].mnemonic,
                             kernel->mix[i].count, i + 1 < kernel->mix_count ? "," : "");
        if (column + width > 100)
            column = printf("\n      ") - 1;
        column += width;
        fputs(item, stdout);
    }
    putchar('\n');
}

static void print_kernel(const struct inspected_kernel *kernel)
{
    const ptx_kernel_info *info = &kernel->info;
    const struct architecture *a = kernel->architecture;
    printf("%s\n", info->name);
    printf("  %zu instructions, %u threads a CTA\n", info->instructions, info->threads);
    printf("  registers: %zu virtual in %u 32-bit, %u 64-bit, %u 16-bit, %u 128-bit names and %u "
           "predicates; %u live at the peak\n",
           info->virtual_registers, info->names_32, info->names_64, info->names_16, info->names_128,
           info->names_pred, info->pressure);
    printf("  shared memory: %zu bytes, %s\n", inspected_shared_bytes(kernel),
           info->dynamic_shared_bytes ? "dynamic" : "static");
    if (info->local_bytes)
        printf("  local memory: %zu bytes a thread\n", info->local_bytes);
    if (!inspected_fits(kernel))
        printf("  does not fit on sm_%d, which has %u bytes of shared memory for a CTA\n", a->sm,
               a->shared_bytes - SYSTEM_BYTES);
    else if (a) {
        unsigned ctas = occupancy(kernel);
        printf("  occupancy on sm_%d, by that peak: %u CTA%s a multiprocessor, %u of %u warps\n",
               a->sm, ctas, plural(ctas), ctas * ((info->threads + 31) / 32), a->warps);
    }
    print_mix(kernel);
}

static void print_prediction(const struct prediction *p)
{
    const struct work *work = &p->work;
    printf("M=%u: %s, %u CTA%s; %" PRIu64 " bytes, %.4g flops, %.3g flops a byte\n", p->m,
           work->entry, work->grid, plural(work->grid), work->bytes, work->flops,
           work->flops / (double)work->bytes);
    if (*work->explanation)
        printf("  %s\n", work->explanation);
    if (p->bandwidth > 0)
        printf("  floor: %.2f us at %.0f GB/s%s%s\n", 1e6 * floor_of(p), p->bandwidth / 1e9,
               p->data_sheet ? ", the data sheet of " : "", p->data_sheet ? p->data_sheet : "");
}

/* ---- JSON ---- */

static void add_kernel(struct inspect_report *report, const struct inspected_kernel *kernel)
{
    const ptx_kernel_info *info = &kernel->info;
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"instructions", (double)info->instructions},
        {"threads", info->threads},
        {"virtual_registers", (double)info->virtual_registers},
        {"registers_live_at_peak", info->pressure},
        {"shared_bytes", (double)inspected_shared_bytes(kernel)},
        {"local_bytes", (double)info->local_bytes},
    };
    struct json_draft *draft = &report->draft;
    cJSON *object = json_append_object(draft, report->kernels);
    json_add_string(draft, object, "name", info->name);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_add_number(draft, object, numbers[i].name, numbers[i].value);
    json_add_bool(draft, object, "fits", inspected_fits(kernel));
    if (kernel->architecture && inspected_fits(kernel))
        json_add_number(draft, object, "ctas_per_multiprocessor", occupancy(kernel));
    cJSON *mix = json_add_object(draft, object, "mix");
    for (size_t i = 0; i < kernel->mix_count; i++)
        json_add_number(draft, mix, kernel->mix[i].mnemonic, (double)kernel->mix[i].count);
}

static void add_prediction(struct inspect_report *report, const struct prediction *p)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"m", p->m},
        {"ctas", p->work.grid},
        {"bytes", (double)p->work.bytes},
        {"flops", p->work.flops},
    };
    struct json_draft *draft = &report->draft;
    cJSON *object = json_append_object(draft, report->predictions);
    json_add_string(draft, object, "entry", p->work.entry);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_add_number(draft, object, numbers[i].name, numbers[i].value);
    if (*p->work.explanation)
        json_add_string(draft, object, "explanation", p->work.explanation);
    if (p->bandwidth > 0) {
        json_add_number(draft, object, "bytes_per_second", p->bandwidth);
        json_add_number(draft, object, "floor_us", 1e6 * floor_of(p));
    }
}

/* ---- both ---- */

void inspect_report_start(struct inspect_report *report, const char *family,
                          const ptx_target *target, int ptx_version, size_t text_bytes)
{
    char name[16], version[16];
    snprintf(name, sizeof name, "sm_%d%.1s", target->sm, &target->suffix);
    snprintf(version, sizeof version, "%d.%d", ptx_version / 10, ptx_version % 10);
    if (!report->json) {
        printf("%s for %s: PTX %s, %zu bytes of text\n", family, name, version, text_bytes);
        return;
    }
    struct json_draft *draft = &report->draft;
    json_start(draft);
    json_add_string(draft, draft->root, "family", family);
    json_add_string(draft, draft->root, "target", name);
    json_add_string(draft, draft->root, "ptx_version", version);
    json_add_number(draft, draft->root, "text_bytes", (double)text_bytes);
    report->kernels = json_add_array(draft, draft->root, "kernels");
    report->predictions = json_add_array(draft, draft->root, "predictions");
}

void inspect_report_kernel(struct inspect_report *report, const struct inspected_kernel *kernel)
{
    if (report->json)
        add_kernel(report, kernel);
    else
        print_kernel(kernel);
}

void inspect_report_prediction(struct inspect_report *report, const struct prediction *prediction)
{
    if (report->json)
        add_prediction(report, prediction);
    else
        print_prediction(prediction);
}

ptxgen_status inspect_report_end(struct inspect_report *report, ptxgen_status status,
                                 ptxgen_error *err)
{
    if (report->json && status == PTXGEN_OK)
        status = json_print(&report->draft, err);
    json_free(&report->draft);
    return status;
}
