"""Runs a network that `lacuna-bench import FILE --export FOLDER` wrote, by PyTorch.

    python3 network.py FOLDER [--samples 15] [--out peers.jsonl]

Writes a JSON object a line: how the network ran, the time of a forward pass in microseconds (median, min, max of replays of a CUDA graph), and
how far the result is from Lacuna's, as a part of the greatest element. Batch norms are folded into weights, as Lacuna has them.
"""

import argparse
import json
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F

from timing import about, captured, microseconds, summary, written


class Network(torch.nn.Module):
    def __init__(self, folder):
        super().__init__()
        self.graph = json.loads((folder / "graph.json").read_text())
        weights = numpy.load(folder / "weights.npz")
        # Names in files have any characters; those of buffers may not.
        self.places = {name: f"tensor{number}" for number, name in enumerate(weights.files)}
        for name, place in self.places.items():
            self.register_buffer(place, torch.from_numpy(weights[name]))

    def tensor(self, layer, part):
        place = self.places.get(f"{layer['name']}.{part}")
        return None if place is None else getattr(self, place)

    def step(self, layer, inputs):
        op, x = layer["op"], inputs[0]
        if op == "conv":
            weight, bias = self.tensor(layer, "weight"), self.tensor(layer, "bias")
            y = F.conv2d(x, weight, bias, layer["strides"], layer["padding"], groups=layer["groups"])
            return clamp(y + inputs[1] if layer["residual"] else y, layer)
        if op == "add":
            return clamp(x + inputs[1], layer)
        if op == "concat":
            return torch.cat(inputs, dim=1)
        if op == "global":
            return x.amax((2, 3), keepdim=True) if layer["mode"] == "max" else x.mean((2, 3), keepdim=True)
        if op == "pool":
            sizes = layer["size"], layer["strides"], layer["padding"]
            if layer["mode"] == "max":
                return F.max_pool2d(x, *sizes)
            return F.avg_pool2d(x, *sizes, count_include_pad=layer["mode"] == "mean")
        if op == "pad":
            (top, left), (bottom, right) = layer["before"], layer["after"]
            return F.pad(x, (left, right, top, bottom), value=layer["value"])
        if op == "pad_channels":
            return F.pad(x, (0, 0, 0, 0, layer["before"], layer["after"]))
        if op == "flatten":
            return x.flatten(1)[:, :, None, None]
        if op == "flatten_nhwc":
            return x.permute(0, 2, 3, 1).flatten(1)[:, :, None, None]
        if op == "resize":
            return F.interpolate(x, layer["size"], mode="bilinear", align_corners=layer["align_corners"])
        if op == "depth_to_space":
            n, c, h, w = x.shape
            b = layer["block"]
            x = x.view(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2)
            return x.reshape(n, c // (b * b), h * b, w * b)
        raise ValueError(f"layer {layer['name']}: no form for {op}")

    def forward(self, x):
        values = {0: x}
        for layer in self.graph["layers"]:
            values[layer["output"]] = self.step(layer, [values[at] for at in layer["inputs"]])
        return values[self.graph["output"]]


def clamp(x, layer):
    least, greatest = layer["clamp"]
    return x if least is None and greatest is None else x.clamp(least, greatest)


# Name, type, whether products may be in TF32, whether channels are last, whether the network is compiled.
WAYS = [
    ("cudnn, fp32", torch.float32, False, False, False),
    ("compiled, fp32", torch.float32, False, False, True),
    ("compiled, fp32, channels last", torch.float32, False, True, True),
    ("compiled, tf32, channels last", torch.float32, True, True, True),
    ("compiled, f16, channels last", torch.float16, False, True, True),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--out")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.backends.cudnn.benchmark = True
    expected = torch.from_numpy(numpy.load(options.folder / "output.npy")).cuda()
    x = torch.from_numpy(numpy.load(options.folder / "input.npy")).cuda()
    for name, dtype, tf32, channels_last, is_compiled in WAYS:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        layout = torch.channels_last if channels_last else torch.contiguous_format
        record = {"network": options.folder.name, "images": x.shape[0], "way": name}
        record |= about()
        with written(record, options.out):
            torch._dynamo.reset()
            network = Network(options.folder).to("cuda", dtype).to(memory_format=layout).eval()
            network = torch.compile(network) if is_compiled else network
            images = x.to(dtype).to(memory_format=layout)
            graph, result = captured(lambda: network(images))
            record["time_us"] = summary(microseconds(graph.replay, options.samples))
            off = (result.float().reshape(expected.shape) - expected).abs().max() / expected.abs().max()
            record["difference"] = off.item()


if __name__ == "__main__":
    main()
