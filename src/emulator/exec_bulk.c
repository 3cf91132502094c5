/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA "cp.async.bulk", "cp.async.bulk.tensor" (tile mode), "cp.reduce.async.bulk" and their
 * groups. A lane's copy is cut into runs of bytes; what differs between the forms is who cuts.
 */
#include "src/emulator/access.h"
#include "src/emulator/async.h"
#include "src/emulator/atomic_op.h"
#include "src/emulator/bulk.h"
#include "src/emulator/half.h"
#include "src/emulator/layout.h"
#include "src/emulator/memory_order.h"
#include "src/emulator/profile.h"
#include "src/emulator/proxy.h"
#include "src/emulator/shared_buffer.h"
#include "src/emulator/shared_memory.h"
#include "src/emulator/tensormap_tiled.h"

#include <stdlib.h>
#include <string.h>

enum { BULK_SHARED, BULK_OTHER, BULK_SIZE, BULK_MBARRIER, BULK_CTAS };
enum { BULK_ALIGNMENT = 16, MOST_SEGMENTS = 1 << 16 };

/* What the form says, beside the operands. */
struct bulk {
    int64_t shared_offset, other_offset, mbarrier_offset;
    bool to_shared, tensor, reduces, from_shared;
    uint8_t rank;
    enum emu_atomic op;
    enum emu_type type;
};

static uint64_t lane_address(struct emu_warp *warp, struct emu_src base, int64_t offset, int lane)
{
    uint64_t value = emu_lane_value(warp, base, lane) + (uint64_t)offset;
    return base.bytes == 4 ? (uint32_t)value : value;
}

static uint32_t copy_size(struct emu_warp *warp, const struct emu_insn *insn, int lane)
{
    uint64_t size = emu_lane_value(warp, insn->s[BULK_SIZE], lane);
    if (size % BULK_ALIGNMENT || size > EMU_SHARED_OFFSET_MASK)
        emu_fault(warp, insn, lane, PTXGEN_CHECK_OPERANDS,
                  "a bulk copy of %llu bytes; the size is a multiple of 16",
                  (unsigned long long)size);
    return (uint32_t)size;
}

static uint64_t other_address(struct emu_warp *warp, const struct emu_insn *insn, int lane)
{
    const struct bulk *bulk = insn->extra;
    uint64_t address = lane_address(warp, insn->s[BULK_OTHER], bulk->other_offset, lane);
    if (address % BULK_ALIGNMENT)
        emu_fault(warp, insn, lane, PTXGEN_CHECK_ALIGNMENT,
                  "the addresses of a bulk copy are multiples of 16");
    return address;
}

/* ---- tensor boxes ---- */

struct box_walk {
    struct emu_warp *warp;
    const struct emu_insn *insn;
    int lane;
    const emu_tensor_map *map;
    uint32_t base;         /* shared offset of the box */
    struct emu_copy *copy; /* NULL while counting */
    uint32_t runs;
    bool load;
};

static bool count_segment(void *user, const emu_tensor_segment *segment)
{
    struct box_walk *walk = user;
    walk->runs += !segment->out_of_bounds || walk->load;
    return walk->runs <= MOST_SEGMENTS;
}

/* Maps of tf32 round what they load (seen on an H100), to nearest even. */
static void convert_loaded(const emu_tensor_map *map, uint8_t *data, uint32_t bytes)
{
    if (map->type != EMU_TENSOR_TF32 && map->type != EMU_TENSOR_TF32_FTZ)
        return;
    for (uint32_t i = 0; i + 4 <= bytes; i += 4) {
        float value;
        memcpy(&value, data + i, sizeof value);
        uint32_t bits = emu_to_small(value, &emu_format_tf32, SMALL_RN, false) << 13;
        memcpy(data + i, &bits, sizeof bits);
    }
}

static bool take_segment(void *user, const emu_tensor_segment *segment)
{
    struct box_walk *walk = user;
    struct emu_copy *copy = walk->copy;
    if (segment->out_of_bounds && !walk->load)
        return true;
    uint32_t at = segment->shared - walk->base;
    if (!segment->out_of_bounds)
        emu_count_run(walk->warp, walk->insn, segment->global, segment->bytes);
    if (walk->load) {
        copy->runs[copy->run_count++] = (struct emu_run){segment->shared, at, segment->bytes};
        if (segment->out_of_bounds) {
            emu_tensor_map_fill(walk->map, copy->data + at, segment->bytes);
            return true;
        }
        struct emu_place place =
            emu_locate(walk->warp, walk->insn, walk->lane, SPACE_GLOBAL, segment->global,
                       segment->bytes, 1, ACCESS_READ | ACCESS_ASYNC_PROXY);
        memcpy(copy->data + at, place.data, segment->bytes);
        convert_loaded(walk->map, copy->data + at, segment->bytes);
    } else {
        copy->runs[copy->run_count++] = (struct emu_run){segment->global, at, segment->bytes};
    }
    return true;
}

static emu_tensor_map read_map(struct emu_warp *warp, const struct emu_insn *insn, int lane)
{
    const struct bulk *bulk = insn->extra;
    uint64_t address = lane_address(warp, insn->s[BULK_OTHER], bulk->other_offset, lane);
    struct emu_place place =
        emu_locate(warp, insn, lane, SPACE_GENERIC, address, EMU_TENSOR_MAP_BYTES, 64, ACCESS_READ);
    emu_tensor_map map;
    ptxgen_error err;
    if (emu_tensor_map_decode(place.data, &map, &err) != PTXGEN_OK)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_OPERANDS, address, "%s", err.message);
    if (map.rank != bulk->rank)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_OPERANDS, address,
                     "the tensor map has %u dimensions, the instruction %u", map.rank, bulk->rank);
    return map;
}

static enum emu_type element_type(const emu_tensor_map *map)
{
    static const uint8_t types[] = {
        [EMU_TENSOR_U8] = T_u8,       [EMU_TENSOR_U16] = T_u16,     [EMU_TENSOR_U32] = T_u32,
        [EMU_TENSOR_S32] = T_s32,     [EMU_TENSOR_U64] = T_u64,     [EMU_TENSOR_S64] = T_s64,
        [EMU_TENSOR_F16] = T_f16,     [EMU_TENSOR_F32] = T_f32,     [EMU_TENSOR_F64] = T_f64,
        [EMU_TENSOR_BF16] = T_bf16,   [EMU_TENSOR_F32_FTZ] = T_f32, [EMU_TENSOR_TF32] = T_f32,
        [EMU_TENSOR_TF32_FTZ] = T_f32};
    return (enum emu_type)types[map->type];
}

/* ---- issuing ---- */

/* A copy of one lane, filled with the data that it will deliver. */
struct issue {
    struct emu_warp *warp;
    const struct emu_insn *insn;
    int lane;
    const struct bulk *bulk;
    uint32_t bytes;       /* of shared memory, from the first to the last */
    uint32_t transaction; /* bytes that are copied */
    emu_tensor_map map;   /* of tensor copies */
};

/* An H100 takes a box elsewhere for an illegal instruction. */
static void check_place(const struct issue *issue, int64_t x)
{
    int64_t bytes = x * emu_tensor_element_bytes(issue->map.type);
    if (bytes % BULK_ALIGNMENT)
        emu_fault(
            issue->warp, issue->insn, issue->lane, PTXGEN_CHECK_ALIGNMENT,
            "the box starts %lld bytes into the innermost dimension, which must be a multiple "
            "of 16",
            (long long)bytes);
    if (!issue->bulk->to_shared && x < 0)
        emu_fault(
            issue->warp, issue->insn, issue->lane, PTXGEN_CHECK_OPERANDS,
            "a box that is stored starts at %lld in the innermost dimension, before the tensor",
            (long long)x);
}

static struct emu_copy *make_copy(const struct issue *issue, uint32_t offset)
{
    const struct bulk *bulk = issue->bulk;
    struct emu_cluster *cluster = issue->warp->cta->cluster;
    struct box_walk walk = {issue->warp, issue->insn, issue->lane, &issue->map,
                            offset,      NULL,        1,           bulk->to_shared};
    emu_tensor_box box = {.map = &issue->map, .shared = offset};
    if (bulk->tensor) {
        ptxgen_error err;
        for (uint32_t i = 0; i < bulk->rank; i++)
            box.coordinates[i] =
                (int32_t)emu_lane_value(issue->warp, issue->insn->list[i], issue->lane);
        check_place(issue, box.coordinates[0]);
        if (emu_tensor_map_check_box(&box, &err) != PTXGEN_OK)
            emu_fault_at(issue->warp, issue->insn, issue->lane, PTXGEN_CHECK_ALIGNMENT, offset,
                         "%s", err.message);
        if (!emu_tensor_map_walk(&box, count_segment, &walk))
            emu_fault(issue->warp, issue->insn, issue->lane, PTXGEN_CHECK_OPERANDS,
                      "the box falls into more than %d pieces", MOST_SEGMENTS);
    }
    struct emu_copy *copy = emu_copy_add(&cluster->copies, bulk->to_shared ? COPY_IN : COPY_OUT,
                                         issue->bytes, walk.runs);
    if (!copy)
        emu_out_of_memory(issue->warp);
    copy->insn = issue->insn;
    copy->issuer = issue->warp;
    copy->lane = issue->lane;
    copy->epoch = issue->warp->clock[issue->warp->number];
    emu_proxy_fenced_epochs(issue->warp, copy->fenced);
    copy->group = issue->warp->bulk_groups[issue->lane];
    copy->bytes = issue->bytes;
    copy->transaction = issue->transaction;
    copy->offset = offset;
    copy->reduces = bulk->reduces;
    copy->op = (uint8_t)bulk->op;
    copy->type = (uint8_t)(bulk->tensor ? element_type(&issue->map) : bulk->type);
    if (bulk->tensor) {
        walk.copy = copy;
        emu_tensor_map_walk(&box, take_segment, &walk);
        return copy;
    }
    uint64_t other =
        lane_address(issue->warp, issue->insn->s[BULK_OTHER], bulk->other_offset, issue->lane);
    copy->runs[0] = (struct emu_run){bulk->to_shared ? offset : other, 0, issue->bytes};
    copy->run_count = 1;
    if (!bulk->to_shared || !bulk->from_shared)
        emu_count_run(issue->warp, issue->insn, other, issue->bytes);
    if (!bulk->to_shared)
        return copy;
    struct emu_place place = emu_locate(
        issue->warp, issue->insn, issue->lane, bulk->from_shared ? SPACE_SHARED : SPACE_GLOBAL,
        other, issue->bytes, BULK_ALIGNMENT,
        ACCESS_READ | ACCESS_ASYNC_PROXY | (bulk->from_shared ? ACCESS_PENDING : 0) |
            emu_home(issue->warp, issue->insn->s[BULK_OTHER]));
    copy->source = bulk->from_shared ? place.state : NULL;
    memcpy(copy->data, place.data, issue->bytes);
    return copy;
}

/* The elements of a reduction are relaxed atomics of .gpu scope. */
#define REDUCES                                                                                    \
    (ACCESS_READ | ACCESS_WRITE | ACCESS_STRONG | ACCESS_REDUCTION |                               \
     (uint32_t)SCOPE_GPU << ACCESS_SCOPE_SHIFT)

/* Into the shared memory of one CTA. */
static void issue_in(const struct issue *issue, uint64_t shared, uint64_t mbarrier)
{
    struct emu_place place =
        emu_locate(issue->warp, issue->insn, issue->lane, SPACE_SHARED_CLUSTER, shared,
                   issue->bytes, BULK_ALIGNMENT,
                   ACCESS_ASYNC_PROXY | (issue->bulk->reduces ? REDUCES : ACCESS_WRITE) |
                       emu_home(issue->warp, issue->insn->s[BULK_SHARED]));
    struct emu_copy *copy = make_copy(issue, place.offset);
    struct emu_cta *owner;
    struct emu_mbarrier *object =
        emu_mbarrier_at(issue->warp, issue->insn, issue->lane, SPACE_SHARED_CLUSTER,
                        issue->insn->s[BULK_MBARRIER], mbarrier, &owner);
    if (owner->cluster->launch->proxies)
        emu_proxy_mbarrier(issue->warp, issue->insn, issue->lane, owner, object, true);
    copy->cta = place.owner;
    copy->mbarrier_cta = owner;
    copy->mbarrier = object->offset;
    for (uint32_t i = 0; !copy->reduces && i < copy->run_count; i++)
        memset(place.state + copy->runs[i].at, BYTE_PENDING, copy->runs[i].bytes);
}

static void issue_out(const struct issue *issue, uint64_t shared)
{
    struct emu_place whole = emu_locate(issue->warp, issue->insn, issue->lane, SPACE_SHARED, shared,
                                        0, BULK_ALIGNMENT, ACCESS_READ);
    struct emu_copy *copy = make_copy(issue, whole.offset);
    copy->cta = whole.owner;
    for (uint32_t i = 0; i < copy->run_count; i++) {
        struct emu_run run = copy->runs[i];
        struct emu_place place = emu_locate(issue->warp, issue->insn, issue->lane, SPACE_SHARED,
                                            shared + run.at, run.bytes, 1,
                                            ACCESS_READ | ACCESS_PENDING | ACCESS_ASYNC_PROXY |
                                                emu_home(issue->warp, issue->insn->s[BULK_SHARED]));
        memcpy(copy->data + run.at, place.data, run.bytes);
    }
    copy->source = whole.state;
}

static void multicast(const struct issue *issue, uint64_t shared, uint64_t mbarrier)
{
    struct emu_warp *warp = issue->warp;
    uint64_t ctas = emu_lane_value(warp, issue->insn->s[BULK_CTAS], issue->lane);
    for (uint32_t rank = 0; rank < 16; rank++) {
        if (!(ctas >> rank & 1))
            continue;
        if (rank >= warp->cta->cluster->cta_count)
            emu_fault(warp, issue->insn, issue->lane, PTXGEN_CHECK_OPERANDS,
                      "the CTA mask 0x%llx names CTA %u of a cluster of %u",
                      (unsigned long long)ctas, rank, warp->cta->cluster->cta_count);
        uint64_t window = rank == warp->cta->rank ? 0 : (uint64_t)(rank + 1) << EMU_RANK_SHIFT;
        issue_in(issue, window | (shared & EMU_SHARED_OFFSET_MASK),
                 window | (mbarrier & EMU_SHARED_OFFSET_MASK));
    }
}

static void bulk_copy(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    const struct bulk *bulk = insn->extra;
    for (uint32_t left = mask; left; left &= left - 1) {
        struct issue issue = {
            .warp = warp, .insn = insn, .lane = __builtin_ctz(left), .bulk = bulk};
        uint64_t shared = lane_address(warp, insn->s[BULK_SHARED], bulk->shared_offset, issue.lane);
        if (bulk->to_shared && bulk->from_shared)
            emu_need_cluster(warp, insn, issue.lane);
        if (bulk->tensor) {
            issue.map = read_map(warp, insn, issue.lane);
            issue.bytes = emu_tensor_box_extent(&issue.map);
            issue.transaction = emu_tensor_box_bytes(&issue.map);
        } else {
            issue.bytes = issue.transaction = copy_size(warp, insn, issue.lane);
            other_address(warp, insn, issue.lane);
        }
        if (!bulk->to_shared) {
            issue_out(&issue, shared);
            continue;
        }
        uint64_t mbarrier =
            lane_address(warp, insn->s[BULK_MBARRIER], bulk->mbarrier_offset, issue.lane);
        if (insn->s[BULK_CTAS].absent)
            issue_in(&issue, shared, mbarrier);
        else
            multicast(&issue, shared, mbarrier);
    }
}

/* To the L2: nothing of it is seen, but what is not there is not to be asked for. */
static void bulk_prefetch(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        emu_locate(warp, insn, lane, SPACE_GLOBAL, other_address(warp, insn, lane),
                   copy_size(warp, insn, lane), 1, 0);
    }
}

/* ---- groups ---- */

static void commit_group(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    (void)insn;
    for (uint32_t left = mask; left; left &= left - 1)
        warp->bulk_groups[__builtin_ctz(left)]++;
}

static void wait_group(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (uint32_t left = mask; left; left &= left - 1)
        emu_land_bulk(warp, __builtin_ctz(left), (uint32_t)insn->imm, insn->has_value);
}

/* ---- decoding ---- */

static void decode_tensor_operand(struct emu_decoder *decoder, struct emu_insn *insn,
                                  struct bulk *bulk, const struct emu_arg *operand)
{
    if (operand->kind != OPERAND_ADDRESS || operand->count != 2 ||
        operand->items[1].kind != OPERAND_VECTOR || operand->items[1].count != bulk->rank)
        emu_refuse(decoder, "[map, {coordinates}] with %u coordinates is due", bulk->rank);
    emu_address(decoder, operand, &insn->s[BULK_OTHER], &bulk->other_offset);
    insn->list_count = bulk->rank;
    insn->list = emu_alloc(&decoder->program->arena, bulk->rank, sizeof *insn->list);
    for (uint32_t i = 0; i < bulk->rank; i++)
        insn->list[i] = emu_read(decoder, &operand->items[1].items[i], T_b32);
}

static void decode_reduction(struct emu_decoder *decoder, struct bulk *bulk)
{
    int op = emu_mod_of(decoder, emu_atomic_names);
    if (op < 0)
        emu_refuse(decoder, "an operation such as .add is missing");
    bulk->op = (enum emu_atomic)op;
    bool noftz = emu_mod(decoder, "noftz");
    if (bulk->tensor) /* the map says of what type the elements are */
        return;
    bulk->type = emu_mod_type(decoder);
    if (!emu_atomic_allows(bulk->op, bulk->type) && !(bulk->type == T_b32 || bulk->type == T_b64))
        emu_refuse(decoder, "operation .%s has no form for type .%s", emu_atomic_names[op],
                   emu_types[bulk->type].name);
    if (bulk->type == T_f16x2 || bulk->type == T_bf16x2)
        emu_refuse(decoder, "elements of type .%s are not reduced", emu_types[bulk->type].name);
    bool small = bulk->type == T_f16 || bulk->type == T_bf16;
    if (noftz != (small && bulk->op == ATOMIC_ADD))
        emu_refuse(decoder, ".noftz stands with .add of 16-bit floats, and only with it");
}

static void need_async_bulk(struct emu_decoder *decoder)
{
    if (!emu_mod(decoder, "async") || !emu_mod(decoder, "bulk"))
        emu_refuse(decoder, ".async.bulk is missing");
}

static void decode_operands(struct emu_decoder *decoder, struct emu_insn *insn, struct bulk *bulk,
                            bool many, bool policy)
{
    uint32_t shared = bulk->to_shared ? 0 : 1, at = 2;
    const struct emu_arg *other = emu_operand_at(decoder, 1 - shared);
    emu_address(decoder, emu_operand_at(decoder, shared), &insn->s[BULK_SHARED],
                &bulk->shared_offset);
    insn->s[BULK_CTAS].absent = true;
    if (bulk->tensor) {
        decode_tensor_operand(decoder, insn, bulk, other);
    } else {
        emu_address(decoder, other, &insn->s[BULK_OTHER], &bulk->other_offset);
        insn->s[BULK_SIZE] = emu_read_nth(decoder, at++, T_u32);
    }
    if (bulk->to_shared)
        emu_address(decoder, emu_operand_at(decoder, at++), &insn->s[BULK_MBARRIER],
                    &bulk->mbarrier_offset);
    if (many)
        insn->s[BULK_CTAS] = emu_read_nth(decoder, at++, T_b16);
    if (policy)
        emu_read_nth(decoder, at++, T_b64);
    emu_need_operands(decoder, at, at);
}

/* Whether it is of a tensor, and of how many dimensions. */
static void decode_rank(struct emu_decoder *decoder, struct bulk *bulk)
{
    static const char *const ranks[] = {"1d", "2d", "3d", "4d", "5d", NULL};
    bulk->tensor = emu_mod(decoder, "tensor");
    if (!bulk->tensor)
        return;
    int rank = emu_mod_of(decoder, ranks);
    if (rank < 0)
        emu_refuse(decoder, "the number of dimensions (.1d to .5d) is missing");
    bulk->rank = (uint8_t)(rank + 1);
    emu_mod(decoder, "tile");
}

static void decode_transfer(struct emu_decoder *decoder, struct emu_insn *insn)
{
    struct bulk *bulk = emu_alloc(&decoder->program->arena, 1, sizeof *bulk);
    bulk->reduces = emu_mod(decoder, "reduce");
    need_async_bulk(decoder);
    decode_rank(decoder, bulk);
    enum emu_space to = emu_mod_space(decoder), from = emu_mod_space(decoder);
    bulk->to_shared = to == SPACE_SHARED || to == SPACE_SHARED_CLUSTER;
    bulk->from_shared = from == SPACE_SHARED;
    if (bulk->to_shared ? from != SPACE_GLOBAL && !bulk->from_shared
                        : to != SPACE_GLOBAL || !bulk->from_shared)
        emu_refuse(decoder, "the state spaces of destination and source are missing or unsuited");
    bool counted = emu_mod(decoder, "mbarrier::complete_tx::bytes");
    bool grouped = emu_mod(decoder, "bulk_group");
    if (counted != bulk->to_shared || grouped == bulk->to_shared)
        emu_refuse(decoder, "the completion mechanism is missing or does not suit the direction");
    bool many = emu_mod(decoder, "multicast::cluster");
    bool policy = emu_mod(decoder, "L2::cache_hint");
    if (bulk->reduces)
        decode_reduction(decoder, bulk);
    if (bulk->reduces && !bulk->to_shared)
        decoder->program->communicates = true;
    decoder->program->uses_proxies = true;
    insn->extra = bulk;
    insn->exec = bulk_copy;
    decode_operands(decoder, insn, bulk, many, policy);
}

/* Boxes of tensors end where these do, so that nothing of a tensor's can be wrong. */
static void decode_prefetch(struct emu_decoder *decoder, struct emu_insn *insn)
{
    struct bulk *bulk = emu_alloc(&decoder->program->arena, 1, sizeof *bulk);
    need_async_bulk(decoder);
    decode_rank(decoder, bulk);
    if (!emu_mod(decoder, "L2") || emu_mod_space(decoder) != SPACE_GLOBAL)
        emu_refuse(decoder, ".L2.global is missing");
    bool policy = emu_mod(decoder, "L2::cache_hint");
    insn->extra = bulk;
    insn->exec = bulk->tensor ? emu_exec_nothing : bulk_prefetch;
    if (bulk->tensor) {
        emu_need_operands(decoder, 1u + policy, 1u + policy);
        decode_tensor_operand(decoder, insn, bulk, emu_operand_at(decoder, 0));
        return;
    }
    emu_address(decoder, emu_operand_at(decoder, 0), &insn->s[BULK_OTHER], &bulk->other_offset);
    insn->s[BULK_SIZE] = emu_read_nth(decoder, 1, T_u32);
    emu_need_operands(decoder, 2u + policy, 2u + policy);
}

void emu_decode_bulk(struct emu_decoder *decoder, struct emu_insn *insn)
{
    if (emu_mod(decoder, "prefetch")) {
        decode_prefetch(decoder, insn);
        return;
    }
    bool commit = emu_mod(decoder, "commit_group");
    if (!commit && !emu_mod(decoder, "wait_group")) {
        decode_transfer(decoder, insn);
        return;
    }
    emu_mod(decoder, "async");
    emu_mod(decoder, "bulk");
    insn->has_value = emu_mod(decoder, "read");
    insn->exec = commit ? commit_group : wait_group;
    emu_need_operands(decoder, commit ? 0 : 1, commit ? 0 : 1);
    if (!commit)
        insn->imm = (int64_t)emu_immediate(decoder, emu_operand_at(decoder, 0));
}
