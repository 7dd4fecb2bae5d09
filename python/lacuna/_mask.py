"""Masks of attention by rules."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from ._errors import InputError, whole
from ._native import native
from ._sparse import Pattern, _Numbered


class Mask(_Numbered):
    """A mask of attention (queries × keys) by rules: no pattern is written out where kernels take blocks of it (from
    compute capability 8.0 on). Masks are joined by `&` and `|`."""

    def __init__(self, rules: Any) -> None:
        self._rules = rules
        #: What was made of the rules, by device: blocks, and patterns.
        self._blocks: dict = {}
        self._patterns: dict = {}
        #: What the last call took of these, and the last gradient.
        self._last: Any = None
        self._last_backward: Any = None

    @classmethod
    def full(cls, queries: int, keys: int) -> "Mask":
        """Every key."""
        return cls(native.Mask.full(*_sizes(queries=queries, keys=keys)))

    @classmethod
    def causal(cls, tokens: int) -> "Mask":
        """Each token itself, and those before it."""
        return cls(native.Mask.causal(whole("tokens", tokens)))

    @classmethod
    def causal_lower_right(cls, queries: int, keys: int) -> "Mask":
        """As :meth:`causal` for the last of more keys: the last query sees all keys."""
        return cls(native.Mask.causal_lower_right(*_sizes(queries=queries, keys=keys)))

    @classmethod
    def sliding_window(cls, tokens: int, window: int) -> "Mask":
        """Each token itself, and the `window` - 1 before it."""
        return cls(native.Mask.sliding_window(*_sizes(tokens=tokens, window=window)))

    @classmethod
    def diagonals(cls, queries: int, keys: int, first: int, last: int) -> "Mask":
        """Keys from query + `first` to query + `last`, both included."""
        return cls(native.Mask.diagonals(*_sizes(queries=queries, keys=keys), first, last))

    @classmethod
    def documents(cls, lengths: Sequence[int], key_lengths: Optional[Sequence[int]] = None) -> "Mask":
        """Tokens of these documents, one after another: each sees its own document. With `key_lengths` documents have as many keys, and
        `lengths` are those of queries."""
        lengths, key_lengths = (
            [whole("a length", length) for length in found] for found in (lengths, lengths if key_lengths is None else key_lengths)
        )
        return cls(native.Mask.documents(lengths, key_lengths))

    @classmethod
    def blocks(cls, queries: int, keys: int, block: Sequence[int], seen: Any) -> "Mask":
        """Blocks of `block` = (queries, keys) each, the last of which may be cut: query i sees key j where `seen`, a CPU array of ones and
        zeros with an element for each block, has one at (i // block[0], j // block[1])."""
        return cls(native.Mask.blocks(_sizes(queries=queries, keys=keys), [whole("a block's side", side) for side in block], *_of_dense(seen)))

    @classmethod
    def global_tokens(cls, queries: int, keys: int, global_queries: Sequence[int], global_keys: Sequence[int]) -> "Mask":
        """These queries see all keys, and all queries see these keys, as the global tokens of Longformer and BigBird do."""
        of_all = ([whole("a global token", token) for token in tokens] for tokens in (global_queries, global_keys))
        return cls(native.Mask.global_tokens(_sizes(queries=queries, keys=keys), *of_all))

    @classmethod
    def from_dense(cls, seen: Any) -> "Mask":
        """Any mask, by a CPU array (queries, keys) of ones and zeros."""
        return cls(native.Mask.of_pattern(*_of_dense(seen)))

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
            handle = native.Pattern(back.device, back.stream, (list(self.shape), len(columns) // 4, *addresses, 32, 0, None), 32)
            pattern._set(handle, back.key, None)
            self._patterns[back.key] = pattern
        return pattern

    def attend(self, back: Any, code: int, heads: tuple) -> None:
        """Gives attention with this mask to the stream: by blocks where kernels take them, else by its pattern."""
        blocks = self._blocks_on(back, code, heads)
        if blocks is not None and blocks.attention(heads):
            self._last = blocks
            return
        pattern = self.pattern_on(back)
        pattern.attend(back, code, heads)
        self._last = pattern._handle

    def attend_backward(self, back: Any, code: int, heads: tuple, backward: tuple) -> bool:
        """Gives the gradients of attention by blocks to the stream; False where kernels do not take them. The first call for a device works
        out the transposed mask, and waits."""
        blocks = self._blocks_on(back, code, heads)
        if blocks is None or not blocks.attention_backward(heads, backward):
            return False
        self._last_backward = blocks
        return True

    def _blocks_on(self, back: Any, code: int, heads: tuple) -> Any:
        """The mask's blocks on this backend's device, which are made once; None for types and devices without kernels by blocks."""
        sm, dim, precise = back.device.sm, heads[2], heads[4][3]
        # Of float32 kernels refuse short rows, for which blocks need not be made.
        if sm < 80 or code == 0 and (precise or dim < 64):
            return None
        blocks = self._blocks.get(back.key)
        return self._blocks.setdefault(back.key, native.MaskBlocks(back.device, self._rules)) if blocks is None else blocks

    def attention_direct(self, *operands: Any) -> Any:
        """Attention of tensors past PyTorch's dispatcher, by what the last call took."""
        last = self._last
        return None if last is None else last.attention_direct(*operands)

    def attention_backward_direct(self, *operands: Any) -> Any:
        """Its gradients by blocks, likewise."""
        last = self._last_backward
        return None if last is None else last.attention_backward_direct(*operands)


def _sizes(**sizes: Any) -> list:
    """Sizes by their names, if they are."""
    return [whole(name, size) for name, size in sizes.items()]


def _of_dense(seen: Any) -> tuple:
    """The shape of an array of ones and zeros on the CPU, and the bytes of its row offsets and columns, in 64 bits."""
    import numpy

    seen = numpy.asarray(seen) != 0
    if seen.ndim != 2:
        raise InputError(f"the mask has shape {seen.shape}, but (rows, columns) is expected")
    offsets = numpy.concatenate([[0], seen.sum(1).cumsum()])
    return list(seen.shape), offsets.astype("int64").tobytes(), numpy.nonzero(seen)[1].astype("int64").tobytes()
