/* SPDX-License-Identifier: Apache-2.0 */
#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static ptxgen_status map_descriptor(int fd, const char *path, struct mapped_file *file,
                                    ptxgen_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "cannot examine %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s is not a regular file", path);
    if ((uintmax_t)st.st_size > SIZE_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s has %jd bytes, more than can be mapped",
                           path, (intmax_t)st.st_size);
    if (st.st_size == 0)
        return PTXGEN_OK;

    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "cannot map %s: %s", path, strerror(errno));
    file->data = data;
    file->size = (size_t)st.st_size;
    return PTXGEN_OK;
}

ptxgen_status mapped_file_open(const char *path, struct mapped_file *file, ptxgen_error *err)
{
    *file = (struct mapped_file){0};
    /* O_NONBLOCK: opening a pipe must not wait for a writer before it is refused. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "cannot open %s: %s", path, strerror(errno));
    ptxgen_status status = map_descriptor(fd, path, file, err);
    close(fd);
    return status;
}

void mapped_file_close(struct mapped_file *file)
{
    if (file->data)
        munmap((void *)file->data, file->size);
    *file = (struct mapped_file){0};
}
