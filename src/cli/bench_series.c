/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

enum { SHAPE_SIZE = 160 };

static const char *string_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(object, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* A positive number; 0 for anything else. */
static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(object, name);
    double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
    return value > 0 && isfinite(value) ? value : 0;
}

static double median_of(const cJSON *row, const char *name)
{
    return number_of(cJSON_GetObjectItem(row, name), "median_us");
}

static ptxgen_status read_point(const cJSON *row, struct bench_point *p, ptxgen_error *err)
{
    *p = (struct bench_point){.m = number_of(row, "m"),
                              .ours = median_of(row, "time"),
                              .overlapped = median_of(row, "overlapped"),
                              .peer = median_of(row, "peer"),
                              .floor = number_of(row, "floor_us")};
    if (p->m > 0 && p->ours > 0)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                       "a row of the JSON has no \"m\" or no \"time\" of a positive \"median_us\"");
}

/* The shape without the tokens of a launch, " M=16". */
static void name_shape(const char *shape, double m, char *name, size_t size)
{
    char tokens[32];
    int length = snprintf(tokens, sizeof tokens, " M=%.0f", m);
    const char *found = strstr(shape, tokens);
    snprintf(name, size, "%.*s%s", found ? (int)(found - shape) : (int)strlen(shape), shape,
             found ? found + length : "");
}

static void name_series(const cJSON *bench, const char *shape, struct bench_series *s)
{
    const char *family = string_of(bench, "family");
    const char *device = string_of(cJSON_GetObjectItem(bench, "device"), "name");
    snprintf(s->name, sizeof s->name, "%.64s %s on %.256s", family ? family : "?", shape,
             device ? device : "?");
    for (char *c = s->name; *c; c++)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            *c = '?';
}

static int by_m(const void *a, const void *b)
{
    double x = ((const struct bench_point *)a)->m, y = ((const struct bench_point *)b)->m;
    return (x > y) - (x < y);
}

static ptxgen_status read_rows(const cJSON *rows, size_t *at, const char *shape,
                               struct bench_series *s, ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    const cJSON *row = cJSON_GetArrayItem(rows, (int)*at);
    for (; status == PTXGEN_OK && row; row = row->next) {
        char name[SHAPE_SIZE];
        const char *text = string_of(row, "shape");
        name_shape(text ? text : "", number_of(row, "m"), name, sizeof name);
        if (strcmp(name, shape) != 0)
            break;
        status = read_point(row, &s->points[s->count++], err);
        ++*at;
    }
    return status;
}

ptxgen_status bench_series_read(const cJSON *bench, size_t *at, struct bench_series *s,
                                ptxgen_error *err)
{
    const cJSON *rows = cJSON_GetObjectItem(bench, "rows");
    *s = (struct bench_series){.peer = string_of(bench, "peer")};
    if (!cJSON_IsArray(rows))
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "the JSON has no array \"rows\"");
    size_t count = (size_t)cJSON_GetArraySize(rows);
    if (*at >= count)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the JSON has no rows");
    const cJSON *first = cJSON_GetArrayItem(rows, (int)*at);
    const char *text = string_of(first, "shape");
    char shape[SHAPE_SIZE];
    name_shape(text ? text : "", number_of(first, "m"), shape, sizeof shape);
    name_series(bench, shape, s);
    s->points = calloc(count - *at, sizeof *s->points);
    if (!s->points)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu rows", count - *at);
    ptxgen_status status = read_rows(rows, at, shape, s, err);
    if (status == PTXGEN_OK)
        qsort(s->points, s->count, sizeof *s->points, by_m);
    else
        bench_series_free(s);
    return status;
}

void bench_series_free(struct bench_series *s)
{
    free(s->points);
    *s = (struct bench_series){.count = 0};
}

/* ---- cliffs ---- */

/* How much longer than the fastest larger M, which is returned in *than. */
static double behind(const struct bench_series *s, size_t point, size_t *than)
{
    double least = INFINITY;
    for (size_t i = point + 1; i < s->count; i++)
        if (s->points[i].ours < least) {
            least = s->points[i].ours;
            *than = i;
        }
    return s->points[point].ours / least - 1;
}

int bench_next_cliff(const struct bench_series *s, size_t *point, struct bench_cliff *cliff)
{
    const double tolerated = 0.05;
    *cliff = (struct bench_cliff){.by = 0};
    for (size_t i = *point, than = 0; i < s->count; i++) {
        double by = behind(s, i, &than);
        *point = i + 1;
        if (by <= tolerated) {
            if (cliff->by > 0)
                return 1;
            continue;
        }
        if (cliff->by <= 0)
            cliff->from_m = s->points[i].m;
        cliff->to_m = s->points[i].m;
        if (by > cliff->by) {
            cliff->by = by;
            cliff->worst_m = s->points[i].m;
            cliff->than_m = s->points[than].m;
        }
    }
    return cliff->by > 0;
}

static void print_cliffs(FILE *out, const struct bench_series *s)
{
    struct bench_cliff c;
    size_t at = 0;
    int count = 0;
    for (; bench_next_cliff(s, &at, &c); count++) {
        fprintf(out, "cliff: M=%.0f", c.from_m);
        if (c.to_m > c.from_m)
            fprintf(out, " to %.0f", c.to_m);
        fprintf(out, "; M=%.0f takes %.1f %% longer than M=%.0f\n", c.worst_m, 100 * c.by,
                c.than_m);
    }
    if (!count && s->count > 1)
        fprintf(out, "no cliffs: no M takes more than 5 %% longer than a larger one\n");
}

ptxgen_status bench_print_cliffs(FILE *out, const cJSON *bench, ptxgen_error *err)
{
    struct bench_series s;
    size_t row = 0;
    ptxgen_status status;
    while ((status = bench_series_read(bench, &row, &s, err)) == PTXGEN_OK) {
        print_cliffs(out, &s);
        bench_series_free(&s);
    }
    return status == PTXGEN_ERROR_OUT_OF_MEMORY ? status : PTXGEN_OK;
}
