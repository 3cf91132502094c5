/* SPDX-License-Identifier: Apache-2.0 */
#include "operand.h"

#include "random.h"

#include <math.h>

size_t typed_bytes(int type)
{
    switch (type) {
    case ELEMENT_S8:
    case ELEMENT_E4M3:
    case ELEMENT_E5M2:
    case ELEMENT_BYTES: return 1;
    case ELEMENT_S32: return sizeof(int32_t);
    default: return ptxgen_element_size((ptxgen_element)type);
    }
}

double typed_load(int type, const void *array, size_t index)
{
    switch (type) {
    case ELEMENT_S8:
    case ELEMENT_E4M3:
    case ELEMENT_E5M2:
    case ELEMENT_BYTES: return ((const int8_t *)array)[index];
    case ELEMENT_S32: return ((const int32_t *)array)[index];
    default: return ptxgen_element_load((ptxgen_element)type, array, index);
    }
}

static double clamp(double value, double least, double most)
{
    return fmax(least, fmin(most, round(value)));
}

void typed_store(int type, void *array, size_t index, double value)
{
    switch (type) {
    case ELEMENT_S8:
    case ELEMENT_E4M3:
    case ELEMENT_E5M2:
    case ELEMENT_BYTES: ((int8_t *)array)[index] = (int8_t)clamp(value, INT8_MIN, INT8_MAX); return;
    case ELEMENT_S32:
        ((int32_t *)array)[index] = (int32_t)clamp(value, INT32_MIN, INT32_MAX);
        return;
    default: ptxgen_element_store((ptxgen_element)type, array, index, value);
    }
}

size_t operand_bytes(const struct operand *o, uint64_t stride)
{
    uint64_t last = o->pitch ? stride : o->columns;
    return o->rows ? (size_t)((o->rows - 1) * stride + last) * typed_bytes(o->type) : 0;
}

uint64_t operand_net_bytes(const struct operand *o)
{
    return o->rows * o->columns * typed_bytes(o->type);
}

void operand_fill(const struct operand *o, uint64_t stride, void *array, struct random *r)
{
    for (uint64_t row = 0; row < o->rows; row++)
        for (uint64_t i = 0; i < o->columns; i++) {
            double value = o->mean + o->deviation * random_normal(r);
            if (o->positive)
                value = fabs(value) + o->mean / 16;
            if (o->outliers && random_below(r, 512) == 0)
                value *= 64;
            typed_store(o->type, array, row * stride + i, value);
        }
}
