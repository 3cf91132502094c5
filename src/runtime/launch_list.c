/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/launch_list.h"

#include "src/kernels/gemm/align.h"
#include "src/kernels/gemm/boxes.h"

/* ---- making a list ---- */

ptxgen_launch_shape launch_line(uint64_t ctas, uint32_t threads, uint32_t dynamic_shared_bytes,
                                uint32_t cluster)
{
    ptxgen_launch_shape shape = {.grid = {ctas, 1, 1},
                                 .block = {threads, 1, 1},
                                 .dynamic_shared_bytes = dynamic_shared_bytes};
    if (cluster > 1) {
        shape.cluster[0] = cluster;
        shape.cluster[1] = shape.cluster[2] = 1;
    }
    return shape;
}

bool launch_rows_are_aligned(const struct launch_rows *r, bool mapped)
{
    enum { CHUNK = 16 };
    const uint32_t chunk = CHUNK / r->element; /* elements */
    return r->address % CHUNK == 0 && r->stride % chunk == 0 && r->columns % chunk == 0 &&
           !(mapped && r->stride >= LAUNCH_MOST_MAP_PITCH / r->element);
}

void launch_list_align(struct launch_list *list, unsigned index, struct launch_rows *r,
                       uint64_t out)
{
    list->entries[list->count++] =
        (struct launch_entry){.index = index,
                              .shape = launch_line(r->rows, GEMM_ALIGN_THREADS, 0, 1),
                              .params = GEMM_ALIGN_PARAMS,
                              .wide = GEMM_ALIGN_PARAMS,
                              .values = {[GEMM_ALIGN_X] = r->address,
                                         [GEMM_ALIGN_OUT] = out,
                                         [GEMM_ALIGN_X_STRIDE] = r->stride}};
    r->address = out;
    r->stride = gemm_aligned_bytes(r->columns, r->element) / r->element;
}

void launch_list_map(struct launch_list *list, const struct launch_rows *r,
                     ptxgen_cu_tensor_map_data_type type, uint32_t box_rows, enum launch_maps holds)
{
    list->maps[list->map_count++] =
        (struct launch_map){.holds = holds,
                            .name = r->name,
                            .address = r->address,
                            .columns = r->columns,
                            .rows = r->rows,
                            .pitch = r->stride * r->element,
                            .type = type,
                            .box_columns = LAUNCH_BOX_BYTES / r->element,
                            .box_rows = box_rows,
                            .swizzled = true};
}

/* ---- tensor maps ---- */

static ptxgen_status encode(const ptxgen_loaded *loaded, const struct launch_map *m,
                            uint32_t box_rows, ptxgen_cu_tensor_map *map, ptxgen_error *err)
{
    const uint64_t shape[2] = {m->columns, m->rows};
    const uint32_t box[2] = {m->box_columns, box_rows}, steps[2] = {1, 1};
    ptxgen_cu_result result = loaded->driver->tensor_map_encode_tiled(
        map, m->type, 2, (void *)(uintptr_t)m->address, shape, &m->pitch, box, steps,
        PTXGEN_CU_TENSOR_MAP_INTERLEAVE_NONE,
        m->swizzled ? PTXGEN_CU_TENSOR_MAP_SWIZZLE_128B : PTXGEN_CU_TENSOR_MAP_SWIZZLE_NONE,
        PTXGEN_CU_TENSOR_MAP_L2_PROMOTION_L2_128B, PTXGEN_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(loaded->driver, result, err,
                                  "%s: the tensor map of %s, %llu rows %llu bytes apart",
                                  loaded->family->name, m->name, (unsigned long long)m->rows,
                                  (unsigned long long)m->pitch);
    return PTXGEN_OK;
}

/* One map will do where all boxes are alike, or there is but one. */
static ptxgen_status encode_with_last(const ptxgen_loaded *loaded, const struct launch_map *m,
                                      ptxgen_cu_tensor_map maps[2], ptxgen_error *err)
{
    uint32_t last = gemm_last_box_rows(m->rows, m->box_rows);
    ptxgen_status status = encode(loaded, m, last, &maps[1], err);
    if (status != PTXGEN_OK)
        return status;
    if (last < m->box_rows && m->rows > m->box_rows)
        return encode(loaded, m, m->box_rows, &maps[0], err);
    maps[0] = maps[1];
    return PTXGEN_OK;
}

/* Encodes all maps, and says where each parameter begins. */
static ptxgen_status encode_all(const ptxgen_loaded *loaded, const struct launch_list *list,
                                ptxgen_cu_tensor_map maps[LAUNCH_MOST_MAPS],
                                void *parameters[LAUNCH_MOST_MAPS], ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    for (unsigned i = 0, at = 0; status == PTXGEN_OK && i < list->map_count; i++) {
        const struct launch_map *m = &list->maps[i];
        parameters[i] = &maps[at];
        if (m->rows > 0)
            status = m->holds == LAUNCH_MAP_AND_LAST
                         ? encode_with_last(loaded, m, &maps[at], err)
                         : encode(loaded, m, m->box_rows, &maps[at], err);
        at += m->holds == LAUNCH_MAP ? 1 : 2;
    }
    return status;
}

/* ---- running a list ---- */

/* `maps` are the parameters behind the entry's values. */
static ptxgen_status run(const ptxgen_loaded *loaded, const struct launch_entry *e,
                         void *const maps[], unsigned map_count, ptxgen_cu_stream stream,
                         ptxgen_error *err)
{
    uint64_t wide[LAUNCH_MOST_PARAMS];
    uint32_t narrow[LAUNCH_MOST_PARAMS];
    void *arguments[LAUNCH_MOST_PARAMS + LAUNCH_MOST_MAPS];
    for (unsigned i = 0; i < e->params; i++) {
        wide[i] = e->values[i];
        narrow[i] = (uint32_t)e->values[i];
        arguments[i] = i < e->wide ? (void *)&wide[i] : &narrow[i];
    }
    for (unsigned i = 0; i < map_count; i++)
        arguments[e->params + i] = maps[i];
    return ptxgen_launch(ptxgen_loaded_entry(loaded, e->index), &e->shape, stream, arguments, err);
}

ptxgen_status launch_list_run(const ptxgen_loaded *loaded, const struct launch_list *list,
                              ptxgen_cu_stream stream, ptxgen_error *err)
{
    ptxgen_cu_tensor_map maps[LAUNCH_MOST_MAPS] = {{{0}}};
    void *parameters[LAUNCH_MOST_MAPS] = {NULL};
    ptxgen_status status = encode_all(loaded, list, maps, parameters, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < list->count; i++) {
        bool is_last = i + 1 == list->count;
        status =
            run(loaded, &list->entries[i], parameters, is_last ? list->map_count : 0, stream, err);
    }
    return status;
}
