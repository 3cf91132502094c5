/* SPDX-License-Identifier: Apache-2.0 */
extern ptxgen_error err;
extern size_t rows, k;
extern const float *w;
extern unsigned char *packed;
int report(const ptxgen_error *err);
