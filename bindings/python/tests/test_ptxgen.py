# SPDX-License-Identifier: Apache-2.0
"""The package on the emulator, against numpy and the outputs that checkpoints carry."""
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import ptxgen

GOLDEN = pathlib.Path(__file__).parents[3] / "tests" / "golden"
INCLUDE = pathlib.Path(__file__).parents[3] / "include"
MARLIN = GOLDEN / "marlin_g128.safetensors"
PRODUCTS = GOLDEN / "gguf_products.gguf"
SPARSE = GOLDEN / "sparse24_torch.safetensors"


@pytest.fixture(scope="module")
def device():
    with ptxgen.Device("cpu:sm_80", cache=False) as opened:
        yield opened


def dense_problem(device, m=3, n=40, k=64):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((m, k)).astype("f2"), rng.standard_normal((n, k)).astype("f2")
    return x, w, device.dispatch("dense", n=n, k=k, type="f16")


def test_a_product_is_that_of_numpy(device):
    x, w, kernel = dense_problem(device)
    y = device.zeros((3, 40))
    kernel.launch(x=device.array(x), w=device.array(w), y=y)
    np.testing.assert_allclose(y.numpy(), x.astype("f8") @ w.T.astype("f8"), rtol=2e-3, atol=2e-3)


class InterfaceArray:
    """What cupy shows of an array on a device: version 3 of the CUDA array interface."""

    def __init__(self, buffer, first_row=0, columns=None):
        rows, width = buffer.shape
        item = buffer.dtype.itemsize
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (rows - first_row, columns or width),
            "typestr": buffer.dtype.str,
            "data": (buffer.address + first_row * width * item, False),
            "strides": (width * item, item) if columns else None,
        }
        self.buffer = buffer


class InterfaceStream:
    """What cupy shows of a stream."""

    ptr = 0


def test_arrays_with_a_cuda_array_interface_are_taken_as_they_are(device):
    x, w, kernel = dense_problem(device)
    wide = np.zeros((5, 96), "f2")
    wide[2:, :64] = x
    y = device.zeros((3, 40))
    kernel.launch(x=InterfaceArray(device.array(wide), first_row=2, columns=64), w=InterfaceArray(device.array(w)),
                  y=InterfaceArray(y), stream=InterfaceStream())
    np.testing.assert_allclose(y.numpy(), x.astype("f8") @ w.T.astype("f8"), rtol=2e-3, atol=2e-3)


def test_strings_name_enumerators(device):
    x, w, _ = dense_problem(device)
    kernel = device.dispatch("dense", n=40, k=64, type="f16", activation="relu")
    y = device.zeros((3, 40))
    kernel.launch(x=device.array(x), w=device.array(w), y=y)
    np.testing.assert_allclose(y.numpy(), np.maximum(x.astype("f8") @ w.T.astype("f8"), 0), rtol=2e-3, atol=2e-3)
    with pytest.raises(ValueError, match="activation='swish' names nothing"):
        device.dispatch("dense", n=40, k=64, activation="swish")


def test_what_is_wrong_is_named(device):
    x, w, kernel = dense_problem(device)
    with pytest.raises(ValueError, match="no family is named 'densse'; there are .*dense"):
        device.dispatch("densse", n=8, k=8)
    with pytest.raises(TypeError, match="a spec has no 'nn'"):
        device.dispatch("dense", nn=8, k=8)
    with pytest.raises(TypeError, match="a launch has no 'z'"):
        kernel.launch(x=device.array(x), z=1)
    with pytest.raises(TypeError, match="x: ndarray is no array on a device"):
        kernel.launch(x=x)
    with pytest.raises(ptxgen.Error, match="K = 100 is not a multiple of 16") as refused:
        device.dispatch("marlin", n=64, k=100, group_size=128)
    assert refused.value.status == "PTXGEN_ERROR_UNSUPPORTED"
    with pytest.raises(ptxgen.Error, match="y ") as small:
        kernel.launch(x=device.array(x), w=device.array(w), y=device.zeros((2, 40)))
    assert small.value.status == "PTXGEN_ERROR_INVALID_ARGUMENT"
    with pytest.raises(ValueError, match="no device is named 'tpu'"):
        ptxgen.Device("tpu")


def test_what_outlives_its_device_refuses():
    with ptxgen.Device("cpu:sm_80", cache=False) as opened:
        x, w, kernel = dense_problem(opened)
        on_device = opened.array(x)
    with pytest.raises(ValueError, match="the device of this kernel was closed"):
        kernel.launch(x=on_device, w=on_device, y=on_device)
    with pytest.raises(ValueError, match="the device was closed"):
        on_device.numpy()
    del kernel, on_device


def test_workspaces_are_kept_by_stream(device):
    x, w, _ = dense_problem(device, m=16, n=64, k=4096)
    kernel = device.dispatch("dense", n=64, k=4096, type="f16")
    x, w, outputs = device.array(x), device.array(w), []
    for _ in range(3):
        y = device.zeros((16, 64))
        kernel.launch(x=x, w=w, y=y)
        outputs.append(y.numpy())
    assert all(np.array_equal(outputs[0], other) for other in outputs[1:])
    assert [len(kept) for kept in kernel._workspaces.values()] == [1]


@pytest.mark.parametrize("layer, format", [("gptq", None), ("gptq", "gptq"), ("marlin", None)])
def test_a_layer_of_a_file_gives_the_files_own_output(device, layer, format):
    files = ptxgen.Files(MARLIN)
    linear = ptxgen.Linear.from_layer(device, files, layer, format=format)
    assert linear.family == "marlin"
    y = linear(device.array(files["A"])).numpy()
    wanted = files["C"].astype("f8")
    assert y.shape == wanted.shape
    assert np.abs(y - wanted).max() <= 2e-3 * np.abs(wanted).max()


def test_gate_and_up_are_one_layer(device):
    files = ptxgen.Files(MARLIN)
    linear = ptxgen.Linear.from_layer(device, files, "gptq", up="gptq", max_m=8)
    y = linear(device.array(files["A"])).numpy()
    v = files["C"].astype("f8")
    wanted = v / (1 + np.exp(-v)) * v
    assert np.abs(y - wanted).max() <= 4e-3 * np.abs(wanted).max()


def test_layers_of_other_families_are_found_too(device):
    files = ptxgen.Files(PRODUCTS)
    x = files["input"].astype("f4")
    for name in ("q4_k", "q6_k", "q8_0.weight"):
        linear = ptxgen.Linear.from_layer(device, files, name, type="f32", max_m=8)
        assert linear.family == "gguf_linear"
        wanted = files[name.split(".")[0] + ".y"]
        y = linear(device.array(x)).numpy()
        assert np.abs(y - wanted).max() <= 1e-3 * np.abs(wanted).max()
    sparse = ptxgen.Files(SPARSE)
    for format in (None, "dense"):
        linear = ptxgen.Linear.from_layer(device, sparse, "f16", format=format, max_m=8)
        assert linear.family == "sparse24"
        x = np.ones((2, linear.k), "f2")
        wanted = sparse["f16.dense"].astype("f8").sum(axis=1)
        assert np.abs(linear(device.array(x)).numpy() - wanted).max() <= 2e-3 * np.abs(wanted).max() + 2e-2
    linear = ptxgen.Linear.from_layer(device, sparse, "s8", max_m=8)
    x, scale = np.ones((2, linear.k), "i1"), np.array([0.5, 2], "f4")
    y = linear(device.array(x), x_scale=device.array(scale)).numpy()
    wanted = scale[:, None] * sparse["s8.dense"].astype("f8").sum(axis=1)
    assert y.dtype == np.float16 and np.abs(y - wanted).max() <= 1e-3 * np.abs(wanted).max()


def test_what_is_no_layer_is_refused(device):
    files = ptxgen.Files(MARLIN)
    with pytest.raises(ptxgen.Error, match='did you mean "gptq"'):
        ptxgen.Linear.from_layer(device, files, "gtpq")
    with pytest.raises(ValueError, match="format='gtpq' is no form of a layer"):
        ptxgen.Linear.from_layer(device, files, "gptq", format="gtpq")
    with pytest.raises(ValueError, match="type='f64'"):
        ptxgen.Linear.from_layer(device, files, "gptq", type="f64")
    with pytest.raises(ptxgen.Error, match="max_m = 0 is not from 1 to 65536"):
        ptxgen.Linear.from_layer(device, files, "gptq", max_m=0)
    with ptxgen.Device("cpu:sm_80", cache=False) as other:
        linear = ptxgen.Linear.from_layer(other, files, "gptq", max_m=2)
        x = other.zeros((1, linear.k), "f2")
    with pytest.raises(ValueError, match="the device of this layer was closed"):
        linear(x)


def test_what_is_no_matrix_of_the_layers_type_is_refused(device):
    linear = ptxgen.Linear.from_layer(device, ptxgen.Files(MARLIN), "gptq")
    with pytest.raises(ValueError, match="x has 3 dimensions; reshape it to rows"):
        linear(device.zeros((2, 3, linear.k), "f2"), device.zeros((6, linear.n), "f2"))
    with pytest.raises(ValueError, match="x: its elements have 4 bytes, those of the layer's type 2"):
        linear(device.zeros((2, linear.k), "f4"))
    with ptxgen.Device("cpu:sm_90", cache=False) as other:
        with pytest.raises(ValueError, match="x is a buffer of another device"):
            linear(other.zeros((2, linear.k), "f2"))


def test_files_are_read_in_place():
    files = ptxgen.Files(MARLIN)
    assert len(files) == len(list(files)) and "A" in files
    array = files["A"]
    assert not array.flags.writeable and array.dtype == np.float16
    del files  # the array keeps the file open
    assert np.isfinite(array.astype("f8")).all()
    with pytest.raises(ptxgen.Error, match='did you mean "A"'):
        ptxgen.Files(MARLIN)["AA"]
    gguf = ptxgen.Files(GOLDEN / "q4k.gguf")
    name = "blk.0.attn_q.weight"
    assert gguf.dtype(name) == "Q4_K" and gguf[name].shape == (96, 1024 // 256 * 144)


def test_rmsnorm_q4k_takes_arrays_of_matrices(device):
    gguf = ptxgen.Files(GOLDEN / "q4k.gguf")
    k, n, x = 1024, 96, gguf["input"].reshape(-1, 1024).astype("f4")
    kernel = device.dispatch("rmsnorm_q4k", k=k, n=[n, n], epsilon=1e-6, x_type="f32", y_type="f32", max_m=8)
    w, y = device.array(gguf["blk.0.attn_q.weight"]), [device.zeros((len(x), n), "f4") for _ in range(2)]
    kernel.launch(x=device.array(x), gamma=device.array(gguf["blk.0.attn_norm.weight"]), w=[w, w], y=y)
    wanted = gguf["expected.output"].reshape(-1, n)
    for output in y:
        np.testing.assert_allclose(output.numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_the_readme_does_what_it_says(capsys):
    text = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    code = text.split("```python\n")[3].split("```")[0]
    done = subprocess.run([sys.executable, "-c", code.replace("import numpy", "import ptxgen, numpy", 1)],
                          check=True, text=True, stdout=subprocess.PIPE)
    assert done.stdout.count("1.") == 16


def test_layouts_are_those_of_the_compiler(tmp_path):
    """Each struct that cffi has laid out has the compiler's size, and its members their places."""
    from ptxgen._library import ffi
    lines, wanted = [], []
    for name in ffi.list_types()[0]:
        kind = ffi.typeof(name)
        try:
            size = ffi.sizeof(kind)
        except ffi.error:  # opaque
            continue
        if kind.kind != "struct":
            continue
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        wanted.append(size)
        for member, field in kind.fields:
            if member and field.bitsize < 0:
                lines.append(f'printf("%zu\\n", offsetof({name}, {member}));')
                wanted.append(field.offset)
    headers = "".join(f"#include <ptxgen/{h.name}>\n" for h in sorted((INCLUDE / "ptxgen").glob("*.h"))
                      if h.name != "ptx.h")
    source = tmp_path / "layouts.c"
    source.write_text(f"#include <stdio.h>\n{headers}int main(void)\n{{\n" + "\n".join(lines) + "\n}\n")
    subprocess.run(["cc", f"-I{INCLUDE}", "-o", tmp_path / "layouts", source], check=True)
    printed = subprocess.run([tmp_path / "layouts"], check=True, text=True, stdout=subprocess.PIPE).stdout
    assert len(wanted) > 300
    assert [int(line) for line in printed.split()] == wanted


def test_all_families_are_there():
    assert ptxgen.families() == ["dense", "gguf_linear", "gguf_rows", "marlin", "marlin_repack", "quantise", "rmsnorm_q4k",
                                 "sparse24", "w8a8"]
