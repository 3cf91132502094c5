/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer is five launches in a step, each of which overlaps the one ahead:
 *
 *     product q, k, v      the stream is brought up to date and normalised first
 *     attention            rotates q and k, and puts k and v into the cache, first
 *     product o
 *     product gate, up     the stream again, with what o gave
 *     product down
 *
 * The stream of residuals is f32 or bf16: f16 does not hold what it may grow to.
 * The products that read it write the sum to the other of two buffers, since some of their CTAs may
 * still read when others write.
 *
 * A prompt goes through in pieces of up to 512 tokens, of which a launch of its own rotates q and
 * k.
 */
#include "forward.h"

#include "attention.h"
#include "greedy.h"
#include "options.h"
#include "prefill.h"
#include "rope.h"

#include <ptxgen/gguf_linear.h>
#include <ptxgen/gguf_rows.h>

#include <stdlib.h>
#include <string.h>

enum { FEWEST_TOKENS = PTXGEN_GGUF_LINEAR_MAX_M, MOST_TOKENS = 512 }; /* of a pass */

struct product {
    ptxgen_gguf_linear_spec spec;
    ptxgen_gguf_linear *kernel;
    ptxgen_gguf_linear_args args; /* all but m and the workspace */
};

/* Where the tokens of a pass stand: s32 arrays on the device. */
struct tokens {
    uint64_t ids, positions, slots;
};

/* Matrices of one layer's passes: q with k and v, o, gate with up, down. */
enum { QKV, O, GATE_UP, DOWN, PRODUCTS };

struct forward {
    const struct device *device;
    const struct model *model;
    struct forward_options options;
    ptxgen_target target;
    ptxgen_gguf_rows *embedding;
    ptxgen_loaded *rope, *greedy;
    /* Attention of global layers, and of local ones: in a step, in a short piece of a prompt, and
     * in a longer one. */
    ptxgen_loaded *attention[2], *short_prompt[2], *prefill[2];
    struct attention_spec attention_spec; /* but for the window */
    struct product (*layers)[PRODUCTS];
    struct product output;
    uint32_t most_tokens; /* of a pass */
    struct tokens prompt, step;
    uint64_t stream[2], current;         /* [tokens, hidden]; which holds the latest sum */
    uint64_t q, k, v, rotated, attended; /* [tokens, heads · D] and so on */
    uint64_t product, feed_forward;      /* of o or down, [tokens, hidden]; gate · up */
    uint64_t keys, values, cache_bytes;  /* of all layers; of a layer */
    uint64_t logits, greedy_cells, partials, tickets, workspace, workspace_bytes;
    ptxgen_cu_graph_exec graph;
    int32_t *places;    /* of a prompt, on the host: ids, positions, slots */
    int32_t *positions; /* of the last tokens of all sequences, where the host chooses the next */
};

static size_t size_of(uint8_t type)
{
    return ptxgen_element_size((ptxgen_element)type);
}

static uint8_t stream_type(const struct forward *f)
{
    return f->options.stream_type;
}

/* ---- products ---- */

struct part {
    const struct matrix *matrix;
    uint64_t y;
};

/*
 * Tensor cores multiply in f32, or else in f16, which of 16-bit types rounds the least and holds
 * what an RMSNorm gives.
 */
static void add_parts(const struct forward *f, struct product *p, const struct part *parts,
                      int count)
{
    p->spec.k = parts[0].matrix->k;
    p->spec.max_m = f->most_tokens > FEWEST_TOKENS ? MOST_TOKENS : FEWEST_TOKENS;
    p->spec.compute = f->options.type == PTXGEN_F32 ? 0 : PTXGEN_F16;
    for (int i = 0; i < count; i++) {
        p->spec.n[i] = parts[i].matrix->n;
        p->spec.w_type[i] = parts[i].matrix->type;
        p->args.w[i] = parts[i].matrix->at;
        p->args.w_bytes[i] = parts[i].matrix->bytes;
        p->args.y[i] = parts[i].y;
    }
}

/*
 * A product of the normalised stream. Before that the stream takes in what the last product gave,
 * through the norm `post` where the architecture has one; the first product of all finds nothing.
 */
static void plan_normed(struct forward *f, const struct part *parts, int count, uint64_t norm,
                        uint64_t post, uint8_t y_type, struct product *p)
{
    const bool is_first = p == &f->layers[0][QKV], is_last = p == &f->output;
    add_parts(f, p, parts, count);
    p->spec.x_type = stream_type(f);
    p->spec.y_type = y_type;
    p->spec.norm = PTXGEN_GGUF_LINEAR_RMSNORM;
    p->spec.epsilon = f->model->epsilon;
    p->args.gamma = norm;
    p->args.x = is_first ? f->stream[0] : f->product;
    if (!is_first) {
        p->spec.residual = post ? PTXGEN_GGUF_LINEAR_AFTER : PTXGEN_GGUF_LINEAR_BEFORE;
        p->args.post_gamma = post;
        p->args.residual = f->stream[f->current];
    }
    if (!is_first && !is_last) {
        p->spec.residual_out = 1;
        f->current = !f->current;
        p->args.residual_out = f->stream[f->current];
    }
}

/* A product of activations, whose outputs the stream takes in. */
static void plan_plain(struct forward *f, const struct matrix *matrix, uint64_t x,
                       struct product *p)
{
    const struct part part = {matrix, f->product};
    add_parts(f, p, &part, 1);
    p->spec.compute = f->options.type; /* no norm bounds x, and f16 may not hold it */
    p->spec.x_type = f->options.type;
    p->spec.y_type = stream_type(f);
    p->args.x = x;
}

/* k and v are rounded once, in the cache, so that their product gives f32. */
static void plan_layer(struct forward *f, uint32_t l)
{
    const struct layer *layer = &f->model->layer[l];
    struct product *p = f->layers[l];
    const struct part qkv[] = {{&layer->q, f->q}, {&layer->k, f->k}, {&layer->v, f->v}};
    const struct part gate_up[] = {{&layer->gate, f->feed_forward}, {&layer->up, 0}};
    uint64_t post = l ? f->model->layer[l - 1].post_ffw_norm : 0;
    plan_normed(f, qkv, 3, layer->attn_norm, post, PTXGEN_F32, &p[QKV]);
    plan_plain(f, &layer->o, f->attended, &p[O]);
    p[GATE_UP].spec.epilogue = f->model->is_gemma ? PTXGEN_EPILOGUE_GEGLU : PTXGEN_EPILOGUE_SWIGLU;
    plan_normed(f, gate_up, 2, layer->ffn_norm, layer->post_attention_norm, f->options.type,
                &p[GATE_UP]);
    plan_plain(f, &layer->down, f->feed_forward, &p[DOWN]);
}

static uint32_t product_count(const struct forward *f)
{
    return f->model->layers * PRODUCTS + 1;
}

/* All products of the layers, and the last one. */
static struct product *product_at(struct forward *f, uint32_t i)
{
    return i + 1 < product_count(f) ? &f->layers[i / PRODUCTS][i % PRODUCTS] : &f->output;
}

/* Compiles what is not in the disk cache, on all processors; a failure is met again below. */
static ptxgen_status warm_products(struct forward *f, ptxgen_error *err)
{
    const uint32_t count = product_count(f);
    ptxgen_warm_item *items = calloc(count, sizeof *items);
    ptxgen_warm *warm = NULL;
    if (!items)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %u products", count);
    for (uint32_t i = 0; i < count; i++)
        items[i] = (ptxgen_warm_item){ptxgen_gguf_linear_family(), &product_at(f, i)->spec};
    ptxgen_status status =
        ptxgen_warm_start(f->device->dispatcher, items, count, 0, NULL, NULL, &warm, err);
    ptxgen_warm_finish(warm, false);
    free(items);
    return status;
}

static ptxgen_status load_products(struct forward *f, ptxgen_error *err)
{
    const struct model *m = f->model;
    f->layers = calloc(m->layers, sizeof *f->layers);
    if (!f->layers)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %u layers", m->layers);
    for (uint32_t l = 0; l < m->layers; l++)
        plan_layer(f, l);
    const struct part output = {&m->output, f->logits};
    plan_normed(f, &output, 1, m->output_norm, m->layer[m->layers - 1].post_ffw_norm, PTXGEN_F32,
                &f->output);
    f->output.spec.max_m = FEWEST_TOKENS;
    ptxgen_status status = warm_products(f, err);
    for (uint32_t i = 0; i < product_count(f) && !status; i++) {
        struct product *p = product_at(f, i);
        p->args.overlap_previous = f->target.ptx.sm >= 90;
        status = ptxgen_gguf_linear_dispatch(f->device->dispatcher, &p->spec, &p->kernel, err);
    }
    return status;
}

/* ---- the other kernels ---- */

static ptxgen_status load_attention(struct forward *f, int local, ptxgen_error *err)
{
    const struct model *m = f->model;
    ptxgen_dispatcher *dispatcher = f->device->dispatcher;
    struct attention_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.heads = m->heads;
    spec.kv_heads = m->kv_heads;
    spec.head_size = m->head_size;
    spec.window = local ? m->window : 0;
    spec.scale = m->attention_scale;
    spec.type = f->options.type;
    spec.cache_type = f->options.cache_type;
    ptxgen_status status =
        ptxgen_dispatch(dispatcher, attention_family(), &spec, &f->short_prompt[local], err);
    if (!status && f->most_tokens > FEWEST_TOKENS && spec.cache_type != PTXGEN_F32)
        status = ptxgen_dispatch(dispatcher, prefill_family(), &spec, &f->prefill[local], err);
    spec.rotates = 1;
    spec.has_norm = m->is_gemma;
    spec.interleaved = !m->is_gemma;
    spec.epsilon = m->epsilon;
    f->attention_spec = spec;
    return status
               ? status
               : ptxgen_dispatch(dispatcher, attention_family(), &spec, &f->attention[local], err);
}

static ptxgen_status load_kernels(struct forward *f, ptxgen_error *err)
{
    const struct model *m = f->model;
    struct rope_spec rope;
    memset(&rope, 0, sizeof rope);
    rope.heads = m->heads;
    rope.kv_heads = m->kv_heads;
    rope.head_size = m->head_size;
    rope.epsilon = m->epsilon;
    rope.type = PTXGEN_F32;
    rope.cache_type = f->options.cache_type;
    rope.has_norm = m->is_gemma;
    rope.interleaved = !m->is_gemma;
    const struct greedy_spec greedy = {m->vocabulary};
    ptxgen_gguf_rows_spec rows;
    memset(&rows, 0, sizeof rows);
    rows.k = m->hidden;
    rows.scale = m->embedding_scale;
    rows.w_type = m->embedding.type;
    rows.y_type = stream_type(f);
    rows.indexed = 1;
    ptxgen_dispatcher *dispatcher = f->device->dispatcher;
    ptxgen_status status = ptxgen_gguf_rows_dispatch(dispatcher, &rows, &f->embedding, err);
    if (!status)
        status = ptxgen_dispatch(dispatcher, rope_family(), &rope, &f->rope, err);
    if (!status)
        status = ptxgen_dispatch(dispatcher, greedy_family(), &greedy, &f->greedy, err);
    for (int local = 0; local < 2 && !status; local++)
        status = load_attention(f, local, err);
    return status ? status : load_products(f, err);
}

/* ---- memory ---- */

static ptxgen_status allocate_tokens(const struct forward *f, struct tokens *tokens, uint64_t count,
                                     ptxgen_error *err)
{
    ptxgen_status status = device_alloc(f->device, 4 * count, &tokens->ids, err);
    if (!status)
        status = device_alloc(f->device, 4 * count, &tokens->positions, err);
    return status ? status : device_alloc(f->device, 4 * count, &tokens->slots, err);
}

/* Everything whose size does not hang on a kernel. */
static ptxgen_status allocate(struct forward *f, ptxgen_error *err)
{
    const struct model *m = f->model;
    const uint64_t tokens = f->most_tokens, D = m->head_size, type = size_of(f->options.type);
    const uint64_t stream = size_of(stream_type(f));
    f->cache_bytes = f->options.batch * (uint64_t)m->kv_heads * f->options.context * D *
                     size_of(f->options.cache_type);
    const struct {
        uint64_t *to, bytes;
    } arrays[] = {
        {&f->stream[0], tokens * m->hidden * stream},
        {&f->stream[1], tokens * m->hidden * stream},
        {&f->product, tokens * m->hidden * stream},
        {&f->feed_forward, tokens * m->feed_forward * type},
        {&f->q, tokens * m->heads * D * sizeof(float)},
        {&f->k, tokens * m->kv_heads * D * sizeof(float)},
        {&f->v, tokens * m->kv_heads * D * sizeof(float)},
        {&f->rotated, tokens * m->heads * D * sizeof(float)},
        {&f->attended, tokens * m->heads * D * type},
        {&f->keys, m->layers * f->cache_bytes},
        {&f->values, m->layers * f->cache_bytes},
        {&f->logits, (uint64_t)f->options.batch * m->vocabulary * sizeof(float)},
        {&f->greedy_cells, greedy_cells_bytes(f->options.batch)},
    };
    ptxgen_status status = allocate_tokens(f, &f->prompt, f->options.context, err);
    if (!status)
        status = allocate_tokens(f, &f->step, f->options.batch, err);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays && !status; i++)
        status = device_alloc(f->device, arrays[i].bytes, arrays[i].to, err);
    f->places = calloc(3 * (size_t)f->options.context, sizeof *f->places);
    f->positions = calloc(f->options.batch, sizeof *f->positions);
    if (!status && (!f->places || !f->positions))
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %u positions",
                             f->options.context);
    for (uint32_t i = 0; i < f->options.batch && !status; i++)
        f->places[i] = (int32_t)i;
    return status ? status
                  : device_upload(f->device, f->step.slots, f->places, 4 * f->options.batch, err);
}

/* The most that a product needs at once. */
static ptxgen_status find_workspace(struct forward *f, ptxgen_error *err)
{
    const ptxgen_gguf_linear *known[PRODUCTS] = {NULL};
    ptxgen_status status = PTXGEN_OK;
    for (uint32_t i = 0; i < product_count(f) && !status; i++) {
        const struct product *p = product_at(f, i);
        ptxgen_gguf_linear_args args = p->args;
        if (known[i % PRODUCTS] == p->kernel)
            continue;
        known[i % PRODUCTS] = p->kernel;
        for (args.m = 1; args.m <= p->spec.max_m && args.m <= f->most_tokens && !status; args.m++) {
            uint64_t bytes = 0;
            status = ptxgen_gguf_linear_workspace_bytes(p->kernel, &args, &bytes, err);
            if (bytes > f->workspace_bytes)
                f->workspace_bytes = bytes;
        }
    }
    return status;
}

static ptxgen_status allocate_workspaces(struct forward *f, ptxgen_error *err)
{
    const struct attention_spec *spec = &f->attention_spec;
    uint64_t partials = 0;
    for (uint64_t m = 1; m <= f->most_tokens; m++) {
        uint32_t splits = attention_splits(spec, &f->target, m, f->options.context);
        uint64_t bytes = splits > 1 ? attention_partials_bytes(spec, m, splits) : 0;
        partials = bytes > partials ? bytes : partials;
    }
    ptxgen_status status = find_workspace(f, err);
    if (!status)
        status = device_alloc(f->device, f->workspace_bytes, &f->workspace, err);
    if (!status)
        status = device_alloc(f->device, partials, &f->partials, err);
    return status ? status
                  : device_alloc(f->device, attention_tickets_bytes(spec, f->most_tokens),
                                 &f->tickets, err);
}

ptxgen_status forward_create(const struct device *device, const struct model *model,
                             const struct forward_options *options, struct forward **forward,
                             ptxgen_error *err)
{
    *forward = NULL;
    struct forward *f = calloc(1, sizeof *f);
    if (!f)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the forward pass");
    f->device = device;
    f->model = model;
    f->options = *options;
    f->target = *ptxgen_dispatcher_target(device->dispatcher);
    f->most_tokens = options->longest_prompt < FEWEST_TOKENS ? FEWEST_TOKENS
                     : options->longest_prompt < MOST_TOKENS ? options->longest_prompt
                                                             : MOST_TOKENS;
    ptxgen_status status = allocate(f, err);
    if (!status)
        status = load_kernels(f, err);
    if (!status)
        status = allocate_workspaces(f, err);
    if (!status)
        status = device_wait(device, err);
    if (status)
        forward_destroy(f);
    else
        *forward = f;
    return status;
}

void forward_destroy(struct forward *f)
{
    if (!f)
        return;
    if (f->graph)
        f->device->driver.graph_exec_destroy(f->graph);
    for (uint32_t i = 0; f->layers && i < product_count(f); i++)
        ptxgen_gguf_linear_destroy(product_at(f, i)->kernel);
    ptxgen_gguf_rows_destroy(f->embedding);
    ptxgen_loaded *own[] = {f->rope,         f->greedy,          f->attention[0],
                            f->attention[1], f->short_prompt[0], f->short_prompt[1],
                            f->prefill[0],   f->prefill[1]};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        ptxgen_release(own[i]);
    free(f->layers);
    free(f->places);
    free(f->positions);
    free(f);
}

/* ---- launches ---- */

static ptxgen_status launch_product(struct forward *f, struct product *p, uint64_t m,
                                    ptxgen_error *err)
{
    p->args.m = m;
    p->args.workspace = f->workspace;
    p->args.workspace_bytes = f->workspace_bytes;
    return ptxgen_gguf_linear_launch(p->kernel, &p->args, f->device->stream, err);
}

/*
 * A step's attention rotates q and k itself. A piece of a prompt has rope do so first; tensor cores
 * multiply 64 tokens of one sequence as fast as one, but a few are better split over many CTAs.
 */
static ptxgen_status launch_attention(struct forward *f, uint32_t l, const struct tokens *t,
                                      uint64_t m, ptxgen_error *err)
{
    enum { FEWEST_PREFILLED = 16 };
    const int local = f->model->layer[l].is_local;
    const struct layer *layer = &f->model->layer[l];
    const struct rope_args rope = {.m = m,
                                   .q = f->q,
                                   .k = f->k,
                                   .v = f->v,
                                   .q_norm = layer->q_norm,
                                   .k_norm = layer->k_norm,
                                   .turns = f->model->turns[local],
                                   .positions = t->positions,
                                   .slots = t->slots,
                                   .rotated = f->rotated,
                                   .keys = f->keys + l * f->cache_bytes,
                                   .values = f->values + l * f->cache_bytes,
                                   .context = f->options.context};
    struct attention_args attention = {.m = m,
                                       .q = f->q,
                                       .k = f->k,
                                       .v = f->v,
                                       .q_norm = rope.q_norm,
                                       .k_norm = rope.k_norm,
                                       .turns = rope.turns,
                                       .keys = rope.keys,
                                       .values = rope.values,
                                       .positions = t->positions,
                                       .slots = t->slots,
                                       .y = f->attended,
                                       .partials = f->partials,
                                       .tickets = f->tickets,
                                       .context = f->options.context,
                                       .splits = attention_splits(&f->attention_spec, &f->target,
                                                                  m, f->options.context)};
    ptxgen_cu_stream stream = f->device->stream;
    if (t == &f->step)
        return attention_launch(f->attention[local], &attention, stream, err);
    attention.q = f->rotated;
    ptxgen_status status = rope_launch(f->rope, &rope, stream, err);
    if (status)
        return status;
    return m >= FEWEST_PREFILLED && f->prefill[local]
               ? prefill_launch(f->prefill[local], &attention, stream, err)
               : attention_launch(f->short_prompt[local], &attention, stream, err);
}

static ptxgen_status launch_layer(struct forward *f, uint32_t l, const struct tokens *t, uint64_t m,
                                  ptxgen_error *err)
{
    struct product *p = f->layers[l];
    ptxgen_status status = launch_product(f, &p[QKV], m, err);
    if (!status)
        status = launch_attention(f, l, t, m, err);
    for (int i = O; i < PRODUCTS && !status; i++)
        status = launch_product(f, &p[i], m, err);
    return status;
}

_Static_assert((int)MOST_PROMPTS <= (int)FEWEST_TOKENS,
               "a step's buffers hold a token of each prompt");

static ptxgen_status launch_embedding(struct forward *f, const struct tokens *t, uint64_t m,
                                      ptxgen_error *err)
{
    const struct matrix *w = &f->model->embedding;
    ptxgen_gguf_rows_args rows;
    memset(&rows, 0, sizeof rows);
    rows.m = m;
    rows.n = w->n;
    rows.ids = t->ids;
    rows.w = w->at;
    rows.w_bytes = w->bytes;
    rows.y = f->stream[0];
    /* Without overlap: before it waits, attention reads positions and old keys, which the step
     * ahead writes. */
    return ptxgen_gguf_rows_launch(f->embedding, &rows, f->device->stream, err);
}

static ptxgen_status launch_layers(struct forward *f, const struct tokens *t, uint64_t m,
                                   ptxgen_error *err)
{
    ptxgen_status status = launch_embedding(f, t, m, err);
    for (uint32_t l = 0; l < f->model->layers && !status; l++)
        status = launch_layer(f, l, t, m, err);
    return status;
}

/* The logits of `count` tokens from `first` on, at row `row` of the logits. */
static ptxgen_status launch_output(struct forward *f, uint32_t first, uint32_t count, uint32_t row,
                                   ptxgen_error *err)
{
    struct product last = f->output;
    const uint64_t offset = (uint64_t)first * f->model->hidden * size_of(stream_type(f));
    last.args.x += offset;
    last.args.residual += offset;
    last.args.y[0] += (uint64_t)row * f->model->vocabulary * sizeof(float);
    return launch_product(f, &last, count, err);
}

static ptxgen_status launch_greedy(struct forward *f, ptxgen_error *err)
{
    const struct greedy_args args = {.m = f->options.batch,
                                     .logits = f->logits,
                                     .ids = f->step.ids,
                                     .positions = f->step.positions,
                                     .cells = f->greedy_cells};
    return greedy_launch(f->greedy, &args, f->device->stream, err);
}

/* ---- prompts and steps ---- */

ptxgen_status forward_prompt(struct forward *f, uint32_t slot, const int32_t *ids, uint32_t count,
                             ptxgen_error *err)
{
    const uint32_t context = f->options.context;
    int32_t *positions = f->places + context, *slots = positions + context;
    if (count == 0 || count > context)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a prompt of %u tokens; 1 to %u fit the cache", count, context);
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= f->model->vocabulary)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "token %d is not in the vocabulary of %u", ids[i],
                               f->model->vocabulary);
        f->places[i] = ids[i];
        positions[i] = (int32_t)i;
        slots[i] = (int32_t)slot;
    }
    ptxgen_status status = device_upload(f->device, f->prompt.ids, f->places, 4 * count, err);
    if (!status)
        status = device_upload(f->device, f->prompt.positions, positions, 4 * count, err);
    if (!status)
        status = device_upload(f->device, f->prompt.slots, slots, 4 * count, err);
    uint32_t done = 0, m = 0;
    for (; done < count && !status; done += m) {
        const struct tokens t = {f->prompt.ids + 4 * done, f->prompt.positions + 4 * done,
                                 f->prompt.slots + 4 * done};
        m = count - done < f->most_tokens ? count - done : f->most_tokens;
        status = launch_layers(f, &t, m, err);
        if (f->options.progress)
            f->options.progress(f->options.user, done + m, count);
    }
    if (!status)
        status = launch_output(f, m - 1, 1, slot, err);
    f->positions[slot] = (int32_t)count - 1;
    return status ? status
                  : device_upload(f->device, f->step.positions + 4 * slot, &f->positions[slot], 4,
                                  err);
}

ptxgen_status forward_choose(struct forward *f, ptxgen_error *err)
{
    return launch_greedy(f, err);
}

static ptxgen_status launch_step(struct forward *f, bool chooses, ptxgen_error *err)
{
    ptxgen_status status = launch_layers(f, &f->step, f->options.batch, err);
    if (!status)
        status = launch_output(f, 0, f->options.batch, 0, err);
    return status || !chooses ? status : launch_greedy(f, err);
}

static ptxgen_status capture(struct forward *f, bool chooses, ptxgen_error *err)
{
    const ptxgen_driver *driver = &f->device->driver;
    ptxgen_cu_graph graph = NULL;
    ptxgen_status status = device_check(
        f->device,
        driver->stream_begin_capture(f->device->stream, PTXGEN_CU_STREAM_CAPTURE_MODE_GLOBAL),
        "a capture", err);
    if (status)
        return status;
    status = launch_step(f, chooses, err);
    ptxgen_cu_result end = driver->stream_end_capture(f->device->stream, &graph);
    if (!status)
        status = device_check(f->device, end, "the end of a capture", err);
    if (!status)
        status =
            device_check(f->device, driver->graph_instantiate(&f->graph, graph, 0), "a graph", err);
    if (graph)
        driver->graph_destroy(graph);
    return status;
}

ptxgen_status forward_step(struct forward *f, bool chooses, ptxgen_error *err)
{
    const ptxgen_driver *driver = &f->device->driver;
    if (!driver->graph_instantiate)
        return launch_step(f, chooses, err);
    ptxgen_status status = f->graph ? PTXGEN_OK : capture(f, chooses, err);
    return status ? status
                  : device_check(f->device, driver->graph_launch(f->graph, f->device->stream),
                                 "a step", err);
}

ptxgen_status forward_set(struct forward *f, const int32_t *ids, ptxgen_error *err)
{
    const size_t bytes = f->options.batch * sizeof *ids;
    for (uint32_t i = 0; i < f->options.batch; i++)
        f->positions[i]++;
    ptxgen_status status = device_upload(f->device, f->step.ids, ids, bytes, err);
    return status ? status : device_upload(f->device, f->step.positions, f->positions, bytes, err);
}

ptxgen_status forward_tokens(const struct forward *f, int32_t *ids, ptxgen_error *err)
{
    return device_download(f->device, ids, f->step.ids, f->options.batch * sizeof *ids, err);
}

ptxgen_status forward_logits(const struct forward *f, float *logits, ptxgen_error *err)
{
    size_t count = (size_t)f->options.batch * f->model->vocabulary;
    return device_download(f->device, logits, f->logits, count * sizeof *logits, err);
}
