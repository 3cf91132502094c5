/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_library.h"

#include <dlfcn.h>
#include <stdio.h>

bool bench_library_open(struct bench_library *library, const char *path, const char *const *names,
                        char *why, size_t size)
{
    *library = (struct bench_library){.name = path};
    if (path)
        library->handle = dlopen(path, RTLD_NOW);
    for (; !path && !library->handle && *names; names++) {
        library->name = *names;
        library->handle = dlopen(*names, RTLD_NOW);
    }
    if (!library->handle)
        snprintf(why, size, "not found (%s)", dlerror());
    return library->handle;
}

/* ISO C has no cast between an object's address and a function's. */
bool bench_library_find(const struct bench_library *library, const struct bench_symbol *symbols,
                        size_t count, char *why, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        void **slot = symbols[i].function;
        *slot = dlsym(library->handle, symbols[i].name);
        if (!*slot) {
            snprintf(why, size, "the library has no %s", symbols[i].name);
            return false;
        }
    }
    return true;
}

void bench_library_close(struct bench_library *library)
{
    if (library->handle)
        dlclose(library->handle);
    library->handle = NULL;
}
