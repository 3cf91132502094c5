/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan's entries loaded in one context, whatever the family. A family's own public type is never
 * defined: pointers to it are pointers to a ptxgen_loaded.
 */
#ifndef PTXGEN_RUNTIME_LOADED_H
#define PTXGEN_RUNTIME_LOADED_H

#include <ptxgen/dispatch.h>

#include <stddef.h>

struct registry_node;

/* Revision of the library's families: a hash of src/ptxgen, src/kernels, src/runtime, include. */
extern const char library_revision[];

struct ptxgen_loaded {
    const ptxgen_driver *driver;
    const ptxgen_family *family;
    struct registry_node *node; /* of the registry that counts its references, or NULL */
    ptxgen_module *module;
    unsigned entry_count;
    ptxgen_kernel **entries;
    ptxgen_load_report report;
    char not_kept[512]; /* what the report's points to */
    _Alignas(max_align_t) unsigned char plan[]; /* plan_bytes of the family */
};

/* Zeroed but for driver and family; NULL when there is no memory. */
ptxgen_loaded *loaded_new(const ptxgen_driver *driver, const ptxgen_family *family);
/* Why the disk cache does not have its code, for the report; cut where it is too long. */
void loaded_is_not_kept(ptxgen_loaded *loaded, const char *why);
/* Unloads module and entries, and keeps the rest. */
void loaded_drop(ptxgen_loaded *loaded);
/* Unloads and frees; for objects without a node, or by the registry. NULL does nothing. */
void loaded_free(ptxgen_loaded *loaded);

/* Whether the driver has what launches of the plan will need. */
ptxgen_status loaded_check(const ptxgen_loaded *loaded, ptxgen_error *err);
/* Emits the plan into a module made for its target, whose text it returns. */
ptxgen_status loaded_emit(const ptxgen_loaded *loaded, ptx_module *module, const char **text,
                          size_t *length, ptxgen_error *err);

/* The entries of a module in the order of emission, as far as loading must know them. */
struct entry_point {
    const char *name;
    size_t dynamic_shared_bytes;
};
struct entry_points {
    unsigned count;
    struct entry_point *points;
    char *names; /* where the names are; NULL: in the module */
};
ptxgen_status entry_points_of(const ptx_module *module, struct entry_points *entries,
                              ptxgen_error *err);
/* Zeroes them too. */
void entry_points_free(struct entry_points *entries);

/* Fetches the entries from loaded->module. */
ptxgen_status loaded_fetch(ptxgen_loaded *loaded, const struct entry_points *entries,
                           ptxgen_error *err);

/* What families' load functions share: a copy of the plan, emitted and assembled, uncached. */
ptxgen_status loaded_from_plan(const ptxgen_driver *driver, const ptxgen_family *family,
                               const void *plan, const ptxgen_target *target,
                               const ptxgen_module_options *options, ptxgen_loaded **loaded,
                               ptxgen_error *err);

#endif
