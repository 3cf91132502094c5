/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

extern ptxgen_error err;
extern size_t n, k, bytes;
extern uint16_t *dense, *values;
extern uint8_t *meta;
int report(const ptxgen_error *err);
