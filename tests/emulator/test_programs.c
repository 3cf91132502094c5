/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA C programs as nvcc and clang compile them (programs/README.md), with the answers computed
 * here in plain C.
 */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed_state = 12345;

static uint32_t next_random(void)
{
    seed_state = seed_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed_state >> 33);
}

static void open_program(struct bench *bench, const char *device, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.ptx", PROGRAMS_DIR, name);
    char *text = bench_file(path, NULL);
    bench_open(bench, device);
    bench_load(bench, text);
    free(text);
}

/* Every test runs for each compiler's text. */
static void check_reduce(const char *name)
{
    struct bench bench;
    enum { N = 10000 };
    static float x[N];
    float sum = 0, got;
    for (int i = 0; i < N; i++)
        sum += x[i] = (float)(next_random() % 64);
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr px = bench_buffer(&bench, x, sizeof x), ps = bench_buffer(&bench, NULL, 4);
    int n = N;
    bench_run(&bench, "reduce", 6, 192, (void *[]){&px, &ps, &n});
    bench_read(&bench, &got, ps, 4);
    assert_true(got == sum);
    bench_close(&bench);
}

static void check_transpose(const char *name)
{
    struct bench bench;
    enum { W = 70, H = 45 };
    static int in[H * W], out[W * H];
    for (int i = 0; i < W * H; i++)
        in[i] = (int)next_random();
    open_program(&bench, "cpu:sm_80", name);
    bench.grid_y = 2;
    bench.block_y = 8;
    ptxgen_cu_deviceptr pi = bench_buffer(&bench, in, sizeof in),
                        po = bench_blank(&bench, sizeof out);
    int w = W, h = H;
    bench_run(&bench, "transpose", 3, 32, (void *[]){&pi, &po, &w, &h});
    bench_read(&bench, out, po, sizeof out);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            assert_int_equal(out[x * H + y], in[y * W + x]);
    bench_close(&bench);
}

static void check_histogram(const char *name)
{
    struct bench bench;
    enum { N = 5000 };
    static uint8_t data[N];
    uint32_t want[256] = {0}, got[256];
    for (int i = 0; i < N; i++)
        want[data[i] = (uint8_t)(next_random() % 200)]++;
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr pd = bench_buffer(&bench, data, sizeof data);
    ptxgen_cu_deviceptr pb = bench_buffer(&bench, NULL, sizeof got);
    int n = N;
    bench_run(&bench, "histogram", 4, 128, (void *[]){&pd, &pb, &n});
    bench_read(&bench, got, pb, sizeof got);
    assert_memory_equal(got, want, sizeof got);
    bench_close(&bench);
}

static void check_collatz(const char *name)
{
    struct bench bench;
    enum { N = 300 };
    static uint32_t start[N], steps[N], peak[N];
    for (int i = 0; i < N; i++)
        start[i] = next_random() % 100000;
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr ps = bench_buffer(&bench, start, sizeof start);
    ptxgen_cu_deviceptr pc = bench_blank(&bench, sizeof steps),
                        pp = bench_blank(&bench, sizeof peak);
    int n = N;
    bench_run(&bench, "collatz", 3, 128, (void *[]){&ps, &pc, &pp, &n});
    bench_read(&bench, steps, pc, sizeof steps);
    bench_read(&bench, peak, pp, sizeof peak);
    for (int i = 0; i < N; i++) {
        uint64_t x = start[i], top = x;
        uint32_t count = 0;
        while (x > 1) {
            count++;
            x = x % 2 ? 3 * x + 1 : x / 2;
            top = x > top ? x : top;
        }
        assert_int_equal(steps[i], count);
        assert_int_equal(peak[i], top % 1000003);
    }
    bench_close(&bench);
}

static void check_scan(const char *name)
{
    struct bench bench;
    enum { N = 512 };
    static int in[N], out[N];
    for (int i = 0; i < N; i++)
        in[i] = (int)(next_random() % 1000) - 500;
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr pi = bench_buffer(&bench, in, sizeof in),
                        po = bench_blank(&bench, sizeof out);
    bench_run(&bench, "scan", 2, 256, (void *[]){&pi, &po});
    bench_read(&bench, out, po, sizeof out);
    for (int i = 0, sum = 0; i < N; i++) {
        sum = (i % 256 ? sum : 0) + in[i];
        assert_int_equal(out[i], sum);
    }
    bench_close(&bench);
}

static void check_matmul(const char *name)
{
    struct bench bench;
    enum { N = 48 };
    static float a[N * N], b[N * N], c[N * N];
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(int)(next_random() % 17) - 8;
        b[i] = (float)(int)(next_random() % 17) - 8;
    }
    open_program(&bench, "cpu:sm_80", name);
    bench.grid_y = 3;
    bench.block_y = 16;
    ptxgen_cu_deviceptr pa = bench_buffer(&bench, a, sizeof a),
                        pb = bench_buffer(&bench, b, sizeof b);
    ptxgen_cu_deviceptr pc = bench_blank(&bench, sizeof c);
    int n = N;
    bench_run(&bench, "matmul", 3, 16, (void *[]){&pa, &pb, &pc, &n});
    bench_read(&bench, c, pc, sizeof c);
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++) {
            float sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[y * N + k] * b[k * N + x];
            assert_true(c[y * N + x] == sum);
        }
    bench_close(&bench);
}

static int machine_apply(int op, int a, int b)
{
    switch (op) {
    case 0: return (int)((unsigned)a + (unsigned)b);
    case 1: return (int)((unsigned)a - (unsigned)b);
    case 2: return (int)((unsigned)a * (unsigned)b);
    case 3: return b == 0 ? 0 : b == -1 ? (int)(0u - (unsigned)a) : a / b;
    case 4: return a ^ b;
    case 5: return a & b;
    case 6: return a | b;
    case 7: return (int)((unsigned)a << (b & 7));
    default: return 1 << 20;
    }
}

static void check_machine(const char *name)
{
    struct bench bench;
    enum { N = 96, LENGTH = 60 };
    static int code[LENGTH], input[N], out[N];
    for (int i = 0; i < LENGTH; i++)
        code[i] = (int)(next_random() % 1000);
    for (int i = 0; i < N; i++)
        input[i] = (int)next_random();
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr pc = bench_buffer(&bench, code, sizeof code);
    ptxgen_cu_deviceptr pi = bench_buffer(&bench, input, sizeof input);
    ptxgen_cu_deviceptr po = bench_blank(&bench, sizeof out);
    int length = LENGTH;
    bench_run(&bench, "machine", 2, 48, (void *[]){&pc, &pi, &po, &length});
    bench_read(&bench, out, po, sizeof out);
    for (int t = 0; t < N; t++) {
        int stack[16], depth = 0;
        stack[depth++] = input[t];
        for (int i = 0; i < LENGTH; i++) {
            int op = (code[i] + t) % 10;
            if (op == 9 || depth < 2) {
                if (depth < 16)
                    stack[depth++] = code[i] * 3 + t;
                continue;
            }
            int b = stack[--depth], a = stack[--depth];
            stack[depth++] = machine_apply(op, a, b);
        }
        unsigned sum = 0;
        for (int i = 0; i < depth; i++)
            sum = sum * 31 + (unsigned)stack[i];
        assert_int_equal((unsigned)out[t], sum);
    }
    bench_close(&bench);
}

static int ascending(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void check_bitonic(const char *name)
{
    struct bench bench;
    enum { N = 256 };
    uint32_t keys[2 * N], want[2 * N];
    for (int i = 0; i < 2 * N; i++)
        want[i] = keys[i] = next_random();
    qsort(want, N, 4, ascending);
    qsort(want + N, N, 4, ascending);
    open_program(&bench, "cpu:sm_80", name);
    bench.dynamic_bytes = N * 4;
    ptxgen_cu_deviceptr pk = bench_buffer(&bench, keys, sizeof keys);
    bench_run(&bench, "bitonic", 2, N, (void *[]){&pk});
    bench_read(&bench, keys, pk, sizeof keys);
    assert_memory_equal(keys, want, sizeof keys);
    bench_close(&bench);
}

static void check_sieve(const char *name)
{
    static const uint32_t primes[] = {2, 3, 5, 7, 11, 13};
    struct bench bench;
    struct {
        uint32_t first, last;
        uint8_t mark;
    } range = {1000, 1200, 7};
    uint8_t composite[256] = {0}, out[256];
    for (uint32_t i = 0; i < 256; i++)
        for (int p = 0; p < 6; p++)
            if ((range.first + i) % primes[p] == 0)
                composite[i] = range.mark;
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr po = bench_buffer(&bench, NULL, sizeof out);
    bench_run(&bench, "sieve", 1, 256, (void *[]){&po, &range});
    bench_read(&bench, out, po, sizeof out);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(out[i], i < 200 ? composite[i] + composite[255 - i] : 0);
    bench_close(&bench);
}

/* ---- programs for nvcc alone ---- */

static void check_halves(const char *name)
{
    struct bench bench;
    enum { N = 64 };
    float x[N], y[N], out[3 * N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)(int)(next_random() % 64 - 32) * 0.125f;
        y[i] = (float)(int)(next_random() % 64 - 32) * 0.25f;
    }
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr px = bench_buffer(&bench, x, sizeof x),
                        py = bench_buffer(&bench, y, sizeof y);
    ptxgen_cu_deviceptr po = bench_blank(&bench, sizeof out);
    int n = N;
    bench_run(&bench, "halves", 2, 32, (void *[]){&px, &py, &po, &n});
    bench_read(&bench, out, po, sizeof out);
    for (int i = 0; i < N; i++) {
        float low = x[i] * y[i] + x[i] * x[i], high = y[i] * 0.5f + y[i] * y[i];
        float sum = low + (high > 0.25f ? high : 0.25f);
        assert_true(fabsf(out[3 * i] - low) <= 0x1p-11f * fabsf(low));
        assert_true(fabsf(out[3 * i + 1] - sum) <= 0x1p-10f * fabsf(sum));
        assert_true(fabsf(out[3 * i + 2] - (x[i] - y[i]) * (x[i] - y[i])) <=
                    0.005f * out[3 * i + 2]);
    }
    bench_close(&bench);
}

static uint32_t byte_perm(uint32_t a, uint32_t b, uint32_t select)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (uint32_t)(bytes >> (8 * (select >> (4 * i) & 7)) & 0xff) << (8 * i);
    return result;
}

static uint64_t reverse_bits(uint64_t x, int bits)
{
    uint64_t result = 0;
    for (int i = 0; i < bits; i++)
        result |= (x >> i & 1) << (bits - 1 - i);
    return result;
}

static uint32_t dot4(uint32_t a, uint32_t b, int is_signed)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += is_signed ? (uint32_t)((int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i))
                         : (uint32_t)((uint8_t)(a >> 8 * i) * (uint8_t)(b >> 8 * i));
    return sum;
}

__extension__ typedef unsigned __int128 u128;

static uint64_t integers_of(uint64_t a, uint64_t b)
{
    int64_t s = (int64_t)a >> 3, t = (int64_t)b;
    uint32_t low = (uint32_t)a, high = (uint32_t)(a >> 32);
    u128 wide = (u128)a * b + a;
    uint64_t r = a / b + a % b + (uint64_t)(t == -1 ? -s : s / t) + (uint64_t)(t == -1 ? 0 : s % t);
    r += (uint64_t)(((u128)a * b) >> 64) ^ (uint64_t)(wide >> 64) ^ (uint64_t)wide;
    r += (uint64_t)(__builtin_popcountll(a) + 3 * __builtin_clzll(b) +
                    5 * __builtin_ffsll((long long)a) + (int64_t)0);
    r += (uint32_t)reverse_bits(low, 32) + reverse_bits(b, 64);
    r ^= (uint64_t)byte_perm(low, high, low & 0x7777) << 7;
    uint32_t sad = (int32_t)low > (int32_t)high ? low - high : high - low;
    int64_t first = (int32_t)(dot4(low, high, 1) + 17);
    r += (uint64_t)((uint32_t)first + (dot4(low, high, 0) + 19u) + (sad + 3u));
    uint64_t funnel = (uint64_t)high << 32 | low;
    r ^= (uint32_t)((uint32_t)(funnel << (low & 31) >> 32) + (uint32_t)(funnel >> (high & 31)));
    int64_t m24 = (int64_t)((int32_t)(low << 8) >> 8) * ((int32_t)(high << 8) >> 8);
    r += (uint32_t)((uint32_t)m24 + (uint32_t)(((uint64_t)low * high) >> 32) +
                    (uint32_t)(((int64_t)(int32_t)low * (int32_t)high) >> 32));
    return r;
}

static void check_integers(const char *name)
{
    struct bench bench;
    enum { N = 128 };
    uint64_t x[N], out[N];
    for (int i = 0; i < N; i++) {
        x[i] = (uint64_t)next_random() << 33 ^ (uint64_t)next_random() << 10 ^ next_random();
        x[i] = i % 5 == 0 ? x[i] >> 40 : x[i];
    }
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr px = bench_buffer(&bench, x, sizeof x),
                        po = bench_blank(&bench, sizeof out);
    int n = N;
    bench_run(&bench, "integers", 2, 64, (void *[]){&px, &po, &n});
    bench_read(&bench, out, po, sizeof out);
    for (int i = 0; i < N; i++)
        if (out[i] != integers_of(x[i], x[(i + 1) % N] | 1))
            fail_msg("out[%d] is %llx, not %llx", i, (unsigned long long)out[i],
                     (unsigned long long)integers_of(x[i], x[(i + 1) % N] | 1));
    bench_close(&bench);
}

static void check_lock(const char *name)
{
    struct bench bench;
    enum { N = 4000, BLOCKS = 9 };
    static double x[N];
    double sum = 0, got;
    int inside;
    for (int i = 0; i < N; i++)
        sum += x[i] = (double)(next_random() % 1000);
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr px = bench_buffer(&bench, x, sizeof x);
    ptxgen_cu_deviceptr pp = bench_blank(&bench, BLOCKS * 8), pt = bench_blank(&bench, 8);
    ptxgen_cu_deviceptr pi = bench_buffer(&bench, NULL, 4);
    int n = N;
    bench_run(&bench, "lock", BLOCKS, 64, (void *[]){&px, &pp, &pt, &pi, &n});
    bench_read(&bench, &got, pt, 8);
    bench_read(&bench, &inside, pi, 4);
    assert_true(got == sum);
    assert_int_equal(inside, BLOCKS * 4);
    bench_close(&bench);
}

static void check_pipeline(const char *name)
{
    struct bench bench;
    enum { TILES = 5, BLOCKS = 2, N = TILES * BLOCKS * 64 * 4 };
    static float in[N], out[N];
    for (int i = 0; i < N; i++)
        in[i] = (float)(next_random() % 100);
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr pi = bench_buffer(&bench, in, sizeof in),
                        po = bench_blank(&bench, sizeof out);
    int tiles = TILES;
    bench_run(&bench, "pipeline", BLOCKS, 64, (void *[]){&pi, &po, &tiles});
    bench_read(&bench, out, po, sizeof out);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == in[i] + in[i / 256 * 256 + (i + 4) % 256]);
    bench_close(&bench);
}

static void check_cluster(const char *name)
{
    struct bench bench;
    enum { N = 8 * 64 };
    int in[N], out[N];
    for (int i = 0; i < N; i++)
        in[i] = (int)(next_random() % 1000);
    open_program(&bench, "cpu:sm_90", name);
    ptxgen_cu_deviceptr pi = bench_buffer(&bench, in, sizeof in),
                        po = bench_blank(&bench, sizeof out);
    bench_run(&bench, "cluster", 8, 64, (void *[]){&pi, &po});
    bench_read(&bench, out, po, sizeof out);
    for (int block = 0; block < 8; block++)
        for (int t = 0; t < 64; t++) {
            int sum = 0;
            for (int r = 0; r < 4; r++)
                sum = sum * 3 + in[(block / 4 * 4 + (block % 4 + r) % 4) * 64 + 63 - t];
            assert_int_equal(out[block * 64 + t], sum);
        }
    bench_close(&bench);
}

static uint32_t votes_of(const int *in, int lane)
{
    uint32_t odd = 0, match = 0, sum = 0, fours = 0, least = 0xffffffffu;
    int any = 0, all = 1, most = in[0];
    for (int l = 0; l < 32; l++) {
        odd |= (uint32_t)(in[l] & 1) << l;
        match |= (uint32_t)(in[l] % 5 == in[lane] % 5) << l;
        any |= in[l] > 90;
        all &= in[l] < 100;
        sum += (uint32_t)in[l];
        most = in[l] > most ? in[l] : most;
        fours += in[l] % 4 == 0;
        if ((in[l] & 1) && (uint32_t)in[l] < least)
            least = (uint32_t)in[l];
    }
    uint32_t r = odd * 31 + match;
    r = r * 31 + (uint32_t)(any * 2 + all);
    r = r * 31 + sum;
    r = r * 31 + (uint32_t)most;
    if (in[lane] & 1) {
        r = r * 31 + (uint32_t)in[__builtin_ctz(odd)];
        return r * 31 + least;
    }
    return r * 31 + fours;
}

static void check_votes(const char *name)
{
    struct bench bench;
    enum { N = 128 };
    int in[N];
    uint32_t out[N];
    for (int i = 0; i < N; i++)
        in[i] = (int)(next_random() % 100);
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr pi = bench_buffer(&bench, in, sizeof in),
                        po = bench_blank(&bench, sizeof out);
    bench_run(&bench, "votes", 2, 64, (void *[]){&pi, &po});
    bench_read(&bench, out, po, sizeof out);
    for (int i = 0; i < N; i++)
        assert_int_equal(out[i], votes_of(in + i / 32 * 32, i % 32));
    bench_close(&bench);
}

/* One float above or below the double's nearest, where rounding was directed. */
static float toward(double exact, double direction)
{
    float near = (float)exact;
    bool wrong = direction > 0 ? (double)near < exact : (double)near > exact;
    return wrong ? nextafterf(near, (float)direction) : near;
}

static void check_rounding(const char *name)
{
    struct bench bench;
    enum { N = 64 };
    double x[N], y[N], out[16 * N];
    for (int i = 0; i < N; i++) {
        x[i] = (double)(int)(next_random() % 2000000 - 1000000) / 7919;
        y[i] = (double)(int)(next_random() % 2000000 - 1000000) / 104729 + 0.001;
    }
    open_program(&bench, "cpu:sm_80", name);
    ptxgen_cu_deviceptr px = bench_buffer(&bench, x, sizeof x),
                        py = bench_buffer(&bench, y, sizeof y);
    ptxgen_cu_deviceptr po = bench_blank(&bench, sizeof out);
    int n = N;
    bench_run(&bench, "rounding", 1, N, (void *[]){&px, &py, &po, &n});
    bench_read(&bench, out, po, sizeof out);
    for (int i = 0; i < N; i++) {
        const double *o = out + 16 * i;
        double a = x[i], b = y[i];
        float p = (float)a, q = (float)b;
        assert_true(fabs(o[0]) <= fabs(a + b) && fabs(o[0] - (a + b)) <= 0x1p-50 * fabs(a + b));
        assert_true(o[1] >= a * b || o[1] == a * b);
        assert_true(o[2] <= fma(a, b, 1.0));
        assert_true(o[3] == a / b);
        assert_true(o[4] == sqrt(fabs(a)));
        assert_true(o[5] == toward((double)p + q, -INFINITY));
        assert_true(o[6] == toward((double)p * q, INFINITY));
        double exact = (double)p * q + 1;
        assert_true(o[7] == toward(exact, exact > 0 ? -INFINITY : INFINITY));
        assert_true(o[8] == p / q);
        assert_true(o[9] == toward(sqrt((double)fabsf(p)), INFINITY));
        assert_true(o[10] == nearbyintf(p * 100) + floor(a * 1000));
        assert_true(o[11] == 1.0f / q);
        assert_true(fabs(o[12] - exp(p * 0.01f)) < 1e-5 * exp(p * 0.01f));
        assert_true(fabs(o[13] - sin(p * 0.01f)) < 1e-6);
        assert_true(fabs(o[14] - 1 / sqrt(fabs((double)p) + 1)) < 1e-6);
        assert_true(o[15] == (double)toward(ceil((double)(fabsf(p) * 1e5f)), -INFINITY) + 0x1p60);
    }
    bench_close(&bench);
}

#define BY_NVCC(name)                                                                              \
    static void name##_as_nvcc_compiles_it(void **state)                                           \
    {                                                                                              \
        (void)state;                                                                               \
        check_##name(#name);                                                                       \
    }
#define BY_BOTH(name)                                                                              \
    BY_NVCC(name)                                                                                  \
    static void name##_as_clang_compiles_it(void **state)                                          \
    {                                                                                              \
        (void)state;                                                                               \
        check_##name(#name ".clang");                                                              \
    }
BY_BOTH(reduce)
BY_BOTH(transpose)
BY_BOTH(histogram)
BY_BOTH(collatz)
BY_BOTH(scan)
BY_BOTH(matmul)
BY_BOTH(machine)
BY_BOTH(bitonic)
BY_BOTH(sieve)
BY_NVCC(halves)
BY_NVCC(integers)
BY_NVCC(lock)
BY_NVCC(pipeline)
BY_NVCC(cluster)
BY_NVCC(votes)
BY_NVCC(rounding)

static void machine_as_clang_compiles_it_without_optimisation(void **state)
{
    (void)state;
    check_machine("machine.clang0");
}

#define BOTH(name)                                                                                 \
    cmocka_unit_test(name##_as_nvcc_compiles_it), cmocka_unit_test(name##_as_clang_compiles_it)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(reduce),
        BOTH(transpose),
        BOTH(histogram),
        BOTH(collatz),
        BOTH(scan),
        BOTH(matmul),
        BOTH(machine),
        cmocka_unit_test(machine_as_clang_compiles_it_without_optimisation),
        BOTH(bitonic),
        BOTH(sieve),
        cmocka_unit_test(halves_as_nvcc_compiles_it),
        cmocka_unit_test(integers_as_nvcc_compiles_it),
        cmocka_unit_test(lock_as_nvcc_compiles_it),
        cmocka_unit_test(pipeline_as_nvcc_compiles_it),
        cmocka_unit_test(cluster_as_nvcc_compiles_it),
        cmocka_unit_test(votes_as_nvcc_compiles_it),
        cmocka_unit_test(rounding_as_nvcc_compiles_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
