/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer of a checkpoint in any form that a family multiplies, on the first GPU, or on the
 * emulator: layer_of_file FILE LAYER. x is ones, so each output is the sum of a row of weights.
 */
#include <ptxgen/emulator.h>
#include <ptxgen/linear.h>

#include <stdio.h>
#include <stdlib.h>

static int fail(const ptxgen_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

/* The outputs of one token, whose x is ones, in f16; NULL and a sentence after a failure. */
static uint16_t *run(const ptxgen_driver *cuda, const ptxgen_linear *linear, ptxgen_error *err)
{
    size_t k = ptxgen_linear_k(linear), n = ptxgen_linear_n(linear);
    ptxgen_cu_deviceptr x = 0, y = 0;
    uint16_t *ones = malloc(k * sizeof *ones), *outputs = malloc(n * sizeof *outputs);
    for (size_t i = 0; ones && i < k; i++)
        ones[i] = 0x3C00;
    ptxgen_status status = PTXGEN_OK;
    if (!ones || !outputs || cuda->mem_alloc(&x, k * sizeof *ones) ||
        cuda->mem_alloc(&y, n * sizeof *outputs) || cuda->memcpy_htod(x, ones, k * sizeof *ones))
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for x and y");
    const ptxgen_linear_args args = {.m = 1, .x = x, .y = y};
    if (status == PTXGEN_OK)
        status = ptxgen_linear_run(linear, &args, NULL, err);
    if (status == PTXGEN_OK && cuda->memcpy_dtoh(outputs, y, n * sizeof *outputs))
        status = ptxgen_fail(err, PTXGEN_ERROR_DRIVER, "the outputs cannot be copied");
    free(ones);
    if (status == PTXGEN_OK)
        return outputs;
    free(outputs);
    return NULL;
}

int main(int argc, char **argv)
{
    const ptxgen_linear_options options = {.type = PTXGEN_F16, .max_m = 16};
    ptxgen_driver cuda;
    ptxgen_cu_context context;
    ptxgen_dispatcher *dispatcher;
    ptxgen_files *files;
    ptxgen_layer layer;
    ptxgen_linear *linear;
    ptxgen_error err = {0};
    if (argc != 3)
        return fprintf(stderr, "usage: %s FILE LAYER\n", argv[0]), 2;
    if (ptxgen_driver_open(&cuda, NULL, &err))
        ptxgen_emulator_driver(&cuda); /* no GPU: a CPU that runs PTX, slowly */
    if (ptxgen_driver_start(&cuda, &err) || cuda.ctx_create(&context, 0, 0) ||
        ptxgen_dispatcher_create(&cuda, NULL, &dispatcher, &err) ||
        ptxgen_files_open(argv[1], &files, &err) ||
        ptxgen_files_layer(files, argv[2], NULL, &layer, &err) ||
        ptxgen_linear_from_layer(dispatcher, &layer, NULL, &options, &linear, &err))
        return fail(&err);
    ptxgen_files_close(files);
    uint16_t *y = run(&cuda, linear, &err);
    if (!y)
        return fail(&err);
    printf("%s, %u by %u: the first output is %g\n", ptxgen_linear_family(linear),
           ptxgen_linear_n(linear), ptxgen_linear_k(linear), ptxgen_element_load(PTXGEN_F16, y, 0));
    free(y);
    ptxgen_linear_destroy(linear);
    ptxgen_dispatcher_destroy(dispatcher);
    return cuda.ctx_destroy(context) ? 1 : 0;
}
