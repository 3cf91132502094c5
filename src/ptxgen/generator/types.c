/* SPDX-License-Identifier: Apache-2.0 */
#include "instruction.h"

#include <string.h>

const struct type types[] = {
    {"pred", "pred", "pred", "pred", "", "PTX_PRED"},
    {"u16", "u16", "b16", "u16", "u32", "PTX_U16"},
    {"s16", "s16", "b16", "u16", "s32", "PTX_S16"},
    {"f16", "b16", "b16", "u16", "", "PTX_F16"},
    {"bf16", "b16", "b16", "u16", "", "PTX_BF16"},
    {"u32", "u32", "b32", "u32", "u64", "PTX_U32"},
    {"s32", "s32", "b32", "u32", "s64", "PTX_S32"},
    {"f32", "f32", "b32", "u32", "f64", "PTX_F32"},
    {"f16x2", "b32", "b32", "u32", "", "PTX_F16X2"},
    {"bf16x2", "b32", "b32", "u32", "", "PTX_BF16X2"},
    {"u64", "u64", "b64", "u64", "", "PTX_U64"},
    {"s64", "s64", "b64", "u64", "", "PTX_S64"},
    {"f64", "f64", "b64", "u64", "", "PTX_F64"},
    {"b128", "b128", "b128", "b128", "", "PTX_B128"},
};

const size_t type_count = sizeof types / sizeof *types;

const struct type *find_type(const char *name)
{
    for (size_t i = 0; i < type_count; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}
