/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who failed to get a kernel holds no reference to it, whatever failed: the counts of the registry
 * are 0 afterwards, so that everything can be unloaded, and a later success counts one.
 */
#include "tests/runtime/check.h"
#include "toy.h"

#include "src/runtime/dispatcher.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- an emulator that counts modules, and may fail ---- */

static ptxgen_driver real;
static atomic_int modules;
static enum trouble {
    NO_TROUBLE,
    NO_LINKER,
    NO_ASSEMBLY,
    NO_CUBIN,
    NO_MODULE,
    NO_FUNCTION,
    NO_ATTRIBUTE,
    NO_CONTEXT,
    TROUBLES
} trouble;
static ptxgen_cu_result result; /* of the call that fails */

#define FAIL_IN(which)                                                                             \
    do {                                                                                           \
        if (trouble == (which))                                                                    \
            return result;                                                                         \
    } while (0)

static ptxgen_cu_result link_create(unsigned count, ptxgen_cu_jit_option *options, void **values,
                                    ptxgen_cu_link_state *state)
{
    FAIL_IN(NO_LINKER);
    return real.link_create(count, options, values, state);
}

static ptxgen_cu_result link_add_data(ptxgen_cu_link_state state, ptxgen_cu_jit_input_type type,
                                      void *data, size_t size, const char *name, unsigned count,
                                      ptxgen_cu_jit_option *options, void **values)
{
    FAIL_IN(NO_ASSEMBLY);
    return real.link_add_data(state, type, data, size, name, count, options, values);
}

static ptxgen_cu_result link_complete(ptxgen_cu_link_state state, void **cubin, size_t *size)
{
    FAIL_IN(NO_CUBIN);
    return real.link_complete(state, cubin, size);
}

static ptxgen_cu_result module_load_data_ex(ptxgen_cu_module *module, const void *image,
                                            unsigned count, ptxgen_cu_jit_option *options,
                                            void **values)
{
    FAIL_IN(NO_MODULE);
    ptxgen_cu_result loaded = real.module_load_data_ex(module, image, count, options, values);
    modules += loaded == PTXGEN_CUDA_SUCCESS;
    return loaded;
}

static ptxgen_cu_result module_unload(ptxgen_cu_module module)
{
    modules--;
    return real.module_unload(module);
}

static ptxgen_cu_result module_get_function(ptxgen_cu_function *function, ptxgen_cu_module module,
                                            const char *name)
{
    FAIL_IN(NO_FUNCTION);
    return real.module_get_function(function, module, name);
}

static ptxgen_cu_result func_get_attribute(int *value, ptxgen_cu_function_attribute attribute,
                                           ptxgen_cu_function function)
{
    FAIL_IN(NO_ATTRIBUTE);
    return real.func_get_attribute(value, attribute, function);
}

static ptxgen_cu_result ctx_push_current(ptxgen_cu_context context)
{
    FAIL_IN(NO_CONTEXT);
    return real.ctx_push_current(context);
}

struct bench {
    struct toy_device device;
    ptxgen_dispatcher *dispatcher;
};

static int setup(void **state)
{
    static struct bench bench;
    ptxgen_driver *driver = &bench.device.driver;
    toy_open(&bench.device, "cpu");
    real = *driver;
    driver->link_create = link_create;
    driver->link_add_data = link_add_data;
    driver->link_complete = link_complete;
    driver->module_load_data_ex = module_load_data_ex;
    driver->module_unload = module_unload;
    driver->module_get_function = module_get_function;
    driver->func_get_attribute = func_get_attribute;
    driver->ctx_push_current = ctx_push_current;
    trouble = NO_TROUBLE;
    modules = 0;
    toy_set_mended(0);
    *state = &bench;
    return ptxgen_dispatcher_create(driver, &(ptxgen_dispatch_options){.no_cache = true},
                                    &bench.dispatcher, NULL);
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    toy_set_mended(0);
    trouble = NO_TROUBLE;
    ptxgen_dispatcher_destroy(bench->dispatcher);
    toy_close(&bench->device);
    return modules;
}

/* ---- what is counted ---- */

static long references(const struct bench *bench)
{
    long sum = 0;
    for (const struct registry_node *node = bench->dispatcher->registry.newest; node;
         node = node->next)
        sum += node_references(node);
    return sum;
}

/* No reference is left, so that all can be unloaded. */
static void assert_nothing_is_held(struct bench *bench)
{
    size_t still_referenced = 99;
    trouble = NO_TROUBLE;
    assert_int_equal(references(bench), 0);
    assert_int_equal(
        ptxgen_dispatcher_unload(bench->dispatcher, NULL, NULL, &still_referenced, NULL),
        PTXGEN_OK);
    assert_int_equal(still_referenced, 0);
    assert_int_equal(modules, 0);
}

typedef ptxgen_status dispatch_call(ptxgen_dispatcher *dispatcher, const ptxgen_family *family,
                                    const void *spec, ptxgen_loaded **loaded, ptxgen_error *err);

/* Both calls, several times, fail and count nothing; mended, they succeed and count one each. */
static void assert_fails_uncounted(struct bench *bench, const struct toy_spec *spec,
                                   enum trouble which, ptxgen_status status)
{
    dispatch_call *const calls[] = {ptxgen_dispatch, ptxgen_dispatch, ptxgen_dispatch_retry,
                                    ptxgen_dispatch};
    ptxgen_loaded *loaded = NULL;
    ptxgen_error err;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        trouble = which;
        assert_fails(calls[i](bench->dispatcher, &toy_plus, spec, &loaded, &err), status, err, "");
        assert_null(loaded);
        assert_int_equal(references(bench), 0);
        assert_int_equal(modules, 0);
    }
    trouble = NO_TROUBLE;
    toy_set_mended(1);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(ptxgen_dispatch_retry(bench->dispatcher, &toy_plus, spec, &loaded, &err),
                         PTXGEN_OK);
        assert_int_equal(references(bench), i);
    }
    size_t still_referenced = 0;
    assert_int_equal(
        ptxgen_dispatcher_unload(bench->dispatcher, &toy_plus, spec, &still_referenced, NULL),
        PTXGEN_OK);
    assert_int_equal(still_referenced, 1); /* one kernel */
    for (int i = 1; i <= 3; i++)
        ptxgen_release(loaded);
    toy_set_mended(0);
    assert_nothing_is_held(bench);
}

/* Threads count on the stripe of their processor, of which this machine may have few. */
static void every_stripe_counts(void **state)
{
    struct bench *bench = *state;
    const struct toy_spec spec = {.a = 1};
    ptxgen_loaded *loaded;
    size_t still_referenced;
    assert_int_equal(ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, NULL),
                     PTXGEN_OK);
    ptxgen_release(loaded);
    struct registry_node *node = bench->dispatcher->registry.newest;
    for (int i = 0; i < REGISTRY_STRIPES; i++) {
        atomic_fetch_add(&node->stripes[i].references, 1);
        assert_int_equal(node_references(node), 1);
        assert_int_equal(
            ptxgen_dispatcher_unload(bench->dispatcher, NULL, NULL, &still_referenced, NULL),
            PTXGEN_OK);
        assert_int_equal(still_referenced, 1);
        assert_int_equal(modules, 1);
        atomic_fetch_sub(&node->stripes[i].references, 1);
    }
    atomic_fetch_add(&node->stripes[0].references, 1); /* taken on one processor */
    atomic_fetch_sub(&node->stripes[REGISTRY_STRIPES - 1].references,
                     1); /* and given back on another */
    assert_nothing_is_held(bench);
}

/* ---- what may fail ---- */

static void a_spec_that_is_refused_holds_nothing(void **state)
{
    assert_fails_uncounted(*state, &(struct toy_spec){.a = 1, .trouble = TOY_UNPLANNABLE},
                           NO_TROUBLE, PTXGEN_ERROR_UNSUPPORTED);
}

static void a_text_that_is_refused_holds_nothing(void **state)
{
    assert_fails_uncounted(*state, &(struct toy_spec){.a = 2, .trouble = TOY_UNASSEMBLABLE},
                           NO_TROUBLE, PTXGEN_ERROR_JIT);
}

static void a_driver_that_fails_in_any_call_holds_nothing(void **state)
{
    static const struct {
        ptxgen_cu_result result;
        ptxgen_status status;
    } failures[] = {{PTXGEN_CUDA_ERROR_OUT_OF_MEMORY, PTXGEN_ERROR_OUT_OF_MEMORY},
                    {PTXGEN_CUDA_ERROR_ILLEGAL_ADDRESS, PTXGEN_ERROR_DRIVER}};
    for (int which = NO_TROUBLE + 1; which < TROUBLES; which++)
        for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
            result = failures[i].result;
            assert_fails_uncounted(*state, &(struct toy_spec){.a = 3, .b = (uint32_t)which},
                                   (enum trouble)which, failures[i].status);
        }
}

static void bad_arguments_and_other_processes_hold_nothing(void **state)
{
    struct bench *bench = *state;
    struct toy_spec spec = {.a = 4};
    ptxgen_loaded *loaded = NULL;
    int status;
    assert_int_equal(ptxgen_dispatch(bench->dispatcher, NULL, &spec, &loaded, NULL),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ptxgen_dispatch(bench->dispatcher, &toy_plus, NULL, &loaded, NULL),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, NULL, NULL),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ptxgen_dispatch(NULL, &toy_plus, &spec, &loaded, NULL),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(references(bench), 0);
    spec.trouble = TOY_UNPLANNABLE; /* a node that is not ready, which the child asks for again */
    assert_int_equal(ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, NULL),
                     PTXGEN_ERROR_UNSUPPORTED);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        bool refused = ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, NULL) ==
                       PTXGEN_ERROR_WRONG_DEVICE;
        _exit(refused && references(bench) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_nothing_is_held(bench);
}

/* ---- threads that wait for one that fails ---- */

enum { THREADS = 4 };

static sem_t planning, go_on;

static ptxgen_status plan_when_told(const void *spec, const ptxgen_target *target, void *plan,
                                    ptxgen_error *err)
{
    sem_post(&planning);
    sem_wait(&go_on);
    return toy_plus.make_plan(spec, target, plan, err);
}

struct caller {
    struct bench *bench;
    const ptxgen_family *family;
    struct toy_spec spec;
    ptxgen_status status;
    ptxgen_loaded *loaded;
};

static void *call(void *argument)
{
    struct caller *c = argument;
    c->status = ptxgen_dispatch(c->bench->dispatcher, c->family, &c->spec, &c->loaded, NULL);
    return NULL;
}

static void a_kernel_under_way_is_held_by_nobody_who_waits_in_vain(void **state)
{
    static ptxgen_family slow;
    struct bench *bench = *state;
    slow = toy_plus;
    slow.make_plan = plan_when_told;
    sem_init(&planning, 0, 0);
    sem_init(&go_on, 0, 0);
    for (int fails = 0; fails < 2; fails++) {
        struct caller callers[THREADS];
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) {
            callers[i] = (struct caller){bench, &slow, {.a = 5, .b = (uint32_t)fails}, 0, NULL};
            callers[i].spec.trouble = fails ? TOY_UNPLANNABLE : TOY_FINE;
            assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
            if (i == 0)
                sem_wait(&planning); /* so that the others find it BUSY */
        }
        sem_post(&go_on);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(references(bench), fails ? 0 : THREADS);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(callers[i].status, fails ? PTXGEN_ERROR_UNSUPPORTED : PTXGEN_OK);
            ptxgen_release(callers[i].loaded);
        }
        assert_nothing_is_held(bench);
    }
    sem_destroy(&planning);
    sem_destroy(&go_on);
}

static void what_waits_to_be_unloaded_counts_who_revives_it_once(void **state)
{
    struct bench *bench = *state;
    struct toy_spec spec = {.a = 6};
    ptxgen_loaded *loaded;
    assert_int_equal(ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, NULL),
                     PTXGEN_OK);
    for (int i = 2; i < 5; i++) { /* RETIRING each time */
        assert_int_equal(ptxgen_dispatcher_unload(bench->dispatcher, NULL, NULL, NULL, NULL),
                         PTXGEN_OK);
        assert_int_equal(ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, NULL),
                         PTXGEN_OK);
        assert_int_equal(references(bench), i);
    }
    for (int i = 1; i < 5; i++)
        ptxgen_release(loaded);
    assert_nothing_is_held(bench);
}

static void a_warm_up_of_good_and_bad_holds_nothing(void **state)
{
    struct bench *bench = *state;
    static const enum toy_trouble troubles[] = {TOY_FINE, TOY_UNPLANNABLE, TOY_UNASSEMBLABLE};
    struct toy_spec specs[12];
    ptxgen_warm_item items[12];
    ptxgen_warm *warm;
    for (uint32_t i = 0; i < 12; i++) { /* each twice */
        specs[i] = (struct toy_spec){.a = 7, .b = i / 2, .trouble = troubles[i / 2 % 3]};
        items[i] = (ptxgen_warm_item){&toy_plus, &specs[i]};
    }
    assert_int_equal(ptxgen_warm_start(bench->dispatcher, items, 12, 3, NULL, NULL, &warm, NULL),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_warm_finish(warm, false), 8);
    assert_int_equal(modules, 2);
    assert_nothing_is_held(bench);
}

/* ---- no memory in the process ---- */

extern void *__real_malloc(size_t size);
extern void *__real_calloc(size_t count, size_t size);
extern void *__real_aligned_alloc(size_t alignment, size_t size);
extern void *__wrap_malloc(size_t size);
extern void *__wrap_calloc(size_t count, size_t size);
extern void *__wrap_aligned_alloc(size_t alignment, size_t size);

static long until_none = -1; /* allocations of the library that succeed yet; −1: all */

static bool runs_out(void)
{
    return until_none == 0 || (until_none > 0 && until_none-- == 0);
}

void *__wrap_malloc(size_t size)
{
    return runs_out() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return runs_out() ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return runs_out() ? NULL : __real_aligned_alloc(alignment, size);
}

static void no_memory_at_any_allocation_holds_nothing(void **state)
{
    struct bench *bench = *state;
    ptxgen_status status = PTXGEN_ERROR_OUT_OF_MEMORY;
    ptxgen_loaded *loaded = NULL;
    int allocations = 0;
    for (; status != PTXGEN_OK; allocations++) {
        const struct toy_spec spec = {.a = 8, .b = (uint32_t)allocations};
        ptxgen_error err = {0};
        assert_true(allocations < 1000);
        until_none = allocations;
        status = ptxgen_dispatch(bench->dispatcher, &toy_plus, &spec, &loaded, &err);
        until_none = -1;
        if (status == PTXGEN_OK)
            break;
        if (status != PTXGEN_ERROR_OUT_OF_MEMORY)
            fail_msg("after %d allocations: %s", allocations, err.message);
        assert_int_equal(references(bench), 0);
        assert_int_equal(modules, 0);
        for (int i = 0; i < 2; i++) { /* the first may be the remembered failure */
            status = ptxgen_dispatch_retry(bench->dispatcher, &toy_plus, &spec, &loaded, &err);
            assert_int_equal(status, PTXGEN_OK);
            ptxgen_release(loaded);
        }
        assert_nothing_is_held(bench);
        status = PTXGEN_ERROR_OUT_OF_MEMORY;
    }
    assert_true(allocations > 5); /* a node, an error, a plan, a module … */
    ptxgen_release(loaded);
    assert_nothing_is_held(bench);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(every_stripe_counts),
        claim(a_spec_that_is_refused_holds_nothing),
        claim(a_text_that_is_refused_holds_nothing),
        claim(a_driver_that_fails_in_any_call_holds_nothing),
        claim(bad_arguments_and_other_processes_hold_nothing),
        claim(a_kernel_under_way_is_held_by_nobody_who_waits_in_vain),
        claim(what_waits_to_be_unloaded_counts_who_revives_it_once),
        claim(a_warm_up_of_good_and_bad_holds_nothing),
        claim(no_memory_at_any_allocation_holds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
