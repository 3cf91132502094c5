/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen devices: what --device can name, with the facts that plans use. */
#include "command.h"
#include "../harness/device.h"
#include "exit_code.h"
#include "options.h"

#include <argp.h>
#include <stdio.h>

static void print_device(const struct device_provider *provider, const ptxgen_device_facts *f)
{
    if (provider->emulated)
        printf("%s:sm_%d  %s\n", provider->name, f->compute_capability, f->name);
    else
        printf("%s:%d  %s\n", provider->name, f->ordinal, f->name);
    printf("    sm_%d, PTX up to %d.%d, CUDA %d.%d driver\n", f->compute_capability,
           f->max_ptx_version / 10, f->max_ptx_version % 10, f->driver_version / 1000,
           f->driver_version % 1000 / 10);
    printf("    %d multiprocessors, %d KB shared memory each, %d KB a CTA, %.1f MB L2, %.1f GB\n",
           f->sm_count, f->shared_per_sm / 1024, f->shared_per_block_optin / 1024,
           f->l2_bytes / 1048576.0, (double)f->memory_bytes / 1e9);
    double bandwidth = ptxgen_device_peak_bandwidth(f);
    if (bandwidth > 0 && !provider->emulated)
        printf("    %.0f GB/s at most, by its memory's clock and width\n", bandwidth / 1e9);
}

/* Prints a provider's devices, or why it has none, and adds to their count. */
static ptxgen_status print_provider(const struct device_provider *provider, int *count,
                                    ptxgen_error *err)
{
    ptxgen_driver driver;
    ptxgen_status status = provider->start(&driver, err);
    if (status == PTXGEN_ERROR_OUT_OF_MEMORY)
        return status;
    if (status != PTXGEN_OK) {
        printf("%s: none: %s\n", provider->name, err->message);
        return PTXGEN_OK;
    }
    for (int i = 0; i < driver.device_count; i++) {
        ptxgen_device_facts facts;
        if (ptxgen_device_read(&driver, i, &facts, err) == PTXGEN_OK)
            print_device(provider, &facts);
        else
            printf("%s:%d: %s\n", provider->name, i, err->message);
    }
    *count += driver.device_count;
    ptxgen_driver_close(&driver);
    return PTXGEN_OK;
}

static int devices(int argc, char **argv)
{
    static const struct argp argp = {
        .doc = "Prints the devices that --device can name, and what is known of each."};
    parse_arguments(&argp, argc, argv, 0, NULL);
    const struct device_provider *provider;
    ptxgen_error err;
    int count = 0;
    for (size_t i = 0; (provider = device_provider_at(i)); i++)
        if (print_provider(provider, &count, &err) != PTXGEN_OK)
            return report_failure(&err);
    return count ? EXIT_OK : EXIT_NO_DEVICE;
}

const struct command devices_command = {"devices", "", "the devices there are, and their facts",
                                        devices};
