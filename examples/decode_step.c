/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of decoding as an inference program does it: open the driver, read what the device is,
 * plan a kernel for it, load it, launch it on a stream, read the result back; then compare with
 * the reference.
 *
 * Without a GPU it runs on the emulator. Exit status: 0 when the numbers agree, else 1.
 */
#include <ptxgen/device.h>
#include <ptxgen/emulator.h>
#include <ptxgen/gguf_types.h>
#include <ptxgen/rmsnorm_q4k.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { K = 1024, N = 96, TOKENS = 2 };
enum { ROW_BYTES = K / 256 * 144 }; /* of Q4_K */

struct tensors {
    float x[TOKENS][K], gamma[K], y[TOKENS][N];
    unsigned char weights[N][ROW_BYTES];
};

struct session {
    ptxgen_driver driver;
    ptxgen_device_facts facts;
    ptxgen_cu_context context;
    ptxgen_cu_stream stream;
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_cu_deviceptr x, gamma, weights, y;
};

static ptxgen_status fill(struct tensors *t, ptxgen_error *err)
{
    float row[K];
    for (int k = 0; k < K; k++) {
        t->gamma[k] = 1 + 0.1f * cosf(0.05f * (float)k);
        for (int m = 0; m < TOKENS; m++)
            t->x[m][k] = sinf(0.37f * (float)k + (float)m);
    }
    ptxgen_status status = PTXGEN_OK;
    for (int n = 0; n < N && status == PTXGEN_OK; n++) {
        for (int k = 0; k < K; k++)
            row[k] = 0.02f * sinf(0.11f * (float)(k * (n + 1)));
        status = ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q4_K, row, K, t->weights[n], ROW_BYTES, err);
    }
    return status;
}

/** Turns a failed driver call into a status and a sentence. */
static ptxgen_status check(const struct session *s, ptxgen_cu_result result, const char *what,
                           ptxgen_error *err)
{
    return result == PTXGEN_CUDA_SUCCESS ? PTXGEN_OK
                                         : ptxgen_driver_fail(&s->driver, result, err, "%s", what);
}

/** The GPU's driver, or the emulator's table where there is no GPU. */
static ptxgen_status open_driver(ptxgen_driver *driver, ptxgen_error *err)
{
    ptxgen_status status = ptxgen_driver_open(driver, NULL, err);
    if (status != PTXGEN_ERROR_NO_DRIVER && status != PTXGEN_ERROR_NO_DEVICE)
        return status;
    fprintf(stderr, "decode_step: %s\ndecode_step: running on the emulator instead\n",
            err->message);
    ptxgen_emulator_driver(driver);
    return ptxgen_driver_start(driver, err);
}

static ptxgen_status open_device(struct session *s, ptxgen_error *err)
{
    ptxgen_status status = open_driver(&s->driver, err);
    if (status == PTXGEN_OK)
        status = ptxgen_device_read(&s->driver, 0, &s->facts, err);
    if (status == PTXGEN_OK)
        status = check(s, s->driver.device_primary_ctx_retain(&s->context, 0), "a context", err);
    if (status == PTXGEN_OK)
        status = check(s, s->driver.ctx_set_current(s->context), "making it current", err);
    if (status == PTXGEN_OK)
        status = check(s, s->driver.stream_create(&s->stream, 0), "a stream", err);
    return status;
}

/** Once for each layer's shape: a plan for this device, and the plan's kernel loaded. */
static ptxgen_status load_kernel(struct session *s, ptxgen_error *err)
{
    ptxgen_rmsnorm_q4k_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.k = K;
    spec.n[0] = N;
    spec.epsilon = 1e-6f;
    spec.x_type = PTXGEN_F32;
    spec.y_type = PTXGEN_F32;
    ptxgen_target target = ptxgen_device_target(&s->facts);
    ptxgen_status status = ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &s->plan, err);
    if (status == PTXGEN_OK)
        status = ptxgen_rmsnorm_q4k_load(&s->driver, &s->plan, NULL, &s->kernel, err);
    return status;
}

static ptxgen_status upload(struct session *s, ptxgen_cu_deviceptr *to, const void *from,
                            size_t bytes, ptxgen_error *err)
{
    ptxgen_status status = check(s, s->driver.mem_alloc(to, bytes), "device memory", err);
    if (status == PTXGEN_OK)
        status = check(s, s->driver.memcpy_htod(*to, from, bytes), "a copy to the device", err);
    return status;
}

static ptxgen_status upload_tensors(struct session *s, const struct tensors *t, ptxgen_error *err)
{
    ptxgen_status status = upload(s, &s->x, t->x, sizeof t->x, err);
    if (status == PTXGEN_OK)
        status = upload(s, &s->gamma, t->gamma, sizeof t->gamma, err);
    if (status == PTXGEN_OK)
        status = upload(s, &s->weights, t->weights, sizeof t->weights, err);
    if (status == PTXGEN_OK)
        status = upload(s, &s->y, t->y, sizeof t->y, err);
    return status;
}

/** Once for each step: the launch returns at once and may be captured into a graph. */
static ptxgen_status step(struct session *s, struct tensors *t, ptxgen_error *err)
{
    ptxgen_rmsnorm_q4k_args args;
    memset(&args, 0, sizeof args);
    args.x = s->x;
    args.gamma = s->gamma;
    args.w[0] = s->weights;
    args.y[0] = s->y;
    args.m = TOKENS;
    ptxgen_status status = ptxgen_rmsnorm_q4k_launch(s->kernel, &args, s->stream, err);
    if (status == PTXGEN_OK)
        status = check(s, s->driver.memcpy_dtoh_async(t->y, s->y, sizeof t->y, s->stream),
                       "a copy from the device", err);
    if (status == PTXGEN_OK)
        status = check(s, s->driver.stream_synchronize(s->stream), "the kernel", err);
    return status;
}

static void close_device(struct session *s)
{
    if (s->context) {
        ptxgen_rmsnorm_q4k_destroy(s->kernel);
        const ptxgen_cu_deviceptr blocks[] = {s->x, s->gamma, s->weights, s->y};
        for (int i = 0; i < 4; i++)
            if (blocks[i])
                s->driver.mem_free(blocks[i]);
        if (s->stream)
            s->driver.stream_destroy(s->stream);
        s->driver.device_primary_ctx_release(0);
    }
    ptxgen_driver_close(&s->driver);
}

/** Every output against the family's own reference, in double precision with its error bound. */
static ptxgen_status compare(const struct session *s, const struct tensors *t, double *largest,
                             ptxgen_error *err)
{
    static double y[TOKENS * N], bound[TOKENS * N];
    static ptxgen_spread spread[TOKENS * N];
    ptxgen_tally tally;
    ptxgen_rmsnorm_q4k_operands operands;
    memset(&tally, 0, sizeof tally);
    memset(&operands, 0, sizeof operands);
    operands.x = t->x;
    operands.gamma = t->gamma;
    operands.w[0] = t->weights;
    operands.m = TOKENS;
    ptxgen_status status = ptxgen_rmsnorm_q4k_reference_spread(&s->plan, &operands, 0, 0, N, y,
                                                               bound, spread, NULL, err);
    *largest = 0;
    for (int i = 0; i < TOKENS * N && status == PTXGEN_OK; i++) {
        double output = (double)t->y[i / N][i % N];
        if (!ptxgen_rmsnorm_q4k_agrees(output, y[i], bound[i]))
            status = ptxgen_fail(err, PTXGEN_ERROR_DRIVER, "y[%d][%d] is %g, not %g", i / N, i % N,
                                 output, y[i]);
        *largest = fmax(*largest, fabs(output - y[i]) / bound[i]);
        ptxgen_tally_add(&tally, PTXGEN_F32, output, y[i], bound[i], &spread[i]);
    }
    if (status == PTXGEN_OK && ptxgen_tally_ratio(&tally) > 1)
        status = ptxgen_fail(err, PTXGEN_ERROR_DRIVER,
                             "each output is within its bound, but all are %g times as far off as "
                             "they may be",
                             ptxgen_tally_ratio(&tally));
    return status;
}

int main(void)
{
    static struct tensors t;
    struct session s;
    ptxgen_error err;
    memset(&s, 0, sizeof s);
    ptxgen_status status = fill(&t, &err);
    if (status == PTXGEN_OK)
        status = open_device(&s, &err);
    if (status == PTXGEN_OK)
        status = load_kernel(&s, &err);
    if (status == PTXGEN_OK)
        status = upload_tensors(&s, &t, &err);
    if (status == PTXGEN_OK)
        status = step(&s, &t, &err);
    double largest;
    if (status == PTXGEN_OK)
        status = compare(&s, &t, &largest, &err);
    if (status == PTXGEN_OK)
        printf("%s: y[0][0] = %.6f, largest error %.2g of its bound\n", s.facts.name,
               (double)t.y[0][0], largest);
    else
        fprintf(stderr, "decode_step: %s\n", err.message);
    close_device(&s);
    return status == PTXGEN_OK ? 0 : 1;
}
