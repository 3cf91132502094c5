/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a cluster of CTAs: its memory, its end, and the report when it cannot go on. */
#ifndef PTXGEN_EMULATOR_CLUSTER_H
#define PTXGEN_EMULATOR_CLUSTER_H

#include "src/emulator/machine.h"

/* NULL when memory runs out. */
struct emu_cluster *emu_cluster_start(struct emu_worker *worker, uint64_t index);
bool emu_cluster_runnable(const struct emu_cluster *cluster);
bool emu_cluster_done(const struct emu_cluster *cluster);
void emu_clusters_free(struct emu_worker *worker);

/* Bytes that one CTA of the launch takes on the host. */
size_t emu_cta_bytes(const struct emu_launch *launch);

/* A deadlock of threads at a CTA barrier is of PTXGEN_CHECK_BARRIERS, whatever `check` and `why`.
 */
_Noreturn void emu_report_deadlock(struct emu_worker *worker, struct emu_cluster *cluster,
                                   enum ptxgen_emulator_check check, const char *why);

#endif
