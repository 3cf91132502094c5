/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_report.h"

#include "bench_series.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- JSON ---- */

static void add_timing(cJSON *to, const char *name, const struct timing *t)
{
    if (!t->replays)
        return;
    cJSON *object = cJSON_AddObjectToObject(to, name);
    cJSON_AddNumberToObject(object, "median_us", 1e6 * t->median);
    cJSON_AddNumberToObject(object, "least_us", 1e6 * t->least);
    cJSON_AddNumberToObject(object, "most_us", 1e6 * t->most);
    cJSON_AddNumberToObject(object, "replays", t->replays);
    cJSON_AddNumberToObject(object, "launches", t->launches);
}

static cJSON *start_json(const struct bench_report *report, const struct device *device)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "family", report->family);
    cJSON *on = cJSON_AddObjectToObject(json, "device");
    cJSON_AddStringToObject(on, "name", device->facts.name);
    cJSON_AddNumberToObject(on, "compute_capability", device->facts.compute_capability);
    cJSON_AddNumberToObject(on, "multiprocessors", device->facts.sm_count);
    cJSON_AddNumberToObject(on, "l2_bytes", device->facts.l2_bytes);
    cJSON_AddNumberToObject(on, "driver_version", device->facts.driver_version);
    cJSON_AddBoolToObject(on, "emulated", device->emulated);
    cJSON *ceiling = cJSON_AddObjectToObject(json, "read_ceiling");
    cJSON_AddNumberToObject(ceiling, "bytes_per_second", report->ceiling.bandwidth);
    cJSON_AddNumberToObject(ceiling, "bytes", (double)report->ceiling.bytes);
    cJSON_AddNumberToObject(ceiling, "ctas_per_multiprocessor", report->ceiling.ctas);
    add_timing(ceiling, "time", &report->ceiling.timing);
    cJSON_AddStringToObject(json, "peer", report->peer);
    cJSON_AddArrayToObject(json, "rows");
    return json;
}

/* Seconds that no kernel takes less than: to read and write its bytes, and to multiply. */
static double floor_of(const struct bench_report *report, const struct bench_subject *s)
{
    double bytes = (double)s->bytes / report->ceiling.bandwidth;
    double operations =
        s->tensor_f16 && report->tensor.rate > 0 ? s->flops / report->tensor.rate : 0;
    return bytes > operations ? bytes : operations;
}

static void add_row(struct bench_report *report, const struct bench_row *row)
{
    const struct bench_subject *s = &row->subject;
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"k", s->k},
        {"n", s->n},
        {"m", s->m},
        {"bytes", (double)s->bytes},
        {"flops", s->flops},
        {"weight_bytes", (double)s->weight_bytes},
        {"weight_copies", s->copies},
        {"floor_us", 1e6 * floor_of(report, s)},
        {"fraction_of_ceiling", (double)s->bytes / row->plain.median / report->ceiling.bandwidth},
        {"plan_us", 1e6 * s->plan_seconds},
        {"emit_us", 1e6 * s->emit_seconds},
        {"jit_ms", 1e3 * s->jit_seconds},
        {"text_bytes", (double)s->text_bytes},
        {"grid", s->grid},
        {"registers", s->registers},
        {"local_bytes", s->local_bytes},
        {"shared_bytes", s->shared_bytes},
    };
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "shape", s->shape);
    if (s->entry)
        cJSON_AddStringToObject(object, "entry", s->entry);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cJSON_AddNumberToObject(object, numbers[i].name, numbers[i].value);
    add_timing(object, "time", &row->plain);
    add_timing(object, "overlapped", &row->overlapped);
    add_timing(object, "peer", &row->peer);
    cJSON_AddItemToArray(cJSON_GetObjectItem(report->json, "rows"), object);
}

/* ---- lines ---- */

static void print_timing(const char *name, const struct timing *t, uint64_t bytes, double ceiling,
                         double flops)
{
    if (!t->replays)
        return;
    printf("  %-11s %9.2f us  (%.2f to %.2f)", name, 1e6 * t->median, 1e6 * t->least,
           1e6 * t->most);
    if (bytes)
        printf("  %5.1f %% of the ceiling", 100 * (double)bytes / t->median / ceiling);
    if (flops >= 1e9)
        printf("  %6.1f TFLOP/s", flops / t->median / 1e12);
    putchar('\n');
}

static void print_row(const struct bench_report *report, const struct bench_row *row)
{
    const struct bench_subject *s = &row->subject;
    double ceiling = report->ceiling.bandwidth;
    printf("%s  floor %.2f us, %" PRIu64 " bytes; weights %u times\n", s->shape,
           1e6 * floor_of(report, s), s->bytes, s->copies);
    print_timing("ptxgen", &row->plain, s->bytes, ceiling, s->flops);
    print_timing("overlapped", &row->overlapped, s->bytes, ceiling, s->flops);
    print_timing("peer", &row->peer, 0, ceiling, s->flops);
    printf("  plan %.0f us, emission %.0f us, JIT %.1f ms of %" PRIu64
           " bytes; %u CTAs, %d registers, "
           "%d bytes spilled, %d shared%s%s\n",
           1e6 * s->plan_seconds, 1e6 * s->emit_seconds, 1e3 * s->jit_seconds, s->text_bytes,
           s->grid, s->registers, s->local_bytes, s->shared_bytes, s->entry ? "; " : "",
           s->entry ? s->entry : "");
}

bool report_start(struct bench_report *report, const struct device *device, bool prints_json)
{
    const struct timing *t = &report->ceiling.timing;
    report->json = start_json(report, device);
    report->prints_json = prints_json;
    if (!report->json || prints_json)
        return report->json;
    printf("%s on %s, driver for CUDA %d.%d\n", report->family, device->facts.name,
           device->facts.driver_version / 1000, device->facts.driver_version % 1000 / 10);
    printf("read ceiling: %.1f GB/s (%" PRIu64 " bytes in %.1f us, %.1f to %.1f; %u CTAs a "
           "multiprocessor)\n",
           report->ceiling.bandwidth / 1e9, report->ceiling.bytes, 1e6 * t->median, 1e6 * t->least,
           1e6 * t->most, report->ceiling.ctas);
    printf("peer: %s\n", report->peer);
    fflush(stdout);
    return true;
}

void report_tensor_ceiling(struct bench_report *report, const struct tensor_ceiling *tensor)
{
    const struct timing *t = &tensor->timing;
    report->tensor = *tensor;
    cJSON *object = cJSON_AddObjectToObject(report->json, "tensor_ceiling");
    cJSON_AddNumberToObject(object, "operations_per_second", tensor->rate);
    cJSON_AddStringToObject(object, "form", tensor->form);
    add_timing(object, "time", t);
    if (report->prints_json)
        return;
    printf("tensor ceiling, f16: %.1f TFLOP/s (%s; %.1f us, %.1f to %.1f)\n", tensor->rate / 1e12,
           tensor->form, 1e6 * t->median, 1e6 * t->least, 1e6 * t->most);
    fflush(stdout);
}

void report_row(struct bench_report *report, const struct bench_row *row)
{
    add_row(report, row);
    if (report->prints_json)
        return;
    print_row(report, row);
    fflush(stdout);
}

void report_print_end(const struct bench_report *report)
{
    if (!report->prints_json) {
        bench_print_cliffs(stdout, report->json);
        return;
    }
    char *text = cJSON_Print(report->json);
    if (text)
        puts(text);
    cJSON_free(text);
}

void report_end(struct bench_report *report)
{
    cJSON_Delete(report->json);
    report->json = NULL;
}
