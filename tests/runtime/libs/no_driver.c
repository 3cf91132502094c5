/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is no driver at all. */
int ptxgen_test_nothing(void);

int ptxgen_test_nothing(void)
{
    return 0;
}
