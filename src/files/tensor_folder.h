/* SPDX-License-Identifier: Apache-2.0 */
/** The file that a folder of a checkpoint is read from. */
#ifndef PTXGEN_FILES_TENSOR_FOLDER_H
#define PTXGEN_FILES_TENSOR_FOLDER_H

#include <ptxgen/status.h>

/**
 * The path itself unless it is a folder; of a folder its only *.safetensors.index.json, else its
 * only safetensors file, GGUF file, or first part of a GGUF file. Refuses a folder with none or
 * with several, by name. *file is for free().
 */
ptxgen_status tensor_folder_resolve(const char *path, char **file, ptxgen_error *err);

#endif
