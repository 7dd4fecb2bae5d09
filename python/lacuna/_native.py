"""The native module, and what is asked of it."""

from ._errors import Error

try:
    from . import _lacuna as native
except ImportError as error:
    raise ImportError(
        "lacuna's native module cannot be loaded. A wheel for this platform has it (Linux, x86-64); from a checkout, "
        f"`cargo xtask wheel` builds one. The loader said: {error}"
    ) from error

#: The types of values that kernels know, by the numbers that the native module takes.
DTYPES = ("float32", "float16", "bfloat16")

_devices: dict = {}


def cuda_device(index: int) -> "native.Device":
    """GPU `index`: one device a process, whose kernels stay loaded."""
    device = _devices.get(index)
    if device is None:
        if not native.HAS_CUDA:
            raise Error(
                "this build of lacuna has no CUDA support, so that tensors on a GPU cannot be used; install a wheel that has, "
                "or pass CPU arrays within `with lacuna.simulate():`"
            )
        device = _devices.setdefault(index, native.Device.cuda(index))
    return device
