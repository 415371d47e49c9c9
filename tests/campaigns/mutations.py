"""The small faults that can be put into a module: the operators of cosmic-ray that matter here, and one of our own."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.boolean_replacer import AddNot
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator

_SWAPS = {
    "BinaryOperator": (
        *("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul"),
        *("LShift_RShift", "RShift_LShift", "BitOr_BitAnd", "BitAnd_BitOr"),
    ),
    "ComparisonOperator": (
        *("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "GtE_Lt", "LtE_Gt", "Gt_LtE"),
        *("Is_IsNot", "IsNot_Is"),
    ),
    "UnaryOperator": ("Delete_USub", "Delete_Invert", "Delete_Not"),
}
_OTHERS = (
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak"),
    *("ExceptionReplacer", "NumberReplacer", "ZeroIterationForLoop"),
)
_CONTRACTS = {"frozen", "slots", "strict", "kw_only", "eq"}  # arguments that only refuse what nobody does
_COMPOUND = {"if_stmt", "for_stmt", "while_stmt", "with_stmt", "try_stmt", "funcdef", "classdef", "decorated"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with a small fault.

    Attributes:
        module: Path of the module in the repository.
        lines: First and last line of the statement that has it.
        before: The first line that differs, without indentation.
        after: The same with the fault.
        code: The whole module with the fault.
    """

    module: str
    lines: tuple[int, int]
    before: str
    after: str
    code: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operator can put a fault.

    Attributes:
        operator: The operator.
        occurrence: Its number among the places of the operator in the module.
        lines: First and last line of the statement.
    """

    operator: Operator
    occurrence: int
    lines: tuple[int, int]


class RemoveStatement(Operator):
    """Removes calls, errors that are raised, deletions of attributes and items, and assignments to them."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """The statement, if it can be removed without leaving a name undefined."""
        if node.type == "simple_stmt" and _is_removable(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Put ``pass`` in its place."""
        del index
        replacement = parso.parse("pass\n").children[0]
        replacement.get_first_leaf().prefix = node.get_first_leaf().prefix
        return replacement

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """What it does."""
        return (Example("f(x)\n", "pass\n"), Example("a.b = 1\n", "pass\n"))


def _is_removable(statement: Any) -> bool:
    if statement.type == "raise_stmt":
        return True
    if statement.type == "del_stmt":
        return statement.children[1].type != "name"
    if statement.type == "expr_stmt":
        target = statement.children[0]
        is_plain = statement.children[1].type == "operator" and target.type != "atom_expr"
        is_plain &= target.type not in ("testlist_star_expr", "power")
        return not is_plain and statement.children[1].type != "annassign"
    return statement.type in ("atom_expr", "power") and statement.get_last_leaf() == ")"


def places(source: str) -> list[Place]:
    """All places for a fault in a module's source, in the order of the operators and lines."""
    tree = get_ast(source)
    return [
        Place(operator, occurrence, _statement(node))
        for operator in _operators()
        for occurrence, node in enumerate(node for node in ast_nodes(tree) for _ in operator.mutation_positions(node))
        if not _is_without_effect(node) and not _is_repeated(operator, node)
    ]


def mutant(module: str, source: str, place: Place) -> Mutant | None:
    """Put a fault into a module; ``None`` if cosmic-ray makes no Python of it."""
    try:
        code = mutate_code(source, place.operator, place.occurrence)
        ast.parse(code)
    except (AttributeError, IndexError, SyntaxError):  # it knows no dotted names of exceptions
        return None
    pairs = zip(source.splitlines(), code.splitlines(), strict=False)
    before, after = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return Mutant(module, place.lines, before.strip(), after.strip(), code) if before != after else None


def _operators() -> list[Operator]:
    names = [f"Replace{kind}_{swap}" for kind, swaps in _SWAPS.items() for swap in swaps]
    return [*(get_operator(f"core/{name}")() for name in (*names, *_OTHERS)), RemoveStatement()]


def _is_repeated(operator: Operator, node: Any) -> bool:
    """Whether another operator, of a comparison or ``not``, negates the same condition."""
    if not isinstance(operator, AddNot):
        return False
    condition = node.children[2 if node.type == "test" else 1]
    return condition.type == "not_test" or (condition.type == "comparison" and condition.children[1].type != "keyword")


def _is_without_effect(node: Any) -> bool:
    """Whether no test should depend on it: an annotation, a contract, or a tuned number that a module names.

    A contract refuses what nobody does: ``frozen``, ``strict``, the bare ``*`` of a signature.
    """
    child, parent = node, node.parent
    while parent is not None:
        if parent.type == "tfpdef" or (parent.type == "annassign" and child is parent.children[1]):
            return True
        if parent.type == "funcdef" and child is parent.annotation:
            return True
        if parent.type == "parameters" and node.type == "operator" and node.value == "*":
            return True
        if parent.type == "argument" and parent.children[0].get_code().strip() in _CONTRACTS:
            return True
        if parent.type == "if_stmt" and parent.children[1].get_code().strip() == "TYPE_CHECKING":
            return True
        child, parent = parent, parent.parent
        is_constant = child.type == "expr_stmt" and parent.parent is not None and parent.parent.type == "file_input"
        if is_constant and node.type == "number":
            return True
    return False


def _statement(node: Any) -> tuple[int, int]:
    """The lines of the statement of a node; of a compound statement, its head."""
    while node.type not in {"simple_stmt", *_COMPOUND} and node.parent and node.parent.type not in _COMPOUND:
        node = node.parent
    if node.type == "simple_stmt":
        return node.start_pos[0], node.children[0].end_pos[0]
    if node.type in _COMPOUND:
        return node.start_pos[0], node.start_pos[0]
    return node.start_pos[0], node.end_pos[0]
