/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

extern size_t i, k;
extern uint16_t *x;
