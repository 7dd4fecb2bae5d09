"""Times of the Python package on a GPU: what a call costs the host, and training beside dense masked weights and torch.sparse.

    python gpu/times.py [--package FOLDER] [--json FILE] [--revision R] [host | attention | scores | mlp | transformer …]

Times are medians of 30 rounds; host times are of calls that are given to a stream which is never full. Prints a table; with --json also
writes a line for each measurement, as records in benches/records/python are.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time


def main() -> int:
    parts = {"host": host_times, "attention": attention, "scores": scores, "mlp": mlp, "transformer": transformer}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=pathlib.Path, help="the folder that holds `lacuna`")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="writes records, a line each")
    parser.add_argument("--revision", help="of the package, for records; else that of the checkout around, or unknown")
    parser.add_argument("parts", nargs="*", help="host, attention, scores, mlp, transformer; all if none")
    arguments = parser.parse_args()
    unknown = [part for part in arguments.parts if part not in parts]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}, but {', '.join(parts)}")
    if arguments.package:
        sys.path.insert(0, str(arguments.package.resolve()))
    import torch

    if not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        return 3
    report = Report(arguments.revision or checkout())
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
    for part in arguments.parts or parts:
        parts[part](report)
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in report.lines))
    return 0


def checkout() -> str:
    """The revision of the checkout that this file is in, with a word where it is changed."""
    git = ["git", "-C", str(pathlib.Path(__file__).resolve().parent)]
    try:
        revision = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return revision + ("-dirty" if changed else "")


class Report:
    """Where measurements go: a table, and records."""

    def __init__(self, revision: str) -> None:
        import torch

        import lacuna

        major, minor = torch.cuda.get_device_capability()
        self.lines: list = []
        self.about = {
            "torch": torch.__version__,
            "python": sys.version.split()[0],
            "lacuna": lacuna.__version__,
            "device": torch.cuda.get_device_name(),
            "sm": 10 * major + minor,
            "driver": driver(),
            "revision": revision,
        }

    def time(self, case: str, what: str, rounds: list) -> float:
        """Microseconds of each round; gives the median."""
        median = statistics.median(rounds)
        print(f"{case:28} {what:44} {median:10.4g} us", flush=True)
        time_us = {"median": median, "min": min(rounds), "max": max(rounds)}
        self.lines.append({"op": "python", "case": case, "what": what, "time_us": time_us, **self.about})
        return median

    def value(self, case: str, what: str, value: float) -> None:
        print(f"{case:28} {what:44} {value:10.4g}", flush=True)
        self.lines.append({"op": "python", "case": case, "what": what, "value": value, **self.about})


def driver() -> str:
    """The driver's own number, if `nvidia-smi` tells it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def host(call, calls: int = 200, rounds: int = 30) -> list:
    """Microseconds of the host for a call, of each round."""
    import torch

    times = []
    for _ in range(rounds + 3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
    torch.cuda.synchronize()
    return times[3:]


def device(call, calls: int = 10, rounds: int = 30) -> list:
    """Microseconds of the GPU for a call that keeps it busy, of each round."""
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
    return times[3:]


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
    """A small product, so that the host is what takes time: the whole call, and its parts alone."""
    import torch

    import lacuna
    from lacuna import _ops
    from lacuna._cuda import Cuda

    a, dense = drawn(64, 64, 0.9)
    b = torch.randn(64, 32, device="cuda")
    c = torch.empty(64, 32, device="cuda")
    handle, _ = a.pattern.handle_on(Cuda(0))
    stream = torch.cuda.current_stream().cuda_stream
    product = ((stream, False), 0, 32, 1, (b.data_ptr(), 32, 64 * 32), (c.data_ptr(), 32, 64 * 32), None, False, False)
    values, pattern = a.values, a.pattern
    address = values.data_ptr()
    case = "host, spmm 64×64×32"
    add = lambda what, call: report.time(case, what, host(call))
    lacuna.spmm(a, b)
    native = add("native call by addresses (Rust, with its launch)", lambda: handle.spmm(address, 1, product))
    add("native call that refuses at once", lambda: handle.spmm_direct(None, None, None, False, False))
    add("native call by tensors, with its result", lambda: handle.spmm_direct(values, b, None, False, False))
    add("torch.empty", lambda: torch.empty((64, 32), device="cuda"))
    add("the way of errors and first calls", lambda: _ops.spmm(Cuda(0), pattern, values, b, None, False, False))
    whole = add("lacuna.spmm", lambda: lacuna.spmm(a, b))
    report.value(case, "lacuna.spmm less the native call, in us", whole - native)
    add("torch.ops.lacuna.spmm", lambda: torch.ops.lacuna.spmm(values, b, None, pattern.id, 64, False, False))
    learned = lacuna.SparseCsr(pattern, pattern.empty_values(torch.float32).copy_(values).requires_grad_())
    add("lacuna.spmm with gradients", lambda: lacuna.spmm(learned, b))
    add(
        "torch.ops.lacuna.spmm with gradients",
        lambda: torch.ops.lacuna.spmm(learned.values, b, None, pattern.id, 64, False, False),
    )
    b_learned, gradient = b.clone().requires_grad_(), torch.randn(64, 32, device="cuda")
    add(
        "lacuna.spmm and its gradients",
        lambda: torch.autograd.grad(lacuna.spmm(learned, b_learned), (learned.values, b_learned), gradient),
    )
    add("torch.mm of dense", lambda: torch.mm(dense, b))
    dense_learned = dense.clone().requires_grad_()
    add("torch.mm with gradients", lambda: torch.mm(dense_learned, b))
    add(
        "torch.mm and its gradients",
        lambda: torch.autograd.grad(torch.mm(dense_learned, b_learned), (dense_learned, b_learned), gradient),
    )
    sparse = dense.to_sparse_csr()
    add("torch.sparse.mm", lambda: torch.sparse.mm(sparse, b))


def attention(report: Report, tokens: int = 4096, heads: int = 8, dim: int = 64) -> None:
    """Causal attention in f16, forward and with its gradients: by blocks of a mask by rule, and PyTorch's."""
    import torch

    import lacuna

    case = f"attention, {heads}×{tokens}×{dim}, f16"
    q, k, v, d_o = (torch.randn(heads, tokens, dim, device="cuda", dtype=torch.float16) for _ in range(4))
    operands = [x.requires_grad_() for x in (q, k, v)]
    rule = lacuna.Mask.causal(tokens)
    theirs = torch.nn.functional.scaled_dot_product_attention
    ways = {
        "lacuna": lambda: lacuna.sparse_attention(*operands, rule),
        "torch, is_causal": lambda: theirs(*(x[None] for x in operands), is_causal=True)[0],
    }
    gradients = {}
    for name, forward in ways.items():
        both = lambda: torch.autograd.grad(forward(), operands, d_o)
        gradients[name] = both()
        with torch.no_grad():
            report.time(case, f"{name}: forward", device(forward))
        report.time(case, f"{name}: forward and gradients", device(both))
    pairs = zip(*gradients.values())
    report.value(case, "largest difference of gradients", max((x - y).abs().max().item() for x, y in pairs))


def scores(report: Report, tokens: int = 8192, heads: int = 8) -> None:
    """Causal attention in f16 with scores within a soft cap, and lessened by distance; and FlexAttention's, which compiles what is done to scores."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    import lacuna

    rule = lacuna.Mask.causal(tokens)
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, tokens, tokens, device="cuda")
    slopes = 2.0 ** -torch.arange(1, heads + 1, device="cuda", dtype=torch.float32)
    cap = 50.0
    modified = {
        "plain": ({}, None),
        "soft cap": ({"softcap": cap}, lambda s, b, h, q, k: cap * torch.tanh(s / cap)),
        "ALiBi": ({"alibi_slopes": slopes}, lambda s, b, h, q, k: s - slopes[h] * (q - k)),
    }
    theirs = torch.nn.functional.scaled_dot_product_attention
    for dim in (64, 128, 256):
        case = f"scores, {heads}×{tokens}×{dim}, f16, causal"
        operands = [torch.randn(heads, tokens, dim, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3)]
        q, k, v = (x[None] for x in operands)
        d_o = torch.randn_like(operands[0])
        ways = {"torch, is_causal": lambda: theirs(q, k, v, is_causal=True)[0]}
        for name, (options, change) in modified.items():
            torch._dynamo.reset()
            flex = torch.compile(flex_attention, dynamic=False)
            ways[f"lacuna, {name}"] = lambda options=options: lacuna.sparse_attention(*operands, rule, **options)
            ways[f"flex, {name}"] = lambda flex=flex, change=change: flex(q, k, v, score_mod=change, block_mask=mask)[0]
        for name, forward in ways.items():
            try:
                with torch.no_grad():
                    report.time(case, f"{name}: forward", device(forward))
                if dim <= 128:
                    # Above, ours goes in three steps.
                    both = lambda: torch.autograd.grad(forward(), operands, d_o)
                    report.time(case, f"{name}: forward and gradients", device(both))
            except Exception as error:
                # FlexAttention's compiler finds no kernel for some.
                print(f"{case}: {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)


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

        report.time(case, f"{name}: a step", device(step, calls=5, rounds=rounds))
        report.value(case, f"{name}: first loss", losses[0].item())
        report.value(case, f"{name}: loss after {len(losses)} steps", losses[-1].item())


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
            print(f"MLP: {name} cannot: {str(error).splitlines()[0]}", flush=True)


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
