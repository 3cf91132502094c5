/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single instructions against values worked out from the ISA's text. Sources a, b, c are %a, %b,
 * %c: 64-bit patterns of which an instruction takes its type's width; the result is %d.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct example {
    const char *text;
    int width; /* of all registers: 16, 32, 64 */
    uint64_t a, b, c, want;
};

#define NAN32 0x7fffffffu
static const struct example examples[] = {
    /* integer arithmetic */
    {"add.sat.s32 %d, %a, %b", 32, 0x7fffffff, 1, 0, 0x7fffffff},
    {"sub.sat.s32 %d, %a, %b", 32, 0x80000000, 1, 0, 0x80000000},
    {"mul.hi.s32 %d, %a, %b", 32, 0xffffffff, 2, 0, 0xffffffff},
    {"mul.hi.u32 %d, %a, %b", 32, 0xffffffff, 2, 0, 1},
    {"mul.hi.s64 %d, %a, %b", 64, UINT64_MAX, 2, 0, UINT64_MAX},
    {"mad.hi.sat.s32 %d, %a, %b, %c", 32, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff},
    {"mul24.lo.s32 %d, %a, %b", 32, 0x00ffffff, 3, 0, 0xfffffffd},
    {"mul24.hi.u32 %d, %a, %b", 32, 0xffffff, 0xffffff, 0, 0xfffffe00},
    {"sad.s32 %d, %a, %b, %c", 32, 0xfffffffe, 3, 10, 15},
    {"div.s32 %d, %a, %b", 32, 0xfffffff9, 2, 0, 0xfffffffd},
    {"rem.s32 %d, %a, %b", 32, 0xfffffff9, 2, 0, 0xffffffff},
    {"div.s32 %d, %a, %b", 32, 0x80000000, 0xffffffff, 0, 0x80000000},
    {"abs.s16 %d, %a", 16, 0x8001, 0, 0, 0x7fff},
    {"min.u16x2 %d, %a, %b", 32, 0x00058000, 0x00040001, 0, 0x00040001},
    {"max.relu.s16x2 %d, %a, %b", 32, 0x8000fff0, 0x8001fff1, 0, 0},
    {"bfind.s32 %d, %a", 32, 0xffffff7f, 0, 0, 7},
    {"bfind.shiftamt.u32 %d, %a", 32, 0x00010000, 0, 0, 15},
    {"bfind.u32 %d, %a", 32, 0, 0, 0, 0xffffffff},
    {"fns.b32 %d, %a, %b, %c", 32, 0xaaaaaaaa, 3, 2, 5},
    {"fns.b32 %d, %a, %b, %c", 32, 0xaaaaaaaa, 3, (uint32_t)-1, 3},
    {"bfe.u32 %d, %a, %b, %c", 32, 0xfedcba98, 4, 8, 0xa9},
    {"bfe.s32 %d, %a, %b, %c", 32, 0xfedcba98, 28, 8, 0xffffffff},
    {"bfe.s32 %d, %a, %b, %c", 32, 0x80000000, 40, 4, 0xffffffff},
    {"bfi.b32 %d, %a, %b, 8, 8", 32, 0xab, 0x11223344, 0, 0x1122ab44},
    {"bfi.b32 %d, %a, %b, 28, 8", 32, 0xff, 0, 0, 0xf0000000},
    {"bmsk.clamp.b32 %d, %a, %b", 32, 4, 40, 0, 0xfffffff0},
    {"bmsk.wrap.b32 %d, %a, %b", 32, 36, 36, 0, 0xf0},
    {"szext.clamp.s32 %d, %a, %b", 32, 0xff, 8, 0, 0xffffffff},
    {"szext.wrap.u32 %d, %a, %b", 32, 0xffff, 36, 0, 0xf},
    {"dp4a.s32.u32 %d, %a, %b, %c", 32, 0xff020304, 0x01010101, 5, 13},
    {"dp2a.hi.u32.s32 %d, %a, %b, %c", 32, 0x00030002, 0xff010000, 9, 8},
    /* logic and shifts */
    {"cnot.b32 %d, %a", 32, 7, 0, 0, 0},
    {"lop3.b32 %d, %a, %b, %c, 0xca", 32, 0xff00ff00, 0x12345678, 0x9abcdef0, 0x12bc56f0},
    {"shl.b32 %d, %a, %b", 32, 1, 32, 0, 0},
    {"shr.s32 %d, %a, %b", 32, 0x80000000, 99, 0, 0xffffffff},
    {"shf.l.clamp.b32 %d, %a, %b, %c", 32, 0x11223344, 0x55667788, 40, 0x11223344},
    {"shf.r.wrap.b32 %d, %a, %b, %c", 32, 0x11223344, 0x55667788, 40, 0x88112233},
    {"prmt.b32 %d, %a, %b, 0x7b53", 32, 0x80020304, 0x05060708, 0, 0x05ff0780},
    {"prmt.b32.f4e %d, %a, %b, 1", 32, 0x03020100, 0x07060504, 0, 0x04030201},
    {"prmt.b32.b4e %d, %a, %b, 1", 32, 0x03020100, 0x07060504, 0, 0x06070001},
    {"prmt.b32.rc8 %d, %a, %b, 2", 32, 0x03020100, 0x07060504, 0, 0x02020202},
    {"prmt.b32.ecl %d, %a, %b, 2", 32, 0x03020100, 0x07060504, 0, 0x03020202},
    {"prmt.b32.ecr %d, %a, %b, 2", 32, 0x03020100, 0x07060504, 0, 0x02020100},
    {"prmt.b32.rc16 %d, %a, %b, 1", 32, 0x03020100, 0x07060504, 0, 0x03020302},
    /* f32 */
    {"add.rn.f32 %d, %a, %b", 32, 0x7f800000, 0xff800000, 0, NAN32},
    {"add.rz.f32 %d, %a, %b", 32, 0x3f800000, 0x33800001, 0, 0x3f800000},
    {"add.rp.f32 %d, %a, %b", 32, 0x3f800000, 0x00000001, 0, 0x3f800001},
    {"mul.rn.ftz.f32 %d, %a, %b", 32, 0x00800000, 0xbf000000, 0, 0x80000000},
    {"mul.rn.f32 %d, %a, %b", 32, 0x00800000, 0xbf000000, 0, 0x80400000},
    {"mul.rz.f32 %d, %a, %b", 32, 0x7f7fffff, 0x40000000, 0, 0x7f7fffff},
    {"add.sat.f32 %d, %a, %b", 32, 0x7fc00000, 0x3f800000, 0, 0},
    {"fma.rn.f32 %d, %a, %b, %c", 32, 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000},
    {"min.f32 %d, %a, %b", 32, 0x7fc00000, 0x40000000, 0, 0x40000000},
    {"min.NaN.f32 %d, %a, %b", 32, 0x7fc00000, 0x40000000, 0, NAN32},
    {"min.f32 %d, %a, %b", 32, 0x00000000, 0x80000000, 0, 0x80000000},
    {"max.f32 %d, %a, %b", 32, 0x80000000, 0x00000000, 0, 0x00000000},
    {"max.xorsign.abs.f32 %d, %a, %b", 32, 0xc0400000, 0x40000000, 0, 0xc0400000},
    {"copysign.f32 %d, %a, %b", 32, 0x80000000, 0x40000000, 0, 0xc0000000},
    {"div.approx.f32 %d, %a, %b", 32, 0x3f800000, 0x7f000001, 0, 0},
    {"rcp.rn.f32 %d, %a", 32, 0x80000000, 0, 0, 0xff800000},
    {"ex2.approx.f32 %d, %a", 32, 0x41200000, 0, 0, 0x44800000},
    {"lg2.approx.f32 %d, %a", 32, 0x44800000, 0, 0, 0x41200000},
    {"rsqrt.approx.f32 %d, %a", 32, 0x40800000, 0, 0, 0x3f000000},
    /* halves */
    {"fma.rn.f16x2 %d, %a, %b, %c", 32, 0x3c004000, 0x42004200, 0x3c00bc00, 0x44004500},
    {"fma.rn.relu.f16 %d, %a, %b, %c", 16, 0xbc00, 0x4000, 0x3c00, 0},
    {"add.rn.f16 %d, %a, %b", 16, 0x7bff, 0x4c00, 0, 0x7c00},
    {"add.rn.sat.f16 %d, %a, %b", 16, 0x4000, 0x4000, 0, 0x3c00},
    {"mul.rn.f16 %d, %a, %b", 16, 0x0001, 0x3800, 0, 0x0000},
    {"fma.rn.bf16 %d, %a, %b, %c", 16, 0x3f81, 0x3f81, 0x0001, 0x3f82},
    {"max.bf16x2 %d, %a, %b", 32, 0x3f807fc0, 0xbf804000, 0, 0x3f804000},
    {"neg.f16x2 %d, %a", 32, 0x3c00bc00, 0, 0, 0xbc003c00},
    /* conversions */
    {"cvt.rzi.s32.f32 %d, %a", 32, 0xc0200000, 0, 0, 0xfffffffe},
    {"cvt.rni.s32.f32 %d, %a", 32, 0x40200000, 0, 0, 2},
    {"cvt.rpi.u32.f32 %d, %a", 32, 0xbf800000, 0, 0, 0},
    {"cvt.rzi.s32.f32 %d, %a", 32, 0x7fc00000, 0, 0, 0},
    {"cvt.rzi.s64.f64 %d, %a", 64, 0x7ff8000000000000, 0, 0, 0x8000000000000000},
    {"cvt.rzi.u32.f32 %d, %a", 32, 0x4f800000, 0, 0, 0xffffffff},
    {"cvt.rn.f32.u32 %d, %a", 32, 0xffffffff, 0, 0, 0x4f800000},
    {"cvt.rz.f32.u32 %d, %a", 32, 0xffffffff, 0, 0, 0x4f7fffff},
    {"cvt.rn.f64.u64 %d, %a", 64, UINT64_MAX, 0, 0, 0x43f0000000000000},
    {"cvt.rm.f64.u64 %d, %a", 64, 0, 0, 0, 0},
    {"cvt.rm.f64.s64 %d, %a", 64, 0, 0, 0, 0},
    {"cvt.rm.f64.u64 %d, %a", 64, UINT64_MAX, 0, 0, 0x43efffffffffffff},
    {"cvt.rp.f64.s64 %d, %a", 64, 0xffdfffffffffffff, 0, 0, 0xc340000000000000},
    {"cvt.rm.f64.s64 %d, %a", 64, 0xffdfffffffffffff, 0, 0, 0xc340000000000001},
    {"cvt.sat.u8.s32 %d, %a", 32, 0xffffff00, 0, 0, 0},
    {"cvt.sat.s8.s32 %d, %a", 32, 200, 0, 0, 127},
    {"cvt.s8.s32 %d, %a", 32, 200, 0, 0, 0xffffffc8},
    {"cvt.u16.u32 %d, %a", 32, 0x12345678, 0, 0, 0x5678},
    {"cvt.rna.tf32.f32 %d, %a", 32, 0x3f801000, 0, 0, 0x3f802000},
    {"cvt.rn.f16x2.f32 %d, %a, %b", 32, 0x3f800000, 0x40000000, 0, 0x3c004000},
    {"cvt.rn.bf16x2.f32 %d, %a, %b", 32, 0x3f808000, 0x3f818000, 0, 0x3f803f82},
    {"cvt.rn.relu.f16x2.f32 %d, %a, %b", 32, 0xbf800000, 0x40000000, 0, 0x00004000},
    {"cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c", 32, 300, 0xffffffff, 0x1234, 0x1234ff00},
    {"cvt.rni.f32.f32 %d, %a", 32, 0x40200000, 0, 0, 0x40000000},
    {"cvt.sat.f32.f32 %d, %a", 32, 0x40200000, 0, 0, 0x3f800000},
    {"{ .reg .b16 %h; cvt.rm.ftz.f16.f32 %h, %a; cvt.u32.u16 %d, %h; }", 32, 0x80000001, 0, 0, 0x8001},
    {"{ .reg .b16 %h; cvt.rp.ftz.f16.f32 %h, %a; cvt.u32.u16 %d, %h; }", 32, 0x00000001, 0, 0, 0x0001},
    {"cvt.rpi.ftz.f32.f32 %d, %a", 32, 0x00000001, 0, 0, 0},
    /* comparison and selection */
    {"set.gtu.u32.f32 %d, %a, %b", 32, 0x7fc00000, 0, 0, 0xffffffff},
    {"set.ne.f32.u32 %d, %a, %b", 32, 1, 2, 0, 0x3f800000},
    {"slct.u32.s32 %d, %a, %b, %c", 32, 1, 2, 0xffffffff, 2},
};

static uint64_t run_example(struct bench *bench, const struct example *example)
{
    char body[900];
    int w = example->width;
    uint64_t in[3] = {example->a, example->b, example->c}, out = 0;
    snprintf(body, sizeof body,
             ".reg .b%d %%a, %%b, %%c, %%d; .reg .b64 %%rd<3>;\n"
             "ld.param.u64 %%rd1, [pi]; ld.param.u64 %%rd2, [po];\n"
             "ld.global.b%d %%a, [%%rd1]; ld.global.b%d %%b, [%%rd1+8]; ld.global.b%d %%c, "
             "[%%rd1+16];\n%s;\nst.global.b%d [%%rd2], %%d;\nret;",
             w, w, w, w, example->text, w);
    bench_kernel(bench, "sm_90", ".param .u64 pi, .param .u64 po", body);
    bench->buffer_count = 0;
    ptxgen_cu_deviceptr pi = bench_buffer(bench, in, sizeof in);
    ptxgen_cu_deviceptr po = bench_buffer(bench, NULL, 8);
    bench_run(bench, "k", 1, 1, (void *[]){&pi, &po});
    bench_read(bench, &out, po, 8);
    bench->driver.mem_free(pi);
    bench->driver.mem_free(po);
    bench->buffer_count = 0;
    return out;
}

static void instructions_give_what_the_isa_says(void **state)
{
    (void)state;
    struct bench bench;
    int wrong = 0;
    bench_open(&bench, "cpu:sm_90");
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        uint64_t got = run_example(&bench, &examples[i]);
        if (got != examples[i].want) {
            print_error("%s of %llx %llx %llx gives %llx, not %llx\n", examples[i].text,
                        (unsigned long long)examples[i].a, (unsigned long long)examples[i].b,
                        (unsigned long long)examples[i].c, (unsigned long long)got,
                        (unsigned long long)examples[i].want);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_give_what_the_isa_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
