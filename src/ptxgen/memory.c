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
        ptxgen_fail(&m->error, PTXGEN_ERROR_OUT_OF_MEMORY,
                    "a module's list of %zu elements is too long", need);
        return false;
    }
    enum { FIRST_BYTES = 4096, LARGE_BYTES = 1 << 18 }; /* small lists grow in larger steps */
    size_t grown = !*capacity                          ? FIRST_BYTES / element
                   : *capacity * element < LARGE_BYTES ? *capacity * 4
                                                       : *capacity * 2;
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

/* Room for `bytes` more of notes; where they start, 0 when there is none. */
static uint32_t note_room(ptx_kernel *k, size_t bytes)
{
    uint32_t start = k->note_bytes ? k->note_bytes : 1;
    if (ptx_failed(k) || !ptx_reserve(k->module, &k->notes, &k->note_capacity, start + bytes, 1))
        return 0;
    k->notes[0] = 0;
    return start;
}

uint32_t ptx_note_string(ptx_kernel *k, const char *string)
{
    size_t bytes = strlen(string) + 1;
    uint32_t start = bytes > 1 ? note_room(k, bytes) : 0;
    if (!start)
        return 0;
    memcpy(k->notes + start, string, bytes);
    k->note_bytes = start + (uint32_t)bytes;
    return start;
}

uint32_t ptx_vnote(ptx_kernel *k, const char *format, va_list args)
{
    enum { USUAL = 128 };
    size_t room = USUAL;
    for (;;) {
        uint32_t start = note_room(k, room);
        if (!start)
            return 0;
        va_list again;
        va_copy(again, args);
        int length = vsnprintf(k->notes + start, room, format, again);
        va_end(again);
        if (length <= 0)
            return 0;
        if ((size_t)length < room) {
            k->note_bytes = start + (uint32_t)length + 1;
            return start;
        }
        room = (size_t)length + 1;
    }
}
