"""Callbacks of plugins that stay over a reload keep the changes that they have not received yet."""

from __future__ import annotations

from moorage.api.resources import NODES
from moorage.framework.ports import Change
from moorage.state.cluster import ChangeCallbacks
from moorage.state.stores import Stores
from moorage.testing import make_node


def test_a_change_that_was_not_delivered_before_a_take_over_is_delivered_after_it_and_once():
    log: list[str] = []
    stores = Stores()
    old, new = ChangeCallbacks(stores), ChangeCallbacks(stores)
    watcher = old.add("stays", NODES, lambda before, after: log.append("stays"))
    old.add("goes", NODES, lambda before, after: log.append("goes"))
    stores.apply(Change(NODES, None, make_node("n")))
    new.take_over(old, [watcher])
    old.close()
    new.call()
    new.call()
    assert log == ["stays"]
