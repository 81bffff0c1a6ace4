#!/usr/bin/env python3
"""Fails if the top-level modules of a crate import each other in a cycle.

    graph.py SRC             check the crate whose sources are in SRC; prints each cycle with the lines that close it
    graph.py SRC --edges     print every import between modules
    graph.py SRC --layers    print the modules in layers: each imports only from layers above its own line

Counts `use` items and qualified paths that start with `crate::` or reach it by `super::`. A name that lib.rs
re-exports counts as its module. Comments, string literals and items under `#[cfg(test)]` are left out.

Also fails if a module gives a type of another module public methods: their callers would import nothing. `compose.rs`
may, because it is the top.
"""
import collections
import pathlib
import re
import sys

SKIPPED = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\\\'])\'', re.S
)
PATH = re.compile(r"\b(crate|super|self)((?:\s*::\s*\w+)*)\s*(::\s*\{)?")


def blank(text):
    """Keeps line numbers."""
    return re.sub(r"[^\n]", " ", text)


def closing(text, start):
    """Index after the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "{([") - (text[at] in "})]")
        if depth == 0:
            return at + 1
    return len(text)


def code(path):
    text = SKIPPED.sub(lambda found: blank(found.group()), path.read_text())
    while found := re.search(r"#\[cfg\(test\)\]", text):
        end = re.compile(r"[;{]").search(text, found.end())
        end = closing(text, end.start()) if end and end.group() == "{" else (end.end() if end else len(text))
        text = text[: found.start()] + blank(text[found.start() : end]) + text[end:]
    return text


def leaves(tree):
    """Paths of a use tree: `a::{b, c::d}` -> [a, b], [a, c, d]."""
    head, brace, rest = tree.partition("{")
    names = re.findall(r"\w+|\*", re.sub(r"\bas\s+\w+", "", head))
    if not brace:
        return [names]
    found, depth, part = [], 0, ""
    for letter in rest[: rest.rindex("}")] + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            found += [names + leaf for leaf in leaves(part)] if part.strip() else []
            part = ""
        else:
            part += letter
    return found


def module_of(source, path):
    parts = list(path.relative_to(source).with_suffix("").parts)
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def paths(source, path):
    """Every path into the crate that a file names, from the root, with its line."""
    text, here = code(path), module_of(source, path)
    for found in PATH.finditer(text):
        if text[: found.start()].rstrip().endswith("::"):
            continue
        names = re.findall(r"\w+", found.group(2))
        base = {"crate": [], "self": here, "super": here[:-1]}[found.group(1)]
        while found.group(1) == "super" and names and names[0] == "super":
            base, names = base[:-1], names[1:]
        tails = [[]]
        if found.group(3):
            start = found.end() - 1
            tails = leaves(text[start : closing(text, start)])
        for tail in tails:
            yield base + names + tail, text.count("\n", 0, found.start()) + 1


def reexports(source, modules):
    """Names that lib.rs takes from its modules, and their modules."""
    names = {}
    for tree in re.findall(r"\bpub(?:\([^)]*\))?\s+use\s+([^;]+);", code(source / "lib.rs")):
        for leaf in leaves(tree):
            if leaf[0] in modules:
                names[leaf[-1]] = leaf[0]
    return names


def edges_of(source):
    modules = {path.stem for path in source.iterdir() if path.suffix == ".rs" or path.is_dir()} - {"lib"}
    names = reexports(source, modules)
    edges = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in sorted(source.rglob("*.rs")):
        here = module_of(source, path)
        if not here:
            continue
        for target, line in paths(source, path):
            top = target[0] if target else None
            top = top if top in modules else names.get(top)
            if top and top != here[0]:
                edges[here[0]][top].append((f"{path.relative_to(source)}:{line}", "::".join(target)))
    return edges


def back_doors(source):
    """Public methods of a type that another top-level module defines."""
    files = [(path, module_of(source, path), code(path)) for path in sorted(source.rglob("*.rs"))]
    homes = collections.defaultdict(set)
    for _, here, text in files:
        for name in re.findall(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum)\s+(\w+)", text, re.M):
            homes[name].add((here or ["lib"])[0])
    for path, here, text in files:
        for found in re.finditer(r"^\s*impl(?:<[^{]*?>)?\s+(\w+)(?:<[^{]*>)?\s*\{", text, re.M):
            home = homes.get(found.group(1), set())
            block = text[found.end() - 1 : closing(text, found.end() - 1)]
            if here and here[0] != "compose" and home and here[0] not in home and re.search(r"\bpub\b", block):
                yield path.relative_to(source), text.count("\n", 0, found.end()) + 1, found.group(1)


def layers(edges):
    """Modules by the length of the longest path below them. The graph has no cycle."""
    depth = {}

    def measure(module):
        if module not in depth:
            depth[module] = 1 + max((measure(target) for target in edges.get(module, {})), default=-1)
        return depth[module]

    for module in list(edges):
        measure(module)
    return [sorted(name for name in depth if depth[name] == layer) for layer in range(max(depth.values()) + 1)]


def components(edges):
    """Strongly connected components with more than one module."""
    index, low, stack, found = {}, {}, [], []

    def visit(module):
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in edges.get(module, {}):
            if target not in index:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], index[target])
        if low[module] == index[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for module in sorted(edges):
        if module not in index:
            visit(module)
    return found


def cycle(edges, members):
    """A shortest cycle among these modules."""
    best = None
    for start in sorted(members):
        came, queue = {start: None}, collections.deque([start])
        while queue:
            module = queue.popleft()
            for target in sorted(set(edges[module]) & members):
                if target == start:
                    walk = [start]
                    while module is not None:
                        walk.append(module)
                        module = came[module]
                    if best is None or len(walk) < len(best):
                        best = walk[::-1]
                    queue.clear()
                    break
                if target not in came:
                    came[target] = module
                    queue.append(target)
    return best


def main():
    source = pathlib.Path(sys.argv[1])
    edges = edges_of(source)
    if "--edges" in sys.argv:
        for module in sorted(edges):
            for target in sorted(edges[module]):
                for place, name in edges[module][target]:
                    print(f"{module} -> {target}  {name}  ({place})")
    if not edges:
        sys.exit(f"no modules that import each other below {source}: is the path right?")
    found = components(edges)
    for members in found:
        walk = cycle(edges, members)
        print(f"import cycle: {' -> '.join(walk)} (among {', '.join(sorted(members))})", file=sys.stderr)
        for module, target in zip(walk, walk[1:]):
            for place, name in edges[module][target]:
                print(f"  {module} -> {target}: {place} {name}", file=sys.stderr)
    doors = list(back_doors(source))
    for path, line, name in doors:
        print(f"{path}:{line}: public methods of {name}, a type of another module; use a function", file=sys.stderr)
    if found or doors:
        sys.exit(1)
    if "--layers" in sys.argv:
        for layer in layers(edges):
            print(" ".join(layer))


main()
