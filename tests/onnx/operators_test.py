#!/usr/bin/env python3
"""Holds the list of ONNX's operators against the schemas of the onnx package.

    operators_test.py onnx_operators.inc [--write]

With --write the list is written anew below its first comment."""

import pathlib
import sys

MANY = 2**31 - 1
OWN_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")


def needed(schema):
    """Bit i: input i may not be absent."""
    from onnx import defs

    kinds = defs.OpSchema.FormalParameterOption

    def needs(i):
        inputs = schema.inputs
        if i < len(inputs):
            return inputs[i].option != kinds.Optional
        return bool(inputs) and inputs[-1].option == kinds.Variadic

    return sum(1 << i for i in range(16) if needs(i))


def facts_of(schema):
    def most(count):
        return -1 if count >= MANY else count

    return (schema.min_input, most(schema.max_input), schema.min_output, most(schema.max_output),
            f"{needed(schema):#06x}")


def lines_of(domain, name, schemas):
    """One for each version that changed something."""
    lines, last = [], None
    for schema in sorted(schemas, key=lambda s: s.since_version):
        facts = facts_of(schema)
        if facts == last:
            continue
        last = facts
        fields = [f'"{name}"', "true" if domain == "" else "false", schema.since_version, *facts]
        lines.append(f"CORELANE_ONNX_OPERATOR({', '.join(map(str, fields))})")
    return lines


def lines_of_package():
    from onnx import defs

    schemas = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain in OWN_DOMAINS:
            schemas.setdefault((schema.name, schema.domain), []).append(schema)
    return [line for (name, domain), found in sorted(schemas.items()) for line in lines_of(domain, name, found)]


def main():
    path = pathlib.Path(sys.argv[1])
    lines = path.read_text().splitlines()
    comment = [line for line in lines if line.startswith("//")]
    listed = [line for line in lines if line and not line.startswith("//")]
    wanted = lines_of_package()
    if "--write" in sys.argv:
        path.write_text("\n".join(comment + wanted) + "\n")
        return 0
    for line in sorted(set(listed) ^ set(wanted)):
        print(("too much: " if line in listed else "missing: ") + line)
    print(f"{len(wanted)} lines")
    return 0 if listed == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
