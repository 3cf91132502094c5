/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that hold a lock, a mark that others wait for, or memory and files to be given back are not
 * to be left in their middle: a thread that is cancelled there is cancelled after them.
 *
 *     int state = cancellation_hold();
 *     …
 *     cancellation_allow(state);
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

static inline void cancellation_allow(int state)
{
    pthread_setcancelstate(state, &state);
}

#endif
