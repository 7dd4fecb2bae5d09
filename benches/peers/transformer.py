"""The dense twins of `lacuna-bench model --suite table3`: the Transformer of table III (SC 2020) by PyTorch, with dense causal attention.

    python3 transformer.py [--tokens 12288] [--samples 15] [--out twins.jsonl]

Writes a JSON object a line: time of a forward pass in microseconds (median, min, max of replays of a CUDA graph), tokens a second, and the
most memory that tensors took during a pass, weights not counted. Weights are drawn: they are for speed.
"""

import argparse

import torch
import torch.nn.functional as F

from timing import about, captured, microseconds, summary, written

LAYERS, HEADS, HIDDEN, FILTER, VOCABULARY = 3, 8, 1024, 4096, 256


def scores_stored(q, k, v):
    """Attention with its scores in memory, as table III's dense Transformer has it."""
    tokens = q.shape[-2]
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    hidden = torch.ones(tokens, tokens, dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill_(hidden, float("-inf")), dim=-1) @ v


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Layer(torch.nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention
        self.norm1, self.norm2 = torch.nn.LayerNorm(HIDDEN), torch.nn.LayerNorm(HIDDEN)
        self.qkv = torch.nn.Linear(HIDDEN, 3 * HIDDEN, bias=False)
        self.out = torch.nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.fc1, self.fc2 = torch.nn.Linear(HIDDEN, FILTER), torch.nn.Linear(FILTER, HIDDEN)

    def forward(self, x):
        tokens = x.shape[0]
        qkv = self.qkv(self.norm1(x)).view(tokens, 3, HEADS, HIDDEN // HEADS).permute(1, 2, 0, 3)
        heads = self.attention(*(part.unsqueeze(0) for part in qkv)).squeeze(0)
        x = x + self.out(heads.transpose(0, 1).reshape(tokens, HIDDEN))
        return x + self.fc2(F.relu(self.fc1(self.norm2(x))))


class Transformer(torch.nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.layers = torch.nn.Sequential(*(Layer(attention) for _ in range(LAYERS)))
        self.norm, self.logits = torch.nn.LayerNorm(HIDDEN), torch.nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, x):
        return self.logits(self.norm(self.layers(x)))


def measure(model, x, samples):
    """Times of replays, and the bytes that a pass takes beside weights and input."""
    model(x)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    model(x)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    return microseconds(captured(lambda: model(x))[0].replay, samples, 1), peak


# Name, attention, type, whether products may be in TF32, whether the model is compiled.
TWINS = [
    ("scores stored, fp32", scores_stored, torch.float32, False, False),
    ("sdpa, fp32", sdpa, torch.float32, False, False),
    ("sdpa compiled, fp32", sdpa, torch.float32, False, True),
    ("sdpa compiled, tf32", sdpa, torch.float32, True, True),
    ("sdpa compiled, f16", sdpa, torch.float16, False, True),
    ("sdpa compiled, bf16", sdpa, torch.bfloat16, False, True),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=12288)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--out")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    for name, attention, dtype, tf32, is_compiled in TWINS:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        record = {"twin": name, "tokens": options.tokens} | about()
        with written(record, options.out):
            model = Transformer(attention).to("cuda", dtype).eval()
            x = torch.randn(options.tokens, HIDDEN, device="cuda", dtype=dtype)
            times, peak = measure(torch.compile(model) if is_compiled else model, x, options.samples)
            record["time_us"] = summary(times)
            record |= {"tokens_per_s": options.tokens / record["time_us"]["median"] * 1e6, "peak_bytes": peak}


if __name__ == "__main__":
    main()
