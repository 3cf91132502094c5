/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA "st.async" and "red.async": a thread's store or reduction into the shared memory of a CTA of
 * the cluster, which an mbarrier of that CTA counts in bytes. A store's place is pending until the
 * mbarrier's phase is waited for; reductions into one place are atomic, and may meet there.
 */
#include "src/emulator/access.h"
#include "src/emulator/async.h"
#include "src/emulator/atomic_op.h"
#include "src/emulator/bulk.h"
#include "src/emulator/proxy.h"
#include "src/emulator/shared_buffer.h"
#include "src/emulator/shared_memory.h"

#include <string.h>

enum { STORE_TO, STORE_MBARRIER }; /* sources */

struct async_store {
    int64_t mbarrier_offset;
    bool reduces;
};

static void read_values(struct emu_warp *warp, const struct emu_insn *insn, int lane, uint8_t *to)
{
    uint32_t element = emu_types[insn->type].bits / 8;
    for (uint32_t i = 0; i < insn->vector; i++) {
        uint64_t value = emu_lane_value(warp, insn->list[i], lane);
        memcpy(to + i * element, &value, element);
    }
}

static void issue(struct emu_warp *warp, const struct emu_insn *insn, int lane, uint64_t to,
                  uint64_t mbarrier)
{
    const struct async_store *store = insn->extra;
    uint32_t bytes = emu_types[insn->type].bits / 8 * insn->vector;
    uint32_t flags = store->reduces
                         ? ACCESS_READ | ACCESS_WRITE | ACCESS_STRONG | ACCESS_REDUCTION |
                               (uint32_t)SCOPE_CLUSTER << ACCESS_SCOPE_SHIFT
                         : ACCESS_WRITE | ACCESS_PENDING;
    struct emu_place place = emu_locate(warp, insn, lane, SPACE_SHARED_CLUSTER, to, bytes, bytes,
                                        flags | emu_home(warp, insn->s[STORE_TO]));
    struct emu_cta *owner;
    struct emu_mbarrier *object = emu_mbarrier_at(warp, insn, lane, SPACE_SHARED_CLUSTER,
                                                  insn->s[STORE_MBARRIER], mbarrier, &owner);
    if (owner != place.owner)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_OPERANDS, mbarrier,
                     "the mbarrier is in CTA %u of the cluster, the destination in CTA %u",
                     owner->rank, place.owner->rank);
    struct emu_copy *copy = emu_copy_add(&warp->cta->cluster->copies, COPY_IN, bytes, 1);
    if (!copy)
        emu_out_of_memory(warp);
    copy->insn = insn;
    copy->issuer = warp;
    copy->lane = lane;
    copy->epoch = warp->clock[warp->number];
    emu_proxy_fenced_epochs(warp, copy->fenced);
    copy->bytes = copy->transaction = bytes;
    copy->cta = copy->mbarrier_cta = owner;
    copy->offset = place.offset;
    copy->mbarrier = object->offset;
    copy->reduces = store->reduces;
    copy->op = insn->mode;
    copy->type = insn->type;
    copy->runs[0] = (struct emu_run){place.offset, 0, bytes};
    copy->run_count = 1;
    read_values(warp, insn, lane, copy->data);
}

static void async_store(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    const struct async_store *store = insn->extra;
    uint64_t to[32], mbarriers[32];
    emu_addresses(warp, insn->s[STORE_TO], insn->imm, to);
    emu_addresses(warp, insn->s[STORE_MBARRIER], store->mbarrier_offset, mbarriers);
    emu_progress(warp->worker);
    emu_need_cluster(warp, insn, __builtin_ctz(mask));
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        issue(warp, insn, lane, to[lane], mbarriers[lane]);
    }
}

/* Unsigned and untyped bits reduce alike where signs do not matter. */
static void decode_operation(struct emu_decoder *decoder, struct emu_insn *insn)
{
    int op = emu_mod_of(decoder, emu_atomic_names);
    if (op < 0 || op == ATOMIC_EXCH || op == ATOMIC_CAS)
        emu_refuse(decoder, "an operation such as .add is missing");
    insn->mode = (uint8_t)op;
    insn->type = (uint8_t)emu_need_type(decoder, "b32 u32 s32 u64 s64");
    if (!emu_atomic_allows((enum emu_atomic)op, (enum emu_type)insn->type))
        emu_refuse(decoder, "operation .%s has no form for type .%s", emu_atomic_names[op],
                   emu_types[insn->type].name);
}

void emu_decode_async_store(struct emu_decoder *decoder, struct emu_insn *insn, bool reduces)
{
    static const char *const vectors[] = {"v2", "v4", NULL};
    static const char *const scopes[] = {"weak", "relaxed", "cluster", NULL};
    struct async_store *store = emu_alloc(&decoder->program->arena, 1, sizeof *store);
    store->reduces = reduces;
    while (emu_mod_of(decoder, scopes) >= 0)
        continue;
    enum emu_space space = emu_mod_space(decoder);
    if (space != SPACE_SHARED_CLUSTER && space != SPACE_GENERIC)
        emu_refuse(decoder, ".shared::cluster is missing");
    if (!emu_mod(decoder, "mbarrier::complete_tx::bytes"))
        emu_refuse(decoder, ".mbarrier::complete_tx::bytes is missing");
    int vector = reduces ? -1 : emu_mod_of(decoder, vectors);
    insn->vector = vector < 0 ? 1 : (uint8_t)(2 << vector);
    if (reduces)
        decode_operation(decoder, insn);
    else
        insn->type = (uint8_t)emu_need_type(decoder, "b32 b64 u32 u64 s32 s64 f32 f64");
    emu_need_operands(decoder, 3, 3);
    emu_address(decoder, emu_operand_at(decoder, 0), &insn->s[STORE_TO], &insn->imm);
    emu_address(decoder, emu_operand_at(decoder, 2), &insn->s[STORE_MBARRIER],
                &store->mbarrier_offset);
    uint32_t count;
    const struct emu_arg *items = emu_items(decoder, emu_operand_at(decoder, 1), &count);
    if (count != insn->vector)
        emu_refuse(decoder, "%u elements stand in the vector, %u are due", count, insn->vector);
    insn->list = emu_alloc(&decoder->program->arena, count, sizeof *insn->list);
    insn->list_count = (uint16_t)count;
    for (uint32_t i = 0; i < count; i++)
        insn->list[i] = emu_read(decoder, &items[i], insn->type);
    insn->extra = store;
    insn->exec = async_store;
    insn->class_id = CLASS_ASYNC;
    decoder->program->uses_proxies = true;
}
