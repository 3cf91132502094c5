/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/check.h"
#include "tests/runtime/fake_driver.h"

#include <ptxgen/device.h>

static ptxgen_device_facts facts;
static ptxgen_error err;

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

static void facts_come_from_their_attributes(void **state)
{
    (void)state;
    assert_int_equal(ptxgen_device_read(&fake.table, 0, &facts, &err), PTXGEN_OK);
    assert_string_equal(facts.name, "Fake GPU 0");
    assert_int_equal(facts.compute_capability, 90);
    assert_int_equal(facts.driver_version, 12040);
    assert_int_equal(facts.max_ptx_version, 84);
    assert_int_equal(facts.uuid.bytes[15], 0x10);
    assert_true(facts.memory_bytes == (size_t)80 << 30);
    assert_int_equal(facts.sm_count, 1016);
    assert_int_equal(facts.max_block[2], 1004);
    assert_int_equal(facts.max_grid[0], 1005);
    assert_int_equal(facts.registers_per_block, 1012);
    assert_int_equal(facts.registers_per_sm, 1082);
    assert_int_equal(facts.shared_per_block, 1008);
    assert_int_equal(facts.shared_per_block_optin, 232448);
    assert_int_equal(facts.shared_per_sm, 1081);
    assert_int_equal(facts.shared_reserved_per_block, 1111);
    assert_int_equal(facts.l2_bytes, 1038);
    assert_int_equal(facts.max_warps_per_sm, 64);
    assert_int_equal(facts.max_blocks_per_sm, 1106);
    assert_true(facts.cluster_launch);
    assert_true(facts.tensor_maps);
}

static void devices_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(ptxgen_device_read(&fake.table, 1, &facts, &err), PTXGEN_OK);
    assert_int_equal(facts.ordinal, 1);
    assert_int_equal(facts.compute_capability, 80);
    assert_string_equal(facts.name, "Fake GPU 1");
}

static void an_ordinal_out_of_range_is_refused(void **state)
{
    (void)state;
    assert_fails(ptxgen_device_read(&fake.table, 2, &facts, &err), PTXGEN_ERROR_INVALID_ARGUMENT,
                 err, "no device 2: the driver shows 2");
    assert_fails(ptxgen_device_read(&fake.table, -1, &facts, &err), PTXGEN_ERROR_INVALID_ARGUMENT,
                 err, "no device -1");
}

static void what_an_old_driver_does_not_know_is_zero(void **state)
{
    (void)state;
    fake.unknown_from = PTXGEN_CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK;
    fake.table.device_get_uuid = NULL;
    assert_int_equal(ptxgen_device_read(&fake.table, 0, &facts, &err), PTXGEN_OK);
    assert_int_equal(facts.shared_reserved_per_block, 0);
    assert_false(facts.cluster_launch);
    assert_false(facts.tensor_maps);
    assert_int_equal(facts.uuid.bytes[0], 0);
}

static void a_failed_attribute_is_named(void **state)
{
    (void)state;
    fake.unknown_from = PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR;
    assert_fails(ptxgen_device_read(&fake.table, 0, &facts, &err), PTXGEN_ERROR_DRIVER, err,
                 "CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: CUDA_ERROR_INVALID_VALUE");
}

static void bandwidth_is_two_transfers_a_clock(void **state)
{
    (void)state;
    facts.memory_clock_khz = 2619000;
    facts.memory_bus_bits = 5120;
    assert_true(ptxgen_device_peak_bandwidth(&facts) == 2.0 * 2619e6 * 640);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(facts_come_from_their_attributes, reset),
        cmocka_unit_test_setup(devices_are_told_apart, reset),
        cmocka_unit_test_setup(an_ordinal_out_of_range_is_refused, reset),
        cmocka_unit_test_setup(what_an_old_driver_does_not_know_is_zero, reset),
        cmocka_unit_test_setup(a_failed_attribute_is_named, reset),
        cmocka_unit_test_setup(bandwidth_is_two_transfers_a_clock, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
