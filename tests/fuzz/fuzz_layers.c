/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file, of which every layer of every kind is asked for, and viewed. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <ptxgen/linear.h>

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_part(const ptxgen_files *files, const ptxgen_tensor *part)
{
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(files);
    if (part && (part < tensors->items || part >= tensors->items + tensors->count))
        abort();
}

/* What describes the views reads their shapes, and zero points and orders of checkpoints. */
static void view(const ptxgen_layer *layer)
{
    ptxgen_w4_checkpoint checkpoint;
    ptxgen_w4_info info;
    ptxgen_marlin_spec spec = {.k = 0};
    ptxgen_marlin_packed packed;
    ptxgen_sparse24_weights weights;
    ptxgen_error err;
    if (layer->form == PTXGEN_LAYER_PACKED &&
        ptxgen_marlin_packed_from_layer(layer, &spec, &packed, &err) == PTXGEN_OK) {
        fuzz_touch(packed.codes, packed.codes_bytes);
        fuzz_touch(packed.scales, packed.scales_bytes);
    } else if (layer->kind == PTXGEN_LAYER_W4 &&
               ptxgen_w4_from_layer(layer, &checkpoint, &err) == PTXGEN_OK) {
        ptxgen_w4_describe(&checkpoint, &info, &err);
    } else if (layer->kind == PTXGEN_LAYER_SPARSE24 &&
               ptxgen_sparse24_from_layer(layer, &weights, &err) == PTXGEN_OK &&
               !weights.dense.bytes) {
        ptxgen_sparse24_validate(&weights.shape, weights.values, weights.form, weights.metadata,
                                 &err);
    }
}

static void ask(const ptxgen_files *files, const char *name)
{
    for (int kind = PTXGEN_LAYER_ANY; kind <= PTXGEN_LAYER_FLOATS; kind++) {
        const ptxgen_layer_choice choice = {.kind = (ptxgen_layer_kind)kind};
        ptxgen_layer layer;
        ptxgen_error err = {0};
        ptxgen_status status = ptxgen_files_layer(files, name, &choice, &layer, &err);
        fuzz_check_outcome(status, &err, layer.parts[PTXGEN_LAYER_WEIGHT]);
        for (int i = 0; i < PTXGEN_LAYER_PARTS; i++)
            check_part(files, layer.parts[i]);
        if (status == PTXGEN_OK)
            view(&layer);
    }
}

static void ask_of_all(const ptxgen_files *files)
{
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(files);
    for (size_t i = 0; i < tensors->count && i < 32; i++) {
        char name[64];
        ask(files, tensors->items[i].name);
        if (ptxgen_files_layer_of(files, &tensors->items[i], name, sizeof name))
            ask(files, name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ptxgen_files *files;
    ptxgen_error err = {0};
    char path[64];
    int fd = memfd_create("layers", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (ptxgen_files_open(path, &files, &err) == PTXGEN_OK)
        ask_of_all(files);
    ptxgen_files_close(files);
    close(fd);
    return 0;
}
