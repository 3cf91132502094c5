/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/dump.h"
#include "src/runtime/blake2b.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 4096 };

/* "FOLDER/rmsnorm_q4k-0123456789abcdef.ptx"; not of the text, so that an edited one is found. */
static void name_file(char path[PATH_SIZE], const char *folder, const ptxgen_dispatcher *d,
                      const ptxgen_family *family, const void *spec, const char *suffix)
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
    snprintf(path, PATH_SIZE, "%s/%s-%016llx%s", folder, family->name, (unsigned long long)number,
             suffix);
}

static void write_file(const ptxgen_dispatcher *d, const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    bool written = file && fwrite(bytes, 1, size, file) == size;
    if (file)
        written = fclose(file) == 0 && written;
    if (!written)
        dispatcher_log(d, "PTXGEN_DUMP: %s cannot be written: %s", path, strerror(errno));
}

void dump_kernel(const ptxgen_dispatcher *d, const ptxgen_family *family, const void *spec,
                 const char *text, const ptxgen_cubin *cubin, const char *log)
{
    char path[PATH_SIZE];
    mkdir(d->dump_folder, 0700); /* where it exists, all the better */
    if (text) {
        name_file(path, d->dump_folder, d, family, spec, ".ptx");
        write_file(d, path, text, strlen(text));
    }
    if (cubin && cubin->bytes) {
        name_file(path, d->dump_folder, d, family, spec, ".cubin");
        write_file(d, path, cubin->bytes, cubin->size);
    }
    if (log) {
        name_file(path, d->dump_folder, d, family, spec, ".log");
        write_file(d, path, log, strlen(log));
    }
}

static char *read_text(FILE *file)
{
    size_t size = 0, capacity = 65536;
    char *text = malloc(capacity);
    while (text) {
        size += fread(text + size, 1, capacity - size - 1, file);
        if (size < capacity - 1)
            break;
        char *larger = realloc(text, capacity *= 2);
        if (!larger)
            free(text);
        text = larger;
    }
    if (text)
        text[size] = '\0';
    return text;
}

char *override_text(const ptxgen_dispatcher *d, const ptxgen_family *family, const void *spec)
{
    char path[PATH_SIZE];
    name_file(path, d->override_folder, d, family, spec, ".ptx");
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = read_text(file);
    fclose(file);
    if (text)
        dispatcher_log(d, "PTXGEN_OVERRIDE: %s is loaded INSTEAD of what ptxgen emits", path);
    return text;
}
