/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/chip.h"

#define KB 1024u
#define MB (1024u * 1024u)
#define GB ((uint64_t)1 << 30)

const struct emu_chip emu_chips[] = {
    {"sm_90", "PTX emulator, as H100", 90, 132, 228 * KB, 227 * KB, 2048, 32, 50 * MB, 1980000,
     2619000, 5120, 80 * GB, 13000},
    {"sm_80", "PTX emulator, as A100", 80, 108, 164 * KB, 163 * KB, 2048, 32, 40 * MB, 1410000,
     1512000, 5120, 80 * GB, 13000},
    {"sm_86", "PTX emulator, as A40", 86, 84, 100 * KB, 99 * KB, 1536, 16, 6 * MB, 1740000, 7251000,
     384, 48 * GB, 13000},
    {"sm_87", "PTX emulator, as Orin", 87, 16, 164 * KB, 163 * KB, 1536, 16, 4 * MB, 1300000,
     1600000, 256, 32 * GB, 13000},
    {"sm_89", "PTX emulator, as L40S", 89, 142, 100 * KB, 99 * KB, 1536, 24, 96 * MB, 2520000,
     9001000, 384, 48 * GB, 13000},
    {"sm_100", "PTX emulator, as B200", 100, 148, 228 * KB, 227 * KB, 2048, 32, 126 * MB, 1965000,
     3996000, 8192, 180 * GB, 13000},
    {"sm_103", "PTX emulator, as B300", 103, 148, 228 * KB, 227 * KB, 2048, 32, 126 * MB, 1965000,
     3996000, 8192, 268 * GB, 13000},
    {"sm_120", "PTX emulator, as RTX PRO 6000", 120, 188, 100 * KB, 99 * KB, 1536, 24, 128 * MB,
     2617000, 14001000, 512, 96 * GB, 13000},
};

const size_t emu_chip_count = sizeof emu_chips / sizeof *emu_chips;
