/* SPDX-License-Identifier: Apache-2.0 */
#define ELIDED_BODY return PTXGEN_OK;
