"""ImageLocality: sizes, spread, names, image volumes; the vector form against a plain model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.pod import ImageVolumeSource, Volume
from moorage.plugins.image_locality import normalized
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_container
from tests.plugins.one_plugin import ask

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("app", "app:latest"),
        ("app:v1", "app:v1"),
        ("registry:5000/app", "registry:5000/app:latest"),
        ("registry:5000/app:v1", "registry:5000/app:v1"),
        ("app@sha256:abc", "app@sha256:abc"),
        ("", ":latest"),
    ],
)
def test_names_without_tag_mean_latest(image, name):
    assert normalized(image) == name


def image_scores(pod, *nodes):
    return list(ask("ImageLocality", pod, nodes).raw_scores().values())


def test_an_image_that_half_of_the_nodes_have_counts_half():
    have, have_not = make_node("a", images={"app:latest": 1000 * MIB}), make_node("b")
    # (500 - 23) * 100 / (1000 - 23)
    assert image_scores(make_pod("p"), have, have_not) == [48, 0]


def test_small_images_and_unknown_ones_earn_nothing():
    assert image_scores(make_pod("p"), make_node("a", images={"app:latest": 23 * MIB})) == [0]
    assert image_scores(
        make_pod("p", containers=[make_container(image="other")]), make_node("a", images={"app:latest": 999 * MIB})
    ) == [0]


def test_init_containers_count_like_containers():
    pod = make_pod("p", init_containers=[make_container("i", image="init:v1")])
    node = make_node("a", images={"app:latest": 1000 * MIB, "init:v1": 1000 * MIB})
    assert image_scores(pod, node) == [100]


def test_image_volumes_earn_points_and_raise_the_ceiling():
    volume = Volume(name="v", image=ImageVolumeSource(reference="model"))
    node = make_node("a", images={"model:latest": 1000 * MIB})
    assert image_scores(make_pod("p", volumes=[volume]), node) == [49]


def test_each_node_counts_with_its_own_size():
    nodes = make_node("a", images={"app:latest": 200 * MIB}), make_node("b", images={"app:latest": 400 * MIB})
    assert image_scores(make_pod("p"), *nodes) == [18, 38]


sizes = st.dictionaries(st.sampled_from(["a:1", "b:1", "c:1"]), st.integers(0, 3000 * MIB), max_size=3)


def plain_score(images: list[str], node: dict[str, int], nodes: list[dict[str, int]], containers: int) -> int:
    total = 0
    for image in images:
        if image in node:
            total += int(float(node[image]) * (sum(image in other for other in nodes) / len(nodes)))
    ceiling = 1000 * MIB * containers
    total = min(max(total, 23 * MIB), ceiling)
    return 100 * (total - 23 * MIB) // (ceiling - 23 * MIB)


@given(
    st.lists(sizes, min_size=1, max_size=5),
    st.lists(st.sampled_from(["a:1", "b:1", "d:1"]), min_size=1, max_size=3),
    st.lists(st.sampled_from(["a:1", "c:1"]), max_size=2),
)
def test_all_forms_agree_with_the_plain_model(nodes, containers, volumes):
    pod = make_pod(
        "p",
        containers=[make_container(f"c{i}", image=image) for i, image in enumerate(containers)],
        volumes=[Volume(name=f"v{i}", image=ImageVolumeSource(reference=v)) for i, v in enumerate(volumes)],
    )
    scores = image_scores(pod, *(make_node(f"n{i}", images=images) for i, images in enumerate(nodes)))
    assert scores == [plain_score(containers + volumes, node, nodes, len(containers + volumes)) for node in nodes]
