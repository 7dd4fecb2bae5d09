"""Times of the Python package on a GPU: what a call costs the host, and training beside dense masked weights and torch.sparse.

    python gpu/times.py [--package FOLDER] [--json]

Times are medians of 30 rounds; host times are of calls that are given to a stream which is never full. Prints a table; with --json a
line for each measurement.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=pathlib.Path, help="the folder that holds `lacuna`")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.package:
        sys.path.insert(0, str(arguments.package.resolve()))
    import torch

    if not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        return 3
    report = Report(arguments.json)
    report.say(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    host_times(report)
    mlp(report)
    transformer(report)
    return 0


class Report:
    """Where measurements go."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def say(self, text: str) -> None:
        if not self.as_json:
            print(text, flush=True)

    def add(self, case: str, what: str, value: float, unit: str) -> None:
        if self.as_json:
            print(json.dumps({"case": case, "what": what, "value": value, "unit": unit}), flush=True)
        else:
            print(f"{case:28} {what:36} {value:10.4g} {unit}", flush=True)


def host(call, calls: int = 200, rounds: int = 30) -> float:
    """Microseconds of the host for a call, the median of rounds."""
    import torch

    times = []
    for _ in range(rounds + 3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times[3:])


def device(call, calls: int = 10, rounds: int = 30) -> float:
    """Microseconds of the GPU for a call that keeps it busy, the median of rounds."""
    import torch

    times = []
    for _ in range(rounds + 3):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(calls):
            call()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) / calls * 1e3)
    return statistics.median(times[3:])


def drawn(rows: int, cols: int, zeros: float, dtype=None):
    """A random sparse matrix, and the same dense."""
    import torch

    import lacuna

    generator = torch.Generator("cuda").manual_seed(1)
    mask = torch.rand(rows, cols, generator=generator, device="cuda") >= zeros
    offsets = torch.cat([mask.new_zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)])
    pattern = lacuna.Pattern(offsets, mask.nonzero()[:, 1], (rows, cols))
    values = pattern.empty_values(dtype or torch.float32)
    values.normal_(generator=generator)
    dense = torch.zeros(rows, cols, device="cuda", dtype=values.dtype)
    dense[mask] = values
    return lacuna.SparseCsr(pattern, values), dense


def host_times(report: Report) -> None:
    """A small product, so that the host is what takes time: the public call, the operator, the checks, and the native call alone."""
    import torch

    import lacuna
    from lacuna import _ops
    from lacuna._cuda import Cuda

    a, dense = drawn(64, 64, 0.9)
    b = torch.randn(64, 32, device="cuda")
    c = torch.empty(64, 32, device="cuda")
    handle, _ = a.pattern.handle_on(Cuda(0))
    stream = torch.cuda.current_stream().cuda_stream
    product = ((stream, stream), 0, 32, 1, (b.data_ptr(), 32, 64 * 32), (c.data_ptr(), 32, 64 * 32), None, False, False)
    values = a.values.data_ptr()
    case = "host, spmm 64×64×32"
    report.add(case, "native call (Rust with its launch)", host(lambda: handle.spmm(values, 1, product)), "us")
    report.add(case, "checks, result, native call", host(lambda: _ops.spmm(Cuda(0), a.pattern, a.values, b, None, False, False)), "us")
    report.add(case, "lacuna.spmm", host(lambda: lacuna.spmm(a, b)), "us")
    a.values.requires_grad_()
    report.add(case, "lacuna.spmm with gradients", host(lambda: lacuna.spmm(a, b)), "us")
    report.add(case, "torch.mm of dense", host(lambda: torch.mm(dense, b)), "us")
    sparse = dense.to_sparse_csr()
    report.add(case, "torch.sparse.mm", host(lambda: torch.sparse.mm(sparse, b)), "us")


def train(report: Report, case: str, networks: dict, batch, rounds: int = 30) -> None:
    """Steps of Adam of each network: (parameters, forward) by name. Reports times, the first and the last loss."""
    import torch

    for name, (parameters, forward) in networks.items():
        optimizer = torch.optim.Adam(parameters, lr=1e-3)
        losses = []

        def step():
            optimizer.zero_grad()
            loss = (forward(batch[0]) - batch[1]).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())

        report.add(case, f"{name}: a step", device(step, calls=5, rounds=rounds), "us")
        report.add(case, f"{name}: first loss", losses[0].item(), "")
        report.add(case, f"{name}: loss after {len(losses)} steps", losses[-1].item(), "")


def mlp(report: Report, zeros: float = 0.9) -> None:
    """Two layers of 2048×2048 weights, 1024 samples: sparse, dense masked, and by torch.sparse."""
    import copy

    import torch

    import lacuna

    torch.manual_seed(1)
    linears = [torch.nn.Linear(2048, 2048, device="cuda") for _ in range(2)]
    layers = [lacuna.SparseLinear.from_linear(linear, zeros) for linear in linears]
    masks = [(linear.weight.abs() >= layer.values.abs().min()).float() for linear, layer in zip(linears, layers)]
    batch = torch.randn(1024, 2048, device="cuda"), torch.randn(1024, 2048, device="cuda")
    masked, theirs = copy.deepcopy(linears), copy.deepcopy(layers)

    def dense(x):
        x = torch.nn.functional.linear(x, masked[0].weight * masks[0], masked[0].bias).relu()
        return torch.nn.functional.linear(x, masked[1].weight * masks[1], masked[1].bias)

    def torch_sparse(x):
        x = x.t()
        for index, layer in enumerate(theirs):
            weights = torch.sparse_csr_tensor(layer.crow_indices, layer.col_indices, layer.values, (2048, 2048))
            x = torch.sparse.mm(weights, x.relu() if index else x) + layer.bias[:, None]
        return x.t()

    networks = {
        "lacuna": ([p for layer in layers for p in layer.parameters()], lambda x: layers[1](layers[0](x).relu())),
        "dense masked": ([p for linear in masked for p in linear.parameters()], dense),
        "torch.sparse": ([p for layer in theirs for p in layer.parameters()], torch_sparse),
    }
    for name, network in networks.items():
        try:
            train(report, f"MLP, {zeros:.0%} zeros", {name: network}, batch)
        except (RuntimeError, NotImplementedError) as error:
            report.say(f"MLP: {name} cannot: {str(error).splitlines()[0]}")


def transformer(report: Report, tokens: int = 2048, window: int = 128, width: int = 512, heads: int = 8) -> None:
    """Two blocks with causal attention in a window, f32: by lacuna, and by dense masked attention."""
    import copy

    import torch

    import lacuna

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
            self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.mlp = torch.nn.Sequential(
                torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
            )

        def forward(self, x, attend):
            # tokens × 3 × heads × d, as heads × tokens × d
            q, k, v = self.qkv(self.norms[0](x)).unflatten(1, (3, heads, width // heads)).permute(1, 2, 0, 3)
            x = x + self.out(attend(q, k, v).transpose(0, 1).reshape(tokens, width))
            return x + self.mlp(self.norms[1](x))

    torch.manual_seed(2)
    ours = torch.nn.ModuleList(Block() for _ in range(2)).cuda()
    theirs = copy.deepcopy(ours)
    rule = lacuna.Mask.sliding_window(tokens, window)
    place = torch.arange(tokens, device="cuda")
    seen = (place[:, None] >= place) & (place[:, None] - place < window)

    def run(blocks, attend):
        def forward(x):
            for block in blocks:
                x = block(x, attend)
            return x

        return list(blocks.parameters()), forward

    attention = torch.nn.functional.scaled_dot_product_attention
    batch = torch.randn(tokens, width, device="cuda"), torch.randn(tokens, width, device="cuda")
    networks = {
        "lacuna": run(ours, lambda q, k, v: lacuna.sparse_attention(q, k, v, rule)),
        "dense masked": run(theirs, lambda q, k, v: attention(q[None], k[None], v[None], attn_mask=seen)[0]),
    }
    train(report, f"Transformer, {tokens} tokens, {window} seen", networks, batch)


if __name__ == "__main__":
    sys.exit(main())
