/* SPDX-License-Identifier: Apache-2.0 */
extern ptxgen_error err;
extern ptxgen_driver driver;
extern const ptxgen_target target;

extern ptxgen_cu_stream stream;
