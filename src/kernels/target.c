/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/target.h>

/* Multiprocessors and opt-in shared memory per CTA of the largest common chip of each target. */
static const struct chip {
    int sm;
    uint32_t multiprocessors, shared_per_cta;
} chips[] = {
    {80, 108, 163 * 1024},  {86, 84, 99 * 1024},   {87, 16, 163 * 1024},   {88, 16, 99 * 1024},
    {89, 128, 99 * 1024},   {90, 132, 227 * 1024}, {100, 148, 227 * 1024}, {101, 20, 227 * 1024},
    {103, 160, 227 * 1024}, {110, 20, 227 * 1024}, {120, 170, 99 * 1024},  {121, 48, 99 * 1024},
};

ptxgen_status ptxgen_target_parse(const char *name, ptxgen_target *target, ptxgen_error *err)
{
    ptxgen_target t = {0};
    if (!target)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "target name and result must be given");
    ptxgen_status status = ptx_target_parse(name, &t.ptx, err);
    for (size_t i = 0; status == PTXGEN_OK && i < sizeof chips / sizeof *chips; i++)
        if (chips[i].sm == t.ptx.sm) {
            t.multiprocessors = chips[i].multiprocessors;
            t.shared_per_cta = chips[i].shared_per_cta;
        }
    if (status == PTXGEN_OK)
        *target = t;
    return status;
}
