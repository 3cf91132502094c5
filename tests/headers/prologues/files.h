/* SPDX-License-Identifier: Apache-2.0 */
extern ptxgen_error err;
int report(const ptxgen_error *err);
void upload(const void *data, size_t bytes);
