"""Sparse matrices: patterns, which are worked out once, and values."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Optional, Sequence

from ._errors import InputError, whole
from ._native import native
from ._ops import backend_of, on_its_device, sddmm, transpose_values, values_batch

_ids = itertools.count(1)
_known: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()


def known(number: int) -> Any:
    """The pattern, mask or bags of this number: custom operators of PyTorch take numbers."""
    found = _known.get(number)
    if found is None:
        raise InputError(f"pattern {number} is gone; keep it as long as what was compiled or recorded with it")
    return found


class _Numbered:
    """What custom operators find by its number."""

    id: int

    def __new__(cls, *_: Any, **__: Any) -> Any:
        self = super().__new__(cls)
        self.id = next(_ids)
        _known[self.id] = self
        return self

    def __deepcopy__(self, memo: dict) -> Any:
        # It does not change, and is as good for a copy of a layer.
        return self


class Pattern(_Numbered):
    """Where the nonzeros of a matrix (rows × columns, CSR) are, on one device.

    It is made once, checked on the device, and used for any number of matrices. What operators work out for it (plans, the
    transposed pattern) stays with it. Making it waits for the device; its first product of each kind may, too.

    Args:
        crow_indices: Where each row starts, and the end of the last: rows + 1 integers of 32 or 64 bits.
        col_indices: The column of each nonzero, ascending in each row; of the same type.
        shape: Rows and columns.
        index_bits: Bits of a column index of the pattern's own: 32, or 16 for fewer bytes, with at most 65,535 columns (and rows, where
            the transposed pattern is needed: for gradients of B).

    Raises:
        InputError: For arrays that are no pattern. It names the first row or element that is wrong.
    """

    def __init__(self, crow_indices: Any, col_indices: Any, shape: Sequence[int], *, index_bits: int = 32) -> None:
        self._of_arrays(crow_indices, col_indices, shape, index_bits, is_coo=False)

    def _of_arrays(self, of_rows: Any, col_indices: Any, shape: Sequence[int], index_bits: int, is_coo: bool) -> None:
        rows, cols = _shape(shape)
        what = "row_indices" if is_coo else "crow_indices"
        back = backend_of(of_rows, col_indices)
        addresses, count, bits = back.indices(of_rows, what)
        columns, nnz, column_bits = back.indices(col_indices, "col_indices")
        if bits != column_bits:
            raise InputError(f"{what} have {bits} bits and col_indices {column_bits}, but they must be of one type")
        expected, why = (nnz, "one a nonzero") if is_coo else (rows + 1, "one a row, and the end of the last")
        if count != expected:
            raise InputError(f"{what} have {count} elements, but {expected} are expected: {why}")
        arrays = ([rows, cols], nnz, addresses, columns, bits, int(is_coo), None)
        make = on_its_device(lambda back: native.Pattern(back.device, back.stream, arrays, index_bits))
        self._set(make(back), back.key, None)

    def _set(self, handle: Any, key: Any, transposed: Any) -> None:
        self._handle, self._key, self._transposed, self._distances = handle, key, transposed, None
        self._sizes = handle.sizes

    @classmethod
    def from_coo(cls, row_indices: Any, col_indices: Any, shape: Sequence[int], *, index_bits: int = 32) -> "Pattern":
        """The pattern of the row and the column of each nonzero, row by row and in each row by ascending columns."""
        pattern = cls.__new__(cls)
        pattern._of_arrays(row_indices, col_indices, shape, index_bits, is_coo=True)
        return pattern

    @classmethod
    def from_lists(cls, columns: Any, cols: int, *, diagonal: Optional[int] = None, index_bits: int = 32) -> "Pattern":
        """The pattern of as many columns for each row, in any order: `columns` is (rows, length), as :func:`lacuna.topn` gives indices. So it is
        the mask of attention in which an indexer names the keys of each token. A column that is named twice counts once, and -1 stands
        for none. Row i keeps columns up to i + `diagonal`, as `torch.tril` does: 0 is causal, None keeps all. At most 4,096 a row."""
        back = backend_of(columns)
        if len(columns.shape) != 2:
            raise InputError(f"the columns have shape {tuple(columns.shape)}, but (rows, length) is expected")
        rows, cols = int(columns.shape[0]), whole("cols", cols)
        address, count, bits = back.indices(columns.reshape(-1), "columns")
        arrays = ([rows, cols], count, 0, address, bits, 2, diagonal)
        pattern = cls.__new__(cls)
        make = on_its_device(lambda back: native.Pattern(back.device, back.stream, arrays, index_bits))
        pattern._set(make(back), back.key, None)
        return pattern

    @classmethod
    def from_torch(cls, tensor: Any, *, index_bits: int = 32) -> "Pattern":
        """The pattern of a `torch.sparse_csr_tensor`, or of a coalesced `torch.sparse_coo_tensor`."""
        layout = str(getattr(tensor, "layout", None))
        if layout not in ("torch.sparse_csr", "torch.sparse_coo") or tensor.dim() != 2:
            raise InputError("a 2-D tensor of layout torch.sparse_csr or torch.sparse_coo is expected; x.to_sparse_csr() makes one")
        if layout == "torch.sparse_csr":
            return cls(tensor.crow_indices(), tensor.col_indices(), tensor.shape, index_bits=index_bits)
        if not tensor.is_coalesced():
            raise InputError("the torch.sparse_coo tensor is not coalesced: its elements have no order; pass x.coalesce()")
        rows, columns = tensor.indices()
        return cls.from_coo(rows, columns, tensor.shape, index_bits=index_bits)

    @property
    def shape(self) -> tuple:
        """Rows and columns."""
        return self._sizes[:2]

    @property
    def nnz(self) -> int:
        """Nonzeros."""
        return self._sizes[2]

    @property
    def values_stride(self) -> int:
        """Elements from the values of one matrix of a batch to those of the next, where they need no copy: `nnz` and some more."""
        return self._sizes[3]

    @property
    def index_bits(self) -> int:
        """Bits of a column index."""
        return self._handle.index_bits

    def indices(self) -> tuple:
        """Where each row starts, and the end of the last; and the column of each nonzero. Arrays of int64: PyTorch's on a GPU, NumPy's on a
        simulator.

        A pattern keeps them in the form that kernels read. So they are worked out anew at each call: by products of numbers up to 4,095,
        which float32 holds exactly, with ones, at the nonzeros."""
        back = _backend_on(self._key)
        of_nonzeros, columns = self._rows_and_columns(back)
        return back.row_offsets(of_nonzeros, self.shape[0]), columns

    def distances(self) -> Any:
        """|row + columns − rows − column| of each nonzero, as numbers of an array of float32: worked out once, and kept."""
        if self._distances is None:
            back = _backend_on(self._key)
            rows, columns = self._rows_and_columns(back)
            self._distances = back.float32(abs(rows + (self.shape[1] - self.shape[0]) - columns))
        return self._distances

    def _rows_and_columns(self, back: Any) -> list:
        """The row and the column of each nonzero."""
        rows_and_columns = []
        ones = [back.float32(back.arange(extent) * 0 + 1).reshape(-1, 1) for extent in self.shape]
        for axis, extent in enumerate(self.shape):
            found = 0
            for shift in (24, 12, 0):
                if shift > 0 and extent <= 1 << shift:
                    continue
                operands = list(ones)
                operands[axis] = back.float32(back.arange(extent) >> shift & 4095).reshape(-1, 1)
                found = found + (back.int64(sddmm(_backend_on(self._key), self, *operands, True)) << shift)
            rows_and_columns.append(found)
        return rows_and_columns

    @property
    def T(self) -> "Pattern":
        """The transposed pattern. The first use works it out on the device, and waits."""
        transposed = self._transposed
        if isinstance(transposed, weakref.ref):
            transposed = transposed()
        if transposed is None:
            transposed = Pattern.__new__(Pattern)
            make = on_its_device(lambda back: self._handle.transposed(back.stream))
            # Weak, so that the two go when nobody has the first.
            transposed._set(make(_backend_on(self._key)), self._key, weakref.ref(self))
            self._transposed = transposed
        return transposed

    def handle_on(self, back: Any) -> tuple:
        """The native pattern and its sizes, if it is on this backend's device."""
        if self._key is not back.key:
            raise InputError(
                f"the pattern is on {self._key.name}, but the operands are on {back.device.name}, which is another device; make a "
                "pattern there (each `with lacuna.simulate():` is a device of its own)"
            )
        return self._handle, self._sizes

    def pattern_on(self, back: Any) -> "Pattern":
        """Itself, if it is on this backend's device: what a :class:`Mask` makes."""
        self.handle_on(back)
        return self

    def attend(self, back: Any, code: int, heads: tuple) -> None:
        """Gives attention with this mask to the stream."""
        self.handle_on(back)[0].attention(heads)

    def attention_direct(self, *operands: Any) -> Any:
        """Attention of tensors past PyTorch's dispatcher, where that may be."""
        return self._handle.attention_direct(*operands)

    def empty_values(self, dtype: Any, batch: Optional[int] = None) -> Any:
        """A PyTorch tensor for values of this pattern, on its GPU: (nnz,), or (batch, nnz). Operators read such values where they
        are; others are copied first, as kernels may read some elements past the last."""
        from ._cuda import with_room

        return with_room(batch, self.nnz, self.values_stride, dtype, f"cuda:{_index_of(self._key)}")

    def with_room(self, values: Any) -> Any:
        """PyTorch's values with memory after them, as :meth:`empty_values` makes: themselves where they have it, else a copy, through
        which gradients flow. Who uses values more than once spares a copy at each use."""
        from ._cuda import has_room

        batch = values_batch(values, "values", self.nnz)
        if not values.is_cuda or has_room(values, batch, self.nnz, self.values_stride):
            return values
        return self.empty_values(values.dtype, batch).copy_(values)

    def __repr__(self) -> str:
        rows, cols = self.shape
        return f"lacuna.Pattern({rows}×{cols}, {self.nnz} nonzeros, {self._key.name})"


class SparseCsr:
    """A sparse matrix, or a batch of them with one pattern: a :class:`Pattern` and values, which are one a nonzero.

    Args:
        pattern: Where the nonzeros are.
        values: (nnz,), or (batch, nnz): float32, float16 or bfloat16. Gradients flow to them.
    """

    def __init__(self, pattern: Pattern, values: Any) -> None:
        shape = tuple(values.shape)
        if len(shape) not in (1, 2) or shape[-1] != pattern.nnz:
            raise InputError(f"values have shape {shape}, but ({pattern.nnz},) or (batch, {pattern.nnz}) is expected: one for each nonzero")
        self.pattern, self.values = pattern, values

    @classmethod
    def from_csr(cls, crow_indices: Any, col_indices: Any, values: Any, shape: Sequence[int]) -> "SparseCsr":
        """A matrix of these arrays: see :class:`Pattern`."""
        return cls(Pattern(crow_indices, col_indices, shape), values)

    @classmethod
    def from_torch(cls, tensor: Any, *, index_bits: int = 32) -> "SparseCsr":
        """The matrix that a `torch.sparse_csr_tensor` or a coalesced `torch.sparse_coo_tensor` is. Its values are copied once, to where
        there is memory after them: what is written to the tensor later is not seen. Gradients flow to the tensor."""
        pattern = Pattern.from_torch(tensor, index_bits=index_bits)
        return cls(pattern, pattern.with_room(tensor.values()))

    def to_torch(self) -> Any:
        """The same as a `torch.sparse_csr_tensor`: with the values, which are copied of a batch alone, and :meth:`Pattern.indices`. Without
        gradients."""
        import torch

        offsets, columns = (torch.as_tensor(array) for array in self.pattern.indices())
        values = torch.as_tensor(self.values).detach()
        if values.dim() == 2:
            offsets, columns = (array.expand(len(values), -1).contiguous() for array in (offsets, columns))
        return torch.sparse_csr_tensor(offsets, columns, values.contiguous(), (*values.shape[:-1], *self.shape))

    @property
    def shape(self) -> tuple:
        """Rows and columns."""
        return self.pattern.shape

    @property
    def T(self) -> "SparseCsr":
        """The transposed matrix: values are moved by one launch. Without gradients; `spmm` has those of its own."""
        return SparseCsr(self.pattern.T, transpose_values(backend_of(self.values), self.pattern, self.values))

    def __matmul__(self, b: Any) -> Any:
        from . import spmm

        return spmm(self, b)

    def __repr__(self) -> str:
        return f"lacuna.SparseCsr({self.pattern!r}, values {tuple(self.values.shape)})"


class Bags(_Numbered):
    """Bags of indices of a table's rows, for :func:`lacuna.embedding_bag`: checked, and put on a device, once.

    Args:
        offsets: Where each bag starts, and the end of the last: bags + 1 integers.
        indices: Rows of the table. Both are 1-D, of int32 or int64. On a GPU they stay there, and are checked there.
        table_rows: Rows of the table.
        weights: A factor for each index, or none. They have no gradient.
        mode: `sum` or `mean`.
        include_last_offset: As PyTorch names it: False where the offsets lack the end of the last bag, which is that of the
            indices.
        device: The number of the GPU to put them on; None if they are on one, or within `lacuna.simulate()`.
    """

    def __init__(
        self,
        offsets: Any,
        indices: Any,
        table_rows: int,
        *,
        weights: Any = None,
        mode: str = "sum",
        include_last_offset: bool = True,
        device: Optional[int] = None,
    ) -> None:
        if mode not in ("sum", "mean"):
            raise InputError(f"the mode is {mode!r}, but it must be sum or mean")
        table_rows = whole("table_rows", table_rows)
        if device is None:
            back = backend_of(offsets, indices)
        else:
            from ._cuda import Cuda

            back = Cuda(device)
        if device is not None:
            offsets, indices = back.placed(offsets), back.placed(indices)
        of_indices, count, bits = back.indices(indices, "indices")
        if not include_last_offset:
            offsets = back.with_end(offsets, count)
        of_offsets, ends, offset_bits = back.indices(offsets, "offsets")
        if bits != offset_bits:
            raise InputError(f"offsets have {offset_bits} bits and indices {bits}, but they must be of one type")
        weight_bytes = None if weights is None else back.host_bytes(weights, "float32")
        self._key = back.key
        arrays = ((of_offsets, ends), (of_indices, count), bits)
        make = on_its_device(lambda back: native.Bags(back.device, back.stream, table_rows, arrays, weight_bytes, mode == "mean"))
        self._handle = make(back)

    @property
    def sizes(self) -> tuple:
        """How many bags, and rows of the table."""
        return self._handle.sizes

    def handle_on(self, back: Any) -> Any:
        """The native bags, if they are on this backend's device."""
        if self._key is not back.key:
            raise InputError(f"the bags are on {self._key.name}, but the operands are on {back.device.name}, which is another device")
        return self._handle


def _shape(shape: Sequence[int]) -> tuple:
    shape = tuple(int(extent) for extent in shape)
    if len(shape) != 2 or not all(0 <= extent < 2**63 for extent in shape):
        raise InputError(f"the shape is {shape}, but (rows, columns) is expected")
    return shape


def _backend_on(device: Any) -> Any:
    """A backend of this device, for one call."""
    if device.is_simulator:
        from ._simulate import Simulated

        return Simulated(device)
    from ._cuda import Cuda

    return Cuda(_index_of(device))


def _index_of(device: Any) -> int:
    from ._native import _devices

    for index, known_device in _devices.items():
        if known_device is device:
            return index
    raise InputError(f"the pattern is on {device.name}, which is no GPU: PyTorch has no memory there")
