/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of arrivals, drops and transactions at one mbarrier, of one lane and of four, against a
 * model of the object (ISA "Parallel Synchronization: mbarrier"): arrivals that are due, arrivals
 * of the phases to come, bytes that are due, and the phase, which ends when none of either is due.
 */
#include "bench.h"
#include "tests/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 24, STEPS = 60, RESULTS = 4, ROOM = 1 << 16 };

enum operation {
    ARRIVE,
    ARRIVE_EXPECT,
    DROP,
    DROP_EXPECT,
    NO_COMPLETE,
    DROP_NO_COMPLETE,
    EXPECT,
    COMPLETE,
    OPERATIONS
};

struct object {
    uint32_t expected, pending, phase;
    int64_t bytes;
};

struct step {
    enum operation operation;
    uint32_t value, lanes; /* of the count, or bytes; 0: no operand */
};

static bool arrives(enum operation o)
{
    return o != EXPECT && o != COMPLETE;
}

static bool drops(enum operation o)
{
    return o == DROP || o == DROP_EXPECT || o == DROP_NO_COMPLETE;
}

static bool counts_bytes(enum operation o)
{
    return o == ARRIVE_EXPECT || o == DROP_EXPECT || o == EXPECT || o == COMPLETE;
}

static uint32_t count_of(const struct step *step)
{
    return counts_bytes(step->operation) || !step->value ? 1 : step->value;
}

/* ---- the model ---- */

/* By one lane. */
static void apply(struct object *object, const struct step *step)
{
    if (counts_bytes(step->operation))
        object->bytes += step->operation == COMPLETE ? -(int64_t)step->value : (int64_t)step->value;
    if (drops(step->operation))
        object->expected -= count_of(step);
    if (arrives(step->operation))
        object->pending -= count_of(step);
    if (object->pending == 0 && object->bytes == 0) {
        object->phase++;
        object->pending = object->expected;
    }
}

/* Whether the ISA allows the step: a lane may not arrive when none of its phase is due. */
static bool is_allowed(struct object object, const struct step *step)
{
    for (uint32_t i = 0; i < step->lanes; i++) {
        uint32_t count = arrives(step->operation) ? count_of(step) : 0;
        bool keeps = step->operation == NO_COMPLETE || step->operation == DROP_NO_COMPLETE;
        if (count > object.pending || (keeps && count == object.pending) ||
            (drops(step->operation) && count >= object.expected) ||
            (step->operation == COMPLETE && (int64_t)step->value > object.bytes))
            return false;
        apply(&object, step);
    }
    return true;
}

/* ---- steps ---- */

static struct step draw_step(struct random *random, const struct object *object)
{
    for (;;) {
        uint64_t r = random_bits(random);
        struct step step = {(enum operation)(r % OPERATIONS), 0, r >> 8 & 3 ? 1 : 4};
        if (counts_bytes(step.operation))
            step.value = 16 * (1 + (r >> 16) % 3);
        else if (r >> 16 & 3)
            step.value = 1 + (uint32_t)(r >> 24) % 7;
        else if (step.operation == NO_COMPLETE || step.operation == DROP_NO_COMPLETE)
            step.value = 1;
        if (step.operation == COMPLETE && r >> 32 & 1 && object->bytes > 0) {
            step.value = (uint32_t)object->bytes;
            step.lanes = 1;
        }
        if (arrives(step.operation) && !counts_bytes(step.operation) && r >> 33 & 1 &&
            object->pending) {
            step.value = object->pending;
            step.lanes = 1;
        }
        if (is_allowed(*object, &step))
            return step;
    }
}

static void append_step(char *to, const struct step *step, int index)
{
    static const char *const names[OPERATIONS] = {
        "arrive",
        "arrive.expect_tx",
        "arrive_drop",
        "arrive_drop.expect_tx",
        "arrive.noComplete",
        "arrive_drop.noComplete",
        "expect_tx.relaxed.cta",
        "complete_tx.relaxed.cta",
    };
    char value[20] = "";
    if (step->value)
        snprintf(value, sizeof value, ", %u", step->value);
    snprintf(to + strlen(to), 400, "@%s mbarrier.%s.shared::cta.b64 %s[%%r1]%s;\n",
             step->lanes == 1 ? "%p1" : "%p2", names[step->operation],
             arrives(step->operation) ? "%rd3, " : "", value);
    if (arrives(step->operation) && step->lanes == 1)
        snprintf(to + strlen(to), 400,
                 "@%%p1 mbarrier.pending_count.b64 %%r3, %%rd3;\n"
                 "@%%p1 mbarrier.test_wait.shared::cta.b64 %%p3, [%%r1], %%rd3;\n"
                 "@%%p1 selp.u32 %%r4, 1, 0, %%p3;\n"
                 "@%%p1 st.global.u32 [%%rd1+%d], %%r3;\n@%%p1 st.global.u32 [%%rd1+%d], "
                 "%%r4;\n",
                 16 * index, 16 * index + 4);
    for (int parity = 0; parity < 2; parity++)
        snprintf(to + strlen(to), 400,
                 "mbarrier.test_wait.parity.shared::cta.b64 %%p3, [%%r1], %d;\n"
                 "selp.u32 %%r4, 1, 0, %%p3;\n@%%p1 st.global.u32 [%%rd1+%d], %%r4;\n",
                 parity, 16 * index + 8 + 4 * parity);
}

static char *kernel_of(const struct step steps[STEPS], uint32_t expected)
{
    char *text = calloc(1, ROOM);
    snprintf(text, ROOM,
             ".shared .align 8 .b64 bar;\n.reg .pred %%p<4>; .reg .b32 %%r<6>; .reg .b64 %%rd<4>;\n"
             "ld.param.u64 %%rd1, [po];\nmov.u32 %%r1, bar;\nmov.u32 %%r2, %%tid.x;\n"
             "setp.eq.u32 %%p1, %%r2, 0;\nsetp.lt.u32 %%p2, %%r2, 4;\n"
             "@%%p1 mbarrier.init.shared::cta.b64 [%%r1], %u;\nbar.warp.sync -1;\n",
             expected);
    for (int i = 0; i < STEPS; i++)
        append_step(text, &steps[i], i);
    strcat(text, "ret;");
    return text;
}

static void check_steps(const struct step steps[STEPS], uint32_t expected,
                        const uint32_t got[STEPS][RESULTS])
{
    struct object object = {expected, expected, 0, 0};
    for (int i = 0; i < STEPS; i++) {
        struct object before = object;
        for (uint32_t lane = 0; lane < steps[i].lanes; lane++)
            apply(&object, &steps[i]);
        uint32_t want[RESULTS] = {0, 0, object.phase & 1, !(object.phase & 1)};
        if (arrives(steps[i].operation) && steps[i].lanes == 1) {
            want[0] = before.pending;
            want[1] = object.phase != before.phase;
        }
        if (memcmp(got[i], want, sizeof want) != 0)
            fail_msg("of %u arrivals, step %d, operation %d with %u by %u lanes, where %u of %u "
                     "and %lld bytes were due: %u %u %u %u, not %u %u %u %u",
                     expected, i, (int)steps[i].operation, steps[i].value, steps[i].lanes,
                     before.pending, before.expected, (long long)before.bytes, got[i][0], got[i][1],
                     got[i][2], got[i][3], want[0], want[1], want[2], want[3]);
    }
}

static void phases_end_when_no_arrival_and_no_byte_is_due(void **state)
{
    (void)state;
    uint32_t got[STEPS][RESULTS], phases = 0, dropped = 0;
    struct random random = {5};
    struct bench bench;
    bench_open(&bench, "cpu:sm_90");
    ptxgen_cu_deviceptr out = bench_buffer(&bench, NULL, sizeof got);
    for (int s = 0; s < SEQUENCES; s++) {
        struct step steps[STEPS];
        uint32_t expected = 8 + (uint32_t)(random_bits(&random) % 200);
        struct object object = {expected, expected, 0, 0};
        for (int i = 0; i < STEPS; i++) {
            steps[i] = draw_step(&random, &object);
            for (uint32_t lane = 0; lane < steps[i].lanes; lane++)
                apply(&object, &steps[i]);
        }
        phases += object.phase;
        dropped += expected - object.expected;
        char *text = kernel_of(steps, expected);
        assert_int_equal(bench.driver.memset_d8(out, 0, sizeof got), 0);
        bench_kernel(&bench, "sm_90", ".param .u64 po", text);
        free(text);
        bench_run(&bench, "k", 1, 32, (void *[]){&out});
        bench_read(&bench, got, out, sizeof got);
        check_steps(steps, expected, (const uint32_t(*)[RESULTS])got);
    }
    assert_true(phases > SEQUENCES && dropped > SEQUENCES);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_end_when_no_arrival_and_no_byte_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
