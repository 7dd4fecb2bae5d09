"""Layers on a GPU. As `test_torch`, also run by `gpu/check.py`."""

import copy

from test_torch import UNIT, dense

import lacuna
import torch


def test_sparse_linear():
    torch.manual_seed(1)
    linear = torch.nn.Linear(200, 120).cuda()
    layer = lacuna.SparseLinear.from_linear(linear, 0.9)
    assert layer.values.numel() == round(0.1 * 200 * 120)
    mask = linear.weight.abs() >= layer.values.abs().min()
    for shape in ((200,), (33, 200), (2, 5, 200)):
        x = dense(*shape).requires_grad_()
        y = layer(x)
        want = torch.nn.functional.linear(x.double(), (linear.weight * mask).double(), linear.bias.double())
        assert y.shape == want.shape and (y - want).abs().max() < 1e-4
    y.square().mean().backward()
    assert layer.values.grad.isfinite().all() and layer.bias.grad.isfinite().all()

    # Layers in a row copy nothing but the first input.
    second = lacuna.SparseLinear.from_linear(torch.nn.Linear(120, 64).cuda(), 0.8)
    hidden = layer(dense(33, 200)).relu()
    assert hidden.reshape(-1, 120).t().is_contiguous()
    assert second(hidden).shape == (33, 64)

    other = copy.deepcopy(layer)
    other.load_state_dict(layer.state_dict())
    x = dense(33, 200)
    assert torch.equal(other(x), layer(x))
    half = copy.deepcopy(layer).half()
    assert half(x.half()).dtype == torch.float16
    exact = half(x.half())
    packed = half.pack(torch.float16)(x.half())
    assert (packed - exact).abs().max() <= 4 * UNIT[torch.float16] * exact.abs().max()


def test_training_reaches_the_loss_of_dense_masked_weights():
    torch.manual_seed(2)
    linears = [torch.nn.Linear(64, 128).cuda(), torch.nn.Linear(128, 8).cuda()]
    layers = [lacuna.SparseLinear.from_linear(linear, 0.8) for linear in linears]
    masks = [(linear.weight.abs() >= layer.values.abs().min()).float() for linear, layer in zip(linears, layers)]
    x, target = dense(256, 64), dense(256, 8, seed=5)

    def masked(x):
        for index, (linear, mask) in enumerate(zip(linears, masks)):
            x = torch.nn.functional.linear(x.relu() if index else x, linear.weight * mask, linear.bias)
        return x

    def ours(x):
        return layers[1](layers[0](x).relu())

    losses = []
    for network, parameters in ((masked, [p for l in linears for p in l.parameters()]), (ours, [p for l in layers for p in l.parameters()])):
        optimizer = torch.optim.SGD(parameters, lr=0.5)
        for _ in range(60):
            optimizer.zero_grad()
            loss = (network(x) - target).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert abs(losses[0] - losses[1]) < 1e-3 * losses[0], losses
