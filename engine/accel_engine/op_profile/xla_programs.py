"""The programs of XLA in a trace: for each instruction, what it was in the model, its FLOPs and bytes.

Source of the field numbers: xla/service/hlo.proto and xla/xla_data.proto. FLOPs are of matrix products and
convolutions, as in the count of a step's operations; padding counts as data, but zeros between the inputs of a
gradient with strides do not.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from accel_engine.op_profile.trace_file import TracePlane
from accel_engine.protobuf import Message

METADATA_PLANE = "/host:metadata"

_ELEMENT_BYTES = {
    **dict.fromkeys((1, 2, 6, *range(19, 26)), 1),
    **dict.fromkeys((3, 7, 10, 16), 2),
    **dict.fromkeys((4, 8, 11), 4),
    **dict.fromkeys((5, 9, 12, 15), 8),
    18: 16,
}
"""Bytes of an element by ``PrimitiveType``; tuples and tokens have none."""

CONTROL = frozenset({"while", "call", "conditional"})
"""Instructions that run others, whose time is theirs."""

_SLICES = frozenset({"dynamic-slice", "slice", "gather"})
"""Instructions that read no more of their first operand than they return."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of an array, or of a tuple of arrays."""

    sides: tuple[int, ...]
    """Its dimensions; empty for a tuple."""
    size: int
    """Its bytes; of a tuple, the bytes of all arrays."""


class Instruction:
    """An instruction of a program.

    Args:
        message: The encoded ``HloInstructionProto``.
    """

    def __init__(self, message: Message) -> None:
        self._message = message
        self.name, self.opcode = message.text(1), message.text(2)
        self.number = message.integer(35) or 0
        self.shape = _shape(message.message(3))
        self.operands, self.called = message.integers(36), message.integers(38)
        metadata = message.message(7)
        self.kind, self.operation = metadata.text(1), metadata.text(2)

    def products(self, shape_of: Callable[[int], Shape]) -> float:
        """Floating-point operations of a matrix product or a convolution; 0 for others."""
        message = self._message
        if self.opcode == "dot":
            first = shape_of(self.operands[0]).sides
            inner = [first[side] for side in message.message(30).integers(1) if side < len(first)]
            return 2.0 * math.prod(self.shape.sides) * math.prod(inner)
        if self.opcode != "convolution":
            return 0.0
        kernel, window = shape_of(self.operands[1]).sides, message.message(15).messages(1)
        channels = message.message(16).integer(3) or 0
        inputs = kernel[channels] if channels < len(kernel) else 1
        places = math.prod((side.integer(1) or 1) / max(1, side.integer(6) or 1) for side in window)
        return 2.0 * math.prod(self.shape.sides) * places * inputs


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """The cost of an instruction."""

    opcode: str
    """Its opcode."""
    kind: str
    """The type of the TensorFlow operation that it was."""
    operation: str
    """The name of that; of a fusion, of its last operation."""
    flops: float | None
    """Floating-point operations of one execution; ``None`` for one that runs others."""
    bytes: float | None
    """Bytes of its inputs and outputs; ``None`` as well."""


class Program:
    """A compiled program.

    Args:
        data: The encoded ``HloProto``.
    """

    def __init__(self, data: bytes) -> None:
        self._module = Message(data).message(1)
        self.name = self._module.text(1)

    @cached_property
    def costs(self) -> Mapping[str, InstructionCost]:
        """The cost of each instruction, by name."""
        computations = {
            each.integer(5) or 0: [Instruction(part) for part in each.messages(2)] for each in self._module.messages(3)
        }
        found: dict[str, InstructionCost] = {}
        for instructions in computations.values():
            shapes = {each.number: each.shape for each in instructions}
            for each in instructions:
                found[each.name] = _cost(each, shapes, computations)
        return found


def read_programs(planes: Iterable[TracePlane]) -> dict[int | str, Program]:
    """The programs in a trace, by number and by name."""
    programs: dict[int | str, Program] = {}
    for plane in planes:
        if plane.name != METADATA_PLANE:
            continue
        for number, _, stats in plane.metadata():
            for data in stats.values():
                if isinstance(data, bytes):
                    program = Program(data)
                    programs |= {number: program, program.name: program}
    return programs


def _cost(
    instruction: Instruction, shapes: Mapping[int, Shape], computations: Mapping[int, Sequence[Instruction]]
) -> InstructionCost:
    kind, operation, opcode = instruction.kind, instruction.operation, instruction.opcode
    if opcode in CONTROL:
        return InstructionCost(opcode, kind, operation, None, None)
    if opcode != "fusion":
        flops = instruction.products(lambda number: shapes.get(number, _EMPTY))
        return InstructionCost(opcode, kind, operation, flops, _bytes(instruction, shapes))
    inside = [part for number in instruction.called for part in computations.get(number, ())]
    within = {part.number: part.shape for part in inside}
    flops = sum(part.products(lambda number: within.get(number, _EMPTY)) for part in inside)
    if not operation:  # XLA has made it of parts that have names
        named = [part for part in inside if part.operation]
        kind, operation = (named[-1].kind, named[-1].operation) if named else ("", "")
    return InstructionCost(opcode, kind, operation, flops, _fusion_bytes(instruction, inside))


def _bytes(instruction: Instruction, shapes: Mapping[int, Shape]) -> float:
    """Bytes that an instruction reads and writes."""
    own = instruction.shape.size
    operands = [shapes.get(number, _EMPTY).size for number in instruction.operands]
    if instruction.opcode in _SLICES:
        return float(2 * own + sum(operands[1:]))
    if instruction.opcode == "dynamic-update-slice" and len(operands) > 1:  # in place
        return float(2 * operands[1])
    return float(own + sum(operands))


def _fusion_bytes(fusion: Instruction, inside: Sequence[Instruction]) -> float:
    """Bytes that a fusion reads and writes: of an input of which it takes a slice, only the slice."""
    total = float(fusion.shape.size)
    updated = {part.operands[0]: part for part in inside if part.opcode == "dynamic-update-slice" and part.operands}
    sizes = {part.number: part.shape.size for part in inside}
    for parameter in inside:
        if parameter.opcode != "parameter":
            continue
        users = [part for part in inside if parameter.number in part.operands]
        if users and all(part.opcode in _SLICES and part.operands[0] == parameter.number for part in users):
            total += sum(part.shape.size for part in users)
        elif len(users) == 1 and (update := updated.get(parameter.number)) and len(update.operands) > 1:
            slice_size = sizes.get(update.operands[1], 0)
            total += slice_size  # the rest stays where it is, in the input as in the output
            total -= max(0, update.shape.size - slice_size)
        else:
            total += parameter.shape.size
    return max(0.0, total)


_EMPTY = Shape((), 0)


def _shape(message: Message) -> Shape:
    parts = message.messages(4)
    if parts:
        return Shape((), sum(_shape(part).size for part in parts))
    sides = tuple(message.integers(3))
    return Shape(sides, math.prod(sides) * _ELEMENT_BYTES.get(message.integer(2) or 0, 0))
