/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/loaded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ptxgen_loaded *loaded_new(const ptxgen_driver *driver, const ptxgen_family *family)
{
    ptxgen_loaded *loaded = calloc(1, sizeof *loaded + family->plan_bytes);
    if (!loaded)
        return NULL;
    loaded->driver = driver;
    loaded->family = family;
    return loaded;
}

void loaded_is_not_kept(ptxgen_loaded *loaded, const char *why)
{
    snprintf(loaded->not_kept, sizeof loaded->not_kept, "%s", why);
    loaded->report.not_kept = loaded->not_kept;
}

void loaded_drop(ptxgen_loaded *loaded)
{
    for (unsigned i = 0; i < loaded->entry_count; i++)
        ptxgen_kernel_destroy(loaded->entries[i]);
    free(loaded->entries);
    ptxgen_module_destroy(loaded->module);
    loaded->entries = NULL;
    loaded->entry_count = 0;
    loaded->module = NULL;
}

void loaded_free(ptxgen_loaded *loaded)
{
    if (!loaded)
        return;
    loaded_drop(loaded);
    free(loaded);
}

ptxgen_status loaded_check(const ptxgen_loaded *loaded, ptxgen_error *err)
{
    const ptxgen_family *family = loaded->family;
    return family->check_driver ? family->check_driver(loaded->driver, loaded->plan, err)
                                : PTXGEN_OK;
}

ptxgen_status loaded_emit(const ptxgen_loaded *loaded, ptx_module *module, const char **text,
                          size_t *length, ptxgen_error *err)
{
    ptxgen_status status = loaded->family->emit(loaded->plan, module, err);
    return status == PTXGEN_OK ? ptx_module_text(module, 0, text, length, err) : status;
}

/* ---- entries ---- */

ptxgen_status entry_points_of(const ptx_module *module, struct entry_points *entries,
                              ptxgen_error *err)
{
    unsigned count = ptx_module_kernels(module);
    *entries =
        (struct entry_points){.count = count, .points = calloc(count + 1, sizeof *entries->points)};
    if (!entries->points)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %u entries", count);
    ptxgen_status status = PTXGEN_OK;
    for (unsigned i = 0; status == PTXGEN_OK && i < count; i++) {
        ptx_kernel_info info = {0};
        status = ptx_module_kernel_info(module, i, &info);
        entries->points[i] = (struct entry_point){info.name, info.dynamic_shared_bytes};
    }
    return status;
}

void entry_points_free(struct entry_points *entries)
{
    free(entries->points);
    free(entries->names);
    *entries = (struct entry_points){0};
}

ptxgen_status loaded_fetch(ptxgen_loaded *loaded, const struct entry_points *entries,
                           ptxgen_error *err)
{
    loaded->entries = calloc(entries->count + 1, sizeof *loaded->entries); /* NULL past the last */
    if (!loaded->entries)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "%s: no memory for %u entries",
                           loaded->family->name, entries->count);
    loaded->entry_count = entries->count;
    ptxgen_status status = PTXGEN_OK;
    for (unsigned i = 0; status == PTXGEN_OK && i < entries->count; i++)
        status =
            ptxgen_kernel_create(loaded->module, entries->points[i].name,
                                 entries->points[i].dynamic_shared_bytes, &loaded->entries[i], err);
    return status;
}

/* ---- uncached ---- */

static ptxgen_status load_uncached(ptxgen_loaded *loaded, ptx_module *module,
                                   const ptxgen_module_options *options, ptxgen_error *err)
{
    const char *text;
    struct entry_points entries = {0};
    ptxgen_status status = loaded_check(loaded, err);
    if (status == PTXGEN_OK)
        status = loaded_emit(loaded, module, &text, NULL, err);
    if (status == PTXGEN_OK)
        status = ptxgen_module_load_ptx(loaded->driver, text, options, &loaded->module, err);
    if (status == PTXGEN_OK)
        status = entry_points_of(module, &entries, err);
    if (status == PTXGEN_OK)
        status = loaded_fetch(loaded, &entries, err);
    entry_points_free(&entries);
    return status;
}

ptxgen_status loaded_from_plan(const ptxgen_driver *driver, const ptxgen_family *family,
                               const void *plan, const ptxgen_target *target,
                               const ptxgen_module_options *options, ptxgen_loaded **loaded,
                               ptxgen_error *err)
{
    ptxgen_loaded *made = loaded_new(driver, family);
    ptx_module *module = ptx_module_create(&target->ptx, NULL);
    ptxgen_status status;
    if (made && module) {
        memcpy(made->plan, plan, family->plan_bytes);
        loaded_is_not_kept(made, "it was loaded from a plan, past the disk cache");
        status = load_uncached(made, module, options, err);
    } else {
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "%s: no memory to load a plan",
                             family->name);
    }
    ptx_module_destroy(module);
    if (status == PTXGEN_OK)
        *loaded = made;
    else
        loaded_free(made);
    return status;
}

/* ---- what a reference shows ---- */

const ptxgen_load_report *ptxgen_loaded_report(const ptxgen_loaded *loaded)
{
    return loaded ? &loaded->report : NULL;
}

const ptxgen_family *ptxgen_loaded_family(const ptxgen_loaded *loaded)
{
    return loaded ? loaded->family : NULL;
}

const void *ptxgen_loaded_plan(const ptxgen_loaded *loaded)
{
    return loaded ? loaded->plan : NULL;
}

const ptxgen_kernel *ptxgen_loaded_entry(const ptxgen_loaded *loaded, unsigned index)
{
    return loaded && index < loaded->entry_count ? loaded->entries[index] : NULL;
}
