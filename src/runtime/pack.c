/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a pack: nothing of it is trusted before its checksum and its bounds were checked. */
#include "src/runtime/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct ptxgen_pack {
    const unsigned char *bytes;
    size_t size, count;
    bool is_mapped;
};

/* ---- numbers ---- */

void pack_write_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

void pack_write_u64(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t read_u32(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t read_u64(const unsigned char *at)
{
    return read_u32(at) | (uint64_t)read_u32(at + 4) << 32;
}

static struct digest read_digest(const unsigned char *at)
{
    struct digest digest;
    memcpy(digest.hex, at, DIGEST_HEX);
    digest.hex[DIGEST_HEX] = '\0';
    return digest;
}

/* ---- records ---- */

enum {
    BODY_HASH = DIGEST_HEX,
    OFFSET = 2 * DIGEST_HEX,
    SUBJECT = OFFSET + 8,
    ENTRIES = SUBJECT + 4,
    CODE = ENTRIES + 4,
    CUBIN_SM = CODE + 8
};

void pack_record_write(const struct pack_record *r, unsigned char bytes[PACK_RECORD_BYTES])
{
    memset(bytes, 0, PACK_RECORD_BYTES);
    memcpy(bytes, r->key.hex, DIGEST_HEX);
    memcpy(bytes + BODY_HASH, r->body_hash.hex, DIGEST_HEX);
    pack_write_u64(bytes + OFFSET, r->offset);
    pack_write_u32(bytes + SUBJECT, r->subject_bytes);
    pack_write_u32(bytes + ENTRIES, r->entries_bytes);
    pack_write_u64(bytes + CODE, r->code_bytes);
    pack_write_u32(bytes + CUBIN_SM, r->cubin_sm);
}

static const unsigned char *record_at(const ptxgen_pack *pack, size_t index)
{
    return pack->bytes + PACK_HEADER_BYTES + index * PACK_RECORD_BYTES;
}

static struct pack_record record_of(const ptxgen_pack *pack, size_t index)
{
    const unsigned char *at = record_at(pack, index);
    return (struct pack_record){.key = read_digest(at),
                                .body_hash = read_digest(at + BODY_HASH),
                                .offset = read_u64(at + OFFSET),
                                .subject_bytes = read_u32(at + SUBJECT),
                                .entries_bytes = read_u32(at + ENTRIES),
                                .code_bytes = read_u64(at + CODE),
                                .cubin_sm = read_u32(at + CUBIN_SM)};
}

/* With the NUL behind the code. */
static uint64_t body_bytes(const struct pack_record *r)
{
    return (uint64_t)r->subject_bytes + r->entries_bytes + r->code_bytes + 1;
}

static bool is_within(const ptxgen_pack *pack, const struct pack_record *r)
{
    return r->subject_bytes <= PACK_MOST_SUBJECT && r->entries_bytes <= MANIFEST_MOST_BYTES &&
           r->code_bytes <= CUBIN_MOST_BYTES && r->offset <= pack->size &&
           body_bytes(r) <= pack->size - r->offset;
}

/* Bounds again: a file that is written while it is mapped has another index now. */
static bool body_is_whole(const ptxgen_pack *pack, const struct pack_record *r)
{
    return is_within(pack, r) &&
           strcmp(digest_of(pack->bytes + r->offset, body_bytes(r)).hex, r->body_hash.hex) == 0 &&
           pack->bytes[r->offset + body_bytes(r) - 1] == '\0' &&
           strcmp(digest_of(pack->bytes + r->offset, r->subject_bytes).hex, r->key.hex) == 0;
}

/* ---- opening ---- */

static ptxgen_status check_index(const ptxgen_pack *pack, ptxgen_error *err)
{
    for (size_t i = 0; i < pack->count; i++) {
        struct pack_record r = record_of(pack, i);
        if (!is_within(pack, &r))
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "the pack's kernel %zu does not lie within its %zu bytes", i,
                               pack->size);
        if (i && memcmp(record_at(pack, i - 1), record_at(pack, i), DIGEST_HEX) >= 0)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "the pack's kernels %zu and %zu are not by rising keys", i - 1, i);
    }
    return PTXGEN_OK;
}

static ptxgen_status check(ptxgen_pack *pack, ptxgen_error *err)
{
    const unsigned char *at = pack->bytes;
    if (pack->size < PACK_HEADER_BYTES || memcmp(at, PACK_MAGIC, PACK_MAGIC_BYTES) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "a pack begins with \"" PACK_MAGIC "\" and %d bytes of header",
                           PACK_HEADER_BYTES);
    if (read_u32(at + 8) != PACK_VERSION)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "the pack has format version %u, this library reads version %d",
                           read_u32(at + 8), PACK_VERSION);
    if (read_u64(at + 16) != pack->size)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "the pack has %zu bytes, but its header says %llu", pack->size,
                           (unsigned long long)read_u64(at + 16));
    pack->count = read_u32(at + 12);
    if (pack->count > (pack->size - PACK_HEADER_BYTES) / PACK_RECORD_BYTES)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "the pack's %zu bytes cannot hold an index of %zu kernels", pack->size,
                           pack->count);
    struct digest index = digest_of(record_at(pack, 0), pack->count * PACK_RECORD_BYTES);
    if (strcmp(index.hex, read_digest(at + 24).hex) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "the pack's index has the wrong checksum");
    return check_index(pack, err);
}

ptxgen_status ptxgen_pack_read(const void *bytes, size_t size, ptxgen_pack **pack,
                               ptxgen_error *err)
{
    if (!pack || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_pack_read: bytes or pack is NULL");
    *pack = NULL;
    ptxgen_pack *made = malloc(sizeof *made);
    if (!made)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a pack");
    *made = (ptxgen_pack){.bytes = bytes, .size = size};
    ptxgen_status status = check(made, err);
    if (status == PTXGEN_OK)
        *pack = made;
    else
        free(made);
    return status;
}

static ptxgen_status map_file(const char *path, void **bytes, size_t *size, ptxgen_error *err)
{
    struct stat facts;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ptxgen_status status = PTXGEN_OK;
    *bytes = MAP_FAILED;
    if (file < 0 || fstat(file, &facts) < 0)
        status = ptxgen_fail(err, PTXGEN_ERROR_FILE, "the pack %s cannot be opened: %s", path,
                             strerror(errno));
    else if (!S_ISREG(facts.st_mode) || !facts.st_size)
        status = ptxgen_fail(err, PTXGEN_ERROR_FILE, "the pack %s is %s", path,
                             S_ISREG(facts.st_mode) ? "empty" : "no regular file");
    if (status == PTXGEN_OK) {
        *size = (size_t)facts.st_size;
        *bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0);
        if (*bytes == MAP_FAILED)
            status = ptxgen_fail(err, PTXGEN_ERROR_FILE, "the pack %s cannot be mapped: %s", path,
                                 strerror(errno));
    }
    if (file >= 0)
        close(file);
    return status;
}

ptxgen_status ptxgen_pack_open(const char *path, ptxgen_pack **pack, ptxgen_error *err)
{
    void *bytes;
    size_t size;
    if (!path || !pack)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_pack_open: path or pack is NULL");
    *pack = NULL;
    ptxgen_status status = map_file(path, &bytes, &size, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_error why;
    status = ptxgen_pack_read(bytes, size, pack, &why);
    if (status != PTXGEN_OK) {
        munmap(bytes, size);
        return ptxgen_fail(err, status, "%.300s: %.600s", path, why.message);
    }
    (*pack)->is_mapped = true;
    return PTXGEN_OK;
}

void ptxgen_pack_close(ptxgen_pack *pack)
{
    if (!pack)
        return;
    if (pack->is_mapped)
        munmap((void *)(uintptr_t)pack->bytes, pack->size);
    free(pack);
}

/* ---- looking ---- */

size_t ptxgen_pack_count(const ptxgen_pack *pack)
{
    return pack ? pack->count : 0;
}

bool ptxgen_pack_at(const ptxgen_pack *pack, size_t index, ptxgen_pack_entry *entry)
{
    if (!pack || !entry || index >= pack->count)
        return false;
    struct pack_record r = record_of(pack, index);
    if (!is_within(pack, &r))
        return false;
    *entry = (ptxgen_pack_entry){.subject = (const char *)pack->bytes + r.offset,
                                 .subject_bytes = r.subject_bytes,
                                 .code_bytes = r.code_bytes,
                                 .cubin_sm = (int)r.cubin_sm};
    return true;
}

ptxgen_status ptxgen_pack_verify(const ptxgen_pack *pack, ptxgen_error *err)
{
    if (!pack)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "ptxgen_pack_verify: pack is NULL");
    for (size_t i = 0; i < pack->count; i++) {
        struct pack_record r = record_of(pack, i);
        if (!body_is_whole(pack, &r))
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "the pack's kernel %zu has the wrong checksum", i);
    }
    return PTXGEN_OK;
}

ptxgen_status pack_subject_make(const ptxgen_family *family, const void *spec,
                                const ptxgen_target *target, struct keyed_text *subject,
                                ptxgen_error *err)
{
    char revision[DIGEST_HEX + 1] = "none, of ptxgen " PTXGEN_VERSION;
    struct text text = {.at = subject->text, .size = PACK_MOST_SUBJECT};
    ptxgen_target any_driver = *target;
    any_driver.ptx.max_ptx = 0;
    if (family->revision && strlen(family->revision) >= sizeof revision)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: a revision of %zu characters, more than the %d of a hash",
                           family->name, strlen(family->revision), DIGEST_HEX);
    if (family->revision)
        strcpy(revision, family->revision);
    make_printable(revision);
    text_add(&text, "revision: %s\n", revision);
    if (!manifest_subject(family, spec, &any_driver, &text))
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a kernel of a pack");
    if (text.is_cut)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s: the spec of %zu bytes is too long for a key of a pack",
                           family->name, family->spec_bytes);
    subject->length = text.used;
    subject->key = digest_of(subject->text, subject->length);
    return PTXGEN_OK;
}

static bool find_record(const ptxgen_pack *pack, const struct digest *key, struct pack_record *r)
{
    size_t low = 0, high = pack->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(record_at(pack, middle), key->hex, DIGEST_HEX);
        if (!order) {
            *r = record_of(pack, middle);
            return true;
        }
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return false;
}

/* Cuts the names out of a copy of the lines; false when they are no such lines. */
static bool read_entries(char *lines, struct entry_points *entries)
{
    size_t count = 0;
    for (const char *at = lines; (at = strchr(at, '\n')); at++)
        count++;
    entries->names = lines;
    entries->points = calloc(count + 1, sizeof *entries->points);
    while (entries->points && *lines) {
        char *comma = strchr(lines, ','), *end = strchr(lines, '\n'), *stop;
        if (!comma || !end || comma > end)
            return false;
        *comma = '\0';
        entries->points[entries->count++] =
            (struct entry_point){lines, strtoull(comma + 1, &stop, 10)};
        lines = end + 1;
    }
    return entries->points != NULL;
}

bool pack_find(const ptxgen_pack *pack, const struct digest *key, struct pack_code *found,
               const char **why)
{
    struct pack_record r;
    *why = NULL;
    if (!find_record(pack, key, &r))
        return false;
    if (!body_is_whole(pack, &r)) {
        *why = "it has the wrong checksum";
        return false;
    }
    const char *body = (const char *)pack->bytes + r.offset;
    char *lines = strndup(body + r.subject_bytes, r.entries_bytes);
    *found = (struct pack_code){.code = body + r.subject_bytes + r.entries_bytes,
                                .bytes = r.code_bytes,
                                .cubin_sm = (int)r.cubin_sm};
    if (!lines || !read_entries(lines, &found->entries)) {
        entry_points_free(&found->entries);
        *why = lines ? "its entries cannot be read" : "there is no memory for it";
        return false;
    }
    return true;
}
