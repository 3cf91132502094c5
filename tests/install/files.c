/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of somebody else's that reads a GGUF file by libptxgen-files alone: prints its tensors
 * and a key. With BOTH it uses libptxgen too.
 */
#include <ptxgen/gguf.h>
#ifdef BOTH
#include <ptxgen/gguf_types.h>
#endif

#include <stdio.h>

static void print_tensor(const ptxgen_tensor *t)
{
    printf("%s %s", t->name, ptxgen_dtype_find(t->dtype)->name);
    for (unsigned i = 0; i < t->ndim; i++)
        printf(" %llu", (unsigned long long)t->shape[i]);
    printf("\n");
}

static ptxgen_status print_file(const ptxgen_files *files, ptxgen_error *err)
{
    static const char key[] = "llama.embedding_length";
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(files);
    uint32_t length;
    for (size_t i = 0; i < tensors->count; i++)
        print_tensor(&tensors->items[i]);
    ptxgen_status status = ptxgen_gguf_get_u32(ptxgen_files_gguf(files), key, &length, err);
    if (status == PTXGEN_OK)
        printf("%s %u\n", key, (unsigned)length);
    return status;
}

#ifdef BOTH
static ptxgen_status decode(const ptxgen_files *files, ptxgen_error *err)
{
    float weights[1024];
    const ptxgen_tensor *t;
    ptxgen_status status = ptxgen_files_require(files, "blk.0.attn_q.weight", &t, err);
    if (status == PTXGEN_OK)
        status = ptxgen_gguf_decode_row((uint32_t)ptxgen_dtype_find(t->dtype)->ggml_type, t->data,
                                        t->bytes, 1024, weights, err);
    printf("%s\n", ptxgen_status_name(status));
    return status;
}
#endif

int main(int argc, char **argv)
{
    ptxgen_files *files = NULL;
    ptxgen_error err;
    ptxgen_status status = ptxgen_files_open(argc > 1 ? argv[1] : "", &files, &err);
    if (status == PTXGEN_OK)
        status = print_file(files, &err);
#ifdef BOTH
    if (status == PTXGEN_OK)
        status = decode(files, &err);
#endif
    ptxgen_files_close(files);
    if (status != PTXGEN_OK)
        fprintf(stderr, "%s\n", err.message);
    return status != PTXGEN_OK;
}
