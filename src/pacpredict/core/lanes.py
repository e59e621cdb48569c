"""One, four or eight numbers side by side in compiled kernels, in the registers of vector instructions.

Each operation is that of IEEE arithmetic on every number by itself, so a kernel gives the bits that a loop over single
numbers gives. But a loop writes its sums to arrays, which for all the compiler knows may overlap; these stay in
registers. Arrays are read and written without any check: they must have room for all lanes.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, overload, register_model

# How many numbers a block has. Eight fill the widest registers that there are, and two narrower ones at once.
FEW, MANY = 4, 8


class Lanes(types.Type):  # type: ignore[misc]
    """The type of `width` numbers."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(f"Lanes({width})")


class Mask(types.Type):  # type: ignore[misc]
    """The type of `width` truth values."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(f"Mask({width})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.DoubleType(), kind.width))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Mask) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.IntType(1), kind.width))


def _constant(width: int, values: list[float]) -> Any:
    return ir.Constant(ir.VectorType(ir.DoubleType(), width), values)


def _spread_out(context: Any, builder: Any, value: Any, kind: Any, width: int) -> Any:
    """Give a single number to every lane; lanes are what they are."""
    if isinstance(kind, Lanes):
        return value
    number = context.cast(builder, value, kind, types.float64)
    vector = _constant(width, [0.0] * width)
    vector = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
    )


def _widest(*kinds: Any) -> int:
    return max((kind.width for kind in kinds if isinstance(kind, Lanes)), default=0)


def _of_two(emit: Callable[[Any, Any, Any], Any], result: type[types.Type]) -> Any:
    """Make an operation on lanes and lanes, or on lanes and a single number."""

    @intrinsic
    def operation(_: Any, a: Any, b: Any) -> Any:
        width = _widest(a, b)

        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            x, y = (
                _spread_out(context, builder, value, kind, width)
                for value, kind in zip(values, signature.args, strict=True)
            )
            return emit(builder, x, y)

        return result(width)(a, b), write

    return operation


def _of_masks(emit: Callable[[Any, Any, Any], Any]) -> Any:
    @intrinsic
    def operation(_: Any, a: Any, b: Any) -> Any:
        def write(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return emit(builder, *values)

        return a(a, b), write

    return operation


def _define(symbol: Any, operation: Any, kind: type[types.Type]) -> None:
    def apply(a: Any, b: Any) -> Any:
        return operation(a, b)

    @overload(symbol, jit_options={"forceinline": True})
    def choose(a: Any, b: Any) -> Any:
        return apply if isinstance(a, kind) or isinstance(b, kind) else None


def _compare(sign: str) -> Any:
    return lambda builder, x, y: builder.fcmp_ordered(sign, x, y)


for _symbol, _emit in {
    operator.add: lambda builder, x, y: builder.fadd(x, y),
    operator.sub: lambda builder, x, y: builder.fsub(x, y),
    operator.mul: lambda builder, x, y: builder.fmul(x, y),
    operator.truediv: lambda builder, x, y: builder.fdiv(x, y),
}.items():
    _define(_symbol, _of_two(_emit, Lanes), Lanes)
for _symbol, _sign in {operator.gt: ">", operator.lt: "<", operator.le: "<=", operator.eq: "=="}.items():
    _define(_symbol, _of_two(_compare(_sign), Mask), Lanes)
_define(operator.and_, _of_masks(lambda builder, x, y: builder.and_(x, y)), Mask)
_define(operator.or_, _of_masks(lambda builder, x, y: builder.or_(x, y)), Mask)


@intrinsic
def one(_: Any) -> Any:
    """Return a zero in a single lane."""
    return Lanes(1)(), lambda *_: _constant(1, [0.0])


@intrinsic
def few(_: Any) -> Any:
    """Return zeros in a few lanes."""
    return Lanes(FEW)(), lambda *_: _constant(FEW, [0.0] * FEW)


@intrinsic
def many(_: Any) -> Any:
    """Return zeros in many lanes."""
    return Lanes(MANY)(), lambda *_: _constant(MANY, [0.0] * MANY)


@intrinsic
def numbers_from(_: Any, first: Any, like: Any) -> Any:
    """Return the numbers from `first` on, in as many lanes as `like` has."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        start = _spread_out(context, builder, values[0], signature.args[0], like.width)
        return builder.fadd(start, _constant(like.width, [float(i) for i in range(like.width)]))

    return like(first, like), write


def _address(context: Any, builder: Any, array: Any, kind: Any, start: Any, width: int) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    pointer = ir.PointerType(ir.VectorType(ir.DoubleType(), width))
    return builder.bitcast(builder.gep(data, [start]), pointer)


@intrinsic
def load(_: Any, array: Any, start: Any, like: Any) -> Any:
    """Read as many numbers of an array, from `start` on, as `like` has lanes."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = context.cast(builder, values[1], signature.args[1], types.intp)
        return builder.load(_address(context, builder, values[0], array, place, like.width), align=8)

    return like(array, start, like), write


@intrinsic
def store(_: Any, array: Any, start: Any, lanes: Any) -> Any:
    """Write lanes to an array, from `start` on."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = context.cast(builder, values[1], signature.args[1], types.intp)
        builder.store(values[2], _address(context, builder, values[0], array, place, lanes.width), align=8)
        return context.get_dummy_value()

    return types.void(array, start, lanes), write


@intrinsic
def where(_: Any, mask: Any, this: Any, other: Any) -> Any:
    """Choose lane by lane: `this` where the mask is true, the `other` elsewhere."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        x, y = (
            _spread_out(context, builder, value, kind, mask.width)
            for value, kind in zip(values[1:], signature.args[1:], strict=True)
        )
        return builder.select(values[0], x, y)

    return Lanes(mask.width)(mask, this, other), write


@intrinsic
def all_of(_: Any, mask: Any) -> Any:
    """Tell whether a mask is true in every lane."""

    def write(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        whole = ir.IntType(mask.width)
        return builder.icmp_unsigned("==", builder.bitcast(values[0], whole), ir.Constant(whole, -1))

    return types.boolean(mask), write


def _of_one(name: str) -> Any:
    @intrinsic
    def operation(_: Any, lanes: Any) -> Any:
        def write(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            kind = ir.FunctionType(values[0].type, [values[0].type])
            function = cgutils.get_or_insert_function(builder.module, kind, f"{name}.v{lanes.width}f64")
            return builder.call(function, values)

        return lanes(lanes), write

    return operation


root = _of_one("llvm.sqrt")
magnitude = _of_one("llvm.fabs")


@intrinsic
def add_in_turn(_: Any, total: Any, lanes: Any) -> Any:
    """Add lanes to a number, one after the other from the first on."""

    def write(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        total, vector = values
        for i in range(lanes.width):
            total = builder.fadd(total, builder.extract_element(vector, ir.Constant(ir.IntType(32), i)))
        return total

    return types.float64(total, lanes), write
