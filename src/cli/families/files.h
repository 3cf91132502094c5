/* SPDX-License-Identifier: Apache-2.0 */
/** What families do with files. */
#ifndef PTXGEN_CLI_FILES_H
#define PTXGEN_CLI_FILES_H

#include "../family_file.h"

extern const struct family_file gguf_linear_file, marlin_file, rmsnorm_q4k_file, sparse24_file,
    w8a8_file;

bool gguf_linear_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                           struct family_options *options, struct recognised_names *names);
bool marlin_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                      struct family_options *options, struct recognised_names *names);
bool rmsnorm_q4k_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                           struct family_options *options, struct recognised_names *names);
bool sparse24_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                        struct family_options *options, struct recognised_names *names);
bool w8a8_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                    struct family_options *options, struct recognised_names *names);

#endif
