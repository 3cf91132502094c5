/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_folder.h"

#include "part_name.h"
#include "printable.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum rank { INDEX, WHOLE, LONELY_PART, NONE };

/* The best file that was found, and another of its rank. */
struct choice {
    enum rank rank;
    char *name, *other;
};

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name), tail = strlen(suffix);
    return length > tail && !strcmp(name + length - tail, suffix);
}

/* Parts of safetensors are found by their index, those of GGUF by the first of them. */
static enum rank rank_of(const char *name)
{
    struct part_name part;
    if (ends_with(name, ".safetensors.index.json"))
        return INDEX;
    if (part_name_read(name, ".gguf", &part))
        return part.number == 1 ? WHOLE : NONE;
    if (part_name_read(name, ".safetensors", &part) && part.count > 1)
        return LONELY_PART;
    return ends_with(name, ".safetensors") || ends_with(name, ".gguf") ? WHOLE : NONE;
}

static bool consider(struct choice *choice, const char *name)
{
    enum rank rank = rank_of(name);
    if (rank == NONE || rank > choice->rank)
        return true;
    if (rank < choice->rank) {
        free(choice->name);
        free(choice->other);
        *choice = (struct choice){.rank = rank};
    }
    char **to = choice->name ? &choice->other : &choice->name;
    if (!*to)
        *to = strdup(name);
    return *to != NULL;
}

static ptxgen_status scan(const char *path, struct choice *choice, ptxgen_error *err)
{
    DIR *folder = opendir(path);
    struct dirent *entry = NULL;
    bool have = true;
    if (!folder)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "cannot open %s: %s", path, strerror(errno));
    for (errno = 0; have && (entry = readdir(folder)) != NULL; errno = 0)
        have = entry->d_name[0] == '.' || consider(choice, entry->d_name);
    int reason = errno;
    closedir(folder);
    if (!have)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to read folder %s", path);
    return reason
               ? ptxgen_fail(err, PTXGEN_ERROR_FILE, "cannot read %s: %s", path, strerror(reason))
               : PTXGEN_OK;
}

static ptxgen_status choose(const char *path, const struct choice *choice, char **file,
                            ptxgen_error *err)
{
    if (choice->rank == NONE)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                           "%s is a folder without a safetensors or GGUF file", path);
    if (choice->rank == LONELY_PART)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                           "%s has a part of a checkpoint, %s, but no *.safetensors.index.json",
                           path, printable(choice->name, strlen(choice->name)).text);
    if (choice->other)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s has several files that could be meant, %s and %s among them; say "
                           "which",
                           path, printable(choice->name, strlen(choice->name)).text,
                           printable(choice->other, strlen(choice->other)).text);
    size_t size = strlen(path) + 1 + strlen(choice->name) + 1;
    *file = malloc(size);
    if (!*file)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to open %s", path);
    snprintf(*file, size, "%s/%s", path, choice->name);
    return PTXGEN_OK;
}

ptxgen_status tensor_folder_resolve(const char *path, char **file, ptxgen_error *err)
{
    struct choice choice = {.rank = NONE};
    struct stat st;
    *file = NULL;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        *file = strdup(path);
        return *file ? PTXGEN_OK
                     : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to open %s", path);
    }
    ptxgen_status status = scan(path, &choice, err);
    if (status == PTXGEN_OK)
        status = choose(path, &choice, file, err);
    free(choice.name);
    free(choice.other);
    return status;
}
