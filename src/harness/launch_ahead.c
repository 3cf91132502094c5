/* SPDX-License-Identifier: Apache-2.0 */
#include "launch_ahead.h"

#include <ptxgen/instr.h>

enum { THREADS = 256, WORD = 4, MOST_WORDS = 1 << 16 };

static void emit_kernel(ptx_module *module)
{
    ptx_kernel *k = ptx_kernel_begin(module, "write_activations");
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    ptx_u64 first = ptx_param_u64(k, "first");
    ptx_u32 words = ptx_param_u32(k, "words");
    ptx_u32 cta = ptx_sreg_ctaid_x(k), tid = ptx_sreg_tid_x(k);
    ptx_u32 word = ptx_mad_lo_u32(k, cta, ptx_imm_u32(THREADS), tid);
    ptx_u64 at = ptx_mad_wide_u32(k, word, ptx_imm_u32(WORD), first);
    ptx_if(k, ptx_setp_lt_u32(k, word, words)) {
        ptx_u32 value = ptx_ld_global_u32(k, at, 0);
        ptx_st_global_u32(k, at, 0, value);
    }
    ptx_kernel_end(k);
}

ptxgen_status launch_ahead_load(struct probe *probe, struct device *device, ptxgen_error *err)
{
    const ptxgen_target target = ptxgen_device_target(&device->facts);
    return probe_load(probe, device, &target.ptx, emit_kernel, "write_activations", err);
}

ptxgen_status launch_ahead(const struct probe *probe, const struct buffer *activations,
                           ptxgen_error *err)
{
    uint64_t first = (activations->address + WORD - 1) / WORD * WORD;
    uint64_t whole = (activations->address + activations->bytes - first) / WORD;
    uint32_t words = (uint32_t)(whole < MOST_WORDS ? whole : MOST_WORDS);
    void *arguments[] = {&first, &words};
    const ptxgen_launch_shape shape = {.grid = {words / THREADS + 1, 1, 1},
                                       .block = {THREADS, 1, 1}};
    return ptxgen_launch(probe->kernel, &shape, probe->device->stream, arguments, err);
}
