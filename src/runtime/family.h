/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's part of the library's own families, written once. A family describes itself in a
 * const struct: the table that dispatch and the cache know (ptxgen/family.h), where its arguments
 * have what all have, and pure functions that list a launch's arrays and entries. Its public
 * functions, which FAMILY_FUNCTIONS and its like define, each pass that description on.
 */
#ifndef PTXGEN_RUNTIME_FAMILY_H
#define PTXGEN_RUNTIME_FAMILY_H

#include "src/kernels/gemm/plan.h"
#include "src/runtime/array.h"
#include "src/runtime/launch_list.h"

enum { FAMILY_MOST_ARRAYS = 14 };

struct family_arrays {
    unsigned count;
    struct launch_array arrays[FAMILY_MOST_ARRAYS + 1 /* the workspace */];
};

/* Offsets in a family's arguments. */
enum { FAMILY_HAS_NONE = -1 };
struct family_members {
    int m;                          /* u64: tokens, of which 0 launches nothing */
    int workspace, workspace_bytes; /* u64 each */
};

struct family {
    ptxgen_family table;
    size_t plan_target;                 /* offset of the ptxgen_target in a plan */
    size_t plan_n;                      /* offset of N, u32, of which 0 launches nothing */
    const struct gemm_planner *planner; /* of a product, whose K may be 0; or NULL */
    bool (*is_plan)(const void *plan);
    struct family_members args;
    unsigned workspace_align;
    bool has_narrow_strides; /* its entries take strides as numbers of 32 bits */
    /*
     * Lists what the arguments point to, all but the workspace. Strides are those in `args`, where
     * strides of 0 are then given their meaning.
     */
    ptxgen_status (*arrays)(const void *plan, void *args, struct family_arrays *to,
                            ptxgen_error *err);
    /*
     * Lists what is launched for at least one token, or refuses their number. Strides are not 0.
     * Where a launch has several lists, this is called for each, which `part` says.
     */
    ptxgen_status (*list)(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err);
    /* The loaded entry of the product for m tokens; below 0: none. */
    int (*entry)(const void *plan, uint64_t m);
};

/* ---- what public functions are made of ---- */

ptxgen_status family_load(const struct family *family, const ptxgen_driver *driver,
                          const void *plan, const ptxgen_module_options *options,
                          ptxgen_loaded **loaded, ptxgen_error *err);
const ptxgen_kernel_attributes *family_attributes(const struct family *family,
                                                  const ptxgen_loaded *loaded, uint64_t m);
/* `args` are the caller's own copy, which both change. */
ptxgen_status family_workspace_bytes(const struct family *family, const ptxgen_loaded *loaded,
                                     void *args, uint64_t *bytes, ptxgen_error *err);
ptxgen_status family_launch(const struct family *family, const ptxgen_loaded *loaded, void *args,
                            ptxgen_cu_stream stream, ptxgen_error *err);

/* ---- what families' descriptions are made of ---- */

/* Refuses a driver that encodes no tensor maps, for plans that need some. */
ptxgen_status family_check_maps(const ptxgen_driver *driver, bool needed, ptxgen_error *err);
/* Whether a product's plan has entries that take tensor maps: their operands are copied in bulk. */
bool family_takes_maps(const struct gemm_planner *planner, const void *plan);
/* The entry for m tokens where the plan's variants are emitted first; below 0: none. */
int family_product_entry(const struct gemm_planner *planner, const void *plan, uint64_t m);
/* For lines about specs. */
const char *family_element(uint8_t type);
const char *family_activation(uint8_t activation); /* behind a space; "" for none */

/* Functions of a family's own types as those of `struct family`. */
#define FAMILY_CALLBACKS(F)                                                                        \
    static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,      \
                                   ptxgen_error *err)                                              \
    {                                                                                              \
        return ptxgen_##F##_make_plan(spec, target, plan, err);                                    \
    }
#define FAMILY_EMIT(F)                                                                             \
    static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)             \
    {                                                                                              \
        return ptxgen_##F##_emit(plan, ~0u, module, err);                                          \
    }

/* Those of a product whose plan has this planner. */
#define FAMILY_PRODUCT_DRIVER(planner)                                                             \
    static ptxgen_status check_driver(const ptxgen_driver *driver, const void *plan,               \
                                      ptxgen_error *err)                                           \
    {                                                                                              \
        return family_check_maps(driver, family_takes_maps(&(planner), plan), err);                \
    }
#define FAMILY_PRODUCT_ENTRY(planner)                                                              \
    static int entry(const void *plan, uint64_t m)                                                 \
    {                                                                                              \
        return family_product_entry(&(planner), plan, m);                                          \
    }

/* The members of a description that have the same names in every family. */
#define FAMILY_TABLE(F)                                                                            \
    .name = #F, .spec_bytes = sizeof(ptxgen_##F##_spec), .plan_bytes = sizeof(ptxgen_##F##_plan),  \
    .make_plan = make_plan, .emit = emit
#define FAMILY_MEMBERS(F)                                                                          \
    .plan_target = offsetof(ptxgen_##F##_plan, target),                                            \
    .plan_n = offsetof(ptxgen_##F##_plan, spec.n), .is_plan = F##_is_plan, .arrays = arrays,       \
    .list = list
#define FAMILY_WORKSPACE_MEMBERS(F)                                                                \
    .planner = &F##_planner,                                                                       \
    .args = {.m = offsetof(ptxgen_##F##_args, m),                                                  \
             .workspace = offsetof(ptxgen_##F##_args, workspace),                                  \
             .workspace_bytes = offsetof(ptxgen_##F##_args, workspace_bytes)}

/*
 * The public functions of the family that `description` describes. The public type is never
 * defined: pointers to it are pointers to a ptxgen_loaded.
 */
#define FAMILY_FUNCTIONS(F, description)                                                           \
    const ptxgen_family *ptxgen_##F##_family(void)                                                 \
    {                                                                                              \
        return &(description).table;                                                               \
    }                                                                                              \
    ptxgen_status ptxgen_##F##_load(const ptxgen_driver *driver, const ptxgen_##F##_plan *plan,    \
                                    const ptxgen_module_options *options, ptxgen_##F **kernel,     \
                                    ptxgen_error *err)                                             \
    {                                                                                              \
        ptxgen_loaded *loaded = NULL;                                                              \
        ptxgen_status status =                                                                     \
            family_load(&(description), driver, plan, options, kernel ? &loaded : NULL, err);      \
        if (status == PTXGEN_OK)                                                                   \
            *kernel = (ptxgen_##F *)loaded;                                                        \
        return status;                                                                             \
    }                                                                                              \
    ptxgen_status ptxgen_##F##_dispatch(ptxgen_dispatcher *dispatcher,                             \
                                        const ptxgen_##F##_spec *spec, ptxgen_##F **kernel,        \
                                        ptxgen_error *err)                                         \
    {                                                                                              \
        ptxgen_loaded *loaded = NULL;                                                              \
        ptxgen_status status =                                                                     \
            ptxgen_dispatch(dispatcher, &(description).table, spec, kernel ? &loaded : NULL, err); \
        if (status == PTXGEN_OK)                                                                   \
            *kernel = (ptxgen_##F *)loaded;                                                        \
        return status;                                                                             \
    }                                                                                              \
    void ptxgen_##F##_destroy(ptxgen_##F *kernel)                                                  \
    {                                                                                              \
        ptxgen_release((ptxgen_loaded *)kernel);                                                   \
    }                                                                                              \
    ptxgen_status ptxgen_##F##_launch(const ptxgen_##F *kernel, const ptxgen_##F##_args *args,     \
                                      ptxgen_cu_stream stream, ptxgen_error *err)                  \
    {                                                                                              \
        ptxgen_##F##_args own;                                                                     \
        return family_launch(&(description), (const ptxgen_loaded *)kernel,                        \
                             args ? memcpy(&own, args, sizeof own) : NULL, stream, err);           \
    }

/* Those of a family whose launches have tokens, and of one with a workspace besides. */
#define FAMILY_ATTRIBUTES(F, description)                                                          \
    const ptxgen_kernel_attributes *ptxgen_##F##_attributes(const ptxgen_##F *kernel, uint64_t m)  \
    {                                                                                              \
        return family_attributes(&(description), (const ptxgen_loaded *)kernel, m);                \
    }
#define FAMILY_WORKSPACE(F, description)                                                           \
    ptxgen_status ptxgen_##F##_workspace_bytes(const ptxgen_##F *kernel,                           \
                                               const ptxgen_##F##_args *args, uint64_t *bytes,     \
                                               ptxgen_error *err)                                  \
    {                                                                                              \
        ptxgen_##F##_args own;                                                                     \
        return family_workspace_bytes(&(description), (const ptxgen_loaded *)kernel,               \
                                      args ? memcpy(&own, args, sizeof own) : NULL, bytes, err);   \
    }

#endif
