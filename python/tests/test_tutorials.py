"""The snippets of docs/tutorial-*.md, in order: as they stand on a GPU, where `gpu/check.py` runs them, too; else with small sizes on the simulator."""

import contextlib
import pathlib
import re

try:
    import torch
except ImportError:
    import pytest

    pytest.skip("needs PyTorch", allow_module_level=True)

import lacuna

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs"
#: Lines of pages, and what stands in their place without a GPU.
SMALL = {
    'device = "cuda"': 'device = "cpu"',
    "inputs, hidden, tokens, steps = 2048, 8192, 128, 30": "inputs, hidden, tokens, steps = 48, 96, 16, 6",
    "heads, tokens, d, window = 8, 4096, 64, 256": "heads, tokens, d, window = 4, 64, 16, 9",
}


def snippets(page):
    """The Python of a page: code, the line where it begins, and whether it needs a GPU."""
    text = (PAGES / page).read_text(encoding="utf-8")
    found = [(match[2], text[: match.start()].count("\n") + 1, bool(match[1])) for match in re.finditer(r"```python( gpu)?\n(.*?)```", text, re.S)]
    assert len(found) == text.count("```python"), f"{page} has a snippet of another form"
    return found


def run(page, least):
    on_gpu, names, ran = torch.cuda.is_available(), {"__name__": "tutorial"}, 0
    with contextlib.nullcontext() if on_gpu else lacuna.simulate():
        for code, line, needs_gpu in snippets(page):
            if needs_gpu and not on_gpu:
                continue
            if not on_gpu:
                for large, small in SMALL.items():
                    code = code.replace(large, small)
            exec(compile("\n" * line + code, str(PAGES / page), "exec"), names)
            ran += 1
    assert ran >= least, f"only {ran} snippets of {page} ran"


def test_tutorial_of_a_linear_layer():
    run("tutorial-linear.md", 6)


def test_tutorial_of_attention():
    run("tutorial-attention.md", 7)


def test_all_tutorials_are_run():
    assert sorted(page.name for page in PAGES.glob("tutorial-*.md")) == ["tutorial-attention.md", "tutorial-linear.md"]
