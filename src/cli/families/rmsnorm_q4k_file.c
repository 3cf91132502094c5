/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of rmsnorm_q4k from a GGUF file. */
#include "../../harness/rmsnorm_q4k.h"

#include "../../files/printable.h"
#include "files.h"

#include <ptxgen/gguf.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATRICES = PTXGEN_RMSNORM_Q4K_MATRICES };

/* ---- names ---- */

struct name_list {
    char *copy;
    const char *names[MATRICES];
    unsigned count;
};

/* Splits "a,b,c". */
static ptxgen_status split_names(const char *option, const char *text, struct name_list *list,
                                 ptxgen_error *err)
{
    *list = (struct name_list){.copy = strdup(text)};
    if (!list->copy)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %s", option);
    char *rest = NULL;
    for (char *name = strtok_r(list->copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (list->count == MATRICES)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s %s: at most %d names",
                               option, text, MATRICES);
        list->names[list->count++] = name;
    }
    if (!list->count)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: no name is given", option);
    return PTXGEN_OK;
}

/* ---- tensors ---- */

static ptxgen_status require_weights(const ptxgen_files *store, const char *name,
                                     const ptxgen_tensor **tensor, ptxgen_error *err)
{
    ptxgen_status status = ptxgen_files_require(store, name, tensor, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_tensor *t = *tensor;
    if (t->dtype != PTXGEN_DTYPE_Q4_K || t->ndim != 2 || t->shape[0] > UINT32_MAX ||
        t->shape[1] > UINT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected a matrix in Q4_K", name,
                           ptxgen_dtype_find(t->dtype)->name, tensor_shape_text(t).text);
    return PTXGEN_OK;
}

/* ---- epsilon ---- */

static const char epsilon_suffix[] = ".attention.layer_norm_rms_epsilon";

static bool is_epsilon(const char *key)
{
    size_t length = strlen(key), tail = sizeof epsilon_suffix - 1;
    return length >= tail && !strcmp(key + length - tail, epsilon_suffix);
}

/* The keys that end so: how many, and the first two. */
static unsigned list_epsilons(const ptxgen_gguf *gguf, const char *keys[2])
{
    unsigned count = 0;
    for (size_t i = 0; i < ptxgen_gguf_key_count(gguf); i++)
        if (is_epsilon(ptxgen_gguf_key(gguf, i)) && count++ < 2)
            keys[count - 1] = ptxgen_gguf_key(gguf, i);
    return count;
}

/* Towers for images and sounds have norms, and epsilons, of their own. */
static bool is_of_a_tower(const char *tensor)
{
    return !strncmp(tensor, "v.", 2) || !strncmp(tensor, "a.", 2) || !strncmp(tensor, "mm.", 3);
}

/* "ARCHITECTURE.attention.layer_norm_rms_epsilon" where the file has that, else NULL. */
static const char *epsilon_of_text(const ptxgen_gguf *gguf)
{
    ptxgen_gguf_string name;
    if (ptxgen_gguf_get_string(gguf, "general.architecture", &name, NULL) != PTXGEN_OK)
        return NULL;
    for (size_t i = 0; i < ptxgen_gguf_key_count(gguf); i++) {
        const char *key = ptxgen_gguf_key(gguf, i);
        if (is_epsilon(key) && strlen(key) == name.length + sizeof epsilon_suffix - 1 &&
            !memcmp(key, name.bytes, name.length))
            return key;
    }
    return NULL;
}

/*
 * Of the model of text, which general.architecture names; of a file without that key, the only one
 * that there is. What is left is for the user to say.
 */
static ptxgen_status find_epsilon(const ptxgen_gguf *gguf, const char *norm, float *epsilon,
                                  ptxgen_error *err)
{
    const char *keys[2] = {NULL, NULL}, *key = epsilon_of_text(gguf);
    unsigned count = list_epsilons(gguf, keys);
    if (!count)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the file has no key *%s; say --epsilon",
                           epsilon_suffix);
    if (count > 1 && is_of_a_tower(norm))
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                           "the file has %u keys *%s, and %s is not the text model's; say "
                           "--epsilon",
                           count, epsilon_suffix, norm);
    if (!key && !ptxgen_gguf_find(gguf, "general.architecture") && count == 1)
        key = keys[0];
    if (key)
        return ptxgen_gguf_get_f32(gguf, key, epsilon, err);
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                       "the file has %s%s%s%s, but none for its general.architecture; say "
                       "--epsilon",
                       printable(keys[0], strlen(keys[0])).text, count > 1 ? " and " : "",
                       count > 1 ? printable(keys[1], strlen(keys[1])).text : "",
                       count > 2 ? " and more" : "");
}

/* ---- the problem ---- */

struct sources {
    const ptxgen_tensor *weights[MATRICES], *bias[MATRICES], *norm;
};

static ptxgen_status find_weights(const ptxgen_files *store, const struct family_options *o,
                                  ptxgen_rmsnorm_q4k_spec *spec, struct sources *s,
                                  ptxgen_error *err)
{
    struct name_list names;
    ptxgen_status status = split_names("--tensor", o->names.tensors, &names, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < names.count; i++) {
        status = require_weights(store, names.names[i], &s->weights[i], err);
        if (status == PTXGEN_OK && i && s->weights[i]->shape[1] != s->weights[0]->shape[1])
            status =
                ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                            "%s has %llu columns and %s has %llu; matrices of one launch share x",
                            names.names[i], (unsigned long long)s->weights[i]->shape[1],
                            names.names[0], (unsigned long long)s->weights[0]->shape[1]);
        if (status == PTXGEN_OK)
            spec->n[i] = (uint32_t)s->weights[i]->shape[0];
    }
    if (status == PTXGEN_OK)
        spec->k = (uint32_t)s->weights[0]->shape[1];
    free(names.copy);
    return status;
}

static ptxgen_status find_bias(const ptxgen_files *store, const struct family_options *o,
                               const ptxgen_rmsnorm_q4k_spec *spec, struct sources *s,
                               ptxgen_error *err)
{
    if (!o->names.bias)
        return PTXGEN_OK;
    struct name_list names;
    uint64_t rows;
    ptxgen_status status = split_names("--bias-tensor", o->names.bias, &names, err);
    if (status == PTXGEN_OK && names.count != rmsnorm_q4k_matrices(spec))
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "--bias-tensor names %u tensors for %u matrices", names.count,
                             rmsnorm_q4k_matrices(spec));
    for (unsigned i = 0; status == PTXGEN_OK && i < names.count; i++)
        status = require_floats(store, names.names[i], spec->n[i], &rows, &s->bias[i], err);
    free(names.copy);
    return status;
}

static ptxgen_status find(const ptxgen_files *store, struct family_options *o, void *sources,
                          struct file_rows *rows, ptxgen_error *err)
{
    ptxgen_rmsnorm_q4k_spec *spec = option_spec(o);
    struct sources *s = sources;
    uint64_t one;
    rows->most = spec->max_m ? spec->max_m : PTXGEN_RMSNORM_Q4K_MAX_M;
    ptxgen_status status = find_weights(store, o, spec, s, err);
    if (status == PTXGEN_OK)
        status = find_bias(store, o, spec, s, err);
    if (status == PTXGEN_OK)
        status = require_floats(store, o->names.norm, spec->k, &one, &s->norm, err);
    if (status == PTXGEN_OK)
        status = file_rows_find(store, o, spec->k, spec->n[0], false, rows, err);
    if (status == PTXGEN_OK && rows->expect && (spec->n[1] || spec->residual || spec->bias))
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "--expect goes with one matrix, without bias and residual");
    if (status == PTXGEN_OK && !option_given(o, "epsilon"))
        status = find_epsilon(ptxgen_files_gguf(store), o->names.norm, &spec->epsilon, err);
    return status;
}

/* Of a matrix NAME.weight: what else is called NAME.…, as a bias that was not asked for. */
static void warn(const ptxgen_files *store, const struct family_options *o, const void *sources,
                 const struct file_rows *rows)
{
    const struct sources *s = sources;
    (void)o, (void)rows;
    static const char suffix[] = ".weight";
    for (unsigned i = 0; i < MATRICES && s->weights[i]; i++) {
        const char *name = s->weights[i]->name;
        size_t length = strlen(name), tail = sizeof suffix - 1;
        char prefix[128];
        const ptxgen_tensor *const used[] = {s->weights[i], s->bias[i]};
        if (length <= tail || length >= sizeof prefix || strcmp(name + length - tail, suffix) != 0)
            continue;
        snprintf(prefix, sizeof prefix, "%.*s", (int)(length - tail), name);
        layer_warn_of_unused(store, prefix, used, 2);
    }
}

/* The activations before they are rounded to x's type, with which the file's output was made. */
static ptxgen_status keep_unrounded(struct problem *p, const ptxgen_tensor *input,
                                    ptxgen_error *err)
{
    size_t count = p->m * (size_t)((const ptxgen_rmsnorm_q4k_spec *)p->plan)->k;
    float *x = p->own = calloc(count + 1, sizeof *x);
    if (!x)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the file's tensors");
    for (size_t i = 0; i < count; i++)
        x[i] = (float)tensor_float(input, i);
    return PTXGEN_OK;
}

static ptxgen_status take(struct problem *p, const void *sources, const struct file_rows *rows,
                          ptxgen_error *err)
{
    const struct sources *s = sources;
    take_tensor(p, RMSNORM_Q4K_AT_GAMMA, s->norm);
    for (unsigned i = 0; i < rmsnorm_q4k_matrices(p->plan); i++) {
        const struct buffer *w = &p->buffers[RMSNORM_Q4K_AT_W + i];
        memcpy(w->host, s->weights[i]->data, w->bytes);
        take_tensor(p, RMSNORM_Q4K_AT_BIAS + i, s->bias[i]);
    }
    return rows->expect ? keep_unrounded(p, rows->input, err) : PTXGEN_OK;
}

/* ---- recognising ---- */

/* Matrices that have a norm's output as their input, as converters to GGUF name both. */
static const struct {
    const char *weight, *norm;
} normed[] = {
    {"attn_q.weight", "attn_norm.weight"},   {"attn_k.weight", "attn_norm.weight"},
    {"attn_v.weight", "attn_norm.weight"},   {"attn_qkv.weight", "attn_norm.weight"},
    {"ffn_gate.weight", "ffn_norm.weight"},  {"ffn_up.weight", "ffn_norm.weight"},
    {"output.weight", "output_norm.weight"},
};

bool rmsnorm_q4k_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                           struct family_options *o, struct recognised_names *names)
{
    const char *name = weights->name;
    size_t length = strlen(name);
    for (size_t i = 0; weights->dtype == PTXGEN_DTYPE_Q4_K && i < sizeof normed / sizeof *normed;
         i++) {
        size_t tail = strlen(normed[i].weight), stem = length - tail;
        if (length < tail || strcmp(name + stem, normed[i].weight) != 0 ||
            (stem && name[stem - 1] != '.'))
            continue;
        snprintf(names->norm, sizeof names->norm, "%.*s%s", (int)stem, name, normed[i].norm);
        o->names.tensors = name;
        o->names.norm = names->norm;
        return ptxgen_tensor_list_find(ptxgen_files_tensors(files), names->norm);
    }
    return false;
}

const struct family_file rmsnorm_q4k_file = {PTXGEN_FILES_GGUF, sizeof(struct sources), find, warn,
                                             take};
