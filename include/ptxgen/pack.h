/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Packs: kernels that were made ahead of time, in one file, for programs without a cache folder.
 *
 * A pack holds the code of a list of specs for named chips: cubins where an assembler was given,
 * else PTX texts, which the driver assembles when they are loaded. A dispatcher that is given packs
 * looks there first, before the disk cache and before it emits: in containers, on read-only
 * systems, and where start-up must not compile.
 *
 *     ptxgen_pack *pack;                                   // made by `ptxgen pack`
 *     if (ptxgen_pack_open("kernels.pack", &pack, &err) != PTXGEN_OK)
 *         return report(&err);
 *     const ptxgen_dispatch_options options = {.packs = &pack, .pack_count = 1, .no_cache = true};
 *     ptxgen_dispatcher_create(&driver, &options, &dispatcher, &err);
 *     …                                                    // dispatch as always
 *     ptxgen_dispatcher_destroy(dispatcher);
 *     ptxgen_pack_close(pack);
 *
 * What is found. A kernel of a pack serves a dispatch whose family, plan version, spec and target
 * (architecture, multiprocessors and shared memory of the chip, but not the driver's version) are
 * those that it was made for, by the same sources of this library (ptxgen_family.revision; a family
 * without a revision must raise its plan_version with every change). Anything else is compiled as
 * without packs, as is what does not load; the dispatcher's log says why. Stored tiles (tune.h) do
 * not apply to kernels of packs. A dispatcher with max_registers, line_info or a dump folder does
 * not look into its packs, and an override goes before them.
 *
 * The file is position-independent: bytes in memory serve as well as a file. It has a checksum for
 * its index and one for each kernel; the index is checked when the pack is opened, a kernel when it
 * is loaded. Code in a pack is executed on the GPU, so take packs only from where you take
 * programs.
 *
 * Lifetime: a pack outlives the dispatchers that were given it. Threads: a pack is only read, so
 * any number of threads and dispatchers may share it; a builder belongs to one thread at a time.
 * Errors: a status and a sentence; *pack and *builder are NULL after a failure.
 */
#ifndef PTXGEN_PACK_H
#define PTXGEN_PACK_H

#include <ptxgen/family.h>
#include <ptxgen/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ptxgen_pack ptxgen_pack;

/**
 * Maps a file. Errors: PTXGEN_ERROR_FILE when it cannot be opened or mapped, and those of
 * ptxgen_pack_read. A file that another process shortens meanwhile faults on access, so replace
 * packs that are in use by renaming, not by writing.
 */
PTXGEN_API ptxgen_status ptxgen_pack_open(const char *path, ptxgen_pack **pack, ptxgen_error *err);
/**
 * Reads a pack in memory. The bytes are borrowed, may start at any address, and must outlive the
 * pack. Errors: PTXGEN_ERROR_MALFORMED for what is no pack, is cut or has a wrong checksum,
 * PTXGEN_ERROR_UNSUPPORTED for a pack of another format version.
 */
PTXGEN_API ptxgen_status ptxgen_pack_read(const void *bytes, size_t size, ptxgen_pack **pack,
                                          ptxgen_error *err);
/** NULL does nothing. */
PTXGEN_API void ptxgen_pack_close(ptxgen_pack *pack);

/** One kernel of a pack. */
typedef struct ptxgen_pack_entry {
    /**
     * What it was made for, as lines: "revision: …", "family: …", "spec: …", "bytes: …" and
     * "target: …". Not NUL-terminated; valid as long as the pack.
     */
    const char *subject;
    size_t subject_bytes;
    size_t code_bytes;
    int cubin_sm; /**< the architecture of a cubin, as 90; 0: the code is a PTX text */
} ptxgen_pack_entry;

PTXGEN_API size_t ptxgen_pack_count(const ptxgen_pack *pack);
/** Entry `index`; false past the last. */
PTXGEN_API bool ptxgen_pack_at(const ptxgen_pack *pack, size_t index, ptxgen_pack_entry *entry);
/** Checks every kernel's checksum: PTXGEN_ERROR_MALFORMED for the first that is damaged. */
PTXGEN_API ptxgen_status ptxgen_pack_verify(const ptxgen_pack *pack, ptxgen_error *err);

/* ---- making one ---- */

typedef struct ptxgen_pack_builder ptxgen_pack_builder;

PTXGEN_API ptxgen_status ptxgen_pack_builder_create(ptxgen_pack_builder **builder,
                                                    ptxgen_error *err);
/** NULL does nothing. */
PTXGEN_API void ptxgen_pack_builder_destroy(ptxgen_pack_builder *builder);

/**
 * Assembles a text for an architecture, as "sm_90a": fills *cubin, whose bytes are malloc'ed and
 * become the builder's.
 */
typedef ptxgen_status (*ptxgen_pack_assembler)(void *user, const char *ptx, const char *sm,
                                               ptxgen_cubin *cubin, ptxgen_error *err);

/**
 * Plans and emits a spec for a target, whose limit of the PTX version is ignored, and adds the
 * code: the cubin that `assemble` makes, or the text where that is NULL. A spec and target that
 * were added before are left as they are. Errors: a refusal by the family or the builder, that of
 * `assemble`, PTXGEN_ERROR_MALFORMED for what is no cubin of those that it gave,
 * PTXGEN_ERROR_UNSUPPORTED for a cubin, a spec or names of entries that are too long for a pack,
 * PTXGEN_ERROR_INVALID_ARGUMENT for a revision longer than a hash, PTXGEN_ERROR_OUT_OF_MEMORY; the
 * builder is then as it was.
 */
PTXGEN_API ptxgen_status ptxgen_pack_add(ptxgen_pack_builder *builder, const ptxgen_family *family,
                                         const void *spec, const ptxgen_target *target,
                                         ptxgen_pack_assembler assemble, void *user,
                                         ptxgen_error *err);
/**
 * The finished pack, whose bytes depend on nothing but what was added. The bytes belong to the
 * builder, and are valid until the next call with it.
 */
PTXGEN_API ptxgen_status ptxgen_pack_finish(ptxgen_pack_builder *builder, const void **bytes,
                                            size_t *size, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
