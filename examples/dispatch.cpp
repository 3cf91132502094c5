/* SPDX-License-Identifier: Apache-2.0 */
// ptxgen from C++17: each handle an owner, each failure an exception. A dispatcher, a kernel, one
// launch, compared with the reference. Without a GPU it runs on the emulator.
#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>
#include <ptxgen/rmsnorm_q4k.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct error : std::runtime_error {
    explicit error(const ptxgen_error &err)
        : std::runtime_error(std::string(ptxgen_status_name(err.status)) + ": " + err.message)
    {
    }
};

// succeed([&](ptxgen_error *err) { return ptxgen_…(…, err); })
template <typename Call> void succeed(Call call)
{
    ptxgen_error err{};
    if (call(&err) != PTXGEN_OK)
        throw error(err);
}

void must(ptxgen_cu_result result, const char *what)
{
    if (result != PTXGEN_CUDA_SUCCESS)
        throw std::runtime_error(std::string(what) + ": CUDA error " + std::to_string(result));
}

template <auto destroy> struct destroyer {
    template <typename T> void operator()(T *object) const { destroy(object); }
};
using dispatcher_ptr =
    std::unique_ptr<ptxgen_dispatcher, destroyer<ptxgen_dispatcher_destroy>>;
using rmsnorm_ptr = std::unique_ptr<ptxgen_rmsnorm_q4k, destroyer<ptxgen_rmsnorm_q4k_destroy>>;

// A driver table with a context that is current while it lives.
struct device {
    ptxgen_driver cuda;
    ptxgen_cu_context context{};

    device()
    {
        if (ptxgen_driver_open(&cuda, nullptr, nullptr) != PTXGEN_OK)
            ptxgen_emulator_driver(&cuda);
        succeed([&](ptxgen_error *err) { return ptxgen_driver_start(&cuda, err); });
        must(cuda.ctx_create(&context, 0, 0), "cuCtxCreate");
    }
    ~device() { cuda.ctx_destroy(context); }
    device(const device &) = delete;
    device &operator=(const device &) = delete;
};

template <typename T> class buffer {
public:
    buffer(const device &on, const std::vector<T> &values) : on_(on), count_(values.size())
    {
        must(on_.cuda.mem_alloc(&address_, count_ * sizeof(T)), "cuMemAlloc");
        must(on_.cuda.memcpy_htod(address_, values.data(), count_ * sizeof(T)), "cuMemcpyHtoD");
    }
    ~buffer() { on_.cuda.mem_free(address_); }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;

    std::uint64_t address() const { return address_; }
    std::vector<T> read() const
    {
        std::vector<T> values(count_);
        must(on_.cuda.memcpy_dtoh(values.data(), address_, count_ * sizeof(T)), "cuMemcpyDtoH");
        return values;
    }

private:
    const device &on_;
    std::size_t count_;
    ptxgen_cu_deviceptr address_{};
};

void run()
{
    constexpr std::uint32_t k = 512, n = 48;
    device gpu;
    dispatcher_ptr dispatcher([&] {
        ptxgen_dispatcher *made;
        succeed([&](ptxgen_error *err) {
            return ptxgen_dispatcher_create(&gpu.cuda, nullptr, &made, err);
        });
        return made;
    }());

    ptxgen_rmsnorm_q4k_spec spec{};
    spec.k = k;
    spec.n[0] = n;
    spec.epsilon = 1e-6f;
    spec.max_m = 1;
    rmsnorm_ptr kernel([&] {
        ptxgen_rmsnorm_q4k *got;
        succeed([&](ptxgen_error *err) {
            return ptxgen_rmsnorm_q4k_dispatch(dispatcher.get(), &spec, &got, err);
        });
        return got;
    }());

    std::vector<float> x(k), gain(k, 1.0f), y(n);
    std::vector<unsigned char> weights(n * (k / 256) * 144);
    for (std::uint32_t i = 0; i < k; i++)
        x[i] = static_cast<float>(i % 19) / 16 - 0.5f;
    for (std::size_t i = 0; i < weights.size(); i++) // halves below 2, scales and nibbles as they come
        weights[i] = static_cast<unsigned char>(i % 144 < 4 ? 0x24 : i * 29);
    buffer<float> x_on(gpu, x), gain_on(gpu, gain), y_on(gpu, y);
    buffer<unsigned char> weights_on(gpu, weights);

    ptxgen_rmsnorm_q4k_args args{};
    args.x = x_on.address();
    args.gamma = gain_on.address();
    args.w[0] = weights_on.address();
    args.y[0] = y_on.address();
    args.m = 1;
    succeed([&](ptxgen_error *err) {
        return ptxgen_rmsnorm_q4k_launch(kernel.get(), &args, nullptr, err);
    });
    must(gpu.cuda.ctx_synchronize(), "cuCtxSynchronize");
    y = y_on.read();

    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k_operands operands{};
    std::vector<double> wanted(n), bound(n);
    operands.x = x.data();
    operands.gamma = gain.data();
    operands.w[0] = weights.data();
    operands.m = 1;
    succeed([&](ptxgen_error *err) {
        return ptxgen_rmsnorm_q4k_make_plan(&spec, ptxgen_dispatcher_target(dispatcher.get()),
                                            &plan, err);
    });
    succeed([&](ptxgen_error *err) {
        return ptxgen_rmsnorm_q4k_reference(&plan, &operands, 0, 0, n, wanted.data(), bound.data(),
                                            nullptr, err);
    });
    for (std::uint32_t i = 0; i < n; i++)
        if (!ptxgen_rmsnorm_q4k_agrees(y[i], wanted[i], bound[i]))
            throw std::runtime_error("y[" + std::to_string(i) + "] is wrong");
    std::printf("%u outputs are within their bounds; y[0] = %g\n", n, static_cast<double>(y[0]));
}

} // namespace

int main()
{
    try {
        run();
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
}
