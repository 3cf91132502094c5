/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void *resize(ptx_module *m, void *block, size_t old_size, size_t new_size)
{
    void *p = m->allocator.resize(m->allocator.ctx, block, old_size, new_size);
    if (!p && new_size && m->error.status == PTXGEN_OK)
        ptxgen_fail(&m->error, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes of the module",
                    new_size);
    return p;
}

bool ptx_grow(ptx_module *m, void *data, size_t *capacity, size_t need, size_t element)
{
    if (need > PTX_MAX_ELEMENTS) {
        ptxgen_fail(&m->error, PTXGEN_ERROR_OUT_OF_MEMORY, "a module's list of %zu elements is too long",
                    need);
        return false;
    }
    size_t grown = *capacity ? *capacity * 2 : 64;
    if (grown < need)
        grown = need;
    void *old;
    memcpy(&old, data, sizeof old);
    void *p = resize(m, old, *capacity * element, grown * element);
    if (!p)
        return false;
    memcpy(data, &p, sizeof p);
    *capacity = grown;
    return true;
}

void *ptx_unset(ptx_module *m, size_t bytes)
{
    return resize(m, NULL, 0, bytes ? bytes : 1);
}

void *ptx_scratch(ptx_module *m, size_t bytes)
{
    void *p = ptx_unset(m, bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

void ptx_release(ptx_module *m, void *block, size_t bytes)
{
    if (block)
        m->allocator.resize(m->allocator.ctx, block, bytes ? bytes : 1, 0);
}

uint32_t ptx_vnote(ptx_kernel *k, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    uint32_t start = k->note_bytes ? k->note_bytes : 1;
    if (length <= 0 || ptx_failed(k) ||
        !ptx_reserve(k->module, &k->notes, &k->note_capacity, start + (size_t)length + 1, 1))
        return 0;
    k->notes[0] = 0;
    vsnprintf(k->notes + start, (size_t)length + 1, format, args);
    k->note_bytes = start + (uint32_t)length + 1;
    return start;
}

uint32_t ptx_note(ptx_kernel *k, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    uint32_t note = ptx_vnote(k, format, args);
    va_end(args);
    return note;
}
