/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of finished kernels, and the instruction table in words. */
#include "kernels.h"
#include "support.h"

static ptx_module *sample_module(void)
{
    ptx_module *m = samples[0].build(NULL);
    assert_int_equal(ptx_module_status(m, NULL), PTXGEN_OK);
    return m;
}

/* Lines that end in ';' and are not declarations, which start with '.' behind the tab, if any. */
static size_t executed_lines(const char *text)
{
    size_t count = 0;
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        count += line[0] == '\t' && line[1] != '.' && line[length - 1] == ';';
        line += length + 1;
    }
    return count;
}

static void facts_of_kernels_match_the_text(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        ptx_module *m = samples[i].build(NULL);
        const char *text;
        assert_int_equal(ptx_module_text(m, 0, &text, NULL, NULL), PTXGEN_OK);
        size_t counted = 0;
        for (unsigned k = 0; k < ptx_module_kernels(m); k++) {
            ptx_kernel_info info;
            assert_int_equal(ptx_module_kernel_info(m, k, &info), PTXGEN_OK);
            counted += info.instructions;
            assert_true(info.names_32 > 0 && info.names_32 <= info.virtual_registers);
        }
        assert_int_equal(counted, executed_lines(text));
        ptx_module_destroy(m);
    }
}

static void sections_share_out_the_instructions(void **state)
{
    (void)state;
    ptx_module *m = sample_module();
    static const char *const names[] = {"", "index", "scale", "constants"};
    size_t total = 0;
    for (unsigned s = 0; s < 4; s++) {
        const char *name;
        size_t instructions;
        assert_int_equal(ptx_module_kernel_section(m, 0, s, &name, &instructions), PTXGEN_OK);
        assert_string_equal(name, names[s]);
        assert_int_equal(instructions == 0, s == 0);
        total += instructions;
    }
    ptx_kernel_info info;
    ptx_module_kernel_info(m, 0, &info);
    assert_int_equal(total, info.instructions);
    assert_int_equal(info.sections, 3);
    const char *name;
    assert_int_equal(ptx_module_kernel_section(m, 0, 4, &name, &total), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ptx_module_kernel_section(m, 9, 0, &name, &total), PTXGEN_ERROR_INVALID_ARGUMENT);
    ptx_module_destroy(m);
}

static void mix_counts_every_instruction_most_frequent_first(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        ptx_module *m = samples[i].build(NULL);
        ptx_mix_row rows[128];
        size_t count = ptx_module_kernel_mix(m, 0, rows, 128), total = 0;
        assert_true(count > 3 && count < 128);
        assert_int_equal(ptx_module_kernel_mix(m, 0, NULL, 0), count);
        for (size_t r = 0; r < count; r++) {
            total += rows[r].count;
            if (r)
                assert_true(rows[r - 1].count > rows[r].count ||
                            (rows[r - 1].count == rows[r].count &&
                             strcmp(rows[r - 1].mnemonic, rows[r].mnemonic) < 0));
        }
        ptx_kernel_info info;
        ptx_module_kernel_info(m, 0, &info);
        assert_int_equal(total, info.instructions);
        ptx_module_destroy(m);
    }
}

static void facts_of_a_missing_or_open_kernel_are_refused(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel_begin(m, "open");
    ptx_kernel_info info;
    assert_int_equal(ptx_module_kernel_info(m, 0, &info), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ptx_module_kernel_info(m, 1, &info), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ptx_module_kernel_mix(m, 1, NULL, 0), 0);
    ptx_module_destroy(m);
}

/* ---- the table in words ---- */

static void check_description(const char *name, const char *expected)
{
    char found[PTX_NAME_SIZE], text[512];
    for (size_t i = 0; i < ptx_instruction_count(); i++) {
        ptx_instruction_name(i, found, sizeof found);
        if (strcmp(found, name) != 0)
            continue;
        ptx_instruction_describe(i, text, sizeof text);
        assert_string_equal(text, expected);
        return;
    }
    fail_msg("there is no instruction %s", name);
}

static void descriptions_give_modifiers_operands_and_needs(void **state)
{
    (void)state;
    check_description("add_u32", "add.u32 u32, u32|imm, u32|imm; PTX 7.0 sm_80");
    check_description("fma_f32", "fma{.rn|.rz|.rm|.rp}{.ftz}{.sat}.f32 f32, f32|imm, f32|imm, "
                                 "f32|imm; PTX 7.0 sm_80");
    check_description("ld_shared_v4_u32", "ld.shared.v4.u32 {u32 × 4}, [shared]; PTX 7.0 sm_80");
    check_description("lop3_b32", "lop3.b32 u32, u32|imm, u32|imm, u32|imm, 0…255; PTX 7.0 sm_80");
    check_description("cp_async_ca", "cp.async.ca.shared.global{.L2::64B|.L2::128B|.L2::256B} "
                                     "[shared], [global], 4…16 powers of two; PTX 7.0 sm_80");
    check_description("cp_async_cg", "cp.async.cg.shared.global{.L2::64B|.L2::128B|.L2::256B} "
                                     "[shared], [global], 16; PTX 7.0 sm_80");
    check_description("match_all_sync_b32", "match.all.sync.b32 u32|pred, u32|imm, u32|imm; "
                                            "PTX 7.0 sm_80");
    check_description("sreg_tid_x", "mov.u32 u32, %tid.x; PTX 7.0 sm_80");
    check_description("bra", "bra label; PTX 7.0 sm_80");
    check_description("ret", "ret; PTX 7.0 sm_80");
    check_description("cvt_e4m3x2_f32", "cvt.rn.satfinite{.relu}.e4m3x2.f32 u16, f32|imm, f32|imm; "
                                        "PTX 8.1 sm_89 or PTX 7.8 sm_90");
    check_description("cp_async_bulk_tensor_2d_g2s",
                      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                      "[shared], [tensor map, {s32 × 2}], [shared]; PTX 8.0 sm_90");
    check_description("wgmma_k32_s32_s8_s8",
                      "wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8{.satfinite} {s32 × n/2}, "
                      "u64|imm, u64|imm, pred; n 8…256 by 8 up to 32, then by 16; PTX 8.0 sm_90a");
}

static void description_is_cut_to_the_buffer(void **state)
{
    (void)state;
    char text[8] = "xxxxxxx";
    ptx_instruction_describe(0, text, 4);
    assert_int_equal(strlen(text), 3);
    assert_int_equal(text[4], 'x');
    ptx_instruction_describe(0, text, 0);
    ptx_instruction_describe(SIZE_MAX, text, sizeof text);
    assert_string_equal(text, "");
    ptx_instruction_name(ptx_instruction_count(), text, sizeof text);
    assert_string_equal(text, "");
    ptx_instruction_name(0, text, 4);
    assert_int_equal(strlen(text), 3);
}

static void every_instruction_has_a_name_and_a_description(void **state)
{
    (void)state;
    assert_true(ptx_instruction_count() > 1000);
    for (size_t i = 0; i < ptx_instruction_count(); i++) {
        char name[256], text[1024];
        ptx_instruction_name(i, name, sizeof name);
        ptx_instruction_describe(i, text, sizeof text);
        assert_in_range(strlen(name), 3, PTX_NAME_SIZE - 1);
        assert_non_null(strstr(text, "; PTX "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(facts_of_kernels_match_the_text),
        TEST(sections_share_out_the_instructions),
        TEST(mix_counts_every_instruction_most_frequent_first),
        TEST(facts_of_a_missing_or_open_kernel_are_refused),
        TEST(descriptions_give_modifiers_operands_and_needs),
        TEST(description_is_cut_to_the_buffer),
        TEST(every_instruction_has_a_name_and_a_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
