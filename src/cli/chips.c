/* SPDX-License-Identifier: Apache-2.0 */
#include "chips.h"

#include <strings.h>

enum { KB = 1024, REGISTERS = 65536 };

static const struct architecture architectures[] = {
    {80, 64, 32, 164 * KB},  {86, 48, 16, 100 * KB},  {87, 48, 16, 164 * KB},
    {88, 48, 16, 100 * KB},  {89, 48, 24, 100 * KB},  {90, 64, 32, 228 * KB},
    {100, 64, 32, 228 * KB}, {101, 48, 24, 228 * KB}, {103, 64, 32, 228 * KB},
    {110, 48, 24, 228 * KB}, {120, 48, 24, 100 * KB}, {121, 48, 24, 100 * KB},
};

const struct architecture *architecture_find(int sm)
{
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (architectures[i].sm == sm)
            return &architectures[i];
    return NULL;
}

/* Registers are given to a warp in units of 256. */
static unsigned warps_by_registers(unsigned registers_a_thread)
{
    unsigned a_warp = (32 * registers_a_thread + 255) / 256 * 256;
    return a_warp ? REGISTERS / a_warp : REGISTERS;
}

unsigned architecture_occupancy(const struct architecture *a, unsigned threads,
                                unsigned registers_a_thread, size_t shared_bytes)
{
    unsigned warps = (threads + 31) / 32;
    if (!warps)
        return 0;
    unsigned by_registers = warps_by_registers(registers_a_thread);
    unsigned most = (by_registers < a->warps ? by_registers : a->warps) / warps;
    size_t by_shared = a->shared_bytes / (shared_bytes + KB);
    if (by_shared < most)
        most = (unsigned)by_shared;
    return most < a->ctas ? most : a->ctas;
}

static const struct chip chips[] = {
    {"A100-80GB", 80, 108, 2039e9}, {"A100-40GB", 80, 108, 1555e9},
    {"RTX-3090", 86, 82, 936e9},    {"A10", 86, 72, 600e9},
    {"A40", 86, 84, 696e9},         {"Orin", 87, 16, 205e9},
    {"RTX-4090", 89, 128, 1008e9},  {"L40S", 89, 142, 864e9},
    {"L4", 89, 58, 300e9},          {"H100-SXM", 90, 132, 3350e9},
    {"H100-PCIe", 90, 114, 2039e9}, {"H200", 90, 132, 4800e9},
    {"GH200", 90, 132, 4000e9},     {"B200", 100, 148, 8000e9},
    {"B300", 103, 148, 8000e9},     {"Thor", 110, 20, 273e9},
    {"RTX-5090", 120, 170, 1792e9}, {"RTX-PRO-6000", 120, 188, 1792e9},
    {"DGX-Spark", 121, 48, 273e9},
};

const struct chip *chip_at(size_t index)
{
    return index < sizeof chips / sizeof *chips ? &chips[index] : NULL;
}

const struct chip *chip_find(const char *name)
{
    const struct chip *chip;
    for (size_t i = 0; (chip = chip_at(i)); i++)
        if (!strcasecmp(chip->name, name))
            return chip;
    return NULL;
}

const struct chip *chip_of(int sm)
{
    const struct chip *chip;
    for (size_t i = 0; (chip = chip_at(i)); i++)
        if (chip->sm == sm)
            return chip;
    return NULL;
}
