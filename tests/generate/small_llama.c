/* SPDX-License-Identifier: Apache-2.0 */
#include "small_llama.h"

#include "tests/dispatch/folder.h"
#include "tests/files/bytes.h"
#include "tests/random.h"

#include <ptxgen/gguf.h>
#include <ptxgen/gguf_types.h>

#include <stdio.h>

enum { MOST_TENSORS = 32, ALIGNMENT = 32 };
static const double base = 500000, epsilon = 1e-5;

struct weights {
    char name[48];
    uint32_t type, n, k; /* ptxgen_gguf_type */
    size_t bytes;
    unsigned char *packed;
    float *values; /* what the packed rows decode to */
};

struct small_llama {
    struct weights tensors[MOST_TENSORS];
    uint32_t count;
    bool has_factors, has_output;
    struct random random;
};

/* ---- weights ---- */

static struct weights *add(struct small_llama *l, const char *name, uint32_t type, uint32_t n,
                           uint32_t k, double mean, double scale)
{
    struct weights *w = &l->tensors[l->count++];
    size_t row_bytes;
    if (l->count > MOST_TENSORS || ptxgen_gguf_row_bytes(type, k, &row_bytes, NULL))
        abort();
    snprintf(w->name, sizeof w->name, "%s", name);
    w->type = type;
    w->n = n;
    w->k = k;
    w->bytes = n * row_bytes;
    w->packed = malloc(w->bytes);
    w->values = malloc((size_t)n * k * sizeof *w->values);
    for (uint32_t row = 0; row < n; row++) {
        float *values = w->values + (size_t)row * k;
        for (uint32_t i = 0; i < k; i++)
            values[i] = (float)(mean + scale * random_normal(&l->random));
        unsigned char *packed = w->packed + row * row_bytes;
        if (ptxgen_gguf_quantise_row(type, values, k, packed, row_bytes, NULL) ||
            ptxgen_gguf_decode_row(type, packed, row_bytes, k, values, NULL))
            abort();
    }
    return w;
}

static void add_layer(struct small_llama *l, uint32_t layer)
{
    const uint32_t queries = LLAMA_HEADS * LLAMA_HEAD_SIZE;
    const uint32_t pairs = LLAMA_KV_HEADS * LLAMA_HEAD_SIZE;
    const struct {
        const char *name;
        uint32_t type, n, k;
    } matrices[] = {
        {"attn_q", PTXGEN_GGUF_Q4_0, queries, LLAMA_HIDDEN},
        {"attn_k", layer ? PTXGEN_GGUF_F16 : PTXGEN_GGUF_Q5_0, pairs, LLAMA_HIDDEN},
        {"attn_v", layer ? PTXGEN_GGUF_Q8_0 : PTXGEN_GGUF_Q4_0, pairs, LLAMA_HIDDEN},
        {"attn_output", PTXGEN_GGUF_Q8_0, LLAMA_HIDDEN, queries},
        {"ffn_gate", PTXGEN_GGUF_MXFP4, LLAMA_FEED_FORWARD, LLAMA_HIDDEN},
        {"ffn_up", layer ? PTXGEN_GGUF_BF16 : PTXGEN_GGUF_Q5_1, LLAMA_FEED_FORWARD, LLAMA_HIDDEN},
        {"ffn_down", layer ? PTXGEN_GGUF_F32 : PTXGEN_GGUF_Q4_1, LLAMA_HIDDEN, LLAMA_FEED_FORWARD},
    };
    char name[48];
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, matrices[i].name);
        add(l, name, matrices[i].type, matrices[i].n, matrices[i].k, 0,
            2 / sqrt((double)matrices[i].k));
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "blk.%u.%s_norm.weight", layer, i ? "ffn" : "attn");
        add(l, name, PTXGEN_GGUF_F32, 1, LLAMA_HIDDEN, 1, 0.2);
    }
}

struct small_llama *small_llama_make(bool has_factors, bool has_output)
{
    struct small_llama *l = calloc(1, sizeof *l);
    if (!l)
        abort();
    l->has_factors = has_factors;
    l->has_output = has_output;
    l->random.state = 25;
    add(l, "token_embd.weight", PTXGEN_GGUF_Q8_0, LLAMA_VOCABULARY, LLAMA_HIDDEN, 0, 0.5);
    for (uint32_t layer = 0; layer < LLAMA_LAYERS; layer++)
        add_layer(l, layer);
    add(l, "output_norm.weight", PTXGEN_GGUF_F32, 1, LLAMA_HIDDEN, 1, 0.2);
    if (has_output)
        add(l, "output.weight", PTXGEN_GGUF_Q8_0, LLAMA_VOCABULARY, LLAMA_HIDDEN, 0, 0.3);
    if (has_factors)
        add(l, "rope_freqs.weight", PTXGEN_GGUF_F32, 1, LLAMA_HEAD_SIZE / 2, 3, 0.5);
    return l;
}

void small_llama_free(struct small_llama *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        free(l->tensors[i].packed);
        free(l->tensors[i].values);
    }
    free(l);
}

/* ---- the file ---- */

static void put_string(struct bytes *b, const char *text)
{
    put_u64(b, strlen(text));
    put(b, text, strlen(text));
}

static void put_number(struct bytes *b, const char *key, uint32_t value)
{
    put_string(b, key);
    put_u32(b, PTXGEN_GGUF_VALUE_UINT32);
    put_u32(b, value);
}

static void put_float(struct bytes *b, const char *key, double value)
{
    float number = (float)value;
    put_string(b, key);
    put_u32(b, PTXGEN_GGUF_VALUE_FLOAT32);
    put(b, &number, sizeof number);
}

static void put_padding(struct bytes *b)
{
    put_zeros(b, (ALIGNMENT - b->size % ALIGNMENT) % ALIGNMENT);
}

static void put_metadata(struct bytes *b)
{
    const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {
        {"llama.embedding_length", LLAMA_HIDDEN},
        {"llama.block_count", LLAMA_LAYERS},
        {"llama.feed_forward_length", LLAMA_FEED_FORWARD},
        {"llama.context_length", LLAMA_CONTEXT},
        {"llama.attention.head_count", LLAMA_HEADS},
        {"llama.attention.head_count_kv", LLAMA_KV_HEADS},
        {"llama.attention.key_length", LLAMA_HEAD_SIZE},
        {"llama.rope.dimension_count", LLAMA_HEAD_SIZE},
    };
    put_string(b, "general.architecture");
    put_u32(b, PTXGEN_GGUF_VALUE_STRING);
    put_string(b, "llama");
    put_float(b, "llama.attention.layer_norm_rms_epsilon", epsilon);
    put_float(b, "llama.rope.freq_base", base);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_number(b, numbers[i].key, numbers[i].value);
}

/* Tensors `first` to `end` − 1; the first part alone has the metadata. */
static void write_part(const struct small_llama *l, const char *path, uint32_t part, uint32_t first,
                       uint32_t end)
{
    enum { OF_THE_MODEL = 11, OF_PARTS = 3 };
    struct bytes b = {0}, data = {0};
    put(&b, "GGUF", 4);
    put_u32(&b, 3);
    put_u64(&b, end - first);
    put_u64(&b, part ? OF_PARTS : OF_PARTS + OF_THE_MODEL);
    put_number(&b, "split.no", part);
    put_number(&b, "split.count", 2);
    put_number(&b, "split.tensors.count", l->count);
    if (!part)
        put_metadata(&b);
    for (uint32_t i = first; i < end; i++) {
        const struct weights *w = &l->tensors[i];
        put_string(&b, w->name);
        put_u32(&b, w->n == 1 ? 1 : 2);
        put_u64(&b, w->k);
        if (w->n > 1)
            put_u64(&b, w->n);
        put_u32(&b, w->type);
        put_u64(&b, data.size);
        put(&data, w->packed, w->bytes);
        put_padding(&data);
    }
    put_padding(&b);
    put(&b, data.data, data.size);
    file_write(path, b.data, b.size);
    bytes_free(&b);
    bytes_free(&data);
}

void small_llama_write(const struct small_llama *l, const char *folder, char *path, uint64_t size)
{
    for (uint32_t part = 2; part-- > 0;) {
        snprintf(path, size, "%s/small-0000%u-of-00002.gguf", folder, part + 1);
        write_part(l, path, part, part ? l->count / 2 : 0, part ? l->count : l->count / 2);
    }
}

/* ---- the function ---- */

static const float *find(const struct small_llama *l, int layer, const char *what)
{
    char name[48];
    if (layer < 0)
        snprintf(name, sizeof name, "%s.weight", what);
    else
        snprintf(name, sizeof name, "blk.%d.%s.weight", layer, what);
    for (uint32_t i = 0; i < l->count; i++)
        if (strcmp(l->tensors[i].name, name) == 0)
            return l->tensors[i].values;
    abort();
}

static void multiply(const float *w, const double *x, uint32_t n, uint32_t k, double *y)
{
    for (uint32_t row = 0; row < n; row++) {
        y[row] = 0;
        for (uint32_t i = 0; i < k; i++)
            y[row] += (double)w[(size_t)row * k + i] * x[i];
    }
}

static void normalise(const double *x, const float *gain, double *y)
{
    double squares = 0;
    for (uint32_t i = 0; i < LLAMA_HIDDEN; i++)
        squares += x[i] * x[i];
    for (uint32_t i = 0; i < LLAMA_HIDDEN; i++)
        y[i] = x[i] / sqrt(squares / LLAMA_HIDDEN + epsilon) * (double)gain[i];
}

static void rotate(const struct small_llama *l, double *heads, uint32_t count, uint32_t position)
{
    const float *factors = l->has_factors ? find(l, -1, "rope_freqs") : NULL;
    for (uint32_t i = 0; i < count * LLAMA_HEAD_SIZE / 2; i++) {
        uint32_t pair = i % (LLAMA_HEAD_SIZE / 2);
        double angle = position * pow(base, -2.0 * pair / LLAMA_HEAD_SIZE);
        angle /= factors ? (double)factors[pair] : 1;
        double u = heads[2 * i], v = heads[2 * i + 1];
        heads[2 * i] = u * cos(angle) - v * sin(angle);
        heads[2 * i + 1] = u * sin(angle) + v * cos(angle);
    }
}

struct state {
    double x[LLAMA_CONTEXT][LLAMA_HIDDEN];
    double q[LLAMA_CONTEXT][LLAMA_HEADS * LLAMA_HEAD_SIZE];
    double k[LLAMA_CONTEXT][LLAMA_KV_HEADS * LLAMA_HEAD_SIZE];
    double v[LLAMA_CONTEXT][LLAMA_KV_HEADS * LLAMA_HEAD_SIZE];
};

static void attend(const struct state *s, uint32_t token, double *y)
{
    enum { D = LLAMA_HEAD_SIZE };
    for (uint32_t h = 0; h < LLAMA_HEADS; h++) {
        uint32_t kv = h / (LLAMA_HEADS / LLAMA_KV_HEADS) * D;
        double weights = 0;
        memset(y + h * D, 0, D * sizeof *y);
        for (uint32_t p = 0; p <= token; p++) {
            double score = 0;
            for (uint32_t i = 0; i < D; i++)
                score += s->q[token][h * D + i] * s->k[p][kv + i];
            double weight = exp(score / sqrt(D));
            weights += weight;
            for (uint32_t i = 0; i < D; i++)
                y[h * D + i] += weight * s->v[p][kv + i];
        }
        for (uint32_t i = 0; i < D; i++)
            y[h * D + i] /= weights;
    }
}

static void run_layer(const struct small_llama *l, int layer, struct state *s, uint32_t count)
{
    const uint32_t queries = LLAMA_HEADS * LLAMA_HEAD_SIZE;
    const uint32_t pairs = LLAMA_KV_HEADS * LLAMA_HEAD_SIZE;
    double h[LLAMA_HIDDEN], more[LLAMA_HIDDEN], attended[LLAMA_HEADS * LLAMA_HEAD_SIZE];
    double gate[LLAMA_FEED_FORWARD], up[LLAMA_FEED_FORWARD];
    for (uint32_t t = 0; t < count; t++) {
        normalise(s->x[t], find(l, layer, "attn_norm"), h);
        multiply(find(l, layer, "attn_q"), h, queries, LLAMA_HIDDEN, s->q[t]);
        multiply(find(l, layer, "attn_k"), h, pairs, LLAMA_HIDDEN, s->k[t]);
        multiply(find(l, layer, "attn_v"), h, pairs, LLAMA_HIDDEN, s->v[t]);
        rotate(l, s->q[t], LLAMA_HEADS, t);
        rotate(l, s->k[t], LLAMA_KV_HEADS, t);
    }
    for (uint32_t t = 0; t < count; t++) {
        attend(s, t, attended);
        multiply(find(l, layer, "attn_output"), attended, LLAMA_HIDDEN, queries, more);
        for (uint32_t i = 0; i < LLAMA_HIDDEN; i++)
            s->x[t][i] += more[i];
        normalise(s->x[t], find(l, layer, "ffn_norm"), h);
        multiply(find(l, layer, "ffn_gate"), h, LLAMA_FEED_FORWARD, LLAMA_HIDDEN, gate);
        multiply(find(l, layer, "ffn_up"), h, LLAMA_FEED_FORWARD, LLAMA_HIDDEN, up);
        for (uint32_t i = 0; i < LLAMA_FEED_FORWARD; i++)
            up[i] *= gate[i] / (1 + exp(-gate[i]));
        multiply(find(l, layer, "ffn_down"), up, LLAMA_HIDDEN, LLAMA_FEED_FORWARD, more);
        for (uint32_t i = 0; i < LLAMA_HIDDEN; i++)
            s->x[t][i] += more[i];
    }
}

void small_llama_logits(const struct small_llama *l, const int32_t *ids, uint32_t count,
                        double logits[LLAMA_VOCABULARY])
{
    struct state *s = calloc(1, sizeof *s);
    double h[LLAMA_HIDDEN];
    const float *embedding = find(l, -1, "token_embd");
    if (!s || count > LLAMA_CONTEXT)
        abort();
    for (uint32_t t = 0; t < count; t++)
        for (uint32_t i = 0; i < LLAMA_HIDDEN; i++)
            s->x[t][i] = (double)embedding[(size_t)ids[t] * LLAMA_HIDDEN + i];
    for (int layer = 0; layer < LLAMA_LAYERS; layer++)
        run_layer(l, layer, s, count);
    normalise(s->x[count - 1], find(l, -1, "output_norm"), h);
    multiply(find(l, -1, l->has_output ? "output" : "token_embd"), h, LLAMA_VOCABULARY,
             LLAMA_HIDDEN, logits);
    free(s);
}
