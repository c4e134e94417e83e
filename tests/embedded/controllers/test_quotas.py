"""The status of ResourceQuotas follows the objects of the namespace."""

from __future__ import annotations

from moorage.embedded.controllers import kinds
from tests.embedded.controllers.world import World


def test_the_status_shows_what_is_used():
    with World() as world:
        hard = {"pods": "2", "requests.cpu": "1", "count/deployments.apps": "5"}
        quota = {"metadata": {"name": "quota", "namespace": "default"}, "spec": {"hard": hard}}
        world.create(kinds.RESOURCE_QUOTAS, quota)
        labels = {"app": "web"}
        main = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "250m"}}}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [main]}}
        spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
        world.create(kinds.DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
        world.settle(10)
        status = world.get(kinds.RESOURCE_QUOTAS, "quota")["status"]
        assert status == {"hard": hard, "used": {"pods": "2", "requests.cpu": "500m", "count/deployments.apps": "1"}}
        messages = [event["note"] for event in world.events() if event["reason"] == "FailedCreate"]
        assert any("exceeded quota: quota, requested: pods=1, used: pods=2, limited: pods=2" in m for m in messages)
