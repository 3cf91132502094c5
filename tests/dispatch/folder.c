/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "folder.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void need(int right, const char *what, const char *path)
{
    if (right)
        return;
    perror(path);
    fprintf(stderr, "%s %s failed\n", what, path);
    abort();
}

void folder_make(char path[FOLDER_PATH])
{
    const char *below = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, FOLDER_PATH, "%s/ptxgen-test.XXXXXX", below);
    need(mkdtemp(path) != NULL, "making", path);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

void folder_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

size_t folder_count(const char *path, const char *prefix)
{
    size_t count = 0;
    DIR *files = opendir(path);
    for (struct dirent *file; files && (file = readdir(files));)
        count += strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0 &&
                 strncmp(file->d_name, prefix, strlen(prefix)) == 0;
    if (files)
        closedir(files);
    return count;
}

_Bool folder_find(const char *path, const char *suffix, char found[FOLDER_PATH])
{
    struct dirent **files;
    int count = scandir(path, &files, NULL, alphasort);
    _Bool is_found = 0;
    for (int i = 0; i < count; i++) {
        size_t length = strlen(files[i]->d_name), tail = strlen(suffix);
        if (!is_found && length >= tail && strcmp(files[i]->d_name + length - tail, suffix) == 0) {
            is_found = 1;
            snprintf(found, FOLDER_PATH, "%s/%.200s", path, files[i]->d_name);
        }
        free(files[i]);
    }
    if (count >= 0)
        free(files);
    return is_found;
}

char *file_read(const char *path, size_t *size)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    need(file && fstat(fileno(file), &status) == 0, "reading", path);
    *size = (size_t)status.st_size;
    char *bytes = malloc(*size + 1);
    need(bytes && fread(bytes, 1, *size, file) == *size, "reading", path);
    bytes[*size] = '\0';
    fclose(file);
    return bytes;
}

void file_write(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    need(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0, "writing", path);
}
