/* SPDX-License-Identifier: Apache-2.0 */
extern ptxgen_error err;
extern const ptxgen_target target;
