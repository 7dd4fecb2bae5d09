"""What is wrong is an exception with the library's text, and says what to do."""

import subprocess
import sys

import numpy as np
import pytest
from conftest import Drawn, dense

import lacuna


def test_importing_needs_no_torch_and_no_driver():
    code = "import sys, lacuna; assert 'torch' not in sys.modules and 'numpy' not in sys.modules; print(lacuna.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_cpu_arrays_outside_of_a_simulation():
    with pytest.raises(lacuna.Error, match="with lacuna.simulate"):
        lacuna.Pattern(np.array([0, 1]), np.array([0]), (1, 1))
    with lacuna.simulate():
        a = Drawn(4, 5, 0.5).sparse()
    with pytest.raises(lacuna.Error, match="on the CPU"):
        lacuna.spmm(a, dense(5, 2))


def test_a_missing_driver():
    from lacuna._native import native

    try:
        native.Device.cuda(0)
    except lacuna.Error as error:
        assert "CUDA" in str(error) or "driver" in str(error) or "GPU" in str(error), error


@pytest.mark.usefixtures("simulated")
class TestInput:
    """Errors that are ValueErrors, too."""

    def refuse(self, match, call):
        with pytest.raises(ValueError, match=match) as caught:
            call()
        assert isinstance(caught.value, lacuna.Error)

    def test_indices(self):
        pattern = lambda offsets, columns, shape=(2, 4): lacuna.Pattern(np.array(offsets), np.array(columns), shape)
        self.refuse("column index of row 1 at position 1: expected less than 4, got 4", lambda: pattern([0, 1, 2], [0, 4]))
        self.refuse("expected no negative number, got -1", lambda: pattern([0, 1, 2], [0, -1]))
        self.refuse("expected a column above 3", lambda: pattern([0, 2, 2], [3, 1]))
        self.refuse("column 3 was given before", lambda: pattern([0, 2, 2], [3, 3]))
        self.refuse("expected the last to be the number", lambda: pattern([0, 1, 3], [0, 1]))
        self.refuse("3 are expected", lambda: pattern([0, 2], [0, 1]))
        self.refuse("int32 or int64", lambda: pattern([0.0, 1.0, 2.0], [0, 1]))
        self.refuse("must be of one type", lambda: lacuna.Pattern(np.array([0, 1], "int32"), np.array([0]), (1, 1)))
        self.refuse("rows, columns", lambda: pattern([0], [], (1, 2, 3)))

    def test_coordinates(self):
        pattern = lambda rows, columns: lacuna.Pattern.from_coo(np.array(rows), np.array(columns), (3, 4))
        self.refuse("row index at position 1: expected less than 3, got 3", lambda: pattern([0, 3], [0, 1]))
        self.refuse("row index at position 1: expected 2, the one before, or more, got 1; .*coalesce", lambda: pattern([2, 1], [0, 1]))
        self.refuse("expected no negative number, got -1", lambda: pattern([-1, 1], [0, 1]))
        self.refuse("expected a column above 2", lambda: pattern([1, 1], [2, 1]))
        self.refuse("row_indices have 1 elements, but 2 are expected", lambda: pattern([1], [2, 1]))

    def test_lists(self):
        of = lambda columns, **options: lacuna.Pattern.from_lists(np.array(columns), 4, **options)
        self.refuse("row 1 at position 3: expected less than 4, got 4", lambda: of([[0, 1], [2, 4]]))
        self.refuse("no negative number, got -2 at position 1", lambda: of([[0, -2]]))
        self.refuse(r"\(rows, length\) is expected", lambda: of([0, 1]))

    def test_index_bits(self):
        pattern = lambda shape, bits: lacuna.Pattern(np.zeros(shape[0] + 1, int), np.zeros(0, int), shape, index_bits=bits)
        self.refuse("index_bits is 8, but it must be 32 or 16", lambda: pattern((1, 2), 8))
        self.refuse("at most 65535", lambda: pattern((1, 70_000), 16))

    def test_masks_and_heads(self):
        self.refuse("below 4", lambda: lacuna.Mask.global_tokens(4, 4, [4], []))
        self.refuse("3×3", lambda: lacuna.Mask.blocks(9, 9, (3, 3), np.ones((2, 3))))
        self.refuse("lengths of keys", lambda: lacuna.Mask.documents([1, 2], [3]))
        self.refuse("tokens is -1, but a whole number", lambda: lacuna.Mask.causal(-1))
        self.refuse("window is 1.5, but a whole number", lambda: lacuna.Mask.sliding_window(4, 1.5))
        self.refuse("n is -2, but a whole number", lambda: lacuna.topn(dense(2, 8), -2))
        self.refuse("table_rows is -3", lambda: lacuna.Bags(np.array([0]), np.array([0]), -3))
        for shape in ((4,), (0, 4, 8), (4, 0), (0, 2, 4, 8)):
            q = np.zeros(shape, np.float32)
            self.refuse("Q has shape", lambda q=q: lacuna.sparse_attention(q, q, q, lacuna.Mask.full(4, 4)))
        heads = lambda count: dense(count, 4, 8)
        self.refuse("heads must divide the 4", lambda: lacuna.sparse_attention(heads(4), heads(3), heads(3), lacuna.Mask.causal(4)))

    def test_types_and_shapes(self):
        a = Drawn(6, 8, 0.5).sparse()
        self.refuse("float64, but float32, float16 or bfloat16", lambda: lacuna.spmm(lacuna.SparseCsr(a.pattern, a.values.astype("float64")), dense(8, 2)))
        self.refuse("B: values are float16, but float32", lambda: lacuna.spmm(a, dense(8, 2, dtype="float16")))
        self.refuse(r"B has shape \(7, 2\), but \(8, 2\)", lambda: lacuna.spmm(a, dense(7, 2)))
        self.refuse("rows, columns", lambda: lacuna.spmm(a, dense(8)))
        self.refuse(r"the bias has shape \(5,\)", lambda: lacuna.spmm(a, dense(8, 2), bias=dense(5)))
        self.refuse("one for each nonzero", lambda: lacuna.SparseCsr(a.pattern, a.values[:-1]))
        self.refuse(r"B has shape \(8, 9\)", lambda: lacuna.sddmm(a.pattern, dense(6, 4), dense(8, 9)))
        self.refuse("N is 9, but it must be from 1 to the 4", lambda: lacuna.topn(dense(2, 4), 9))
        self.refuse("output is 'odds'", lambda: lacuna.topn(dense(2, 4), 1, output="odds"))
        self.refuse("scale", lambda: lacuna.sparse_softmax(a, scale=0.0))

    def test_strides(self):
        a = Drawn(6, 8, 0.5).sparse()
        self.refuse("in one piece", lambda: lacuna.spmm(a, np.asfortranarray(dense(8, 4))))
        self.refuse("not overlap", lambda: lacuna.spmm(a, np.broadcast_to(dense(1, 4), (8, 4))))
        self.refuse("negative", lambda: lacuna.spmm(a, dense(8, 4)[::-1]))

    def test_another_device(self):
        a = Drawn(6, 8, 0.5).sparse()
        with lacuna.simulate():
            self.refuse("another device", lambda: lacuna.spmm(a, dense(8, 2)))

    def test_other_objects(self):
        a = Drawn(6, 8, 0.5).sparse()
        self.refuse("a NumPy array, or one with __dlpack__", lambda: lacuna.spmm(a, [[1.0]]))

    def test_a_capsule_that_was_taken(self):
        class Taken:
            """An array whose capsule another library has taken."""

            def __init__(self, array):
                self.capsule = array.__dlpack__()

            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, **_):
                return self.capsule

        array, a = Taken(dense(8, 2)), Drawn(6, 8, 0.5).sparse()
        assert lacuna.spmm(a, array).shape == (6, 2)
        self.refuse("__dlpack__", lambda: lacuna.spmm(a, array))

    def test_bags(self):
        self.refuse("must be sum or mean", lambda: lacuna.Bags(np.array([0]), np.array([1]), 3, mode="max"))
        self.refuse(r"-1 \(number 0 of 1\)", lambda: lacuna.Bags(np.array([0, 1]), np.array([-1]), 3))
        self.refuse("below 3, the rows of the table", lambda: lacuna.Bags(np.array([0, 1]), np.array([3]), 3))
        self.refuse("in ascending order", lambda: lacuna.Bags(np.array([0, 2, 1]), np.array([1, 1]), 3))
        self.refuse("must be of one type", lambda: lacuna.Bags(np.array([0], np.int32), np.array([1]), 3))
        self.refuse("indices: a 1-D array of int32 or int64", lambda: lacuna.Bags(np.array([0]), np.array([1.0]), 3))
