/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_report.h"

#include "bench_series.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- JSON ---- */

static void add_timing(struct json_draft *json, cJSON *to, const char *name, const struct timing *t)
{
    if (!t->replays)
        return;
    cJSON *object = json_add_object(json, to, name);
    json_add_number(json, object, "median_us", 1e6 * t->median);
    json_add_number(json, object, "least_us", 1e6 * t->least);
    json_add_number(json, object, "most_us", 1e6 * t->most);
    json_add_number(json, object, "replays", t->replays);
    json_add_number(json, object, "launches", t->launches);
}

static void start_json(struct bench_report *report, const struct device *device)
{
    struct json_draft *json = &report->json;
    json_start(json);
    cJSON *root = json->root;
    json_add_string(json, root, "family", report->family);
    cJSON *on = json_add_object(json, root, "device");
    json_add_string(json, on, "name", device->facts.name);
    json_add_number(json, on, "compute_capability", device->facts.compute_capability);
    json_add_number(json, on, "multiprocessors", device->facts.sm_count);
    json_add_number(json, on, "l2_bytes", device->facts.l2_bytes);
    json_add_number(json, on, "driver_version", device->facts.driver_version);
    json_add_bool(json, on, "emulated", device->emulated);
    cJSON *ceiling = json_add_object(json, root, "read_ceiling");
    json_add_number(json, ceiling, "bytes_per_second", report->ceiling.bandwidth);
    json_add_number(json, ceiling, "bytes", (double)report->ceiling.bytes);
    json_add_number(json, ceiling, "ctas_per_multiprocessor", report->ceiling.ctas);
    add_timing(json, ceiling, "time", &report->ceiling.timing);
    json_add_string(json, root, "peer", report->peer);
    json_add_array(json, root, "rows");
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
    struct json_draft *json = &report->json;
    cJSON *object = json_append_object(json, cJSON_GetObjectItem(json->root, "rows"));
    json_add_string(json, object, "shape", s->shape);
    if (s->entry)
        json_add_string(json, object, "entry", s->entry);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_add_number(json, object, numbers[i].name, numbers[i].value);
    add_timing(json, object, "time", &row->plain);
    add_timing(json, object, "overlapped", &row->overlapped);
    add_timing(json, object, "peer", &row->peer);
    if (row->peer_missing[0])
        json_add_string(json, object, "peer_missing", row->peer_missing);
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
    if (row->peer_missing[0])
        printf("  %-11s not timed: %s\n", "peer", row->peer_missing);
    printf("  plan %.0f us, emission %.0f us, JIT %.1f ms of %" PRIu64
           " bytes; %u CTAs, %d registers, "
           "%d bytes spilled, %d shared%s%s\n",
           1e6 * s->plan_seconds, 1e6 * s->emit_seconds, 1e3 * s->jit_seconds, s->text_bytes,
           s->grid, s->registers, s->local_bytes, s->shared_bytes, s->entry ? "; " : "",
           s->entry ? s->entry : "");
}

void report_start(struct bench_report *report, const struct device *device, bool prints_json)
{
    const struct timing *t = &report->ceiling.timing;
    start_json(report, device);
    report->prints_json = prints_json;
    if (prints_json)
        return;
    printf("%s on %s, driver for CUDA %d.%d\n", report->family, device->facts.name,
           device->facts.driver_version / 1000, device->facts.driver_version % 1000 / 10);
    printf("read ceiling: %.1f GB/s (%" PRIu64 " bytes in %.1f us, %.1f to %.1f; %u CTAs a "
           "multiprocessor)\n",
           report->ceiling.bandwidth / 1e9, report->ceiling.bytes, 1e6 * t->median, 1e6 * t->least,
           1e6 * t->most, report->ceiling.ctas);
    printf("peer: %s\n", report->peer);
    fflush(stdout);
}

void report_tensor_ceiling(struct bench_report *report, const struct tensor_ceiling *tensor)
{
    const struct timing *t = &tensor->timing;
    report->tensor = *tensor;
    cJSON *object = json_add_object(&report->json, report->json.root, "tensor_ceiling");
    json_add_number(&report->json, object, "operations_per_second", tensor->rate);
    json_add_string(&report->json, object, "form", tensor->form);
    add_timing(&report->json, object, "time", t);
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

ptxgen_status report_print_end(const struct bench_report *report, ptxgen_error *err)
{
    if (report->prints_json)
        return json_print(&report->json, err);
    ptxgen_status status = json_check(&report->json, err);
    if (status == PTXGEN_OK)
        status = bench_print_cliffs(stdout, report->json.root, err);
    return status;
}

void report_end(struct bench_report *report)
{
    json_free(&report->json);
}
