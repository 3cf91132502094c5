/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes through the reader of packs, as they are and with a header's size and checksum put
 * right, so that records that lie get past them; of what is accepted, every kernel is looked at.
 */
#include "fuzz.h"

#include "src/runtime/pack.h"

static void check(const uint8_t *data, size_t size)
{
    ptxgen_pack *pack;
    ptxgen_pack_entry entry;
    ptxgen_error err = {0};
    ptxgen_status status = ptxgen_pack_read(data, size, &pack, &err);
    fuzz_check_outcome(status, &err, pack);
    for (size_t i = 0; ptxgen_pack_at(pack, i, &entry); i++) {
        struct pack_code found;
        const char *why;
        struct digest key = digest_of(entry.subject, entry.subject_bytes);
        fuzz_touch(entry.subject, entry.subject_bytes);
        if (pack_find(pack, &key, &found, &why)) {
            fuzz_touch(found.code, found.bytes + 1);
            for (unsigned e = 0; e < found.entries.count; e++)
                fuzz_touch(found.entries.points[e].name, strlen(found.entries.points[e].name));
            entry_points_free(&found.entries);
        }
    }
    ptxgen_pack_verify(pack, &err);
    ptxgen_pack_close(pack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size);
    if (size < PACK_HEADER_BYTES)
        return 0;
    uint8_t *right = malloc(size);
    if (!right)
        return 0;
    memcpy(right, data, size);
    size_t most = (size - PACK_HEADER_BYTES) / PACK_RECORD_BYTES, count = right[12];
    pack_write_u32(right + 12, (uint32_t)(count < most ? count : most));
    pack_write_u64(right + 16, size);
    memcpy(
        right + 24,
        digest_of(right + PACK_HEADER_BYTES, (count < most ? count : most) * PACK_RECORD_BYTES).hex,
        DIGEST_HEX);
    check(right, size);
    free(right);
    return 0;
}
