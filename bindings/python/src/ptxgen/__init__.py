# SPDX-License-Identifier: Apache-2.0
"""ptxgen: GPU kernels for quantised inference, written as PTX at run time, with no CUDA toolkit.

    import ptxgen, torch

    device = ptxgen.Device("gpu")
    layer = ptxgen.Linear.from_layer(device, ptxgen.Files("model.safetensors"), "model.layers.0.mlp.down_proj")
    y = layer(torch.randn(8, layer.k, device="cuda", dtype=torch.float16), stream=torch.cuda.current_stream())

Every family is reached by ``Device.dispatch`` and ``Kernel.launch``, whose names are those of the C headers.
On a machine without a GPU, ``Device("cpu:sm_90")`` is an emulated chip, whose arrays are made by
``Device.array`` and read by ``Buffer.numpy``.
"""
from ._library import Error, families
from .arrays import Buffer
from .device import Device
from .files import Files
from .kernel import Kernel
from .linear import Linear

__all__ = ["Buffer", "Device", "Error", "Files", "Kernel", "Linear", "families"]
