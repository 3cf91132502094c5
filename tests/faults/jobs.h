/* SPDX-License-Identifier: Apache-2.0 */
/* What is tried: commands, and programs that use the library. */
#ifndef PTXGEN_TESTS_FAULTS_JOBS_H
#define PTXGEN_TESTS_FAULTS_JOBS_H

#include "attempt.h"

extern const struct job command_jobs[], library_jobs[];
extern const size_t command_job_count, library_job_count;

/* The files that every job finds: a warmed cache, a tuning table, old outputs, inputs. */
struct tree prepare_files(void);

#endif
