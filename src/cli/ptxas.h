/* SPDX-License-Identifier: Apache-2.0 */
/** NVIDIA's assembler as a program of its own, for packs. */
#ifndef PTXGEN_CLI_PTXAS_H
#define PTXGEN_CLI_PTXAS_H

#include <ptxgen/pack.h>

/** A ptxgen_pack_assembler; `user` is the program's name or path. */
ptxgen_status ptxas_assemble(void *user, const char *ptx, const char *sm, ptxgen_cubin *cubin,
                             ptxgen_error *err);

#endif
