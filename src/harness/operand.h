/* SPDX-License-Identifier: Apache-2.0 */
/**
 * One operand of a family's launches. What a family says of its operands is a list of these, made
 * for a plan and a number of tokens; everything that is done with operands goes by that list.
 */
#ifndef PTXGEN_HARNESS_OPERAND_H
#define PTXGEN_HARNESS_OPERAND_H

#include <ptxgen/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random;

/** Types of elements: those of ptxgen_element, and these, of which those of fp8 are bytes here. */
enum {
    ELEMENT_S8 = -1,
    ELEMENT_S32 = -2,
    ELEMENT_BYTES = -3,
    ELEMENT_E4M3 = -4,
    ELEMENT_E5M2 = -5
};

enum operand_role {
    OPERAND_X,       /**< the activations, which a kernel ahead of the launch may write */
    OPERAND_WEIGHTS, /**< what a bench has several copies of */
    OPERAND_INPUT,
    OPERAND_RESIDUAL, /**< may be the output itself */
    OPERAND_OUTPUT,
};

enum { MOST_OPERANDS = 16 };

struct operand {
    const char *name;
    enum operand_role role;
    bool used; /**< by this spec */
    uint64_t rows, columns;
    int type;
    size_t address; /**< offset of its address in the family's arguments */
    size_t bytes;   /**< offset of the size of its buffer there */
    size_t stride;  /**< offset of its row stride there; 0: it has none */
    uint64_t pitch; /**< elements from row to row where the spec says it; 0: as many as columns */
    size_t shift; /**< bytes that its start may be off by multiples of; 0: its alignment is fixed */
    /** Random values: mean + deviation · a normal number; deviation 0: the family fills it. */
    double mean, deviation;
    bool positive; /**< the values' magnitudes, none below mean / 16 */
    bool outliers; /**< one value in 512 is 64 times as large, as language models have them */
    /** Fills a copy where random bits would not do; NULL: they do. */
    ptxgen_status (*random)(const struct operand *operand, const void *plan, struct random *r,
                            void *bytes, ptxgen_error *err);
};

/** An operand; what follows are designated initialisers, its address among them. */
#define OPERAND(called, as, is_used, row_count, column_count, element_type, ...)                   \
    {                                                                                              \
        .name = called, .role = as, .used = is_used, .rows = row_count, .columns = column_count,   \
        .type = element_type, __VA_ARGS__                                                          \
    }
/** A member of the arguments, of which a family's ARG says the offset, and the size of its buffer.
 */
#define ARG_AND_SIZE(member) .address = ARG(member), .bytes = ARG(member##_bytes)
/** Such an operand that the arguments name: an array, and rows with a stride. */
#define OPERAND_ROW(member, as, is_used, count, element_type, ...)                                 \
    OPERAND(#member, OPERAND_##as, is_used, 1, count, element_type, ARG_AND_SIZE(member),          \
            __VA_ARGS__)
#define OPERAND_ROWS(member, as, is_used, row_count, column_count, element_type, ...)              \
    OPERAND(#member, OPERAND_##as, is_used, row_count, column_count, element_type,                 \
            ARG_AND_SIZE(member), .stride = ARG(member##_stride), __VA_ARGS__)

size_t typed_bytes(int type);
double typed_load(int type, const void *array, size_t index);
/** Integers are rounded, and clamped to their range. */
void typed_store(int type, void *array, size_t index, double value);

/** Bytes of rows that are `stride` elements apart, the last without its gap unless it is a pitch.
 */
size_t operand_bytes(const struct operand *operand, uint64_t stride);
/** Bytes without any gap. */
uint64_t operand_net_bytes(const struct operand *operand);
/** Fills rows that are `stride` elements apart with its random values. */
void operand_fill(const struct operand *operand, uint64_t stride, void *array, struct random *r);

#endif
