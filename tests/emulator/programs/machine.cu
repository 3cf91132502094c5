/* SPDX-License-Identifier: Apache-2.0 */
/* A tiny stack machine: a switch (a jump table), a function that is not inlined, local arrays. */
__device__ __noinline__ int apply(int op, int a, int b)
{
    switch (op) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return b ? a / b : 0;
    case 4: return a ^ b;
    case 5: return a & b;
    case 6: return a | b;
    case 7: return a << (b & 7);
    default: return 1 << 20;
    }
}

extern "C" __global__ void machine(const int *code, const int *input, int *out, int length)
{
    int stack[16], depth = 0;
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    stack[depth++] = input[thread];
    for (int i = 0; i < length; i++) {
        int op = (code[i] + thread) % 10;
        if (op == 9 || depth < 2) {
            if (depth < 16)
                stack[depth++] = code[i] * 3 + thread;
            continue;
        }
        int b = stack[--depth], a = stack[--depth];
        stack[depth++] = apply(op, a, b);
    }
    int sum = 0;
    for (int i = 0; i < depth; i++)
        sum = sum * 31 + stack[i];
    out[thread] = sum;
}
