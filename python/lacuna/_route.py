"""Which way a call goes that the native module did not take at once: through PyTorch's dispatcher, or to the checks in Python."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

from ._cuda import from_dlpack
from ._errors import Error

_PLAIN = (Tensor, torch.nn.Parameter)


def learns(*tensors: Any) -> bool:
    """Whether these are tensors, and gradients of one of them are wanted. Asked of what is not dispatched: of CPU tensors, on the simulator."""
    given = [tensor for tensor in tensors if tensor is not None]
    if not torch.is_grad_enabled() or not all(isinstance(tensor, Tensor) for tensor in given):
        return False
    return any(tensor.requires_grad for tensor in given)


def as_tensors(*operands: Any) -> tuple:
    """The operands, those of other libraries as PyTorch's tensors where gradients of one are wanted: only tensors learn."""
    if not learns(*(operand for operand in operands if isinstance(operand, Tensor))):
        return operands
    return tuple(x if x is None or isinstance(x, Tensor) else from_dlpack(x, "an operand") for x in operands)


def is_dispatched(*tensors: Any) -> bool:
    """Whether PyTorch's dispatcher must see a call of these operands: tensors on a GPU that are traced, learn, or are of a subclass.
    Others are checked by the Python files, and given to the native module."""
    on_gpu = False
    for tensor in tensors:
        if tensor is not None:
            if not isinstance(tensor, Tensor):
                return False
            on_gpu = on_gpu or tensor.is_cuda
    if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors if tensor is not None):
        raise Error("lacuna: an operand has a forward-mode derivative, but there are none of Lacuna's operators; use backward gradients")
    if not on_gpu:
        return False
    if is_dynamo_compiling():
        return True
    may_learn = torch.is_grad_enabled()
    for tensor in tensors:
        if tensor is not None and (type(tensor) not in _PLAIN or (may_learn and tensor.requires_grad)):
            return True
    return False
