"""What a printed program with a step needs to be searched in C: a function from states to answers, and one from inputs.

recurra_search    tokens before the first, states, what stays the same -> answers
recurra_write     what `start` reads -> answers
recurra_usual     how answers are looked for by the settings of the run
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recurra.programs.c_searching import SEARCHING, structs
from recurra.programs.c_text import Printed
from recurra.programs.c_values import C_TYPES, c_size
from recurra.programs.program import Function, Named
from recurra.programs.searchable import Searchable, Usual, outputs_of
from recurra.programs.sizes import Size, product_of
from recurra.programs.weights import BYTES


class SearchPrinter:
    """Prints the search of a program."""

    def __init__(self, whole: Printed, found: Searchable, usual: Usual) -> None:
        self.whole, self.prefix, self.found, self.usual = whole, whole.prefix, found, usual

    def text(self) -> list[str]:
        lines = [structs(self.prefix), SEARCHING.replace("recurra_", f"{self.prefix}_"), *self.step(), *self.search()]
        return [*lines, *self.write(), *(self.as_usual() if self.usual else [])]

    def declared(self) -> list[str]:
        """What the header has of it."""
        p, found = self.prefix, [structs(self.prefix)]
        found += [
            "/* search: from the states after start, or of a text that was read, to answers. tokens (B): those before",
            "   the first; `places` (B, places) are 0 where there is nothing to look at, or NULL. */",
        ]
        found += [f"int {p}_search({', '.join(self.parameters())});", ""]
        if self.starts is not None:
            places = "" if self.found.places is None else f"; places = {self.in_start(self.found.places)}"
            about = f"/* write: from what start reads to answers{places}. */"
            found += [about, f"int {p}_write({', '.join(self.parameters_of_write())});", ""]
        if self.usual:
            found += ["/* As [decoding] of the run says. */", f"void {p}_usual({p}_manner *how);", ""]
        return found

    # Sizes and types

    def kind(self, each: Named) -> str:
        return C_TYPES[each.value.type]

    def bytes(self, each: Named) -> str:
        """Bytes of a row."""
        return f"(size_t)({c_size(product_of(each.value.shape[1:]))}) * {BYTES[each.value.type]}"

    # What is printed

    def parameters(self) -> list[str]:
        p = self.prefix
        given = [f"const {p}_model *model", f"const {p}_manner *how", "int64_t n_B"]
        given += [f"int64_t n_{name}" for name in self.found.names]
        given += ["const int64_t *tokens"]
        given += [f"const {self.kind(each)} *in_{each.name}" for each in (*self.found.moving, *self.found.fixed)]
        given += ["const float *in_extra"] * self.found.has_extra + ["const uint8_t *places"] * self.looks
        return [*given, f"{p}_found *found"]

    @property
    def looks(self) -> bool:
        return self.found.places is not None

    def step(self) -> list[str]:
        """The function that runs one step for a search."""
        found, sizes = self.found, []
        others = {name: f"s->sizes[{number}]" for number, name in enumerate(found.names)}
        for name in found.step.names:
            row = {"B": "A", "K": "K"}[name] if found.rows == ("B", "K") and name in found.rows else "A * K"
            sizes.append(others.get(name, row))
        arguments = ["s->model", *sizes, "tokens"]
        for field, leaves in (("moving", found.moving), ("fixed", found.fixed)):
            arguments += [
                f"(const {self.kind(each)} *)(const void *)s->{field}[{number}].now"
                for number, each in enumerate(leaves)
            ]
        arguments += ["s->extra"] * found.has_extra
        for name, _ in found.step.outputs:
            number = int(name.removeprefix("state")) if name.startswith("state") else 0
            after = f"({self.kind(found.moving[number])} *)(void *)s->moving[{number}].after" if found.moving else ""
            arguments.append(name if name in ("log_p", "weights") else after)
        return [
            "static int run_step(searching *s, int64_t A, int64_t K, const int64_t *tokens, float *log_p,",
            "                    float *weights) {",
            "    (void)weights;",
            f"    return {self.prefix}_step({', '.join(arguments)});",
            "}",
            "",
        ]

    def search(self) -> list[str]:
        found, p = self.found, self.prefix
        names = ["n_B", *(f"n_{name}" for name in found.names)]
        lines = [
            f"int {p}_search({', '.join(self.parameters())}) {{",
            f"    if ({' || '.join(f'{name} < 0 || {name} > 1073741824' for name in names)}) return RECURRA_SIZES;",
            "    searching s;",
            "    memset(&s, 0, sizeof s);",
            "    s.model = model, s.how = how, s.found = found, s.step = run_step, s.B = n_B, s.start = tokens;",
            f"    s.V = {c_size(found.tokens)}, s.S = {'0' if found.places is None else c_size(found.places)};",
            f"    s.moving_count = {len(found.moving)}, s.fixed_count = {len(found.fixed)};",
        ]
        lines += [f"    s.sizes[{number}] = n_{name};" for number, name in enumerate(found.names)]
        lines += ["    s.extra = in_extra;"] * found.has_extra
        for field, leaves in (("moving", found.moving), ("fixed", found.fixed)):
            for number, each in enumerate(leaves):
                at = f"s.{field}[{number}]"
                lines.append(f"    {at}.now = (const char *)in_{each.name}, {at}.each = {self.bytes(each)};")
        lines += ["    s.real.now = (const char *)places, s.real.each = (size_t)s.S;"] * self.looks
        return [*lines, "    return searched(&s);", "}", ""]

    def as_usual(self) -> list[str]:
        """The function that fills in the settings of the run."""
        p = self.prefix
        lines = [f"void {p}_usual({p}_manner *how) {{", "    memset(how, 0, sizeof *how);"]
        for name, value in self.usual.items():
            if not isinstance(value, Sequence):
                lines.append(f"    how->{name} = {value!r};")
            elif value:
                lines.append(f"    static const int64_t {name}[] = {{{', '.join(map(str, value))}}};")
                lines.append(f"    how->{name} = {name}, how->{name}_count = {len(value)};")
        return [*lines, "}", ""]

    # From inputs to answers

    @property
    def starts(self) -> Function | None:
        """`start`, if it gives all that a search takes."""
        start = self.whole.program.functions.get("start")
        if start is None or any(isinstance(operand, str) for _, operand in start.outputs):
            return None
        given = outputs_of(start)
        wanted = {each.name: each.value for each in (*self.found.moving, *self.found.fixed)}
        if any(name not in given or given[name].type != value.type for name, value in wanted.items()):
            return None
        known = {name for each in start.inputs for size in each.value.shape for name in size.names}
        return start if set(self.found.names) <= {*known, *self.unified(start)} else None

    def unified(self, start: Function) -> Mapping[str, Size]:
        """What the names of sizes of the step are in those of `start`."""
        given, found = outputs_of(start), dict[str, Size]()
        for each in (*self.found.moving, *self.found.fixed):
            for size, own in zip(each.value.shape, given[each.name].shape, strict=True):
                for name in size.names:
                    if size == Size.named(name):
                        found.setdefault(name, own)
        return found

    def in_start(self, size: Size) -> str:
        """A size of the step as `start` names it, for people."""
        found = self.unified(self.starts) if self.starts is not None else {}
        names = [name for name in size.names if size == Size.named(name) and name in found]
        return str(found[names[0]] if names else size)

    def parameters_of_write(self) -> list[str]:
        assert self.starts is not None, "write was asked for"
        p, count = self.prefix, 1 + len(self.starts.names) + len(self.starts.inputs)
        model, *given = self.whole.parameters(self.starts)[:count]
        return [model, f"const {p}_manner *how", *given, f"{p}_found *found"]

    def write(self) -> list[str]:
        if (start := self.starts) is None:
            return []
        p, unified = self.prefix, self.unified(start)
        lines = [f"int {p}_write({', '.join(self.parameters_of_write())}) {{"]
        names = [f"n_{name}" for name in start.names]
        limits = " || ".join(f"{name} < 0 || {name} > 1073741824" for name in names)
        lines += [f"    if ({limits} || is_no_manner(how)) return RECURRA_SIZES;", "    size_t need = 0;"]
        outputs = outputs_of(start)
        for name, value in outputs.items():
            sizes = " * ".join(f"(double)larger_size(1, {c_size(size)})" for size in value.shape) or "1"
            lines.append(f"    if (!({sizes} < 1099511627776.0)) return RECURRA_SIZES;")
            each = Named(name, value)
            count = c_size(product_of(value.shape))
            lines.append(f"    const size_t at_{name} = placed(&need, {count}, sizeof({self.kind(each)}));")
        lines += [
            "    const size_t at_tokens = placed(&need, n_B, sizeof(int64_t));",
            "    const size_t at_limits = placed(&need, n_B, sizeof(int64_t));",
            "    char *const memory = taken(need + 1);",
            "    if (!memory) return RECURRA_MEMORY;",
        ]
        for name, value in outputs.items():
            kind = self.kind(Named(name, value))
            lines.append(f"    {kind} *const out_{name} = ({kind} *)(memory + at_{name});")
        lines += [
            "    int64_t *const tokens = (int64_t *)(memory + at_tokens);",
            "    int64_t *const limits = (int64_t *)(memory + at_limits);",
            f"    {p}_manner own = *how;",
            "    for (int64_t b = 0; b < n_B; b++) tokens[b] = how->first;",
        ]
        if any(each.name == "lengths" and each.value.type == "int64" for each in start.inputs):
            lines += [
                "    if (!how->max_lengths) {",
                "        const int64_t must = larger_size(how->min_length, how->prefix_count + how->forced_count);",
                "        for (int64_t b = 0; b < n_B; b++) {",
                "            int64_t most = how->max_length;",
                "            if (how->max_ratio > 0) {",
                "                const double wanted = how->max_ratio * (double)in_lengths[b] + 10;",
                "                const int64_t own_most = wanted < 1e9 ? (int64_t)wanted : 1000000000;",
                "                const int64_t least = larger_size(must + 1, own_most);",
                "                most = least < most ? least : most;",
                "            }",
                "            limits[b] = larger_size(must, most);",
                "        }",
                "        own.max_lengths = limits;",
                "    }",
            ]
        else:
            lines.append("    (void)limits;")
        began = [*(f"n_{name}" for name in start.names), *(f"in_{each.name}" for each in start.inputs)]
        began += [f"out_{name}" for name in outputs]
        lines += [f"    int status = {p}_start({', '.join(['model', *began])});"]
        known = {name: c_size(unified.get(name, Size.named(name))) for name in self.found.names}
        given = ["model", "&own", "n_B", *known.values(), "tokens"]
        given += [f"out_{each.name}" for each in (*self.found.moving, *self.found.fixed)]
        given += ["in_extra"] * self.found.has_extra
        given += ["out_mask" if "mask" in outputs else "NULL"] * self.looks
        lines += [
            f"    if (!status) status = {p}_search({', '.join([*given, 'found'])});",
            "    free(memory);",
            "    return status;",
            "}",
            "",
        ]
        return lines
