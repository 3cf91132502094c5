/* SPDX-License-Identifier: Apache-2.0 */
extern ptxgen_error err;
extern ptxgen_driver driver;
extern ptxgen_cu_context context;
extern const char *text;
extern ptxgen_cu_deviceptr x, y;
extern ptxgen_cu_stream stream;
