/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant offsets of addresses: an instruction with [register + constant] does what it does with a
 * register that holds the sum, for each of its addresses. Every kind of instruction that has an
 * address runs in both ways, and all of shared and global memory and what it returned is compared.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = 512, RESULTS = 4, THREADS = 32 };

/*
 * %s: shared memory of 2048 bytes, whose word i is i + 1; %g: global memory of as many, whose word
 * i is i + 1001; %b: two mbarriers for one arrival; %l: the lane. Results: %r0 … %r3 of lane 0,
 * which alone executes lines that begin with "@%p0".
 */
static const char *const forms[] = {
    "ld.shared.u32 %r0, [%s+24];",
    "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%s+48];",
    "ld.shared.u16 %h0, [%s+26]; cvt.u32.u16 %r0, %h0;",
    "ld.volatile.shared.u32 %r0, [%s+28];",
    "ld.relaxed.cta.shared.u32 %r0, [%s+32];",
    "ld.acquire.cta.shared.u32 %r0, [%s+36];",
    "@%p0 st.shared.u32 [%s+40], 77;",
    "@%p0 st.shared.v2.u32 [%s+56], {77, 78};",
    "@%p0 st.release.cta.shared.u32 [%s+60], 79;",
    "@%p0 st.shared.u8 [%s+61], 7;",
    "ld.global.u32 %r0, [%g+24];",
    "ld.global.nc.v4.u32 {%r0, %r1, %r2, %r3}, [%g+48];",
    "ld.global.cg.u32 %r0, [%g+-0];",
    "ld.relaxed.gpu.global.u32 %r0, [%g+44];",
    "@%p0 st.global.u32 [%g+40], 77;",
    "@%p0 st.global.v4.u32 [%g+64], {1, 2, 3, 4};",
    "@%p0 st.relaxed.gpu.global.u32 [%g+84], 5;",
    "@%p0 atom.shared.add.u32 %r0, [%s+24], 5;",
    "@%p0 atom.shared.cas.b32 %r0, [%s+28], 8, 99;",
    "@%p0 atom.global.exch.b32 %r0, [%g+24], 5;",
    "@%p0 atom.global.add.u32 %r0, [%g+28], 5;",
    "@%p0 red.shared.max.u32 [%s+32], 5000;",
    "@%p0 red.global.add.u32 [%g+32], 5;",
    "@%p0 prefetch.global.L2 [%g+64];",
    "@%p0 cp.async.ca.shared.global [%s+64], [%g+128], 16; @%p0 cp.async.wait_all;",
    "@%p0 cp.async.cg.shared.global [%s+80], [%g+160], 16, 8; @%p0 cp.async.wait_all;",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%row+512];",
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%row+256], {%l};",
    "@%p0 mbarrier.init.shared.b64 [%s+1024], 3;",
    "@%p0 mbarrier.arrive.shared.b64 %d0, [%b+8]; @%p0 mbarrier.test_wait.shared.b64 %p1, [%b+8], "
    "%d0; "
    "selp.u32 %r0, 1, 0, %p1;",
    "@%p0 mbarrier.expect_tx.relaxed.cta.shared.b64 [%b+8], 16; "
    "@%p0 mbarrier.complete_tx.relaxed.cta.shared.b64 [%b+8], 16;",
    "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d0, [%b+8], 16; "
    "@%p0 mbarrier.complete_tx.relaxed.cta.shared.b64 [%b+8], 16; "
    "@%p0 mbarrier.try_wait.parity.shared.b64 %p1, [%b+8], 0; selp.u32 %r0, 1, 0, %p1;",
    "@%p0 mbarrier.inval.shared.b64 [%b+8];",
    "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d0, [%b+8], 64; "
    "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s+128], [%g+256], "
    "64, [%b+8]; "
    "W: mbarrier.try_wait.parity.shared.b64 %p1, [%b+8], 0; @!%p1 bra W;",
    "fence.proxy.async; "
    "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%g+128], [%s+256], 64; "
    "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;",
    "fence.proxy.async; "
    "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%g+128], [%s+256], 64; "
    "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;",
    "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d0, [%b+8], 4; "
    "@%p0 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%s+140], 55, [%b+8]; "
    "W: mbarrier.try_wait.parity.shared.b64 %p1, [%b+8], 0; @!%p1 bra W;",
    "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d0, [%b+8], 8; "
    "@%p0 st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%s+144], {55, 56}, [%b+8]; "
    "W: mbarrier.try_wait.parity.shared.b64 %p1, [%b+8], 0; @!%p1 bra W;",
    "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d0, [%b+8], 4; "
    "@%p0 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%s+152], "
    "5, [%b+8]; "
    "W: mbarrier.try_wait.parity.shared.b64 %p1, [%b+8], 0; @!%p1 bra W;",
    "@%p0 cp.async.ca.shared.global [%s+64], [%g+128], 4; "
    "@%p0 cp.async.mbarrier.arrive.noinc.shared.b64 [%b+8]; "
    "W: mbarrier.try_wait.parity.shared.b64 %p1, [%b+8], 0; @!%p1 bra W;",
    "st.local.u32 [%o+12], 9; ld.local.u32 %r0, [%o+12];",
    "ld.const.u32 %r0, [%c+8];",
    "ld.u32 %r0, [%g+20];",
    "@%p0 st.u32 [%g+20], 3;",
};

/* Copies the form; as sums, each "[register+constant]" is a register that is added up before. */
static void write_form(char *to, size_t size, const char *form, bool sums)
{
    size_t used = 0;
    unsigned added = 0;
    while (*form && used + 256 < size) {
        size_t statement = strcspn(form, ";") + 1;
        char text[512] = "";
        size_t length = 0;
        for (size_t i = 0; i < statement; i++) {
            size_t end = i + strcspn(form + i, "]"), plus = i + strcspn(form + i, "+");
            if (!sums || form[i] != '[' || plus > end) {
                text[length++] = form[i];
                continue;
            }
            bool wide = form[i + 2] == 'g' || form[i + 2] == 'o' || form[i + 2] == 'c';
            used +=
                (size_t)snprintf(to + used, size - used, "add.%s %%%s%u, %.*s, %.*s;\n",
                                 wide ? "s64" : "s32", wide ? "w" : "a", added, (int)(plus - i - 1),
                                 form + i + 1, (int)(end - plus - 1), form + plus + 1);
            length += (size_t)snprintf(text + length, sizeof text - length, "[%%%s%u]",
                                       wide ? "w" : "a", added++);
            i = end;
        }
        const char *label = strncmp(text + strspn(text, " "), "W:", 2) == 0 ? "W: " : "";
        used += (size_t)snprintf(to + used, size - used, "%s%.*s\n", label, (int)length,
                                 text + strspn(text, " ") + strlen(label));
        form += statement;
        form += strspn(form, " ");
    }
}

struct outcome {
    uint32_t shared[WORDS + 4], results[RESULTS], global[WORDS];
};

static void run_form(const char *form, bool sums, struct outcome *outcome)
{
    char text[8192], code[4096];
    write_form(code, sizeof code, form, sums);
    snprintf(
        text, sizeof text,
        ".reg .pred %%p<3>; .reg .b16 %%h<2>; .reg .b32 %%r<6>, %%a<8>, %%s, %%b, %%l, %%row, %%i, "
        "%%v;\n"
        ".reg .b64 %%d<2>, %%w<8>, %%g, %%o, %%c, %%t, %%u;\n"
        ".shared .align 128 .b8 buf[2048]; .shared .align 16 .b64 bars[2]; .local .align 16 .b8 "
        "own[64];\n"
        "ld.param.u64 %%g, [global]; ld.param.u64 %%t, [out]; mov.u32 %%s, buf; mov.u32 %%b, "
        "bars;\n"
        "mov.u64 %%o, own; mov.u64 %%c, constants; mov.u32 %%l, %%tid.x; setp.eq.u32 %%p0, %%l, "
        "0;\n"
        "mov.u32 %%r0, 0; mov.u32 %%r1, 0; mov.u32 %%r2, 0; mov.u32 %%r3, 0; setp.ne.u32 %%p1, "
        "%%l, %%l;\n"
        "mad.lo.u32 %%row, %%l, 16, %%s; mov.u64 %%d0, 0; mov.u32 %%i, %%l;\n"
        "FILL: mad.lo.u32 %%v, %%i, 4, %%s; add.u32 %%r4, %%i, 1; st.shared.u32 [%%v], %%r4;\n"
        "add.u32 %%i, %%i, 32; setp.lt.u32 %%p2, %%i, 512; @%%p2 bra FILL;\n"
        "@%%p0 mbarrier.init.shared.b64 [%%b], 1; add.u32 %%v, %%b, 8;\n"
        "@%%p0 mbarrier.init.shared.b64 [%%v], 1;\nfence.proxy.async; bar.sync 0;\n%s"
        "bar.sync 0; mov.u32 %%i, %%l;\n"
        "TELL: mad.lo.u32 %%v, %%i, 4, %%s; ld.shared.u32 %%r4, [%%v];\n"
        "mad.wide.u32 %%u, %%i, 4, %%t; st.global.u32 [%%u], %%r4;\n"
        "add.u32 %%i, %%i, 32; setp.lt.u32 %%p2, %%i, 512; @%%p2 bra TELL;\n"
        "add.u64 %%u, %%t, 2064; @%%p0 st.global.v4.u32 [%%u], {%%r0, %%r1, %%r2, %%r3};\nret;",
        code);
    char module[10240];
    snprintf(
        module, sizeof module,
        ".version 8.1\n.target sm_90a\n.address_size 64\n"
        ".const .align 16 .b32 constants[4] = {11, 12, 13, 14};\n"
        ".visible .entry k(.param .u64 global, .param .u64 out)\n.reqnctapercluster 1\n{\n%s\n}\n",
        text);
    struct bench bench;
    bench_open(&bench, "cpu:sm_90");
    bench_options(&bench,
                  &(ptxgen_emulator_options){
                      .disabled_checks = PTXGEN_CHECK_BARRIERS}); /* objects are read, too */
    bench_load(&bench, module);
    uint32_t words[WORDS];
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i + 1001;
    ptxgen_cu_deviceptr global = bench_buffer(&bench, words, sizeof words);
    ptxgen_cu_deviceptr out = bench_buffer(&bench, NULL, offsetof(struct outcome, global));
    bench_run(&bench, "k", 1, THREADS, (void *[]){&global, &out});
    bench_read(&bench, outcome, out, offsetof(struct outcome, global));
    bench_read(&bench, outcome->global, global, sizeof outcome->global);
    bench_close(&bench);
}

static void constant_offsets_are_added_to_every_address(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        struct outcome offset = {.results = {0}}, sum = {.results = {0}};
        run_form(forms[f], false, &offset);
        run_form(forms[f], true, &sum);
        if (memcmp(&offset, &sum, sizeof sum) != 0)
            fail_msg("not the same with sums: %s", forms[f]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_offsets_are_added_to_every_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
