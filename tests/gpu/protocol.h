/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that are no function of registers, each in a kernel that carries out its protocol:
 * bulk and tensor copies, mbarriers, asynchronous stores, wgmma; and several together, as carries.
 * A CTA of 128 threads has 8 KB of in and of out; what the kernels have in common is in protocol.c.
 */
#ifndef PTXGEN_TESTS_GPU_PROTOCOL_H
#define PTXGEN_TESTS_GPU_PROTOCOL_H

#include "device.h"

enum { PROTOCOL_TEXT = 16384 };

/* Whose shared memory and mbarrier an operation on shared::cluster has for its destination. */
enum destination { OWN, OWN_IN_PAIR, MAPPED_IN_PAIR, PEER, ALONE, DESTINATIONS };

/* A barrier of the cluster. */
#define PROTOCOL_MEET "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n"

struct protocol {
    char name[96];
    char body[PROTOCOL_TEXT / 2];
    struct blocks blocks;
    const char *directive; /* one more, or NULL */
    uint8_t word;          /* bytes that a mismatch is told by */
    uint8_t destination;
};

struct protocol_list {
    struct protocol *items;
    size_t count, capacity;
};

/* One more protocol in the list, zeroed but for its name; aborts without memory. */
struct protocol *protocol_add(struct protocol_list *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Goes on with the body. */
void protocol_append(struct protocol *protocol, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What the memory of a protocol holds, as PTX and the builder call it. */
struct protocol_type {
    const char *name;
    uint8_t type, bytes;
};
const struct protocol_type *protocol_type(const char *name);
void protocol_set_type(struct protocol *protocol, const struct protocol_type *type);

/* One more protocol, of a destination, which ends its name. */
struct protocol *protocol_add_to(struct protocol_list *list, unsigned destination, const char *name,
                                 const char *type);

void protocol_list_all(struct protocol_list *list);
void protocol_list_carries(struct protocol_list *list);
void protocol_list_copies(struct protocol_list *list);
void protocol_list_lanes(struct protocol_list *list);
void protocol_list_mbarriers(struct protocol_list *list);
void protocol_list_steps(struct protocol_list *list);
void protocol_list_tensors(struct protocol_list *list);
void protocol_list_wgmma(struct protocol_list *list);

/* The module whose one kernel, k, does it. */
void protocol_text(const struct protocol *protocol, char text[PROTOCOL_TEXT]);

#endif
