/* SPDX-License-Identifier: Apache-2.0 */
/* The headers beside this file compiled, or there would be no program to run. */
int main(void)
{
    return 0;
}
