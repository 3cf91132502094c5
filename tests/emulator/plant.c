/* SPDX-License-Identifier: Apache-2.0 */
#include "plant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
    ".version 8.6\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .u64 pa, .param .u64 pb)\n{\n"
    ".reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<80>;\n"
    ".shared .align 128 .b8 buf[4096];\n"
    ".shared .align 8 .b64 bar;\n"
    ".local .align 4 .b8 frame[64];\n"
    "ld.param.u64 %rd1, [pa];\n"
    "ld.param.u64 %rd2, [pb];\n"
    "mov.u32 %r1, %tid.x;\n"
    "shl.b32 %r2, %r1, 2;\n" /* 4·tid */
    "cvt.u64.u32 %rd3, %r2;\n"
    "add.u64 %rd4, %rd1, %rd3;\n" /* pa + 4·tid */
    "add.u64 %rd5, %rd2, %rd3;\n" /* pb + 4·tid */
    "mov.u32 %r3, buf;\n"
    "add.u32 %r4, %r3, %r2;\n" /* buf + 4·tid */
    "and.b32 %r5, %r1, 31;\n"  /* lane */
    "shr.u32 %r6, %r1, 5;\n"   /* warp */
    "mov.u32 %r7, bar;\n"
    "setp.eq.u32 %p1, %r1, 0;\n"                      /* thread 0 */
    "setp.lt.u32 %p2, %r5, 16;\n"                     /* lower half of the warp */
    "xor.b32 %r8, %r2, 128; add.u32 %r8, %r3, %r8;\n" /* the other warp's word */
    "xor.b32 %r9, %r2, 4; add.u32 %r9, %r3, %r9;\n";  /* the neighbour's word */

uint32_t plant_line(const char *text)
{
    const char *mark = strstr(text, "// here");
    uint32_t line = 1;
    for (const char *at = text; at < mark; at++)
        line += *at == '\n';
    return mark ? line : 0;
}

char *plant_text(const char *body)
{
    size_t size = sizeof head + strlen(body) + 16;
    char *text = malloc(size);
    snprintf(text, size, "%s%sret;\n}\n", head, body);
    return text;
}

ptxgen_emulator_fault plant_run(const struct planted *planted, const char *text, uint64_t seed)
{
    struct bench bench;
    uint32_t words[1024] = {0};
    bench_open(&bench, "cpu:sm_90");
    bench_options(&bench, &(ptxgen_emulator_options){.seed = seed});
    bench.cluster = planted->cluster;
    bench_load(&bench, text);
    ptxgen_cu_deviceptr pa = bench_buffer(&bench, words, sizeof words);
    ptxgen_cu_deviceptr pb = bench_blank(&bench, sizeof words);
    ptxgen_cu_result result =
        bench_launch(&bench, "k", planted->cluster ? planted->cluster : 1,
                     planted->threads ? planted->threads : 64, (void *[]){&pa, &pb});
    ptxgen_emulator_fault fault = bench_fault(&bench);
    assert_int_equal(result != PTXGEN_CUDA_SUCCESS, fault.check != PTXGEN_CHECK_NONE);
    ptxgen_emulator_clear_fault(bench.context);
    bench_close(&bench);
    return fault;
}
