"""What the tests on a Hopper device share: PyTorch, tensors, and why they are left out."""

import octet
from octet import deep_gemm


def why_not():
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    if not torch.cuda.is_available():
        return "no CUDA device"
    try:
        octet.cuda.device_spec(0)
    except octet.Error as error:
        return str(error)
    return "" if octet.cuda.kernel_names() else "the library was built without kernels"


WHY_NOT = why_not()
DEVICE = "cuda"


def normal(*shape):
    import torch

    return torch.randn(*shape, dtype=torch.bfloat16, device=DEVICE)


def bits(x):
    import torch

    return x.cpu().reshape(-1).view(torch.uint8).numpy().tobytes()


def on_host(x):
    return tuple(y.cpu() for y in x) if isinstance(x, tuple) else x.cpu()


def small(m=64, n=512, k=1024):
    import torch

    a = deep_gemm.per_token_cast_to_fp8(normal(m, k), False)
    b = deep_gemm.per_block_cast_to_fp8(normal(n, k), False)
    d = torch.zeros(m, n, dtype=torch.bfloat16, device=DEVICE)
    deep_gemm.fp8_gemm_nt(a, b, d)
    return a, b, d
