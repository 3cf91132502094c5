/* SPDX-License-Identifier: Apache-2.0 */
#include "bed.h"

#include "src/cli/safetensors_writer.h"
#include "src/files/number_tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bed_setup(void **state)
{
    static struct bed b;
    int ordinal;
    ptxgen_emulator_driver(&b.driver);
    assert_int_equal(ptxgen_emulator_ordinal("cpu:sm_89", &ordinal, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_driver_start(&b.driver, NULL), PTXGEN_OK);
    assert_int_equal(b.driver.device_primary_ctx_retain(&b.context, ordinal), 0);
    assert_int_equal(b.driver.ctx_set_current(b.context), 0);
    const ptxgen_dispatch_options options = {.no_cache = true};
    assert_int_equal(ptxgen_dispatcher_create(&b.driver, &options, &b.dispatcher, NULL), PTXGEN_OK);
    folder_make(b.folder);
    snprintf(b.path, sizeof b.path, "%s/layers", b.folder);
    *state = &b;
    return 0;
}

int bed_teardown(void **state)
{
    struct bed *b = *state;
    ptxgen_dispatcher_destroy(b->dispatcher);
    b->driver.device_primary_ctx_release(0);
    folder_remove(b->folder);
    return 0;
}

/* ---- files ---- */

void describe(struct description *d, const char *name, ptxgen_dtype dtype, uint64_t rows,
              uint64_t columns, const void *data)
{
    assert_true(d->count < DESCRIBED);
    ptxgen_tensor *t = &d->items[d->count++];
    *t = (ptxgen_tensor){.name = name,
                         .dtype = dtype,
                         .ndim = columns ? 2 : 1,
                         .shape = {rows, columns},
                         .data = data};
    assert_int_equal(tensor_measure(t, NULL), PTXGEN_OK);
}

ptxgen_files *open_file(const char *path)
{
    ptxgen_files *files;
    ptxgen_error err = {0};
    if (ptxgen_files_open(path, &files, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    return files;
}

ptxgen_files *write_and_open(struct bed *bed, const struct description *d)
{
    struct safetensors_writer *w;
    assert_int_equal(safetensors_writer_open(bed->path, true, &w, NULL), PTXGEN_OK);
    for (unsigned i = 0; i < d->count; i++)
        assert_int_equal(safetensors_writer_declare(w, &d->items[i], NULL), PTXGEN_OK);
    for (unsigned i = 0; i < d->count; i++)
        assert_int_equal(safetensors_writer_append(w, d->items[i].data, d->items[i].bytes, NULL),
                         PTXGEN_OK);
    assert_int_equal(safetensors_writer_finish(w, NULL), PTXGEN_OK);
    return open_file(bed->path);
}

double *numbers_of(const ptxgen_files *files, const char *name, size_t *count)
{
    const ptxgen_tensor *t;
    assert_int_equal(ptxgen_files_require(files, name, &t, NULL), PTXGEN_OK);
    *count = tensor_count(t);
    double *numbers = malloc(*count * sizeof *numbers);
    for (size_t i = 0; i < *count; i++)
        numbers[i] = tensor_number(t, i);
    return numbers;
}

/* ---- layers ---- */

ptxgen_layer find_layer(const ptxgen_files *files, const char *name,
                        const ptxgen_layer_choice *choice)
{
    ptxgen_layer layer;
    ptxgen_error err = {0};
    if (ptxgen_files_layer(files, name, choice, &layer, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    return layer;
}

ptxgen_linear *make_linear(const struct bed *bed, const ptxgen_layer *layer, const ptxgen_layer *up,
                           const ptxgen_linear_options *options)
{
    ptxgen_linear *linear;
    ptxgen_error err = {0};
    if (ptxgen_linear_from_layer(bed->dispatcher, layer, up, options, &linear, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    return linear;
}

double *run_linear(const struct bed *bed, const ptxgen_linear *linear, ptxgen_element type,
                   const double *x, bool codes, uint64_t m)
{
    const ptxgen_driver *driver = &bed->driver;
    size_t x_count = m * ptxgen_linear_k(linear), y_count = m * ptxgen_linear_n(linear);
    size_t size = ptxgen_element_size(type);
    unsigned char *host = calloc(x_count + y_count + 1, size);
    double *y = malloc((y_count + 1) * sizeof *y);
    ptxgen_cu_deviceptr on_x, on_y;
    ptxgen_error err = {0};
    for (size_t i = 0; i < x_count; i++)
        if (codes)
            ((int8_t *)host)[i] = (int8_t)x[i];
        else
            ptxgen_element_store(type, host, i, x[i]);
    assert_int_equal(driver->mem_alloc(&on_x, x_count * size), 0);
    assert_int_equal(driver->mem_alloc(&on_y, y_count * size), 0);
    assert_int_equal(driver->memcpy_htod(on_x, host, x_count * size), 0);
    assert_int_equal(driver->memset_d8(on_y, 0xFF, y_count * size), 0);
    const ptxgen_linear_args args = {.m = m, .x = on_x, .y = on_y, .y_bytes = y_count * size};
    if (ptxgen_linear_run(linear, &args, NULL, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    assert_int_equal(driver->ctx_synchronize(), 0);
    assert_int_equal(driver->memcpy_dtoh(host, on_y, y_count * size), 0);
    for (size_t i = 0; i < y_count; i++)
        y[i] = ptxgen_element_load(type, host, i);
    driver->mem_free(on_x);
    driver->mem_free(on_y);
    free(host);
    return y;
}

void assert_near(const double *y, const double *expected, const double *magnitude, size_t count,
                 double tolerance)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs(y[i] - expected[i]) <= tolerance * (1 + (magnitude ? magnitude[i] : 0))))
            fail_msg("output %zu is %g, not %g", i, y[i], expected[i]);
}
