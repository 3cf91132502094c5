/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two architectures. Both are layers of RMSNorm, q, k, v, RoPE, attention, o, RMSNorm, gate, up and
 * down around a stream that each half of a layer adds to.
 *
 *             q, k       RoPE's pairs  added to the stream  gate       embeddings  output
 *     llama   unchanged  2i, 2i + 1    o, down              silu       unchanged   own, or tied
 *     gemma3  RMSNorm    i, i + D/2    RMSNorm of these     gelu_tanh  times √K    tied
 */
#include "model.h"

#include "rope.h"

#include <ptxgen/gguf_types.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = 128 };

/* ---- metadata ---- */

static const char *architecture(const struct model *m)
{
    return m->is_gemma ? "gemma3" : "llama";
}

static const char *key_of(const struct model *m, const char *name, char key[KEY_SIZE])
{
    snprintf(key, KEY_SIZE, "%s.%s", architecture(m), name);
    return key;
}

/* Keys that the file may lack leave *value as it is. */
static ptxgen_status optional(ptxgen_status status)
{
    return status == PTXGEN_ERROR_NOT_FOUND ? PTXGEN_OK : status;
}

static ptxgen_status get_u32(const struct model *m, const char *name, uint32_t *value,
                             ptxgen_error *err)
{
    char key[KEY_SIZE];
    return ptxgen_gguf_get_u32(m->gguf, key_of(m, name, key), value, err);
}

static ptxgen_status get_f32(const struct model *m, const char *name, float *value,
                             ptxgen_error *err)
{
    char key[KEY_SIZE];
    return ptxgen_gguf_get_f32(m->gguf, key_of(m, name, key), value, err);
}

/* How much of a string of the file a sentence has. */
static int shown(size_t length)
{
    return length < 64 ? (int)length : 64;
}

static ptxgen_status read_architecture(struct model *m, ptxgen_error *err)
{
    ptxgen_gguf_string name;
    m->gguf = ptxgen_files_gguf(m->files);
    if (!m->gguf)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "the model is not a GGUF file");
    ptxgen_status status = ptxgen_gguf_get_string(m->gguf, "general.architecture", &name, err);
    if (status != PTXGEN_OK)
        return status;
    m->is_gemma = name.length == 6 && memcmp(name.bytes, "gemma3", 6) == 0;
    if (!m->is_gemma && (name.length != 5 || memcmp(name.bytes, "llama", 5) != 0))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "the architecture is %.*s; gemma3 and llama are supported",
                           shown(name.length), name.bytes);
    return PTXGEN_OK;
}

static ptxgen_status read_sizes(struct model *m, ptxgen_error *err)
{
    uint32_t value_size, rotated;
    ptxgen_status status = get_u32(m, "embedding_length", &m->hidden, err);
    if (!status)
        status = get_u32(m, "block_count", &m->layers, err);
    if (!status)
        status = get_u32(m, "feed_forward_length", &m->feed_forward, err);
    if (!status)
        status = get_u32(m, "context_length", &m->context, err);
    if (!status)
        status = get_f32(m, "attention.layer_norm_rms_epsilon", &m->epsilon, err);
    if (!status)
        status = get_u32(m, "attention.head_count", &m->heads, err);
    m->kv_heads = m->heads;
    if (!status)
        status = optional(get_u32(m, "attention.head_count_kv", &m->kv_heads, err));
    if (!status && (!m->heads || !m->kv_heads || !m->layers || !m->hidden))
        status = ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                             "%u layers, %u heads, %u kv heads and %u features: none may be 0",
                             m->layers, m->heads, m->kv_heads, m->hidden);
    if (status)
        return status;
    m->head_size = m->hidden / m->heads;
    status = optional(get_u32(m, "attention.key_length", &m->head_size, err));
    value_size = rotated = m->head_size;
    if (!status)
        status = optional(get_u32(m, "attention.value_length", &value_size, err));
    if (!status)
        status = optional(get_u32(m, "rope.dimension_count", &rotated, err));
    if (!status && (value_size != m->head_size || rotated != m->head_size))
        status = ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                             "keys of %u elements, of which %u are rotated, and values of %u; "
                             "these must be equal",
                             m->head_size, rotated, value_size);
    m->embedding_scale = m->is_gemma ? sqrtf((float)m->hidden) : 1;
    /* Of gemma3 the largest model, which has 62 layers, divides by another root. */
    bool by_hidden = m->is_gemma && m->layers == 62;
    m->attention_scale =
        1 / sqrtf(by_hidden ? (float)m->hidden / (float)m->heads : (float)m->head_size);
    return status;
}

/* Every sixth layer of gemma3 is global, unless the file says otherwise: by a number, or layer by
 * layer. */
static ptxgen_status find_local_layers(struct model *m, ptxgen_error *err)
{
    uint32_t pattern = 6;
    char key[KEY_SIZE];
    if (!m->is_gemma)
        return PTXGEN_OK;
    ptxgen_status status = get_u32(m, "attention.sliding_window", &m->window, err);
    if (status)
        return status;
    const ptxgen_gguf_value *value =
        ptxgen_gguf_find(m->gguf, key_of(m, "attention.sliding_window_pattern", key));
    if (value && value->type == PTXGEN_GGUF_VALUE_ARRAY) {
        ptxgen_gguf_array rest = value->array;
        ptxgen_gguf_value element;
        for (uint32_t l = 0; l < m->layers && ptxgen_gguf_array_next(&rest, &element); l++)
            m->layer[l].is_local =
                element.type == PTXGEN_GGUF_VALUE_BOOL ? element.boolean : element.u != 0;
        return PTXGEN_OK;
    }
    status = optional(get_u32(m, "attention.sliding_window_pattern", &pattern, err));
    for (uint32_t l = 0; l < m->layers; l++)
        m->layer[l].is_local = pattern && l % pattern != pattern - 1;
    return status;
}

/* ---- weights ---- */

static bool has_tensor(const struct model *m, const char *name)
{
    return ptxgen_tensor_list_find(ptxgen_files_tensors(m->files), name) != NULL;
}

static ptxgen_status find_tensor(const struct model *m, const char *name, uint64_t rows,
                                 uint64_t columns, const ptxgen_tensor **tensor, ptxgen_error *err)
{
    ptxgen_status status = ptxgen_files_require(m->files, name, tensor, err);
    if (status)
        return status;
    const ptxgen_tensor *t = *tensor;
    bool fits = t->ndim == 2 ? t->shape[0] == rows && t->shape[1] == columns
                             : t->ndim == 1 && rows == 1 && t->shape[0] == columns;
    if (!fits)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s is not [%llu, %llu]", name,
                           (unsigned long long)rows, (unsigned long long)columns);
    return PTXGEN_OK;
}

static ptxgen_status load_matrix(const struct device *device, struct model *m, const char *name,
                                 uint32_t n, uint32_t k, struct matrix *to, ptxgen_error *err)
{
    const ptxgen_tensor *t;
    ptxgen_status status = find_tensor(m, name, n, k, &t, err);
    if (status)
        return status;
    const ptxgen_dtype_info *info = ptxgen_dtype_find(t->dtype);
    if (info->ggml_type < 0 || !ptxgen_gguf_type_find((uint32_t)info->ggml_type))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s is %s, which no kernel takes", name,
                           info->name);
    *to = (struct matrix){.bytes = t->bytes, .n = n, .k = k, .type = (uint8_t)info->ggml_type};
    m->bytes += t->bytes;
    status = device_alloc(device, t->bytes, &to->at, err);
    return status ? status : device_upload(device, to->at, t->data, t->bytes, err);
}

/* A norm's weights, whatever their type in the file, as f32. */
static ptxgen_status read_floats(const struct model *m, const char *name, uint32_t count, float *to,
                                 ptxgen_error *err)
{
    const ptxgen_tensor *t;
    ptxgen_status status = find_tensor(m, name, 1, count, &t, err);
    if (status)
        return status;
    uint32_t type = (uint32_t)ptxgen_dtype_find(t->dtype)->ggml_type;
    return ptxgen_gguf_decode_row(type, t->data, t->bytes, count, to, err);
}

static ptxgen_status load_norm(const struct device *device, struct model *m, const char *name,
                               uint32_t count, uint64_t *to, ptxgen_error *err)
{
    float *weights = malloc(count * sizeof *weights);
    if (!weights)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %s", name);
    ptxgen_status status = read_floats(m, name, count, weights, err);
    if (!status)
        status = device_alloc(device, count * sizeof *weights, to, err);
    if (!status)
        status = device_upload(device, *to, weights, count * sizeof *weights, err);
    free(weights);
    return status;
}

/* The matrices and norms of a layer: member, name in the file, and shape. */
static ptxgen_status load_layer(const struct device *device, struct model *m, uint32_t l,
                                ptxgen_error *err)
{
    struct layer *layer = &m->layer[l];
    const uint32_t queries = m->heads * m->head_size, pairs = m->kv_heads * m->head_size;
    const struct {
        const char *name;
        struct matrix *to;
        uint32_t n, k;
    } matrices[] = {
        {"attn_q", &layer->q, queries, m->hidden},
        {"attn_k", &layer->k, pairs, m->hidden},
        {"attn_v", &layer->v, pairs, m->hidden},
        {"attn_output", &layer->o, m->hidden, queries},
        {"ffn_gate", &layer->gate, m->feed_forward, m->hidden},
        {"ffn_up", &layer->up, m->feed_forward, m->hidden},
        {"ffn_down", &layer->down, m->hidden, m->feed_forward},
    };
    const struct {
        const char *name;
        uint64_t *to;
        uint32_t count;
        bool gemma_only;
    } norms[] = {
        {"attn_norm", &layer->attn_norm, m->hidden, false},
        {"ffn_norm", &layer->ffn_norm, m->hidden, false},
        {"attn_q_norm", &layer->q_norm, m->head_size, true},
        {"attn_k_norm", &layer->k_norm, m->head_size, true},
        {"post_attention_norm", &layer->post_attention_norm, m->hidden, true},
        {"post_ffw_norm", &layer->post_ffw_norm, m->hidden, true},
    };
    char name[KEY_SIZE];
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices && !status; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.bias", l, matrices[i].name);
        if (has_tensor(m, name))
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s: no product here adds a bias",
                               name);
        snprintf(name, sizeof name, "blk.%u.%s.weight", l, matrices[i].name);
        status = load_matrix(device, m, name, matrices[i].n, matrices[i].k, matrices[i].to, err);
    }
    for (size_t i = 0; i < sizeof norms / sizeof *norms && !status; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", l, norms[i].name);
        if (m->is_gemma || !norms[i].gemma_only)
            status = load_norm(device, m, name, norms[i].count, norms[i].to, err);
    }
    return status;
}

static ptxgen_status load_ends(const struct device *device, struct model *m, ptxgen_error *err)
{
    const ptxgen_tensor *t;
    ptxgen_status status = ptxgen_files_require(m->files, "token_embd.weight", &t, err);
    if (status)
        return status;
    m->vocabulary = t->ndim == 2 && t->shape[0] < UINT32_MAX ? (uint32_t)t->shape[0] : 0;
    status =
        load_matrix(device, m, "token_embd.weight", m->vocabulary, m->hidden, &m->embedding, err);
    m->output = m->embedding;
    if (!status && has_tensor(m, "output.weight"))
        status = load_matrix(device, m, "output.weight", m->vocabulary, m->hidden, &m->output, err);
    if (!status)
        status = load_norm(device, m, "output_norm.weight", m->hidden, &m->output_norm, err);
    return status;
}

/* ---- RoPE's tables ---- */

/* How many times slower global layers turn: "linear" scaling; others are not known here. */
static ptxgen_status read_scaling(const struct model *m, float *factor, ptxgen_error *err)
{
    ptxgen_gguf_string type = {"none", 4};
    char key[KEY_SIZE];
    *factor = 1;
    ptxgen_status status =
        optional(ptxgen_gguf_get_string(m->gguf, key_of(m, "rope.scaling.type", key), &type, err));
    if (status || (type.length == 4 && memcmp(type.bytes, "none", 4) == 0))
        return status;
    if (type.length != 6 || memcmp(type.bytes, "linear", 6) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "RoPE is scaled by %.*s; only linear scaling is supported",
                           shown(type.length), type.bytes);
    return get_f32(m, "rope.scaling.factor", factor, err);
}

static ptxgen_status check_turns(const float base[2], const float *factors, uint32_t count,
                                 float scaling, ptxgen_error *err)
{
    for (int i = 0; i < 2; i++)
        if (!(base[i] > 0) || isinf(base[i]))
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "RoPE's base %g is not above 0",
                               (double)base[i]);
    for (uint32_t i = 0; i < count; i++)
        if (!(factors[i] * scaling > 0) || isinf(factors[i] * scaling))
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                               "RoPE's factor %u, %g, is not above 0", i,
                               (double)(factors[i] * scaling));
    return PTXGEN_OK;
}

static ptxgen_status load_turns(const struct device *device, struct model *m, ptxgen_error *err)
{
    enum { MOST_PAIRS = 128 };
    uint64_t turns[MOST_PAIRS];
    float factors[MOST_PAIRS], scaling, base[2] = {10000, 10000};
    const uint32_t pairs = m->head_size / 2;
    if (pairs > MOST_PAIRS)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "heads of %u elements; at most 256",
                           m->head_size);
    ptxgen_status status = optional(get_f32(m, "rope.freq_base", &base[0], err));
    if (!status)
        status = optional(get_f32(m, "rope.freq_base_swa", &base[1], err));
    if (!status)
        status = read_scaling(m, &scaling, err);
    for (uint32_t i = 0; i < pairs; i++)
        factors[i] = 1;
    if (!status && has_tensor(m, "rope_freqs.weight"))
        status = read_floats(m, "rope_freqs.weight", pairs, factors, err);
    if (!status)
        status = check_turns(base, factors, pairs, scaling, err);
    for (int local = 0; local < 2 && !status; local++) {
        for (uint32_t i = 0; i < pairs && !local; i++)
            factors[i] *= scaling;
        rope_turns((double)base[local], local ? NULL : factors, m->head_size, turns);
        status = device_alloc(device, pairs * sizeof *turns, &m->turns[local], err);
        if (!status)
            status = device_upload(device, m->turns[local], turns, pairs * sizeof *turns, err);
    }
    return status;
}

/* ---- opening ---- */

ptxgen_status model_open(const struct device *device, const char *path, struct model *m,
                         ptxgen_error *err)
{
    memset(m, 0, sizeof *m);
    ptxgen_status status = ptxgen_files_open(path, &m->files, err);
    if (!status)
        status = read_architecture(m, err);
    if (!status)
        status = read_sizes(m, err);
    if (status)
        return status;
    size_t tensors = ptxgen_files_tensors(m->files)->count;
    if (m->layers > tensors)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%u layers, but %zu tensors in all",
                           m->layers, tensors);
    if ((uint64_t)m->heads * m->head_size > UINT32_MAX ||
        (uint64_t)m->kv_heads * m->head_size > UINT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%u and %u heads of %u elements",
                           m->heads, m->kv_heads, m->head_size);
    m->layer = calloc(m->layers, sizeof *m->layer);
    if (!m->layer)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %u layers", m->layers);
    status = find_local_layers(m, err);
    if (!status)
        status = load_turns(device, m, err);
    if (!status)
        status = load_ends(device, m, err);
    for (uint32_t l = 0; l < m->layers && !status; l++)
        status = load_layer(device, m, l, err);
    return status ? status : device_wait(device, err);
}

void model_close(struct model *model)
{
    free(model->layer);
    ptxgen_files_close(model->files);
}
