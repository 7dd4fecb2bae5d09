"""Work of a second GPU. As `test_torch`, also run by `gpu/check.py`; on a machine with one GPU there is nothing to check."""

import gc

from test_torch import dense, drawn, refused, spread, within

import lacuna
import torch


def test_two_devices():
    if torch.cuda.device_count() < 2:
        return
    pattern, mask, values = drawn(64, 96, 0.5, device="cuda:1")
    with torch.cuda.device(1):
        b = dense(96, 32).to("cuda:1")
    c = lacuna.spmm(lacuna.SparseCsr(pattern, values), b)
    assert torch.cuda.current_device() == 0
    expected = spread(values, mask) @ b.double()
    within(c, expected, spread(values, mask).abs() @ b.double().abs(), 96, torch.float32)
    is_at_home = lambda: torch.cuda.current_device() == 0 and torch.empty(1, device="cuda").device.index == 0
    assert is_at_home()
    # The second GPU's work from the first: planned, direct, with gradients, and what is dropped.
    leaf = values.clone().requires_grad_()
    for _ in range(2):
        lacuna.spmm(lacuna.SparseCsr(pattern, leaf), b).sum().backward()
        assert is_at_home() and leaf.grad.device.index == 1
    layer = lacuna.SparseLinear.from_linear(torch.nn.Linear(96, 64).to("cuda:1"), 0.8).pack()
    x = dense(10, 96, dtype=torch.float16)
    y = layer(x.to("cuda:1"))
    assert is_at_home() and y.device.index == 1
    refused("is another device", lambda: layer(x))
    moved = layer.to("cuda:0")(x)
    assert is_at_home() and torch.equal(moved, y.to("cuda:0"))
    q = dense(2, 128, 64, dtype=torch.float16).to("cuda:1")
    o = lacuna.sparse_attention(q, q, q, lacuna.Mask.causal(128))
    assert is_at_home() and o.device.index == 1
    refused("cuda:1", lambda: lacuna.spmm(lacuna.SparseCsr(pattern, values), dense(96, 32)))
    # A stream of another GPU.
    own, _, own_values = drawn(64, 96, 0.5)
    near = dense(96, 32)
    product = ((torch.cuda.Stream(device=1).cuda_stream, False), 0, 32, 1, (near.data_ptr(), 32, 96 * 32), (near.data_ptr(), 32, 64 * 32), None, False, False)
    refused("another context", lambda: own._handle.spmm(own_values.data_ptr(), 1, product))
    torch.cuda.set_device(0)
    with torch.cuda.device(1):
        torch.cuda.synchronize()
    del pattern, c, layer
    gc.collect()
    assert is_at_home()
