/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every file of a corpus folder through a fuzz target, without libFuzzer. */
#include "fuzz.h"

#include "src/files/mapped_file.h"

#include <dirent.h>
#include <stdio.h>

/* The copy is exactly as long as the file: a sanitizer guards its end, which a map does not. */
static int replay_file(const char *path)
{
    struct mapped_file map;
    ptxgen_error err;
    if (mapped_file_open(path, &map, &err) != PTXGEN_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    uint8_t *copy = malloc(map.size ? map.size : 1);
    if (!copy)
        return 1;
    if (map.size)
        memcpy(copy, map.data, map.size);
    LLVMFuzzerTestOneInput(copy, map.size);
    free(copy);
    mapped_file_close(&map);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    DIR *folder = opendir(argv[1]);
    if (!folder) {
        perror(argv[1]);
        return 1;
    }
    int failed = 0;
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        failed |= replay_file(path);
        count++;
    }
    closedir(folder);
    printf("%u files\n", count);
    return failed || count == 0;
}
