/* SPDX-License-Identifier: Apache-2.0 */
/* Making a pack: kernels are kept by rising key, so that the bytes do not depend on the order. */
#include "src/runtime/cubin_check.h"
#include "src/runtime/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
    struct pack_record record;
    unsigned char *body;
};

struct ptxgen_pack_builder {
    struct item *items;
    size_t count, capacity;
    unsigned char *finished; /* of the last ptxgen_pack_finish */
};

ptxgen_status ptxgen_pack_builder_create(ptxgen_pack_builder **builder, ptxgen_error *err)
{
    if (!builder)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_pack_builder_create: builder is NULL");
    *builder = calloc(1, sizeof **builder);
    return *builder ? PTXGEN_OK
                    : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a pack");
}

void ptxgen_pack_builder_destroy(ptxgen_pack_builder *builder)
{
    if (!builder)
        return;
    for (size_t i = 0; i < builder->count; i++)
        free(builder->items[i].body);
    free(builder->items);
    free(builder->finished);
    free(builder);
}

/* ---- a kernel ---- */

/* One kernel on its way into the builder. */
struct draft {
    const ptxgen_family *family;
    const ptxgen_target *target;
    struct keyed_text subject;
    void *plan;
    ptx_module *module;
    const char *text;
    size_t text_bytes;
    struct entry_points entries;
    ptxgen_cubin cubin; /* no bytes: the text is the code */
};

static ptxgen_status no_memory(ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a kernel of a pack");
}

static ptxgen_status emit(struct draft *d, const void *spec, ptxgen_error *err)
{
    d->plan = calloc(1, d->family->plan_bytes);
    d->module = ptx_module_create(&d->target->ptx, NULL);
    if (!d->plan || !d->module)
        return no_memory(err);
    ptxgen_status status = d->family->make_plan(spec, d->target, d->plan, err);
    if (status == PTXGEN_OK)
        status = d->family->emit(d->plan, d->module, err);
    if (status == PTXGEN_OK)
        status = ptx_module_text(d->module, 0, &d->text, &d->text_bytes, err);
    return status == PTXGEN_OK ? entry_points_of(d->module, &d->entries, err) : status;
}

/* A copy of the lines, malloc'ed. */
static ptxgen_status write_entries(const struct draft *d, char **lines, uint32_t *bytes,
                                   ptxgen_error *err)
{
    const struct entry_points *entries = &d->entries;
    char text[MANIFEST_MOST_BYTES];
    struct text to = {.at = text, .size = sizeof text};
    for (unsigned i = 0; i < entries->count; i++)
        text_add(&to, "%s, %zu shared bytes\n", entries->points[i].name,
                 entries->points[i].dynamic_shared_bytes);
    if (to.is_cut)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s: the names of %u entries are too long for a pack", d->family->name,
                           entries->count);
    *bytes = (uint32_t)to.used;
    *lines = strndup(text, to.used);
    return *lines ? PTXGEN_OK : no_memory(err);
}

static ptxgen_status make_item(const struct draft *d, struct item *item, ptxgen_error *err)
{
    const void *code = d->cubin.bytes ? d->cubin.bytes : d->text;
    struct pack_record *r = &item->record;
    *r = (struct pack_record){.key = d->subject.key,
                              .subject_bytes = (uint32_t)d->subject.length,
                              .code_bytes = d->cubin.bytes ? d->cubin.size : d->text_bytes,
                              .cubin_sm = d->cubin.bytes ? (uint32_t)d->target->ptx.sm : 0};
    char *entries;
    ptxgen_status status = write_entries(d, &entries, &r->entries_bytes, err);
    if (status != PTXGEN_OK)
        return status;
    size_t bytes = (size_t)r->subject_bytes + r->entries_bytes + r->code_bytes + 1;
    unsigned char *body = calloc(1, bytes);
    if (body) {
        memcpy(body, d->subject.text, r->subject_bytes);
        memcpy(body + r->subject_bytes, entries, r->entries_bytes);
        memcpy(body + r->subject_bytes + r->entries_bytes, code, r->code_bytes);
        r->body_hash = digest_of(body, bytes);
    }
    free(entries);
    item->body = body;
    return body ? PTXGEN_OK : no_memory(err);
}

/* What the assembler gives is a cubin, of a size that readers take. */
static ptxgen_status assemble_text(struct draft *d, const char *sm, ptxgen_pack_assembler assemble,
                                   void *user, ptxgen_error *err)
{
    ptxgen_error why;
    ptxgen_status status = assemble(user, d->text, sm, &d->cubin, err);
    if (status != PTXGEN_OK)
        return status;
    if (d->cubin.size > CUBIN_MOST_BYTES)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s: the assembler's cubin has %zu bytes, more than the %d of a pack",
                           d->family->name, d->cubin.size, CUBIN_MOST_BYTES);
    status = cubin_check(d->cubin.bytes, d->cubin.size, &why);
    return status == PTXGEN_OK ? status
                               : ptxgen_fail(err, status, "%s: what the assembler gave: %.700s",
                                             d->family->name, why.message);
}

/* Where the key is, or would be; true when it is there. */
static bool find_item(const ptxgen_pack_builder *builder, const struct digest *key, size_t *at)
{
    for (*at = 0; *at < builder->count; ++*at) {
        int order = strcmp(builder->items[*at].record.key.hex, key->hex);
        if (order >= 0)
            return order == 0;
    }
    return false;
}

static ptxgen_status insert(ptxgen_pack_builder *builder, size_t at, const struct draft *d,
                            ptxgen_error *err)
{
    if (builder->count == builder->capacity) {
        size_t capacity = 2 * builder->capacity + 16;
        struct item *items = realloc(builder->items, capacity * sizeof *items);
        if (!items)
            return no_memory(err);
        builder->items = items;
        builder->capacity = capacity;
    }
    struct item item;
    ptxgen_status status = make_item(d, &item, err);
    if (status != PTXGEN_OK)
        return status;
    memmove(&builder->items[at + 1], &builder->items[at],
            (builder->count++ - at) * sizeof *builder->items);
    builder->items[at] = item;
    return PTXGEN_OK;
}

ptxgen_status ptxgen_pack_add(ptxgen_pack_builder *builder, const ptxgen_family *family,
                              const void *spec, const ptxgen_target *target,
                              ptxgen_pack_assembler assemble, void *user, ptxgen_error *err)
{
    size_t at;
    if (!builder || !family || !spec || !target)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_pack_add: builder, family, spec or target is NULL");
    ptxgen_target any_driver = *target;
    any_driver.ptx.max_ptx = 0;
    struct draft *d = calloc(1, sizeof *d);
    if (!d)
        return no_memory(err);
    d->family = family;
    d->target = &any_driver;
    ptxgen_status status = pack_subject_make(family, spec, &any_driver, &d->subject, err);
    if (status == PTXGEN_OK && !find_item(builder, &d->subject.key, &at)) {
        char sm[16];
        snprintf(sm, sizeof sm, "sm_%d%.1s", any_driver.ptx.sm, &any_driver.ptx.suffix);
        status = emit(d, spec, err);
        if (status == PTXGEN_OK && assemble)
            status = assemble_text(d, sm, assemble, user, err);
        if (status == PTXGEN_OK)
            status = insert(builder, at, d, err);
    }
    entry_points_free(&d->entries);
    ptx_module_destroy(d->module);
    ptxgen_cubin_free(&d->cubin);
    free(d->plan);
    free(d);
    return status;
}

/* ---- the whole ---- */

ptxgen_status ptxgen_pack_finish(ptxgen_pack_builder *builder, const void **bytes, size_t *size,
                                 ptxgen_error *err)
{
    if (!builder || !bytes || !size)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_pack_finish: builder, bytes or size is NULL");
    size_t index_bytes = builder->count * PACK_RECORD_BYTES, end = PACK_HEADER_BYTES + index_bytes;
    for (size_t i = 0; i < builder->count; i++) {
        struct pack_record *r = &builder->items[i].record;
        r->offset = end;
        end += (size_t)r->subject_bytes + r->entries_bytes + r->code_bytes + 1;
    }
    unsigned char *pack = realloc(builder->finished, end);
    if (!pack)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a pack of %zu bytes",
                           end);
    builder->finished = pack;
    for (size_t i = 0; i < builder->count; i++) {
        const struct item *item = &builder->items[i];
        size_t next = i + 1 < builder->count ? builder->items[i + 1].record.offset : end;
        pack_record_write(&item->record, pack + PACK_HEADER_BYTES + i * PACK_RECORD_BYTES);
        memcpy(pack + item->record.offset, item->body, next - item->record.offset);
    }
    memcpy(pack, PACK_MAGIC, PACK_MAGIC_BYTES);
    pack_write_u32(pack + 8, PACK_VERSION);
    pack_write_u32(pack + 12, (uint32_t)builder->count);
    pack_write_u64(pack + 16, end);
    memcpy(pack + 24, digest_of(pack + PACK_HEADER_BYTES, index_bytes).hex, DIGEST_HEX);
    *bytes = pack;
    *size = end;
    return PTXGEN_OK;
}
