/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that holds a lock, a mark for which others wait, or memory and files that have to be
 * released must not end in its middle: a thread that is cancelled inside such a call is cancelled
 * after it.
 */
#ifndef PTXGEN_RUNTIME_UNCANCELLED_H
#define PTXGEN_RUNTIME_UNCANCELLED_H

#include <pthread.h>

static inline int cancellation_hold(void)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void cancellation_allow(const int *state)
{
    int held;
    pthread_setcancelstate(*state, &held);
}

/* A declaration: from here to the end of the block the thread is not cancelled. */
#define UNCANCELLED                                                                                \
    const int cancellation __attribute__((cleanup(cancellation_allow), unused)) =                  \
        cancellation_hold()

#endif
