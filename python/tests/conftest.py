"""What tests share: drawn matrices, and bounds of sums."""

import numpy as np
import pytest

import lacuna

#: Half a unit in the last place of 1, of each type.
UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


class Drawn:
    """A random sparse matrix: index arrays, values, and the dense matrix in float64."""

    def __init__(self, rows, cols, zeros, dtype="float32", seed=1, batch=None, index="int32"):
        draw = np.random.default_rng(seed)
        mask = draw.random((rows, cols)) >= zeros
        if rows > 2:
            mask[1] = False  # an empty row
        self.mask, self.shape = mask, (rows, cols)
        self.offsets = np.concatenate([[0], mask.sum(1).cumsum()]).astype(index)
        self.columns = np.nonzero(mask)[1].astype(index)
        size = self.columns.shape if batch is None else (batch, len(self.columns))
        self.values = draw.uniform(-1, 1, size).astype(dtype)
        self.dense = np.zeros((*size[:-1], rows, cols))
        self.dense[..., mask] = self.values.astype(np.float64)

    def sparse(self):
        return lacuna.SparseCsr.from_csr(self.offsets, self.columns, self.values, self.shape)

    def pattern(self):
        return lacuna.Pattern(self.offsets, self.columns, self.shape)


def dense(*shape, dtype="float32", seed=2):
    """A random dense array."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def within(got, expected, magnitude, terms, dtype="float32"):
    """Asserts the bound of a sum: `terms` cuts of float32 (on tensor cores four times its rounding) of at most `magnitude`, with
    products of split numbers 2^-16 of each, and a rounding of the result's type."""
    error = np.abs(got.astype(np.float64) - expected)
    per_term = (terms + 2) * 2.0**-22 + (2.0**-16 if dtype == "float32" else 0)
    bound = magnitude * per_term + np.abs(expected) * 2 * UNIT[dtype] + 2.0**-24
    worst = np.max(error / bound) if error.size else 0.0
    assert worst <= 1, f"{worst} times the bound"


@pytest.fixture
def simulated():
    with lacuna.simulate():
        yield
