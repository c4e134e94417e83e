"""Every kind of selector under one name: over labels, over fields, and over nodes.

The parts live in `requirements`, `label_selectors`, `field_selectors` and `node_selectors`.
"""

from mooring.api.errors import SelectorError
from mooring.api.field_selectors import FieldRequirement, FieldSelector, parse_field_selector
from mooring.api.label_selectors import (
    NOTHING,
    Selector,
    compile_label_selector,
    make_selector,
    parse_selector,
    selector_from_labels,
)
from mooring.api.node_selectors import (
    CompiledNodeSelector,
    NodeTerm,
    PreferredTerm,
    PreferredTerms,
    RequiredNodeAffinity,
    compile_node_selector,
    compile_node_selector_terms,
    compile_preferred_terms,
    required_node_affinity,
    required_node_names,
)
from mooring.api.requirements import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    NOT_IN,
    Requirement,
    make_requirement,
    parse_integer,
)

EVERYTHING = make_selector(())

__all__ = [
    "DOES_NOT_EXIST",
    "EVERYTHING",
    "EXISTS",
    "GT",
    "IN",
    "LT",
    "NOTHING",
    "NOT_IN",
    "CompiledNodeSelector",
    "FieldRequirement",
    "FieldSelector",
    "NodeTerm",
    "PreferredTerm",
    "PreferredTerms",
    "RequiredNodeAffinity",
    "Requirement",
    "Selector",
    "SelectorError",
    "compile_label_selector",
    "compile_node_selector",
    "compile_node_selector_terms",
    "compile_preferred_terms",
    "make_requirement",
    "make_selector",
    "parse_field_selector",
    "parse_integer",
    "parse_selector",
    "required_node_affinity",
    "required_node_names",
    "selector_from_labels",
]
