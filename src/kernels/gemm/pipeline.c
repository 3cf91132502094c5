/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include "operand.h"

static void advance_slot(ptx_kernel *k, const struct gemm_pipeline *p, ptx_u32 slot)
{
    ptx_add_u32_to(k, slot, slot, U32(p->stage_bytes));
    ptx_pred past = ptx_setp_eq_u32(k, slot, p->end);
    ptx_selp_u32_to(k, slot, p->begin, slot, past);
}

void gemm_pipeline_issue(ptx_kernel *k, struct gemm_pipeline *p)
{
    ptx_if(k, ptx_setp_ne_u32(k, p->to_issue, U32(0))) {
        ptx_if(k, ptx_setp_eq_u32(k, p->copies.stage, p->copies.stage_end)) {
            gemm_walk_next(k, p->division, &p->copies);
            p->locate(p->user, &p->copies);
        }
        p->issue(p->user, p->fill);
        advance_slot(k, p, p->fill);
        ptx_add_u32_to(k, p->copies.stage, p->copies.stage, U32(1));
        ptx_sub_u32_to(k, p->to_issue, p->to_issue, U32(1));
    }
    ptx_cp_async_commit_group(k);
}

/* Waits for all but the newest `stages` − 3 groups of copies, those of all threads of the CTA. */
static void wait_for_copies(ptx_kernel *k, const struct gemm_pipeline *p)
{
    ptx_cp_async_wait_group(k, p->stages - 3);
    ptx_bar_sync(k, 0);
}

void gemm_pipeline_next(ptx_kernel *k, struct gemm_pipeline *p)
{
    ptx_u32 present = ptx_mov_u32(k, p->read);
    advance_slot(k, p, p->read);
    ptx_sub_u32_to(k, p->to_read, p->to_read, U32(1));
    ptx_pred more = ptx_setp_ne_u32(k, p->to_read, U32(0));
    ptx_selp_u32_to(k, p->read, p->read, present, more);
    wait_for_copies(k, p);
}

/* Slots that stay free when the copies of the first stages are issued. */
enum { FREE = 2 };

static void issue_first(ptx_kernel *k, struct gemm_pipeline *p, uint32_t from, uint32_t to)
{
    ptx_u32 filled = ptx_mov_u32(k, U32(from));
    ptx_for(k, filled, U32(to), U32(1)) {
        ptx_nounroll(k);
        gemm_pipeline_issue(k, p);
    }
}

void gemm_pipeline_fill(ptx_kernel *k, struct gemm_pipeline *p)
{
    issue_first(k, p, FREE + p->early, p->stages);
}

void gemm_pipeline_begin(ptx_kernel *k, struct gemm_pipeline *p, ptx_u32 first, ptx_u32 end)
{
    uint32_t bytes = p->stages * p->stage_bytes;
    p->begin = ptx_shared_address(k, ptx_shared_declare(k, "stages", bytes, GEMM_BLOCK_BYTES));
    p->end = ptx_add_u32(k, p->begin, U32(bytes));
    p->fill = ptx_mov_u32(k, p->begin);
    p->read = ptx_mov_u32(k, p->begin);
    p->copies = gemm_walk_begin(k, first, end);
    p->to_issue = ptx_sub_u32(k, end, first);
    p->to_read = ptx_mov_u32(k, p->to_issue);
    ptx_section(k, "first stages");
    issue_first(k, p, FREE, p->early ? FREE + p->early : p->stages);
    if (p->filled)
        p->filled(p->user);
    wait_for_copies(k, p);
}
