/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/ptx_version.h"

#include <ptxgen/driver.h>

#include <stddef.h>

/* From the release notes of CUDA and of the PTX ISA. A table, because the two do not advance
 * together: CUDA 12.6 brought no new PTX, and 11.4 to 11.5 skipped driver branches. */
static const struct ptx_release releases[] = {
    {11000, 70, 445}, {11010, 71, 455}, {11020, 72, 460}, {11030, 73, 465}, {11040, 74, 470},
    {11050, 75, 495}, {11060, 76, 510}, {11070, 77, 515}, {11080, 78, 520}, {12000, 80, 525},
    {12010, 81, 530}, {12020, 82, 535}, {12030, 83, 545}, {12040, 84, 550}, {12050, 85, 555},
    {12060, 85, 560}, {12070, 86, 565}, {12080, 87, 570}, {12090, 88, 575}, {13000, 90, 580},
    {13010, 91, 590}, {13020, 92, 595}, {13030, 93, 610},
};
enum { RELEASE_COUNT = sizeof releases / sizeof *releases };

const struct ptx_release *ptx_release_of_driver(int cuda_version)
{
    const struct ptx_release *newest = NULL;
    for (size_t i = 0; i < RELEASE_COUNT && releases[i].cuda <= cuda_version; i++)
        newest = &releases[i];
    return newest;
}

const struct ptx_release *ptx_release_with(int ptx_version)
{
    for (size_t i = 0; i < RELEASE_COUNT; i++)
        if (releases[i].ptx >= ptx_version)
            return &releases[i];
    return NULL;
}

int ptxgen_driver_max_ptx_version(int driver_version)
{
    const struct ptx_release *release = ptx_release_of_driver(driver_version);
    return release ? release->ptx : 0;
}
