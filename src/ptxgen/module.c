/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and kernels: their life, directives, and the sticky error. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *default_resize(void *ctx, void *block, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size)
        return realloc(block, new_size);
    free(block);
    return NULL;
}

ptx_module *ptx_module_create(const ptx_target *target, const ptx_allocator *allocator)
{
    ptx_allocator a = allocator && allocator->resize ? *allocator : (ptx_allocator){default_resize, NULL};
    ptx_module *m = a.resize(a.ctx, NULL, 0, sizeof *m);
    if (!m)
        return NULL;
    *m = (ptx_module){.allocator = a};
    if (!target) {
        ptxgen_fail(&m->error, PTXGEN_ERROR_INVALID_ARGUMENT, "a module needs a target");
        return m;
    }
    m->target = *target;
    if (ptx_target_check(target, &m->error) == PTXGEN_OK)
        m->ptx_version = ptx_target_first_ptx(target);
    return m;
}

static void free_kernel(ptx_kernel *k)
{
    ptx_module *m = k->module;
    ptx_release(m, k->name, strlen(k->name) + 1);
    ptx_release(m, k->code, k->code_capacity * sizeof *k->code);
    ptx_release(m, k->operands, k->operand_capacity * sizeof *k->operands);
    ptx_release(m, k->registers, k->register_capacity * sizeof *k->registers);
    ptx_release(m, k->labels, k->label_capacity * sizeof *k->labels);
    ptx_release(m, k->params, k->param_capacity * sizeof *k->params);
    ptx_release(m, k->shared, k->shared_capacity * sizeof *k->shared);
    ptx_release(m, k->local, k->local_capacity * sizeof *k->local);
    ptx_release(m, k->notes, k->note_capacity);
    ptx_release(m, k, sizeof *k);
}

void ptx_module_destroy(ptx_module *m)
{
    if (!m)
        return;
    for (ptx_kernel *k = m->kernels, *next; k; k = next) {
        next = k->next;
        free_kernel(k);
    }
    ptx_release(m, m->text, m->text_capacity);
    ptx_allocator a = m->allocator;
    a.resize(a.ctx, m, sizeof *m, 0);
}

const ptx_target *ptx_module_target(const ptx_module *m)
{
    return m ? &m->target : NULL;
}

int ptx_module_ptx_version(const ptx_module *m)
{
    return m ? m->ptx_version : 0;
}

ptxgen_status ptx_module_status(const ptx_module *m, ptxgen_error *err)
{
    if (!m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "the module is NULL");
    if (err)
        *err = m->error;
    return m->error.status;
}

/* ---- errors ---- */

const char *ptx_file_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

static void vfail_at(ptx_kernel *k, uint32_t index, ptxgen_status status, const char *format,
                     va_list args)
{
    if (ptx_failed(k))
        return;
    ptx_module *m = k->module;
    char sentence[512], where[256] = "";
    vsnprintf(sentence, sizeof sentence, format, args);
    if (index < k->code_count) {
        const struct ptx_instruction *i = &k->code[index];
        char mnemonic[PTX_MNEMONIC_SIZE];
        ptx_mnemonic(i, mnemonic);
        snprintf(where, sizeof where, " instruction %u (%s), emitted at %s:%d:", (unsigned)index,
                 mnemonic, ptx_file_name(i->file), i->line);
    }
    ptxgen_fail(&m->error, status, "kernel '%s':%s %s", k->name, where, sentence);
}

void ptx_fail_at(ptx_kernel *k, uint32_t index, ptxgen_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfail_at(k, index, status, format, args);
    va_end(args);
}

void ptx_kernel_fail(ptx_kernel *k, ptxgen_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfail_at(k, UINT32_MAX, status, format, args);
    va_end(args);
}

/* ---- kernels ---- */

/* ASCII letters only, whatever the locale; '$' and '%' are left to the builder's own names. */
bool ptx_is_identifier(const char *name)
{
    enum { MOST = 255 };
    size_t length = 0;
    for (; name && name[length] && length <= MOST; length++) {
        char c = name[length];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (!length || c < '0' || c > '9'))
            return false;
    }
    return length > (length && *name == '_') && length <= MOST && strcmp(name, "WARP_SZ") != 0;
}

ptx_kernel *ptx_kernel_begin(ptx_module *m, const char *name)
{
    if (!m)
        return NULL;
    bool named = ptx_is_identifier(name);
    const char *stored = named ? name : "unnamed";
    ptx_kernel *k = ptx_scratch(m, sizeof *k);
    char *copy = ptx_scratch(m, strlen(stored) + 1);
    if (!k || !copy) {
        ptx_release(m, k, sizeof *k);
        ptx_release(m, copy, strlen(stored) + 1);
        m->fallback = (ptx_kernel){.module = m, .name = (char *)"unnamed"};
        return &m->fallback;
    }
    strcpy(copy, stored);
    k->module = m;
    k->name = copy;
    k->owner = (uint16_t)(m->kernel_count + 1);
    if (m->kernel_count == UINT16_MAX - 1)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "a module holds at most %d kernels",
                        UINT16_MAX - 1);
    if (!named)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE,
                        "the kernel name '%.64s' is not an identifier of ASCII letters, digits and "
                        "underscores", name ? name : "(null)");
    if (m->last_kernel && !m->last_kernel->ended)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "begun before kernel '%s' was ended",
                        m->last_kernel->name);
    for (const ptx_kernel *other = m->kernels; other; other = other->next)
        if (!strcmp(other->name, stored))
            ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE,
                            "the module already has a kernel of this name");
    if (m->last_kernel)
        m->last_kernel->next = k;
    else
        m->kernels = k;
    m->last_kernel = k;
    m->kernel_count++;
    return k;
}

ptx_module *ptx_kernel_module(ptx_kernel *k)
{
    return k ? k->module : NULL;
}

bool ptx_open(ptx_kernel *k, const char *what)
{
    if (k && k->ended)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "%s after its end", what);
    return !ptx_failed(k);
}

void ptx_kernel_reqntid(ptx_kernel *k, unsigned x, unsigned y, unsigned z)
{
    if (!ptx_open(k, ".reqntid set"))
        return;
    if (!x || !y || !z || x > 1024 || y > 1024 || z > 64 || x * y * z > 1024)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE,
                        "a CTA of %u × %u × %u threads is outside 1 … 1024 threads in all, 64 "
                        "along z",
                        x, y, z);
    k->ntid[0] = x;
    k->ntid[1] = y;
    k->ntid[2] = z;
}

void ptx_kernel_maxntid(ptx_kernel *k, unsigned threads)
{
    if (!ptx_open(k, ".maxntid set"))
        return;
    if (!threads || threads > 1024)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, ".maxntid %u is outside 1 … 1024", threads);
    k->maxntid = threads;
}

void ptx_kernel_minnctapersm(ptx_kernel *k, unsigned ctas)
{
    if (!ptx_open(k, ".minnctapersm set"))
        return;
    if (!ctas || ctas > 32)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, ".minnctapersm %u is outside 1 … 32", ctas);
    k->minnctapersm = ctas;
}

void ptx_kernel_maxnreg(ptx_kernel *k, unsigned registers)
{
    if (!ptx_open(k, ".maxnreg set"))
        return;
    if (registers < 16 || registers > 255)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, ".maxnreg %u is outside 16 … 255", registers);
    k->maxnreg = registers;
}

void ptx_kernel_reqnctapercluster(ptx_kernel *k, unsigned x, unsigned y, unsigned z)
{
    static const struct ptx_need need = {78, 90, 0};
    if (!ptx_open(k, ".reqnctapercluster set"))
        return;
    int version = ptx_needs_met(&need, 1, &k->module->target);
    if (!version)
        ptx_kernel_fail(k, PTXGEN_ERROR_TARGET, "clusters need sm_90, the target is sm_%d",
                        k->module->target.sm);
    if (!x || !y || !z || x > 16 || y > 16 || z > 16 || x * y * z > 16)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE,
                        "a cluster of %u × %u × %u CTAs is outside 1 … 16", x, y, z);
    ptx_require_version(k, version, ".reqnctapercluster");
    k->cluster[0] = x;
    k->cluster[1] = y;
    k->cluster[2] = z;
}

static void check_directives(ptx_kernel *k)
{
    if (k->maxntid && k->ntid[0])
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, ".maxntid and .reqntid exclude each other");
    if (k->minnctapersm && !k->maxntid && !k->ntid[0])
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, ".minnctapersm needs .maxntid or .reqntid");
}

static void check_labels(ptx_kernel *k)
{
    for (uint32_t i = 0; i < k->label_count; i++)
        if (!k->labels[i].bound)
            ptx_kernel_fail(k, PTXGEN_ERROR_LABEL, "label %u '%s' is never bound", (unsigned)i,
                            ptx_note_text(k, k->labels[i].note));
}

static void end_with_ret(ptx_kernel *k)
{
    uint32_t i = k->code_count;
    while (i &&
           (k->code[i - 1].op == PTX_PSEUDO_COMMENT || k->code[i - 1].op == PTX_PSEUDO_SECTION))
        i--;
    bool falls_through = !i || k->code[i - 1].guarded || !(k->code[i - 1].flags & PTX_FLAG_EXIT);
    if (falls_through)
        ptx_emit(k, PTX_OP_ret, 0, 0, NULL, 0, PTX_HERE);
}

/* The checks on which no text depends. */
static void check_order(ptx_kernel *k, const struct ptx_cfg *cfg, const struct ptx_uses *uses)
{
    if (!ptx_failed(k))
        ptx_check_divergence(k, cfg, uses);
    if (!ptx_failed(k))
        ptx_check_async(k, cfg, uses);
    if (!ptx_failed(k))
        ptx_check_bounds(k, uses);
}

static void analyse(ptx_kernel *k)
{
    struct ptx_cfg cfg;
    struct ptx_uses uses;
    struct ptx_liveness liveness;
    if (!ptx_cfg_build(k, &cfg))
        return;
    if (ptx_uses_build(k, &uses)) {
        if (ptx_liveness_build(k, &cfg, &uses, &liveness)) {
            ptx_check_initialised(&liveness);
            if (!ptx_failed(k))
                ptx_allocate_registers(&liveness);
            ptx_liveness_free(&liveness);
        }
        if (!k->module->checks_wait)
            check_order(k, &cfg, &uses);
        ptx_uses_free(k, &uses);
    }
    ptx_cfg_free(k, &cfg);
}

void ptx_module_defer_checks(ptx_module *m)
{
    if (m)
        m->checks_wait = true;
}

ptxgen_status ptx_module_check(ptx_module *m, ptxgen_error *err)
{
    if (!m)
        return ptx_module_status(m, err);
    for (ptx_kernel *k = m->kernels; m->checks_wait && k && !ptx_failed(k); k = k->next) {
        struct ptx_cfg cfg;
        struct ptx_uses uses;
        if (!k->ended || !ptx_cfg_build(k, &cfg))
            continue;
        if (ptx_uses_build(k, &uses)) {
            check_order(k, &cfg, &uses);
            ptx_uses_free(k, &uses);
        }
        ptx_cfg_free(k, &cfg);
    }
    m->checks_wait = false;
    return ptx_module_status(m, err);
}

void ptx_kernel_end(ptx_kernel *k)
{
    if (!ptx_open(k, "ended again"))
        return;
    if (k->open_blocks)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE,
                        "%u structured blocks were left open, the innermost that of %s:%d (a C "
                        "break or return left their body)",
                        k->open_blocks,
                        ptx_file_name(k->innermost_source.file), k->innermost_source.line);
    check_directives(k);
    check_labels(k);
    end_with_ret(k);
    ptx_lay_out_memory(k);
    k->ended = true;
    if (!ptx_failed(k))
        analyse(k);
}
