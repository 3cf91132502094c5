/* SPDX-License-Identifier: Apache-2.0 */
extern ptxgen_error err;
extern ptxgen_files *files;
int report(const ptxgen_error *err);
void add_token(const char *bytes, size_t length);
