/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/tile.h>

#include <stddef.h>
#include <string.h>

uint32_t *ptxgen_tile_member(ptxgen_tile *tile, const char *name)
{
#define MEMBER(name)                                                                               \
    {                                                                                              \
#name, offsetof(ptxgen_tile, name)                                                         \
    }
    static const struct {
        char name[24];
        size_t at;
    } members[] = {
        MEMBER(kind),    MEMBER(tile_m),       MEMBER(tile_n),
        MEMBER(warp_m),  MEMBER(warp_n),       MEMBER(wm),
        MEMBER(wn),      MEMBER(wk),           MEMBER(stages),
        MEMBER(steps),   MEMBER(ctas),         MEMBER(pass_m),
        MEMBER(cluster), MEMBER(split),        MEMBER(blocks_n),
        MEMBER(fused),   MEMBER(shared_bytes), MEMBER(dynamic_shared_bytes),
    };
#undef MEMBER
    for (size_t i = 0; tile && name && i < sizeof members / sizeof *members; i++)
        if (!strcmp(members[i].name, name))
            return (uint32_t *)(void *)((char *)tile + members[i].at);
    return NULL;
}
