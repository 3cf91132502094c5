/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/dump.h"
#include "src/runtime/blake2b.h"
#include "src/runtime/cache_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_SIZE = 256, OVERRIDE_MOST_BYTES = 64 << 20 };

/* "rmsnorm_q4k-0123456789abcdef.ptx"; not of the text, so that an edited one is found. */
static void name_file(char name[NAME_SIZE], const ptxgen_dispatcher *d, const ptxgen_family *family,
                      const void *spec, const char *suffix)
{
    char target[80];
    unsigned char digest[8];
    struct blake2b hash;
    int length = snprintf(target, sizeof target, "%u sm_%d %d %d %u %u", family->plan_version,
                          d->target.ptx.sm, d->target.ptx.suffix, d->target.ptx.max_ptx,
                          d->target.multiprocessors, d->target.shared_per_cta);
    blake2b_begin(&hash, sizeof digest);
    blake2b_add(&hash, target, (size_t)length);
    blake2b_add(&hash, spec, family->spec_bytes);
    blake2b_end(&hash, digest);
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof digest; i++)
        number = number << 8 | digest[i];
    snprintf(name, NAME_SIZE, "%s-%016llx%s", family->name, (unsigned long long)number, suffix);
}

/* ---- dumping ---- */

/* A link of that name is replaced, not followed. */
static void write_file(const ptxgen_dispatcher *d, int folder, const char *name, const void *bytes,
                       size_t size)
{
    if (!folder_write(folder, name, bytes, size))
        dispatcher_log(d, "PTXGEN_DUMP: %s/%s cannot be written: %s", d->dump_folder, name,
                       strerror(errno));
}

void dump_kernel(const ptxgen_dispatcher *d, const ptxgen_family *family, const void *spec,
                 const char *text, const ptxgen_cubin *cubin, const char *log)
{
    char name[NAME_SIZE];
    mkdir(d->dump_folder, 0700); /* where it exists, all the better */
    int folder = open(d->dump_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        dispatcher_log(d, "PTXGEN_DUMP: the folder %s cannot be opened: %s", d->dump_folder,
                       strerror(errno));
        return;
    }
    if (text) {
        name_file(name, d, family, spec, ".ptx");
        write_file(d, folder, name, text, strlen(text));
    }
    if (cubin && cubin->bytes) {
        name_file(name, d, family, spec, ".cubin");
        write_file(d, folder, name, cubin->bytes, cubin->size);
    }
    if (log) {
        name_file(name, d, family, spec, ".log");
        write_file(d, folder, name, log, strlen(log));
    }
    close(folder);
}

/* ---- overriding ---- */

/* The text gets executed, so folder and file are to be as the disk cache's are. */
char *override_text(const ptxgen_dispatcher *d, const ptxgen_family *family, const void *spec)
{
    char name[NAME_SIZE];
    struct contents file;
    ptxgen_error err;
    const char *why;
    int folder;
    if (folder_open_trusted("the folder", d->override_folder, &folder, &err) != PTXGEN_OK) {
        dispatcher_log(d, "PTXGEN_OVERRIDE is ignored: %s", err.message);
        return NULL;
    }
    name_file(name, d, family, spec, ".ptx");
    enum reading reading = folder_read(folder, name, OVERRIDE_MOST_BYTES, &file, &why);
    close(folder);
    if (reading == READING_WHOLE)
        dispatcher_log(d, "PTXGEN_OVERRIDE: %s/%s is loaded INSTEAD of what ptxgen emits",
                       d->override_folder, name);
    else if (reading != READING_ABSENT)
        dispatcher_log(d, "PTXGEN_OVERRIDE: %s/%s is not used: %s", d->override_folder, name, why);
    return reading == READING_WHOLE ? file.bytes : NULL;
}
