/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three families for the tests, with one kernel each: y[i] = a·x[i] + i + b over 32 elements, its
 * negative, and the first again, of which memos are kept. The spec may ask to be refused, at
 * planning or by the assembler. Emissions are counted.
 */
#ifndef PTXGEN_TESTS_DISPATCH_TOY_H
#define PTXGEN_TESTS_DISPATCH_TOY_H

#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>

enum toy_trouble { TOY_FINE, TOY_UNPLANNABLE, TOY_UNASSEMBLABLE };
enum { TOY_ELEMENTS = 32 };

struct toy_spec {
    uint32_t a, b;
    uint32_t trouble; /* enum toy_trouble */
    uint32_t padding_to_compare;
};

extern const ptxgen_family toy_plus, toy_minus, toy_memo;
/* Tiles of one number, "a" below 100, which takes the place of the spec's a. */
extern const ptxgen_tiling toy_tiling;

/* Emissions since the program began. */
unsigned toy_emissions(void);
/* While not 0, specs that ask for trouble do not get it. */
void toy_set_mended(int mended);

/* A started emulator with its own context, current in this thread. */
struct toy_device {
    ptxgen_driver driver;
    ptxgen_cu_context context;
};
void toy_open(struct toy_device *device, const char *name);
void toy_close(struct toy_device *device);

/* Launches on fresh memory, on the current context; true when all 32 results are right. */
bool toy_computes(const ptxgen_driver *driver, const ptxgen_loaded *loaded,
                  const struct toy_spec *spec);

#endif
