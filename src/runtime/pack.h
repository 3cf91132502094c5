/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of a pack. All numbers are little-endian, and offsets count from the pack's first
 * byte.
 *
 *     header   magic "ptxgenPK", u32 version, u32 count, u64 bytes of the pack, hash of the index
 *     index    a record for each kernel, by rising key
 *     bodies   of each kernel: subject, entries, code, and a NUL behind it
 *
 * A record: key (hash of the subject), hash of the body, u64 offset of the body, u32 bytes of the
 * subject, u32 bytes of the entries, u64 bytes of the code, u32 architecture of a cubin or 0, u32
 * 0. Hashes are BLAKE2b of 256 bits, in hexadecimal. The entries are lines "NAME, N shared bytes".
 */
#ifndef PTXGEN_RUNTIME_PACK_H
#define PTXGEN_RUNTIME_PACK_H

#include "src/runtime/loaded.h"
#include "src/runtime/manifest.h"

#include <ptxgen/pack.h>
#include <ptxgen/version.h>

#define PACK_MAGIC "ptxgenPK"
enum {
    PACK_VERSION = 1,
    PACK_MAGIC_BYTES = 8,
    PACK_HEADER_BYTES = 24 + DIGEST_HEX,
    PACK_RECORD_BYTES = 2 * DIGEST_HEX + 32,
    PACK_MOST_SUBJECT = MANIFEST_MOST_BYTES / 2
};

/* A kernel's record, with its body in the pack. */
struct pack_record {
    struct digest key, body_hash;
    uint64_t offset, code_bytes;
    uint32_t subject_bytes, entries_bytes, cubin_sm;
};
void pack_record_write(const struct pack_record *record, unsigned char bytes[PACK_RECORD_BYTES]);

void pack_write_u32(unsigned char *at, uint32_t value);
void pack_write_u64(unsigned char *at, uint64_t value);

/*
 * What a kernel is made for, and its key. The driver's version does not count, so the target's
 * limit of the PTX version is left out. PTXGEN_ERROR_UNSUPPORTED when it is too long,
 * PTXGEN_ERROR_INVALID_ARGUMENT for a revision that is no hash.
 */
ptxgen_status pack_subject_make(const ptxgen_family *family, const void *spec,
                                const ptxgen_target *target, struct keyed_text *subject,
                                ptxgen_error *err);

/* A kernel that was found: code that ends with a NUL, and entries, whose names are freed by the
 * caller. */
struct pack_code {
    const char *code;
    size_t bytes;
    int cubin_sm;
    struct entry_points entries;
};
/*
 * Finds the key's kernel and checks it. Returns false without one; *why is then NULL, or the reason
 * why the one that is there is not used.
 */
bool pack_find(const ptxgen_pack *pack, const struct digest *key, struct pack_code *found,
               const char **why);

#endif
