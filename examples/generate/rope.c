/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One CTA of one warp for each head of a token: blocks 0 … heads − 1 of the grid's x have q's
 * heads, then come those of k and of v. A lane has D/64 pairs.
 */
#include "rope.h"

#include "head_rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct rope_plan {
    struct rope_spec spec;
    ptxgen_target target;
};

struct emitter {
    ptx_kernel *k;
    const struct rope_spec *spec;
    struct head_rope rope;
    ptx_u32 token, slot, position, context;
};

/* Where the token stands. */
static void find_place(struct emitter *e, ptx_u64 positions, ptx_u64 slots)
{
    ptx_kernel *k = e->k;
    e->token = ptx_sreg_ctaid_y(k);
    e->position = ptx_ld_global_u32(k, ptx_mad_wide_u32(k, e->token, U32(4), positions), 0);
    e->slot = ptx_ld_global_u32(k, ptx_mad_wide_u32(k, e->token, U32(4), slots), 0);
}

/* The lane's first element of k's or v's head in the cache at `base`. */
static ptx_u64 cache_address(const struct emitter *e, ptx_u64 base, ptx_u32 head)
{
    ptx_kernel *k = e->k;
    ptx_u32 list = ptx_mad_lo_u32(k, e->slot, U32(e->spec->kv_heads), head);
    ptx_u32 row = ptx_mad_lo_u32(k, list, e->context, e->position);
    return head_rope_address(&e->rope, base, row, e->spec->cache_type);
}

/* The lane's first element of a head of the token in [m, heads · D]. */
static ptx_u64 head_address(const struct emitter *e, ptx_u64 base, uint32_t heads, ptx_u32 head,
                            uint8_t type)
{
    return head_rope_address(&e->rope, base, ptx_mad_lo_u32(e->k, e->token, U32(heads), head),
                             type);
}

/* A head as the product gave it, and turned. */
static struct head_part turned_head(struct emitter *e, ptx_u64 at, ptx_u64 gain)
{
    struct head_part head, gains = {0};
    head_rope_load(&e->rope, e->spec->type, at, &head);
    if (e->spec->has_norm) {
        ptx_u64 gain_at = head_rope_address(&e->rope, gain, U32(0), PTXGEN_F32);
        head_rope_load(&e->rope, PTXGEN_F32, gain_at, &gains);
    }
    head_rope_apply(&e->rope, &gains, &head);
    return head;
}

static void emit_query(struct emitter *e, ptx_u64 q, ptx_u64 gain, ptx_u64 rotated, ptx_u32 head)
{
    ptx_u64 from = head_address(e, q, e->spec->heads, head, e->spec->type);
    struct head_part turned = turned_head(e, from, gain);
    ptx_u64 to = head_address(e, rotated, e->spec->heads, head, PTXGEN_F32);
    head_rope_store(&e->rope, PTXGEN_F32, to, &turned);
}

static void emit_key(struct emitter *e, ptx_u64 key, ptx_u64 gain, ptx_u64 cache, ptx_u32 head)
{
    ptx_u64 from = head_address(e, key, e->spec->kv_heads, head, e->spec->type);
    struct head_part turned = turned_head(e, from, gain);
    head_rope_store(&e->rope, e->spec->cache_type, cache_address(e, cache, head), &turned);
}

static void emit_value(struct emitter *e, ptx_u64 value, ptx_u64 cache, ptx_u32 head)
{
    struct head_part as_is;
    ptx_u64 from = head_address(e, value, e->spec->kv_heads, head, e->spec->type);
    head_rope_load(&e->rope, e->spec->type, from, &as_is);
    head_rope_store(&e->rope, e->spec->cache_type, cache_address(e, cache, head), &as_is);
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    const struct rope_plan *p = plan;
    const struct rope_spec *s = &p->spec;
    ptx_kernel *k = ptx_kernel_begin(module, "rope");
    struct emitter e = {.k = k, .spec = s};
    e.rope = (struct head_rope){.k = k,
                                .head_size = s->head_size,
                                .has_norm = s->has_norm,
                                .interleaved = s->interleaved,
                                .epsilon = s->epsilon};
    ptx_kernel_reqntid(k, 32, 1, 1);
    ptx_u64 q = ptx_param_u64(k, "q"), key = ptx_param_u64(k, "k"), value = ptx_param_u64(k, "v");
    ptx_u64 q_norm = ptx_param_u64(k, "q_norm"), k_norm = ptx_param_u64(k, "k_norm");
    ptx_u64 turns = ptx_param_u64(k, "turns"), positions = ptx_param_u64(k, "positions");
    ptx_u64 slots = ptx_param_u64(k, "slots"), rotated = ptx_param_u64(k, "rotated");
    ptx_u64 keys = ptx_param_u64(k, "keys"), values = ptx_param_u64(k, "values");
    e.context = ptx_param_u32(k, "context");
    emit_let_next_begin(k);
    find_place(&e, positions, slots);
    head_rope_init(&e.rope, ptx_sreg_tid_x(k));
    head_rope_find_angles(&e.rope, turns, e.position);
    emit_wait_for_previous(k);
    ptx_u32 block = ptx_sreg_ctaid_x(k);
    ptx_if_else(k, ptx_setp_lt_u32(k, block, U32(s->heads))) {
        ptx_section(k, "a head of q");
        emit_query(&e, q, q_norm, rotated, block);
    } else {
        ptx_u32 head = ptx_sub_u32(k, block, U32(s->heads));
        ptx_if_else(k, ptx_setp_lt_u32(k, head, U32(s->kv_heads))) {
            ptx_section(k, "a head of k");
            emit_key(&e, key, k_norm, keys, head);
        } else {
            ptx_section(k, "a head of v");
            emit_value(&e, value, values, ptx_sub_u32(k, head, U32(s->kv_heads)));
        }
    }
    ptx_kernel_end(k);
    return ptx_module_status(module, err);
}

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    struct rope_plan *p = plan;
    memset(p, 0, sizeof *p);
    memcpy(&p->spec, spec, sizeof p->spec);
    p->target = *target;
    uint32_t size = p->spec.head_size;
    if (size != 64 && size != 128 && size != 256)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "rope: heads of %u elements; 64, 128 and 256 are supported", size);
    return PTXGEN_OK;
}

static void describe(const void *spec, char *text, size_t size)
{
    const struct rope_spec *s = spec;
    snprintf(text, size,
             "heads=%u kv_heads=%u head_size=%u epsilon=%a type=%u cache=%u norm=%u "
             "interleaved=%u",
             s->heads, s->kv_heads, s->head_size, (double)s->epsilon, s->type, s->cache_type,
             s->has_norm, s->interleaved);
}

const ptxgen_family *rope_family(void)
{
    static const ptxgen_family family = {.name = "generate_rope",
                                         .plan_version = 2,
                                         .spec_bytes = sizeof(struct rope_spec),
                                         .plan_bytes = sizeof(struct rope_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .describe = describe};
    return &family;
}

ptxgen_status rope_launch(const ptxgen_loaded *loaded, const struct rope_args *args,
                          ptxgen_cu_stream stream, ptxgen_error *err)
{
    const struct rope_plan *plan = ptxgen_loaded_plan(loaded);
    const struct rope_spec *s = &plan->spec;
    struct rope_args a = *args;
    void *parameters[] = {&a.q,         &a.k,     &a.v,       &a.q_norm, &a.k_norm, &a.turns,
                          &a.positions, &a.slots, &a.rotated, &a.keys,   &a.values, &a.context};
    ptxgen_launch_shape shape =
        launch_shape(&plan->target, 32, s->heads + 2 * (uint64_t)s->kv_heads, a.m, 1);
    return ptxgen_launch(ptxgen_loaded_entry(loaded, 0), &shape, stream, parameters, err);
}

void rope_turns(double base, const float *factors, uint32_t head_size, uint64_t *turns)
{
    for (uint32_t i = 0; i < head_size / 2; i++) {
        double frequency = pow(base, -2.0 * i / head_size) / (factors ? (double)factors[i] : 1);
        double turn = frequency / 6.283185307179586;
        turns[i] = (uint64_t)ldexp(turn - floor(turn), 64);
    }
}
