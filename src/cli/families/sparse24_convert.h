/* SPDX-License-Identifier: Apache-2.0 */
/** `ptxgen convert sparse24`: 2:4 sparse weights of a safetensors file, in another form. */
#ifndef PTXGEN_CLI_SPARSE24_CONVERT_H
#define PTXGEN_CLI_SPARSE24_CONVERT_H

/** argv[0] names the command. */
int sparse24_convert(int argc, char **argv);

#endif
