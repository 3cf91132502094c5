/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a run and of a bench, for each family, when one call of the driver fails: each
 * call in turn. The failure is what is reported, nothing more is asked of the device but to give
 * back, and all that was made is given back.
 */
#include "tests/checks.h"

#include "src/harness/bench_time.h"
#include "src/cli/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a driver that counts, and of which call number `fails` does ---- */

static struct {
    ptxgen_driver emulator;
    unsigned calls, fails; /* from 1 on; 0: none */
    unsigned after;        /* calls behind the one that failed */
    const char *failed, *later;
    int memory, modules, events, graphs, links; /* made and not given back */
} counted;

static bool fails(const char *name)
{
    counted.calls++;
    if (counted.calls == counted.fails)
        counted.failed = name;
    if (counted.fails && counted.calls > counted.fails && !counted.after++)
        counted.later = name;
    return counted.calls == counted.fails;
}

#define REFUSAL PTXGEN_CUDA_ERROR_NOT_PERMITTED
#define COUNTED(name, parameters, arguments, keeps)                                                \
    static ptxgen_cu_result name parameters                                                        \
    {                                                                                              \
        ptxgen_cu_result result = fails(#name) ? REFUSAL : counted.emulator.name arguments;        \
        keeps;                                                                                     \
        return result;                                                                             \
    }
#define GIVES_BACK(name, type, count)                                                              \
    static ptxgen_cu_result name(type it)                                                          \
    {                                                                                              \
        counted.count--;                                                                           \
        return counted.emulator.name(it);                                                          \
    }
#define KEEPS(count) counted.count += result == PTXGEN_CUDA_SUCCESS

COUNTED(mem_alloc, (ptxgen_cu_deviceptr * address, size_t bytes), (address, bytes), KEEPS(memory))
COUNTED(memcpy_htod, (ptxgen_cu_deviceptr to, const void *from, size_t bytes), (to, from, bytes), )
COUNTED(memcpy_dtoh, (void *to, ptxgen_cu_deviceptr from, size_t bytes), (to, from, bytes), )
COUNTED(memcpy_dtod, (ptxgen_cu_deviceptr to, ptxgen_cu_deviceptr from, size_t bytes),
        (to, from, bytes), )
COUNTED(memset_d8, (ptxgen_cu_deviceptr to, unsigned char value, size_t count),
        (to, value, count), )
COUNTED(memset_d32, (ptxgen_cu_deviceptr to, unsigned int value, size_t count),
        (to, value, count), )
COUNTED(memset_d8_async,
        (ptxgen_cu_deviceptr to, unsigned char value, size_t count, ptxgen_cu_stream stream),
        (to, value, count, stream), )
COUNTED(ctx_synchronize, (void), (), )
COUNTED(stream_synchronize, (ptxgen_cu_stream stream), (stream), )
COUNTED(launch_kernel_ex,
        (const ptxgen_cu_launch_config *config, ptxgen_cu_function function, void **parameters,
         void **extra),
        (config, function, parameters, extra), )
COUNTED(module_load_data_ex,
        (ptxgen_cu_module * module, const void *image, unsigned count,
         ptxgen_cu_jit_option *options, void **values),
        (module, image, count, options, values), KEEPS(modules))
COUNTED(module_get_function,
        (ptxgen_cu_function * function, ptxgen_cu_module module, const char *name),
        (function, module, name), )
COUNTED(func_get_attribute,
        (int *value, ptxgen_cu_function_attribute attribute, ptxgen_cu_function function),
        (value, attribute, function), )
COUNTED(func_set_attribute,
        (ptxgen_cu_function function, ptxgen_cu_function_attribute attribute, int value),
        (function, attribute, value), )
COUNTED(link_create,
        (unsigned count, ptxgen_cu_jit_option *options, void **values, ptxgen_cu_link_state *state),
        (count, options, values, state), KEEPS(links))
COUNTED(event_create, (ptxgen_cu_event * event, unsigned flags), (event, flags), KEEPS(events))
COUNTED(event_record, (ptxgen_cu_event event, ptxgen_cu_stream stream), (event, stream), )
COUNTED(event_elapsed_time, (float *milliseconds, ptxgen_cu_event start, ptxgen_cu_event end),
        (milliseconds, start, end), )
COUNTED(stream_begin_capture, (ptxgen_cu_stream stream, ptxgen_cu_capture_mode mode),
        (stream, mode), )
COUNTED(graph_instantiate,
        (ptxgen_cu_graph_exec * exec, ptxgen_cu_graph graph, unsigned long long flags),
        (exec, graph, flags), KEEPS(graphs))
COUNTED(graph_launch, (ptxgen_cu_graph_exec exec, ptxgen_cu_stream stream), (exec, stream), )
GIVES_BACK(mem_free, ptxgen_cu_deviceptr, memory)
GIVES_BACK(module_unload, ptxgen_cu_module, modules)
GIVES_BACK(event_destroy, ptxgen_cu_event, events)
GIVES_BACK(graph_exec_destroy, ptxgen_cu_graph_exec, graphs)
GIVES_BACK(link_destroy, ptxgen_cu_link_state, links)

static void count_calls(ptxgen_driver *d)
{
    counted.emulator = *d;
#define TAKE(name) d->name = name
    TAKE(mem_alloc), TAKE(memcpy_htod), TAKE(memcpy_dtoh), TAKE(memcpy_dtod), TAKE(memset_d8);
    TAKE(memset_d32), TAKE(memset_d8_async), TAKE(ctx_synchronize), TAKE(stream_synchronize);
    TAKE(launch_kernel_ex), TAKE(module_load_data_ex), TAKE(module_get_function);
    TAKE(func_get_attribute), TAKE(func_set_attribute), TAKE(link_create), TAKE(event_create);
    TAKE(event_record), TAKE(event_elapsed_time), TAKE(stream_begin_capture);
    TAKE(graph_instantiate), TAKE(graph_launch), TAKE(mem_free), TAKE(module_unload);
    TAKE(event_destroy), TAKE(graph_exec_destroy), TAKE(link_destroy);
}

/* ---- jobs ---- */

/* To be freed. */
static struct family_options *make_options(const struct family *family)
{
    struct family_options *options = family_new_options(family);
    assert_non_null(options);
    family_set_shape(options, 256, 64);
    return options;
}

static ptxgen_status run(const struct family *family, struct device *device, ptxgen_error *err)
{
    struct family_options *options = make_options(family);
    const struct run_request request = {.m = 2, .m_given = true, .seed = 1};
    struct check check = {.outputs = 0};
    ptxgen_status status = family_run(options, &request, device, &check, err);
    free(options);
    if (status == PTXGEN_OK)
        assert_right(&check);
    return status;
}

/* With a graph of launches, as the command times it; what a subject is without success is
 * untouched.
 */
static ptxgen_status bench(const struct family *family, struct device *device, ptxgen_error *err)
{
    struct family_options *options = make_options(family);
    struct bench_subject subject = {.state = NULL};
    struct timing timing;
    device->facts.l2_bytes = 1 << 14;
    ptxgen_status status = family_bench(options, 2, device, &subject, err);
    free(options);
    if (status != PTXGEN_OK)
        return status;
    status = bench_time(device, subject.launch, subject.state, subject.copies, 2, 1, &timing, err);
    subject.destroy(subject.state);
    return status;
}

static const struct job {
    const char *name;
    ptxgen_status (*work)(const struct family *family, struct device *device, ptxgen_error *err);
} jobs[] = {{"run", run}, {"bench", bench}};

/* ---- each call in turn ---- */

static ptxgen_status attempt(const struct job *job, const struct family *family,
                             struct device *device, unsigned n, ptxgen_error *err)
{
    const ptxgen_driver emulator = counted.emulator;
    memset(&counted, 0, sizeof counted);
    counted.emulator = emulator;
    counted.fails = n;
    *err = (ptxgen_error){0};
    ptxgen_status status = job->work(family, device, err);
    if (counted.memory || counted.modules || counted.events || counted.graphs || counted.links)
        fail_msg("%s %s, call %u, %s: left: %d memory, %d modules, %d events, %d graphs, %d links",
                 job->name, family->name, n, counted.failed, counted.memory, counted.modules,
                 counted.events, counted.graphs, counted.links);
    return status;
}

static void a_failed_call_is_reported_and_ends_the_job(void **state)
{
    struct device device = open_device("cpu:sm_90");
    const struct family *family;
    int attempts = 0;
    (void)state;
    count_calls(&device.driver);
    for (size_t f = 0; (family = family_at(f)); f++)
        for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
            ptxgen_error err;
            assert_ok(attempt(&jobs[j], family, &device, 0, &err), &err);
            const unsigned calls = counted.calls;
            assert_true(calls > 20);
            for (unsigned n = 1; n <= calls; n++) {
                if (!test_in_share(attempts++))
                    continue;
                ptxgen_status status = attempt(&jobs[j], family, &device, n, &err);
                if (status == PTXGEN_OK || !strstr(err.message, "CUDA_ERROR_NOT_PERMITTED") ||
                    counted.after)
                    fail_msg("%s %s, call %u, %s: status %d, '%s', then %u calls, the first %s",
                             jobs[j].name, family->name, n, counted.failed, (int)status,
                             err.message, counted.after, counted.after ? counted.later : "none");
            }
        }
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_call_is_reported_and_ends_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
