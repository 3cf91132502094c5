/* SPDX-License-Identifier: Apache-2.0 */
/* The registry by itself: what is compiled when, who holds what, what unloading does. */
#include "tests/runtime/check.h"
#include "toy.h"

#include <ptxgen/rmsnorm_q4k.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench {
    struct toy_device device;
    ptxgen_dispatcher *dispatcher;
};

static int setup(void **state)
{
    static struct bench bench;
    ptxgen_error err;
    toy_open(&bench.device, "cpu");
    *state = &bench;
    return ptxgen_dispatcher_create(&bench.device.driver,
                                    &(ptxgen_dispatch_options){.no_cache = true}, &bench.dispatcher,
                                    &err);
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    ptxgen_dispatcher_destroy(bench->dispatcher);
    toy_close(&bench->device);
    return 0;
}

static ptxgen_loaded *get(struct bench *bench, const ptxgen_family *family,
                          const struct toy_spec *spec)
{
    ptxgen_loaded *loaded = NULL;
    ptxgen_error err = {0};
    if (ptxgen_dispatch(bench->dispatcher, family, spec, &loaded, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    return loaded;
}

static void a_spec_is_compiled_once(void **state)
{
    struct bench *bench = *state;
    struct toy_spec spec = {.a = 3, .b = 1};
    unsigned before = toy_emissions();
    ptxgen_loaded *first = get(bench, &toy_plus, &spec), *second = get(bench, &toy_plus, &spec);
    assert_ptr_equal(first, second);
    assert_int_equal(toy_emissions(), before + 1);
    assert_true(toy_computes(&bench->device.driver, first, &spec));
    assert_true(ptxgen_loaded_report(first)->text_bytes > 100);
    assert_null(ptxgen_loaded_entry(first, 1));
    ptxgen_release(first);
    ptxgen_release(second);
    ptxgen_release(NULL);
}

static void every_byte_of_the_spec_and_the_family_are_the_key(void **state)
{
    struct bench *bench = *state;
    struct toy_spec spec = {.a = 3, .b = 2}, other = spec;
    ptxgen_loaded *plus = get(bench, &toy_plus, &spec), *minus = get(bench, &toy_minus, &spec);
    assert_ptr_not_equal(plus, minus);
    assert_true(toy_computes(&bench->device.driver, plus, &spec));
    assert_true(toy_computes(&bench->device.driver, minus, &spec));
    for (size_t i = 0; i < sizeof spec; i++) {
        if (i / 4 == offsetof(struct toy_spec, trouble) / 4)
            continue;
        memcpy(&other, &spec, sizeof spec);
        ((unsigned char *)&other)[i] ^= 0x40;
        ptxgen_loaded *loaded = get(bench, &toy_plus, &other);
        assert_ptr_not_equal(loaded, plus);
        assert_true(toy_computes(&bench->device.driver, loaded, &other));
        ptxgen_release(loaded);
    }
    ptxgen_release(plus);
    ptxgen_release(minus);
}

static void hundreds_of_specs_are_all_found_again(void **state)
{
    struct bench *bench = *state;
    ptxgen_loaded *loaded[300];
    unsigned before = toy_emissions();
    for (uint32_t i = 0; i < 300; i++)
        loaded[i] = get(bench, &toy_plus, &(struct toy_spec){.a = i, .b = 77});
    for (uint32_t i = 0; i < 300; i++) {
        assert_ptr_equal(get(bench, &toy_plus, &(struct toy_spec){.a = i, .b = 77}), loaded[i]);
        ptxgen_release(loaded[i]);
        ptxgen_release(loaded[i]);
    }
    assert_int_equal(toy_emissions(), before + 300);
}

static void a_failure_is_remembered_until_it_is_retried(void **state)
{
    struct bench *bench = *state;
    static const struct {
        enum toy_trouble trouble;
        ptxgen_status status;
        const char *words;
    } cases[] = {{TOY_UNPLANNABLE, PTXGEN_ERROR_UNSUPPORTED, "a = 9 is not to be had"},
                 {TOY_UNASSEMBLABLE, PTXGEN_ERROR_JIT, "refused the text"}};
    for (int i = 0; i < 2; i++) {
        struct toy_spec spec = {.a = 9, .trouble = cases[i].trouble};
        ptxgen_loaded *loaded = NULL;
        ptxgen_error err;
        toy_set_mended(0);
        assert_fails(ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, &err),
                     cases[i].status, err, cases[i].words);
        unsigned before = toy_emissions();
        toy_set_mended(1);
        assert_fails(ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, &err),
                     cases[i].status, err, cases[i].words);
        assert_int_equal(toy_emissions(), before);
        assert_null(loaded);
        assert_int_equal(ptxgen_dispatch_retry(bench->dispatcher, &toy_plus, &spec, &loaded, &err),
                         0);
        assert_true(toy_computes(&bench->device.driver, loaded, &spec));
        ptxgen_release(loaded);
        ptxgen_release(get(bench, &toy_plus, &spec));
        toy_set_mended(0);
    }
}

static void a_retry_that_fails_again_says_why(void **state)
{
    struct bench *bench = *state;
    struct toy_spec spec = {.a = 10, .trouble = TOY_UNASSEMBLABLE};
    ptxgen_loaded *loaded;
    ptxgen_error err;
    unsigned before = toy_emissions();
    for (int i = 0; i < 3; i++)
        assert_fails(ptxgen_dispatch_retry(bench->dispatcher, &toy_plus, &spec, &loaded, &err),
                     PTXGEN_ERROR_JIT, err, "refused the text");
    assert_int_equal(toy_emissions(), before + 3);
}

static void unloading_leaves_what_is_referenced(void **state)
{
    struct bench *bench = *state;
    struct toy_spec spec = {.a = 4, .b = 1};
    size_t left = 99;
    ptxgen_loaded *loaded = get(bench, &toy_plus, &spec);
    unsigned before = toy_emissions();
    assert_int_equal(ptxgen_dispatcher_unload(bench->dispatcher, &toy_plus, &spec, &left, NULL), 0);
    assert_int_equal(left, 1);
    assert_true(toy_computes(&bench->device.driver, loaded, &spec));
    ptxgen_release(loaded);
    assert_int_equal(ptxgen_dispatcher_unload(bench->dispatcher, &toy_minus, NULL, &left, NULL), 0);
    assert_int_equal(left, 0);
    loaded = get(bench, &toy_plus, &spec);
    assert_int_equal(toy_emissions(), before + 1);
    ptxgen_release(loaded);
}

static void dispatch_revives_what_waits_to_be_unloaded(void **state)
{
    struct bench *bench = *state;
    struct toy_spec spec = {.a = 4, .b = 2};
    size_t left;
    ptxgen_loaded *loaded = get(bench, &toy_plus, &spec);
    unsigned before = toy_emissions();
    assert_int_equal(ptxgen_dispatcher_unload(bench->dispatcher, NULL, NULL, &left, NULL), 0);
    assert_ptr_equal(get(bench, &toy_plus, &spec), loaded);
    ptxgen_release(loaded);
    ptxgen_release(loaded);
    assert_int_equal(ptxgen_dispatcher_unload(bench->dispatcher, &toy_minus, NULL, &left, NULL), 0);
    assert_ptr_equal(get(bench, &toy_plus, &spec), loaded); /* it was READY again, not retiring */
    ptxgen_release(loaded);
    assert_int_equal(toy_emissions(), before);
}

static void unloading_forgets_failures(void **state)
{
    struct bench *bench = *state;
    struct toy_spec spec = {.a = 11, .trouble = TOY_UNASSEMBLABLE};
    ptxgen_loaded *loaded;
    assert_int_equal(ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, NULL),
                     PTXGEN_ERROR_JIT);
    assert_int_equal(ptxgen_dispatcher_unload(bench->dispatcher, NULL, NULL, NULL, NULL), 0);
    unsigned before = toy_emissions();
    assert_int_equal(ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, NULL),
                     PTXGEN_ERROR_JIT);
    assert_int_equal(toy_emissions(), before + 1);
}

static void a_capture_takes_hits_and_refuses_unloading(void **state)
{
    struct bench *bench = *state;
    const ptxgen_driver *driver = &bench->device.driver;
    struct toy_spec spec = {.a = 5, .b = 5};
    ptxgen_error err;
    ptxgen_cu_stream stream;
    ptxgen_cu_graph graph;
    ptxgen_release(get(bench, &toy_plus, &spec));
    assert_int_equal(driver->stream_create(&stream, PTXGEN_CU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(
        driver->stream_begin_capture(stream, PTXGEN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
    ptxgen_loaded *loaded = get(bench, &toy_plus, &spec);
    ptxgen_release(loaded);
    assert_fails(ptxgen_dispatcher_unload(bench->dispatcher, NULL, NULL, NULL, &err),
                 PTXGEN_ERROR_DRIVER, err, "cannot be waited for");
    assert_ptr_equal(get(bench, &toy_plus, &spec), loaded);
    assert_int_equal(driver->stream_end_capture(stream, &graph), 0);
    assert_true(toy_computes(driver, loaded, &spec));
    ptxgen_release(loaded);
    driver->graph_destroy(graph);
    driver->stream_destroy(stream);
}

static void each_context_has_a_dispatcher_of_its_own(void **state)
{
    struct bench *bench = *state;
    struct toy_device ampere;
    ptxgen_dispatcher *other;
    ptxgen_loaded *loaded;
    struct toy_spec spec = {.a = 6};
    toy_open(&ampere, "cpu:sm_80");
    assert_int_equal(ptxgen_dispatcher_create(&ampere.driver,
                                              &(ptxgen_dispatch_options){.no_cache = true}, &other,
                                              NULL),
                     0);
    assert_int_equal(ptxgen_dispatcher_target(other)->ptx.sm, 80);
    assert_int_equal(ptxgen_dispatcher_target(bench->dispatcher)->ptx.sm, 90);
    ptxgen_loaded *first = get(bench, &toy_plus, &spec); /* sm_80's context is current */
    assert_int_equal(ptxgen_dispatch(other, &toy_plus, &spec, &loaded, NULL), 0);
    assert_ptr_not_equal(first, loaded);
    assert_true(toy_computes(&ampere.driver, loaded, &spec));
    ampere.driver.ctx_push_current(bench->device.context);
    assert_true(toy_computes(&bench->device.driver, first, &spec));
    ampere.driver.ctx_pop_current(NULL);
    ptxgen_release(first);
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(other);
    toy_close(&ampere);
}

static void a_forked_child_refuses_to_compile_and_may_destroy(void **state)
{
    struct bench *bench = *state;
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        ptxgen_loaded *loaded;
        struct toy_spec spec = {.a = 7, .b = 7};
        ptxgen_error err = {0};
        ptxgen_status result = ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, &err);
        ptxgen_dispatcher_destroy(bench->dispatcher);
        char says[200];
        snprintf(says, sizeof says,
                 "the dispatcher was made before a fork, in process %ld: CUDA contexts do not "
                 "survive one, so make a driver table and dispatcher after it",
                 (long)getppid());
        _exit(result == PTXGEN_ERROR_WRONG_DEVICE && !strcmp(err.message, says) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- a driver that has shut down, as at the end of a process ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    static ptxgen_cu_result gone_##member parameters                                               \
    {                                                                                              \
        return PTXGEN_CUDA_ERROR_DEINITIALIZED;                                                    \
    }
#include <ptxgen/driver_calls.def>
#pragma GCC diagnostic pop

static void shut_down(ptxgen_driver *driver)
{
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    driver->member = gone_##member;
#include <ptxgen/driver_calls.def>
}

/* The modules that are loaded: a real driver frees them when it ends. */
static struct {
    const ptxgen_driver *driver;
    ptxgen_cu_module modules[8];
    size_t count;
} loads;

static ptxgen_cu_result noted_load(ptxgen_cu_module *module, const void *image,
                                   unsigned int option_count, ptxgen_cu_jit_option *options,
                                   void **option_values)
{
    ptxgen_cu_result result =
        loads.driver->module_load_data_ex(module, image, option_count, options, option_values);
    if (result == PTXGEN_CUDA_SUCCESS) {
        assert_true(loads.count < sizeof loads.modules / sizeof *loads.modules);
        loads.modules[loads.count++] = *module;
    }
    return result;
}

static void after_the_driver_shut_down_releasing_and_destroying_are_harmless(void **state)
{
    struct bench *bench = *state;
    ptxgen_driver driver = bench->device.driver;
    loads.driver = &bench->device.driver;
    loads.count = 0;
    driver.module_load_data_ex = noted_load;
    ptxgen_dispatch_options options = {.no_cache = true};
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *released, *kept, *none;
    struct toy_spec one = {.a = 1, .b = 2}, two = {.a = 2, .b = 2}, three = {.a = 3, .b = 2};
    ptxgen_error err;
    assert_int_equal(ptxgen_dispatcher_create(&driver, &options, &dispatcher, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_dispatch(dispatcher, &toy_plus, &one, &released, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_dispatch(dispatcher, &toy_plus, &two, &kept, NULL), PTXGEN_OK);
    shut_down(&driver);
    ptxgen_release(released);
    assert_int_equal(ptxgen_dispatch(dispatcher, &toy_plus, &three, &none, &err),
                     PTXGEN_ERROR_DRIVER);
    assert_int_equal(ptxgen_dispatcher_unload(dispatcher, NULL, NULL, NULL, &err),
                     PTXGEN_ERROR_DRIVER);
    ptxgen_dispatcher_destroy(dispatcher); /* with one that is still referenced */
    assert_int_equal(loads.count, 2);
    for (size_t i = 0; i < loads.count; i++)
        assert_int_equal(loads.driver->module_unload(loads.modules[i]), PTXGEN_CUDA_SUCCESS);
}

static void rmsnorm_q4k_is_dispatched_like_any_family(void **state)
{
    struct bench *bench = *state;
    ptxgen_rmsnorm_q4k_spec spec = {.k = 256, .n = {16}, .epsilon = 1e-5f, .max_m = 1};
    ptxgen_rmsnorm_q4k *kernel, *again;
    char text[200];
    assert_int_equal(ptxgen_rmsnorm_q4k_dispatch(bench->dispatcher, &spec, &kernel, NULL), 0);
    assert_int_equal(ptxgen_rmsnorm_q4k_dispatch(bench->dispatcher, &spec, &again, NULL), 0);
    assert_ptr_equal(kernel, again);
    assert_non_null(ptxgen_rmsnorm_q4k_attributes(kernel, 1));
    ptxgen_rmsnorm_q4k_destroy(kernel);
    ptxgen_rmsnorm_q4k_destroy(again);
    ptxgen_rmsnorm_q4k_family()->describe(&spec, text, sizeof text);
    assert_string_equal(text, "k=256 n=16,0,0 x=f32 y=f32 epsilon=9.99999975e-06 max_m=1");
}

static void bad_arguments_are_refused(void **state)
{
    struct bench *bench = *state;
    ptxgen_loaded *loaded;
    ptxgen_dispatcher *none;
    struct toy_spec spec = {0};
    ptxgen_error err;
    assert_fails(ptxgen_dispatch(bench->dispatcher, NULL, &spec, &loaded, &err),
                 PTXGEN_ERROR_INVALID_ARGUMENT, err, "is NULL");
    assert_fails(ptxgen_dispatcher_unload(bench->dispatcher, NULL, &spec, NULL, &err),
                 PTXGEN_ERROR_INVALID_ARGUMENT, err, "without its family");
    bench->device.driver.ctx_push_current(bench->device.context);
    bench->device.driver.ctx_set_current(NULL);
    ptxgen_cu_context current;
    bench->device.driver.ctx_pop_current(&current);
    assert_fails(ptxgen_dispatcher_create(&bench->device.driver, NULL, &none, &err),
                 PTXGEN_ERROR_WRONG_DEVICE, err, "no CUDA context is current");
    bench->device.driver.ctx_push_current(bench->device.context);
}

/* ---- many threads, one spec ---- */

enum { THREADS = 8 };

struct caller {
    struct bench *bench;
    const struct toy_spec *spec;
    pthread_barrier_t *together;
    ptxgen_status status;
    ptxgen_loaded *loaded;
};

static void *call(void *argument)
{
    struct caller *caller = argument;
    pthread_barrier_wait(caller->together);
    caller->status =
        ptxgen_dispatch(caller->bench->dispatcher, &toy_minus, caller->spec, &caller->loaded, NULL);
    return NULL;
}

static void call_together(struct bench *bench, const struct toy_spec *spec,
                          struct caller callers[THREADS])
{
    pthread_t threads[THREADS];
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){bench, spec, &together, PTXGEN_OK, NULL};
        pthread_create(&threads[i], NULL, call, &callers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
}

static void threads_that_ask_together_compile_once(void **state)
{
    struct bench *bench = *state;
    struct caller callers[THREADS];
    for (uint32_t round = 0; round < 30; round++) {
        struct toy_spec spec = {.a = 100 + round,
                                .trouble = round % 3 == 2 ? TOY_UNASSEMBLABLE : TOY_FINE};
        unsigned before = toy_emissions();
        call_together(bench, &spec, callers);
        assert_int_equal(toy_emissions(), before + 1);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(callers[i].status, spec.trouble ? PTXGEN_ERROR_JIT : PTXGEN_OK);
            assert_ptr_equal(callers[i].loaded, callers[0].loaded);
            ptxgen_release(callers[i].loaded);
        }
    }
}

/* ---- cancelled threads ---- */

static sem_t planning, go_on;

/* Waiting is where a thread may be cancelled. */
static ptxgen_status plan_slowly(const void *spec, const ptxgen_target *target, void *plan,
                                 ptxgen_error *err)
{
    sem_post(&planning);
    sem_wait(&go_on);
    return toy_plus.make_plan(spec, target, plan, err);
}

struct cancelled {
    struct bench *bench;
    const ptxgen_family *family;
    struct toy_spec spec;
    ptxgen_loaded *loaded;
};

static void *dispatch_until_cancelled(void *argument)
{
    struct cancelled *c = argument;
    ptxgen_dispatch(c->bench->dispatcher, c->family, &c->spec, &c->loaded, NULL);
    pthread_testcancel();
    return NULL;
}

static void a_thread_cancelled_in_dispatch_is_cancelled_after_it(void **state)
{
    static ptxgen_family slow;
    struct cancelled c = {.bench = *state, .family = &slow, .spec = {.a = 5, .b = 3000}};
    pthread_t thread;
    void *result;
    slow = toy_plus;
    slow.make_plan = plan_slowly;
    sem_init(&planning, 0, 0);
    sem_init(&go_on, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, dispatch_until_cancelled, &c), 0);
    sem_wait(&planning);
    assert_int_equal(pthread_cancel(thread), 0);
    sem_post(&go_on);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    alarm(20); /* rather than wait for ever */
    ptxgen_loaded *loaded = get(c.bench, &slow, &c.spec);
    alarm(0);
    assert_ptr_equal(loaded, c.loaded);
    assert_true(toy_computes(&c.bench->device.driver, loaded, &c.spec));
    ptxgen_release(loaded);
    ptxgen_release(c.loaded);
}

/* ---- warming up ---- */

enum { WARM = 60 };

struct heard {
    int steps[WARM], failed;
    size_t done; /* of the last step */
};

static void hear(void *user, const ptxgen_warm_step *step)
{
    struct heard *heard = user;
    heard->steps[step->index]++;
    heard->failed += step->error != NULL && !step->report;
    assert_int_equal(step->done, ++heard->done); /* one call at a time */
    assert_int_equal(step->count, WARM);
}

static void a_warm_up_loads_its_list_and_tells_each_step(void **state)
{
    struct bench *bench = *state;
    struct toy_spec specs[WARM];
    ptxgen_warm_item items[WARM];
    struct heard heard = {0};
    ptxgen_warm *warm;
    for (uint32_t i = 0; i < WARM; i++) {
        specs[i] = (struct toy_spec){
            .a = i, .b = 1000, .trouble = i % 10 == 9 ? TOY_UNPLANNABLE : TOY_FINE};
        items[i] = (ptxgen_warm_item){i % 2 ? &toy_plus : &toy_minus, &specs[i]};
    }
    assert_int_equal(
        ptxgen_warm_start(bench->dispatcher, items, WARM, 4, hear, &heard, &warm, NULL), 0);
    struct toy_spec kept = specs[0];
    memset(specs, 0, sizeof specs); /* they were copied */
    assert_int_equal(ptxgen_warm_finish(warm, false), WARM / 10);
    assert_int_equal(heard.failed, WARM / 10);
    for (int i = 0; i < WARM; i++)
        assert_int_equal(heard.steps[i], 1);
    unsigned before = toy_emissions();
    ptxgen_release(get(bench, &toy_minus, &kept));
    assert_int_equal(toy_emissions(), before);
}

static void a_cancelled_warm_up_leaves_the_rest(void **state)
{
    struct bench *bench = *state;
    struct toy_spec spec = {.a = 1, .b = 2000};
    ptxgen_warm_item item = {&toy_plus, &spec};
    ptxgen_warm *warm;
    ptxgen_error err;
    assert_int_equal(ptxgen_warm_start(bench->dispatcher, &item, 1, 0, NULL, NULL, &warm, NULL), 0);
    assert_int_equal(ptxgen_warm_finish(warm, true), 0);
    assert_int_equal(ptxgen_warm_start(bench->dispatcher, NULL, 0, 0, NULL, NULL, &warm, NULL), 0);
    assert_int_equal(ptxgen_warm_finish(warm, false), 0);
    assert_int_equal(ptxgen_warm_finish(NULL, false), 0);
    item.spec = NULL;
    assert_fails(ptxgen_warm_start(bench->dispatcher, &item, 1, 1, NULL, NULL, &warm, &err),
                 PTXGEN_ERROR_INVALID_ARGUMENT, err, "item 0 has no family or no spec");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_is_compiled_once),
        cmocka_unit_test(every_byte_of_the_spec_and_the_family_are_the_key),
        cmocka_unit_test(hundreds_of_specs_are_all_found_again),
        cmocka_unit_test(a_failure_is_remembered_until_it_is_retried),
        cmocka_unit_test(a_retry_that_fails_again_says_why),
        cmocka_unit_test(unloading_leaves_what_is_referenced),
        cmocka_unit_test(dispatch_revives_what_waits_to_be_unloaded),
        cmocka_unit_test(unloading_forgets_failures),
        cmocka_unit_test(a_capture_takes_hits_and_refuses_unloading),
        cmocka_unit_test(each_context_has_a_dispatcher_of_its_own),
        cmocka_unit_test(a_forked_child_refuses_to_compile_and_may_destroy),
        cmocka_unit_test(after_the_driver_shut_down_releasing_and_destroying_are_harmless),
        cmocka_unit_test(rmsnorm_q4k_is_dispatched_like_any_family),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(threads_that_ask_together_compile_once),
        cmocka_unit_test(a_thread_cancelled_in_dispatch_is_cancelled_after_it),
        cmocka_unit_test(a_warm_up_loads_its_list_and_tells_each_step),
        cmocka_unit_test(a_cancelled_warm_up_leaves_the_rest),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
