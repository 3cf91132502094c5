// SPDX-License-Identifier: Apache-2.0
// ggml's CUDA backend, timed as `ptxgen bench gguf_linear` times: a graph of products that go
// through copies of the weights worth more than four L2s, as long a rest between replays, medians.
// One line for each type, shape and M: "TYPE K N M microseconds", with ggml's quantisation of x.
//
//     g++ -std=c++17 -I ggml/include ggml_products.cpp -lggml -lggml-base -lggml-cuda
//     ./a.out q4_K,q8_0,mxfp4 4096x14336,8192x28672 1,8,64,512
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cuda.h"
#include "ggml.h"

static std::vector<std::string> words(const char *list)
{
    std::vector<std::string> all;
    std::stringstream in(list);
    for (std::string word; std::getline(in, word, ',');)
        all.push_back(word);
    return all;
}

static ggml_type type_named(const std::string &name)
{
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const char *other = ggml_type_name(static_cast<ggml_type>(i));
        if (other && name == other)
            return static_cast<ggml_type>(i);
    }
    fprintf(stderr, "no type %s\n", name.c_str());
    exit(2);
}

// 64 rows of random weights, again and again.
static std::vector<char> weights(ggml_type type, int64_t k, int64_t n)
{
    const int64_t rows = std::min<int64_t>(64, n), row = ggml_row_size(type, k);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> floats(rows * k), importance(k, 1.0F);
    for (float &f : floats)
        f = normal(random);
    std::vector<char> all(row * n);
    ggml_quantize_chunk(type, floats.data(), all.data(), 0, rows, k, importance.data());
    for (int64_t i = rows; i < n; i++)
        std::copy_n(&all[row * (i % rows)], row, &all[row * i]);
    return all;
}

static double seconds_of(ggml_backend_t backend, ggml_cgraph *graph)
{
    const auto start = std::chrono::steady_clock::now();
    ggml_backend_graph_compute(backend, graph);
    const auto end = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(end - start).count();
}

static double microseconds(ggml_backend_t backend, const std::vector<ggml_tensor *> &w, int64_t k,
                           int64_t m)
{
    const size_t launches = std::max<size_t>(w.size(), m > 512 ? 8 : 48);
    ggml_context *nodes =
        ggml_init({ggml_tensor_overhead() * (launches + 8) + ggml_graph_overhead(), nullptr, true});
    ggml_tensor *x = ggml_new_tensor_2d(nodes, GGML_TYPE_F32, k, m);
    ggml_cgraph *graph = ggml_new_graph(nodes);
    for (size_t i = 0; i < launches; i++)
        ggml_build_forward_expand(graph, ggml_mul_mat(nodes, w[i % w.size()], x));
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(nodes, backend);
    if (!buffer) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    std::vector<float> values(k * m);
    for (float &f : values)
        f = normal(random);
    ggml_backend_tensor_set(x, values.data(), 0, values.size() * sizeof(float));
    std::vector<double> times;
    for (int i = 0; i < 13; i++) {
        const double time = seconds_of(backend, graph);
        if (i >= 4)
            times.push_back(time);
        std::this_thread::sleep_for(std::chrono::duration<double>(time));
    }
    std::sort(times.begin(), times.end());
    ggml_backend_buffer_free(buffer);
    ggml_free(nodes);
    return times[times.size() / 2] * 1e6 / launches;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    ggml_backend_t backend = ggml_backend_cuda_init(0);
    for (const std::string &name : words(argv[1])) {
        const ggml_type type = type_named(name);
        for (const std::string &shape : words(argv[2])) {
            long k, n;
            if (sscanf(shape.c_str(), "%ldx%ld", &k, &n) != 2)
                return 2;
            const std::vector<char> bytes = weights(type, k, n);
            const size_t copies = 4 * (60UL << 20) / bytes.size() + 2;
            ggml_context *tensors =
                ggml_init({ggml_tensor_overhead() * (copies + 1), nullptr, true});
            std::vector<ggml_tensor *> w;
            for (size_t i = 0; i < copies; i++)
                w.push_back(ggml_new_tensor_2d(tensors, type, k, n));
            ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(tensors, backend);
            for (ggml_tensor *one : w)
                ggml_backend_tensor_set(one, bytes.data(), 0, bytes.size());
            for (const std::string &m : words(argv[3])) {
                printf("%s %ld %ld %s %.2f\n", name.c_str(), k, n, m.c_str(),
                       microseconds(backend, w, k, atol(m.c_str())));
                fflush(stdout);
            }
            ggml_backend_buffer_free(buffer);
            ggml_free(tensors);
        }
    }
    ggml_backend_free(backend);
}
