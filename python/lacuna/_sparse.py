"""Sparse matrices: patterns, which are worked out once, and values."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Optional, Sequence

from ._errors import InputError
from ._native import native
from ._ops import backend_of, on_its_device, transpose_values

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

    Raises:
        InputError: For arrays that are no pattern. It names the first row or element that is wrong.
    """

    def __init__(self, crow_indices: Any, col_indices: Any, shape: Sequence[int]) -> None:
        rows, cols = _shape(shape)
        self._of_arrays(backend_of(crow_indices, col_indices), crow_indices, col_indices, rows, cols)

    def _of_arrays(self, back: Any, crow_indices: Any, col_indices: Any, rows: int, cols: int) -> None:
        offsets, count, bits = back.indices(crow_indices, "crow_indices")
        columns, nnz, column_bits = back.indices(col_indices, "col_indices")
        if bits != column_bits:
            raise InputError(f"crow_indices have {bits} bits and col_indices {column_bits}, but they must be of one type")
        if count != rows + 1:
            raise InputError(f"crow_indices have {count} elements, but {rows + 1} are expected: one a row, and the end of the last")
        make = on_its_device(lambda back: native.Pattern(back.device, back.stream, [rows, cols], nnz, offsets, columns, bits))
        self._set(make(back), back.key, None)

    def _set(self, handle: Any, key: Any, transposed: Any) -> None:
        self._handle, self._key, self._transposed = handle, key, transposed
        self._sizes = handle.sizes

    @classmethod
    def from_torch(cls, tensor: Any) -> "Pattern":
        """The pattern of a `torch.sparse_csr_tensor`."""
        _expect_csr(tensor)
        return cls(tensor.crow_indices(), tensor.col_indices(), tensor.shape)

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
    def from_torch(cls, tensor: Any) -> "SparseCsr":
        """The matrix that a `torch.sparse_csr_tensor` is. Its values are used where they are; each product copies them first
        unless there is memory after them (:meth:`Pattern.empty_values`)."""
        return cls(Pattern.from_torch(tensor), tensor.values())

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


class Mask(_Numbered):
    """A mask of attention (queries × keys) by rules: no pattern is written out where kernels take blocks of it (16-bit values on
    compute capability 9.0). Masks are joined by `&` and `|`."""

    def __init__(self, rules: Any) -> None:
        self._rules = rules
        #: What was made of the rules, by device: blocks, and patterns.
        self._blocks: dict = {}
        self._patterns: dict = {}
        #: What the last call took of these.
        self._last: Any = None

    @classmethod
    def full(cls, queries: int, keys: int) -> "Mask":
        """Every key."""
        return cls(native.Mask.full(queries, keys))

    @classmethod
    def causal(cls, tokens: int) -> "Mask":
        """Each token itself, and those before it."""
        return cls(native.Mask.causal(tokens))

    @classmethod
    def causal_lower_right(cls, queries: int, keys: int) -> "Mask":
        """As :meth:`causal` for the last of more keys: the last query sees all keys."""
        return cls(native.Mask.causal_lower_right(queries, keys))

    @classmethod
    def sliding_window(cls, tokens: int, window: int) -> "Mask":
        """Each token itself, and the `window` - 1 before it."""
        return cls(native.Mask.sliding_window(tokens, window))

    @classmethod
    def diagonals(cls, queries: int, keys: int, first: int, last: int) -> "Mask":
        """Keys from query + `first` to query + `last`, both included."""
        return cls(native.Mask.diagonals(queries, keys, first, last))

    @classmethod
    def documents(cls, lengths: Sequence[int]) -> "Mask":
        """Tokens of these documents, one after another: each sees its own document."""
        return cls(native.Mask.documents(list(lengths)))

    def __and__(self, other: "Mask") -> "Mask":
        return Mask(self._rules.both(other._rules))

    def __or__(self, other: "Mask") -> "Mask":
        return Mask(self._rules.either(other._rules))

    @property
    def shape(self) -> tuple:
        """Queries and keys."""
        return self._rules.shape

    def pattern_on(self, back: Any) -> Pattern:
        """The mask as a pattern on this backend's device, which is made once."""
        pattern = self._patterns.get(back.key)
        if pattern is None:
            offsets, columns = self._rules.to_csr()
            # Memory of the library's own for the way there; the pattern has a copy.
            memory = [back.device.memory(len(contents)) for contents in (offsets, columns)]
            for room, contents in zip(memory, (offsets, columns)):
                room.upload(contents)
            addresses = [room.address for room in memory]
            pattern = Pattern.__new__(Pattern)
            handle = native.Pattern(back.device, back.stream, list(self.shape), len(columns) // 4, *addresses, 32)
            pattern._set(handle, back.key, None)
            self._patterns[back.key] = pattern
        return pattern

    def attend(self, back: Any, code: int, heads: tuple) -> None:
        """Gives attention with this mask to the stream: by blocks where kernels take them, else by its pattern."""
        if code != 0 and back.device.sm >= 90:
            blocks = self._blocks.get(back.key)
            if blocks is None:
                blocks = self._blocks.setdefault(back.key, native.MaskBlocks(back.device, self._rules))
            if blocks.attention(heads):
                self._last = blocks
                return
        pattern = self.pattern_on(back)
        pattern.attend(back, code, heads)
        self._last = pattern._handle

    def attention_direct(self, *operands: Any) -> Any:
        """Attention of tensors past PyTorch's dispatcher, by what the last call took."""
        last = self._last
        return None if last is None else last.attention_direct(*operands)


class Bags(_Numbered):
    """Bags of indices of a table's rows, for :func:`lacuna.embedding_bag`: checked, and put on a device, once.

    Args:
        offsets: Where each bag starts, and the end of the last: bags + 1 integers. With one less, as PyTorch has them, the
            last bag ends with the indices.
        indices: Rows of the table.
        table_rows: Rows of the table.
        weights: A factor for each index, or none. They have no gradient.
        mode: `sum` or `mean`.
        device: The GPU's number; None within `lacuna.simulate()`.
    """

    def __init__(
        self,
        offsets: Any,
        indices: Any,
        table_rows: int,
        *,
        weights: Any = None,
        mode: str = "sum",
        device: Optional[int] = None,
    ) -> None:
        if mode not in ("sum", "mean"):
            raise InputError(f"the mode is {mode!r}, but it must be sum or mean")
        if device is None:
            back = backend_of(offsets, indices)
        else:
            from ._cuda import Cuda

            back = Cuda(device)
        offset_bytes, index_bytes = back.host_bytes(offsets, "int64"), back.host_bytes(indices, "int64")
        count = len(index_bytes) // 8
        if not offset_bytes or int.from_bytes(offset_bytes[-8:], "little", signed=True) != count:
            offset_bytes += count.to_bytes(8, "little")
        weight_bytes = None if weights is None else back.host_bytes(weights, "float32")
        self.is_mean = mode == "mean"
        self._key = back.key
        make = on_its_device(lambda back: native.Bags(back.device, table_rows, offset_bytes, index_bytes, weight_bytes))
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
    if len(shape) != 2 or min(shape) < 0:
        raise InputError(f"the shape is {shape}, but (rows, columns) is expected")
    return shape


def _expect_csr(tensor: Any) -> None:
    if str(getattr(tensor, "layout", None)) != "torch.sparse_csr" or tensor.dim() != 2:
        raise InputError("a 2-D tensor of layout torch.sparse_csr is expected; x.to_sparse_csr() makes one")


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
