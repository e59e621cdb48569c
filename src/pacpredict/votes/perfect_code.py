"""Machine code for perfect trees of every depth, written out node by node; see perfect_kernel for what they look like.

Numba compiles loops over the levels of a tree whose ends it does not know. Here LLVM is given each depth without any
loop. Of a sweep it also makes what Numba has no words for: the values of a tree stand in a register, from which one
instruction takes those of 16 rows. The sums are the same to the bit: each is added to in the order of the trees.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from pacpredict.votes.tree_kernel import ROWS_PER_BLOCK

MOST_DEPTH = 8
TOGETHER = 8  # trees that a row walks through: while it waits for memory in one of them, it goes on in others
PADDING = 16  # cells behind the last value: registers are filled whole

_BIT, _INT32, _INT64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)

# Registers that the values of a tree may fill. Where there are more, each row reads its own value.
_MOST_REGISTERS = 8

Code = Callable[[Any, Any, Any, Any], Any]


def _machine_code(function: Callable[..., tuple[Any, Code]]) -> Callable[..., None]:
    """Let kernels call what `function` writes, which Numba gives the types of the arguments."""
    return cast("Callable[..., None]", intrinsic(function))


@_machine_code
def walk_trees(
    _: Any, depth: Any, columns: Any, asked: Any, values: Any, sums: Any, outputs: Any, is_one: Any, row: Any
) -> tuple[Any, Code]:
    """Bring a row from root to leaf in eight trees, and add what the leaves say to its sums.

    `asked`, `values` and `outputs` begin with the first of the trees; `is_one` tells that all outputs are the same.
    """

    def write(context: Any, to: Any, signature: Any, arguments: Any) -> Any:
        given, columns, asked, values, sums, outputs, is_one, row = _places(context, to, signature, arguments)

        def sum_of(tree: int) -> Any:
            output = to.load(to.gep(outputs, [_INT64(tree)]))
            return to.gep(sums, [to.add(to.mul(output, _INT64(ROWS_PER_BLOCK)), row)])

        for n_levels in _each_depth(to, given):
            said = _walk(to, columns, asked, values, n_levels, row)
            with to.if_else(is_one) as (if_one, otherwise):
                with if_one:
                    _add(to, sum_of(0), said)
                with otherwise:
                    for tree, value in enumerate(said):
                        _add(to, sum_of(tree), [value])
        return context.get_dummy_value()

    return types.void(depth, columns, asked, values, sums, outputs, is_one, row), write


@_machine_code
def sweep_tree(
    _: Any, depth: Any, columns: Any, asked: Any, values: Any, sums: Any, output: Any, size: Any
) -> tuple[Any, Code]:
    """Find the leaves of all rows in a tree, and add what they say to the rows' sums; of whole registers of rows."""

    def write(context: Any, to: Any, signature: Any, arguments: Any) -> Any:
        given, columns, asked, values, sums, output, size = _places(context, to, signature, arguments)
        sums = to.gep(sums, [to.mul(output, _INT64(ROWS_PER_BLOCK))])
        n_lanes, has_permutation = _lanes(context, values.type.pointee)
        n_times = to.udiv(to.add(size, _INT64(n_lanes - 1)), _INT64(n_lanes))
        for n_levels in _each_depth(to, given):
            digits = _find_digits(to, columns, asked, n_levels)
            with cgutils.for_range(to, n_times) as loop:
                first = to.mul(loop.index, _INT64(n_lanes))
                leaves = _number(to, digits, first, values.type.pointee, n_lanes)
                in_registers = has_permutation and 1 << n_levels <= _MOST_REGISTERS * n_lanes
                said = (_take if in_registers else _read_each)(to, values, leaves, n_levels)
                _add(to, to.bitcast(to.gep(sums, [first]), said.type.as_pointer()), [said])
        return context.get_dummy_value()

    return types.void(depth, columns, asked, values, sums, output, size), write


def _places(context: Any, to: Any, signature: Any, arguments: Sequence[Any]) -> list[Any]:
    """Return where arrays begin, and all other arguments as they are."""
    return [
        context.make_array(kind)(context, to, each).data if isinstance(kind, types.Array) else each
        for kind, each in zip(signature.args, arguments, strict=True)
    ]


def _each_depth(to: Any, given: Any) -> Iterator[int]:
    """Let code be written for each depth, and run for the given one."""
    end = to.append_basic_block("end")
    choice = to.switch(given, end)
    for depth in range(MOST_DEPTH + 1):
        block = to.append_basic_block(f"depth{depth}")
        choice.add_case(_INT64(depth), block)
        to.position_at_end(block)
        yield depth
        to.branch(end)
    to.position_at_end(end)


def _column(to: Any, columns: Any, asked: Any, place: Any) -> Any:
    """Read what the rows of a block answer to a node."""
    return to.load(to.gep(columns, [to.zext(to.load(to.gep(asked, [place])), _INT64)]))


def _walk(to: Any, columns: Any, asked: Any, values: Any, depth: int, row: Any) -> list[Any]:
    """Return what a row's leaves in all trees say."""
    starts = [_INT64(tree << depth) for tree in range(TOGETHER)]
    nodes = [_INT64(1)] * TOGETHER
    for _ in range(depth):
        answers = [
            _column(to, columns, asked, to.add(start, node))
            for start, node in zip(starts, nodes, strict=True)
        ]
        bits = [to.and_(to.lshr(to.zext(answer, _INT64), row), _INT64(1)) for answer in answers]
        nodes = [to.or_(to.shl(node, _INT64(1)), bit) for node, bit in zip(nodes, bits, strict=True)]
    leaves = [
        to.sub(to.add(start, node), _INT64(1 << depth)) for start, node in zip(starts, nodes, strict=True)
    ]
    return [to.load(to.gep(values, [leaf])) for leaf in leaves]


def _find_digits(to: Any, columns: Any, asked: Any, depth: int) -> list[Any]:
    """Return which rows go right at each level: the binary digits of their leaves, the highest first.

    Of the nodes of a level, those that a row cannot be at are left out by halves, as the digits before tell.
    """
    digits: list[Any] = []
    for level in range(depth):
        words = [_column(to, columns, asked, _INT64(node)) for node in range(1 << level, 2 << level)]
        for digit in reversed(digits):
            pairs = zip(words[::2], words[1::2], strict=True)
            words = [to.xor(left, to.and_(digit, to.xor(left, right))) for left, right in pairs]
        digits += words
    return digits


def _number(to: Any, digits: Sequence[Any], first: Any, kind: Any, n_lanes: int) -> Any:
    """Return the numbers of the leaves of rows from the first on, as wide as the values that they number."""
    numbers = ir.VectorType(_INT32 if kind == ir.FloatType() else _INT64, n_lanes)
    leaves = _repeat(numbers, 0)
    for level, digit in enumerate(reversed(digits)):
        rows = to.trunc(to.lshr(digit, first), ir.IntType(n_lanes))
        is_set = to.bitcast(rows, ir.VectorType(_BIT, n_lanes))
        leaves = to.or_(leaves, to.select(is_set, _repeat(numbers, 1 << level), _repeat(numbers, 0)))
    return leaves


def _take(to: Any, values: Any, leaves: Any, depth: int) -> Any:
    """Take what leaves say from registers: from each the value that the low digits tell, then by the high digits."""
    n_lanes = leaves.type.count
    register = ir.VectorType(values.type.pointee, n_lanes)
    found = []
    for first in range(0, 1 << depth, n_lanes):
        loaded = to.load(to.bitcast(to.gep(values, [_INT64(first)]), register.as_pointer()))
        loaded.align = _size(values.type.pointee)
        found.append(_permute(to, loaded, leaves))
    digit = n_lanes
    while len(found) > 1:
        is_set = to.icmp_unsigned("!=", to.and_(leaves, _repeat(leaves.type, digit)), _repeat(leaves.type, 0))
        found = [to.select(is_set, right, left) for left, right in zip(found[::2], found[1::2], strict=True)]
        digit *= 2
    return found[0]


def _permute(to: Any, register: Any, places: Any) -> Any:
    """Take a value for each lane from the lane whose place it has; LLVM finds that this is one instruction."""
    taken, places = (
        ir.Constant(register.type, ir.Undefined),
        to.and_(places, _repeat(places.type, places.type.count - 1)),
    )
    for lane in range(register.type.count):
        value = to.extract_element(register, to.extract_element(places, _INT32(lane)))
        taken = to.insert_element(taken, value, _INT32(lane))
    return taken


def _read_each(to: Any, values: Any, leaves: Any, _: int) -> Any:
    """Read what leaves say from memory, one after the other."""
    said = ir.Constant(ir.VectorType(values.type.pointee, leaves.type.count), ir.Undefined)
    for lane in range(leaves.type.count):
        leaf = to.extract_element(leaves, _INT32(lane))
        said = to.insert_element(said, to.load(to.gep(values, [leaf])), _INT32(lane))
    return said


def _add(to: Any, place: Any, summands: Sequence[Any]) -> None:
    """Add to a sum, or to those of several rows, one summand after the other: order decides the last bit."""
    of_one = (
        place.type.pointee.element if isinstance(place.type.pointee, ir.VectorType) else place.type.pointee
    )
    total = to.load(place)
    total.align = _size(of_one)
    for summand in summands:
        total = to.fadd(total, summand)
    to.store(total, place).align = _size(of_one)


def _lanes(context: Any, kind: Any) -> tuple[int, bool]:
    """Return how many values a register of this processor has, and whether it can permute them."""
    _, _, features = context.codegen().magic_tuple()
    if "+avx512f" in features:
        return 64 // _size(kind), True
    return 8, "+avx2" in features and kind == ir.FloatType()


def _size(kind: Any) -> int:
    """Return how many bytes a value has."""
    return 4 if kind == ir.FloatType() else 8


def _repeat(kind: Any, number: int) -> Any:
    return ir.Constant(kind, [number] * kind.count)
