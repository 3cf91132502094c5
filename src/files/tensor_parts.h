/* SPDX-License-Identifier: Apache-2.0 */
/** The files of one checkpoint, which is one file or several, mapped and parsed. */
#ifndef PTXGEN_FILES_TENSOR_PARTS_H
#define PTXGEN_FILES_TENSOR_PARTS_H

#include "mapped_file.h"

#include <ptxgen/gguf.h>

struct tensor_part {
    char *path;
    struct mapped_file map;
    ptxgen_gguf *gguf; /**< or */
    ptxgen_safetensors *safetensors;
};

struct tensor_parts {
    struct tensor_part *items; /**< of GGUF in the order of split.no, else of their names */
    size_t count;
    ptxgen_tensor_list merged; /**< the tensors of all, where there are several */
    char *missing_index; /**< of a file that is named as one part of several; NULL: none is due */
};

/** What ptxgen_files_open opens; to be closed whether or not it succeeds. */
ptxgen_status tensor_parts_open(const char *path, struct tensor_parts *parts, ptxgen_error *err);
void tensor_parts_close(struct tensor_parts *parts);

#endif
