/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest of a cache entry. Its head says what the machine code was made from, its hash is the
 * entry's key; its tail says what was made.
 */
#ifndef PTXGEN_RUNTIME_MANIFEST_H
#define PTXGEN_RUNTIME_MANIFEST_H

#include "src/runtime/blake2b.h"

#include <ptxgen/driver.h>
#include <ptxgen/family.h>
#include <ptxgen/kernel.h>

#include <stdbool.h>

enum { MANIFEST_MOST_BYTES = 16384, CUBIN_MOST_BYTES = 256 << 20 };

/* Who assembles, on what, and how: the lines "device:", "driver:" and "options:". */
struct assembler {
    size_t length; /* 0: not known, and nothing is kept */
    char lines[512];
};
void assembler_read(const ptxgen_driver *driver, ptxgen_cu_device device, int max_registers,
                    bool line_info, struct assembler *assembler);

/* What machine code is made from but for the text, as lines: what heads and memos share. */
struct origin {
    size_t length;
    char lines[MANIFEST_MOST_BYTES / 2 - 256];
};

/* A text that its hash names: the head of a manifest, or the question of a memo. */
struct keyed_text {
    struct digest key;
    size_t length;
    char text[MANIFEST_MOST_BYTES / 2];
};

/* The hash of a PTX text, and its length. */
struct ptx_digest {
    struct digest digest;
    size_t bytes;
};

/* A text that grows in its buffer, as long as whole pieces fit. It ends with a NUL. */
struct text {
    char *at;
    size_t size, used;
    bool is_cut; /* a piece did not fit, and nothing was added from then on */
};
void text_add(struct text *text, const char *format, ...) PTXGEN_PRINTF(2, 3);

/*
 * Adds the lines "family:", "spec:", "bytes:" and "target:". False without memory for them; is_cut
 * is then set too.
 */
bool manifest_subject(const ptxgen_family *family, const void *spec, const ptxgen_target *target,
                      struct text *to);
/* Names come from elsewhere: a line stays a line. */
void make_printable(char *text);

/* The last line of a text, "LABEL: " and the hash of all that is before it. */
enum { CHECKSUM_MOST_LENGTH = 16 + DIGEST_HEX };
/* Appends it to `used` bytes, with CHECKSUM_MOST_LENGTH free after them; returns the new length. */
size_t checksum_append(char *text, size_t used, const char *label);
/*
 * True when the text, which is NUL-terminated, ends with the right checksum; subtracts the length
 * of the checksum from *length.
 */
bool checksum_remove(const char *text, size_t *length, const char *label);

/* False when it cannot be written, as with a spec of kilobytes: such code is not kept. */
bool origin_make(const ptxgen_family *family, const void *spec, const ptxgen_target *target,
                 const struct assembler *assembler, struct origin *origin);
void manifest_head_make(const struct origin *origin, const struct ptx_digest *ptx,
                        struct keyed_text *head);
/* Adds "ptx: …", the last line of a head. */
void ptx_line_add(struct text *to, const struct ptx_digest *ptx);

/* The whole manifest for this cubin; malloc'ed; NULL without memory. */
char *manifest_make(const struct keyed_text *head, const ptxgen_cubin *cubin);

/* What the tail promises. */
struct manifest_tail {
    size_t head_length;
    struct digest cubin;
    size_t cubin_bytes;
};
/* False when the text is not, to the byte, what manifest_make writes, or a checksum is wrong. */
bool manifest_read(const char *text, size_t length, struct manifest_tail *tail);

#endif
