"""A program printed as one C file.

Every function of the program becomes one of C (c_function.py); sizes that have names are its first arguments. All
memory of a call is taken at once, after every size was looked at. Ids are checked where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from recurra.programs import c_path
from recurra.programs.c_function import Printer
from recurra.programs.c_path import PATHS, chains
from recurra.programs.c_runtime import runtime
from recurra.programs.c_values import C_TYPES, ZERO, Array, c_size, standard
from recurra.programs.program import Function, Program, output_values
from recurra.programs.searchable import searchable
from recurra.programs.sizes import Size
from recurra.programs.weights import MAGIC, bytes_of, room_of

STATUS = ("OK", "SIZES", "MEMORY", "IDS", "WEIGHTS", "NUMBERS", "RULES")
"""What a function of C returns, by its name."""


class Printed:
    """A program as C: one file, and a header for it."""

    def __init__(
        self, program: Program, prefix: str = "recurra", usual: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self.program, self.prefix = program, prefix
        self.packs: dict[tuple[Any, ...], tuple[str, Array, str | None]] = {}
        self.numbers = {name: number for number, name in enumerate(program.weights)}
        functions = [
            line
            for name, function in program.functions.items()
            for line in (*described(name, function, program), *Printer(self, function, f"{prefix}_{name}").print(), "")
        ]
        from recurra.programs.c_search import SearchPrinter  # which prints by what is above

        found = searchable(program)
        self.search = None if found is None else SearchPrinter(self, found, usual)
        search = [] if self.search is None else self.search.text()
        self.chains = chains(program)
        paths = [line for number, labels in self.chains for line in c_path.printed(prefix, number, labels)]
        paths = [PATHS, *paths] if paths else []
        self.text = "\n".join([runtime(), *self.model(), *self.sealing(), *functions, *search, *paths])

    def weight(self, name: str) -> Array:
        kind, shape = self.program.weights[name]
        sizes = tuple(map(Size.of, shape))
        return Array(f"model->w{self.numbers[name]}", kind, sizes, standard(sizes), ZERO, name)

    def packed(self, array: Array, scales: str | None = None) -> str:
        """The name of a weight, or of a view of one, as products take it; `scales` is a weight, too."""
        key = (array.weight, array.shape, array.strides, array.offset)
        if key not in self.packs:
            self.packs[key] = (f"p{len(self.packs)}", array, scales)
        return self.packs[key][0]

    def packing(self, array: Array, scales: str | None) -> tuple[str, str]:
        """How many floats a packed weight takes, and what packs it."""
        base = f"{array.base.replace('model->', 'found->')} + ({c_size(array.offset)})"
        rows, columns = (size.constant or 0 for size in array.shape)
        if array.type == "float32":
            sk, sn = (c_size(stride) for stride in array.strides)
            return f"(uint64_t)columns_of({columns}) * {rows}", f"pack({base}, {rows}, {columns}, {sk}, {sn}, at);"
        # A narrow weight is written the other way round.
        if scales is None:
            return f"half_room({columns}, {rows})", f"half_pack({base}, {columns}, {rows}, at);"
        by = self.weight(scales).base.replace("model->", "found->")
        return f"narrow_room({columns}, {rows})", f"narrow_pack({base}, {by}, {columns}, {rows}, at);"

    def sizes(self, function: Function) -> list[str]:
        """The parameters of what looks at the sizes of a function."""
        return [*(f"int64_t n_{name}" for name in function.names), "int64_t *counts"]

    def parameters(self, function: Function) -> list[str]:
        found = [f"const {self.prefix}_model *model", *(f"int64_t n_{name}" for name in function.names)]
        found += [f"const {C_TYPES[each.value.type]} *in_{each.name}" for each in function.inputs]
        values = output_values(function, self.program)
        pairs = zip(function.outputs, values, strict=True)
        return [*found, *(f"{C_TYPES[value.type]} *out_{name}" for (name, _), value in pairs)]

    def model(self) -> list[str]:
        """The weights in C: what is checked when they are opened, and how they are laid out."""
        p, total = self.prefix, bytes_of(self.program)
        fields = [
            f"    const {C_TYPES[kind]} *w{self.numbers[name]};  /* {shown(name)}, {list(shape)} */"
            for name, (kind, shape) in self.program.weights.items()
        ]
        fields += [f"    float *{name};" for name, *_ in self.packs.values()]
        lines = [f"typedef struct {p}_model {{", "    void *room, **spare;", *fields, f"}} {p}_model;", ""]
        rooms, packing = [], []
        for name, array, scales in self.packs.values():
            size, pack = self.packing(array, scales)
            rooms.append(size)
            packing += [f"    found->{name} = at;", f"    {pack}", f"    at += (size_t)({size});"]
        size, magic = " + ".join(rooms) or "0", MAGIC.decode().replace("\n", "\\n")
        lines += [
            "/* Opens weights, which lie at a multiple of 8 and stay there while the model is used. */",
            f"int {p}_open(const void *bytes, size_t size, {p}_model **model) {{",
            "    const unsigned char *start = bytes;",
            "    uint64_t length, sum;",
            "    *model = NULL;",
            f'    if (size != {total} || memcmp(start, "{magic}", {len(MAGIC)})) return RECURRA_WEIGHTS;',
            f"    memcpy(&length, start + {len(MAGIC)}, 8);",
            f"    memcpy(&sum, start + {len(MAGIC) + 8}, 8);",
            f"    if (length != {total - 64} || sum != checksum(start + 64, size - 64)) return RECURRA_WEIGHTS;",
            f"    {p}_model *found = calloc(1, sizeof({p}_model) + sizeof(void *));",
            "    if (!found) return RECURRA_MEMORY;",
            "    found->spare = (void **)(found + 1);",
        ]
        at = 64
        for name, (kind, shape) in self.program.weights.items():
            lines.append(f"    found->w{self.numbers[name]} = (const {C_TYPES[kind]} *)(const void *)(start + {at});")
            at += room_of(kind, shape)
        lines += [
            f"    const uint64_t need = ({size}) * sizeof(float) + ALIGNED;",
            "    found->room = need > MOST_BYTES ? NULL : malloc(need);",
            "    if (!found->room) {",
            "        free(found);",
            "        return RECURRA_MEMORY;",
            "    }",
            "    float *at = (float *)aligned(found->room);",
            *packing,
            "    (void)at;",
            "    *model = found;",
            "    return RECURRA_OK;",
            "}",
            "",
            "/* Products use so many threads from now on, if the file was compiled with -DRECURRA_THREADS -pthread. */",
            f"int {p}_threads(int wanted) {{ return threads_of(wanted); }}",
            "",
            f"void {p}_close({p}_model *model) {{",
            "    if (model) free(model->room), free(*model->spare);",
            "    free(model);",
            "}",
            "",
        ]
        return lines

    def sealing(self) -> list[str]:
        """What writes the checksum of weights that were laid out in memory."""
        return [
            f"void {self.prefix}_seal(void *bytes, size_t size);",
            f"void {self.prefix}_seal(void *bytes, size_t size) {{",
            "    const uint64_t sum = checksum((const unsigned char *)bytes + 64, size - 64);",
            f"    memcpy((char *)bytes + {len(MAGIC) + 8}, &sum, 8);",
            "}",
            "",
        ]

    def header(self) -> str:
        """What a program that uses the C file includes."""
        p = self.prefix
        lines = [
            f"#ifndef {p.upper()}_H",
            f"#define {p.upper()}_H",
            "",
            "#include <stddef.h>",
            "#include <stdint.h>",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            "/* What every function returns: 0, or what is wrong: sizes or settings, memory, ids, weights, numbers",
            "   that are none, rules that leave a search nothing to choose. Those called sizes_of tell whether sizes",
            "   fit, and how many numbers each output has, unless counts is NULL. */",
            f"enum {{ {', '.join(f'{p.upper()}_{name} = {code}' for code, name in enumerate(STATUS))} }};",
            "",
            f"typedef struct {p}_model {p}_model;",
            "",
            "/* Weights of the file weights.bin: they lie at an address that is a multiple of 8, and stay there. */",
            f"int {p}_open(const void *bytes, size_t size, {p}_model **model);",
            f"void {p}_close({p}_model *model);",
            "/* How many threads products use, 1 at first; more only where the file was compiled with -pthread and",
            "   -DRECURRA_THREADS. Returns how many there are. */",
            f"int {p}_threads(int wanted);",
            "",
        ]
        for name, function in self.program.functions.items():
            lines += [
                *described(name, function, self.program),
                f"int {p}_{name}({', '.join(self.parameters(function))});",
            ]
            lines += [f"int {p}_sizes_of_{name}({', '.join(self.sizes(function))});", ""]
        lines += [] if self.search is None else self.search.declared()
        for number, labels in self.chains:
            lines += c_path.headed(p, number, labels)
        return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "#endif", ""])


def described(name: str, function: Function, program: Program) -> list[str]:
    """Inputs and outputs of a function, as a comment."""
    lines = [f"/* {name}: arrays without gaps, the last dimension closest."]
    for each in function.inputs:
        below = "" if each.below is None else f", ids below {each.below}"
        lines.append(f"     in_{each.name}  {each.value.type} ({', '.join(map(str, each.value.shape))}){below}")
    for (output, _), value in zip(function.outputs, output_values(function, program), strict=True):
        lines.append(f"     out_{output}  {value.type} ({', '.join(map(str, value.shape))})")
    lines[-1] += " */"
    return lines


def shown(name: str) -> str:
    """The name of a weight as a comment may have it; the modules of a model may be called anything.

    >>> shown("cells.0.from_input"), shown("*/ int x; /*")
    ('cells.0.from_input', '_int_x_')
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "_", name[:100])
