/* SPDX-License-Identifier: Apache-2.0 */
#include "emitted.h"
#include "status.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *text_of_module(ptx_module *module, ptxgen_status emitted, const ptxgen_error *err)
{
    ptxgen_error reading = {0};
    const char *text = NULL;
    assert_non_null(module);
    assert_ok(emitted, err);
    assert_ok(ptx_module_text(module, 0, &text, NULL, &reading), &reading);
    char *copy = strdup(text);
    ptx_module_destroy(module);
    return copy;
}

void assert_declares(const ptx_module *module, uint32_t index, struct declared wanted)
{
    ptx_kernel_info info;
    assert_int_equal(ptx_module_kernel_info(module, index, &info), PTXGEN_OK);
    assert_string_equal(info.name, wanted.name);
    assert_int_equal(info.threads, wanted.threads);
    assert_int_equal(info.static_shared_bytes + info.dynamic_shared_bytes, wanted.shared_bytes);
    assert_int_equal(info.dynamic_shared_bytes, wanted.dynamic_shared_bytes);
}

const char *ptxas_path(void)
{
    return PTXAS;
}

void skip_without_ptxas(void)
{
    if (*PTXAS)
        return;
    print_message("no ptxas: nothing was assembled\n");
    skip();
}

/* The number that ends where `end` starts; 0 where it is not in the line. */
static unsigned number_before(const char *line, const char *end)
{
    const char *at = strstr(line, end);
    while (at && at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? (unsigned)strtoul(at, NULL, 10) : 0;
}

static void read_line(const char *line, struct assembled *a)
{
    a->serialised += strstr(line, "wgmma.mma_async instructions are serialized") != NULL;
    struct assembled_entry *last = a->count ? &a->entries[a->count - 1] : NULL;
    if (strstr(line, "Compiling entry function")) {
        assert_in_range(a->count, 0, sizeof a->entries / sizeof *a->entries - 1);
        assert_int_equal(sscanf(strchr(line, '\''), "'%63[^']'", a->entries[a->count++].name), 1);
    } else if (last && strstr(line, "bytes stack frame")) {
        last->stack_bytes = number_before(line, " bytes stack frame");
        last->spilled_bytes =
            number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    } else if (last && strstr(line, "Used")) {
        last->registers = number_before(line, " registers");
        last->static_shared_bytes = number_before(line, " bytes smem");
    }
}

/* Whether ptxas took the file; what it says is read, and shown where it did not. */
static bool assemble(const char *path, const char *target_name, struct assembled *a)
{
    char command[512], line[512], shown[4096] = "";
    snprintf(command, sizeof command, "'%s' -arch=%s -v -o /dev/null %s 2>&1", PTXAS, target_name,
             path);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    while (fgets(line, sizeof line, out)) {
        read_line(line, a);
        strncat(shown, line, sizeof shown - strlen(shown) - 1);
    }
    if (pclose(out) == 0)
        return true;
    print_error("%s", shown);
    return false;
}

struct assembled assert_assembles_without_spills(const char *text, const char *target_name)
{
    char path[] = "/tmp/ptxgen-text-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    bool written = fputs(text, file) >= 0;
    written = !fclose(file) && written;
    struct assembled a = {.count = 0};
    bool taken = written && assemble(path, target_name, &a);
    unlink(path);
    if (!taken)
        fail_msg("not assembled for %s", target_name);
    assert_true(a.count > 0);
    if (a.serialised)
        fail_msg("for %s ptxas serialises the wgmmas of %u entries", target_name, a.serialised);
    for (size_t i = 0; i < a.count; i++) {
        assert_in_range(a.entries[i].registers, 1, 255);
        if (a.entries[i].stack_bytes || a.entries[i].spilled_bytes)
            fail_msg("%s for %s: %u bytes of stack, %u spilled", a.entries[i].name, target_name,
                     a.entries[i].stack_bytes, a.entries[i].spilled_bytes);
    }
    return a;
}
