"""Rendered text can be read in both themes, an unknown address has a page of its own, and equal rows are one."""

from __future__ import annotations

import pytest

from tests.web.browser import clusters

pytestmark = [pytest.mark.ui, pytest.mark.slow]

ENOUGH = 4.5
UNREADABLE = """(enough) => {
  const channels = (text) => {
    const found = (text.match(/[\\d.]+/g) || []).map(Number);
    return text.startsWith("color(") ? found.map((each, at) => at < 3 ? 255 * each : each) : found;
  };
  const over = (front, back) => {
    const alpha = front.length > 3 ? front[3] : 1;
    return [0, 1, 2].map((at) => front[at] * alpha + back[at] * (1 - alpha));
  };
  const behind = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement)
      layers.push(channels(getComputedStyle(each).backgroundColor));
    return layers.reverse().reduce((below, layer) => (layer.length ? over(layer, below) : below), [255, 255, 255]);
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const bad = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!own || !box.width || !box.height || style.visibility !== "visible") continue;
    if (element.closest(".disabled, [aria-hidden=true], script, style")) continue;
    const back = behind(element), front = over(channels(style.color), back);
    const [dark, bright] = [luminance(front), luminance(back)].sort((one, other) => one - other);
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < enough) bad.push(`${ratio.toFixed(2)} ${style.color}: ${element.textContent.trim().slice(0, 60)}`);
  }
  return [...new Set(bad)];
}"""
PAGES = {
    "/": "default/train",
    "/pod/default/train": "What would help",
    "/cluster": "All nodes",
    "/node/cpu-1": "Pods (2)",
    "/what-if?drain=cpu-1": "Changes are tried on a copy",
    "/configuration": "Check another configuration",
    "/nothing": "Page not found",
}


LIVE_PAGES = {
    "/": "Pending pods",
    "/pod/default/unread": "Each was tested on a copy",
    "/objects": "Export as a snapshot",
    "/object/nodes/-/node-0": "Save",
    "/new": "Create",
    "/node/node-0": "Conditions",
}


@pytest.fixture(scope="module")
def served(serve, tmp_path_factory):
    return serve("--snapshot", clusters.write(tmp_path_factory.mktemp("read"), "story", clusters.story()))


def unreadable(looking, pages, scheme) -> dict[str, list[str]]:
    """Page → its texts with too little contrast."""
    found = {}
    for path, text in pages.items():
        page = looking.open(path)
        page.wait_for_selector(f"text={text}")
        page.wait_for_selector(f"body.body--{scheme}")
        page.wait_for_function("!document.querySelector('[aria-label=Loading]')")
        if bad := page.evaluate(UNREADABLE, ENOUGH):
            found[path] = bad
    looking.problems[:] = [each for each in looking.problems if "404" not in each]
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_of_every_page_can_be_read(served, look, scheme):
    assert unreadable(look(served, scheme), PAGES, scheme) == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_of_the_pages_of_a_running_scheduler_can_be_read(cluster, live, look, scheme):
    names = {each["metadata"]["name"] for each in cluster.get("/api/v1/namespaces/default/pods")["items"]}
    if "unread" not in names:
        cluster.create_pod("unread", nodeSelector={"disk": "ssd"})
    assert unreadable(look(live, scheme), LIVE_PAGES, scheme) == {}


def test_charts_follow_the_theme_when_it_is_switched(served, look):
    page = look(served, "light").open("/cluster")
    page.wait_for_selector("canvas")
    colour = (
        "getElement(document.querySelector('.nicegui-echart').id.slice(1)).chart?.getOption().yAxis[0].axisLabel.color"
    )
    soft = "getComputedStyle(document.body).getPropertyValue('--soft').trim()"
    page.wait_for_function(f"{colour} === {soft}")
    before = page.evaluate(colour)
    page.get_by_label("Light or dark").click()
    page.wait_for_selector("body.body--dark")
    page.wait_for_function(f"{colour} === {soft}")
    assert page.evaluate(colour) != before


def test_an_address_without_a_page_says_so_and_leads_to_the_pages(served, look):
    looking = look(served)
    page = looking.open("/no/such/page")
    page.wait_for_selector("text=There is no page at /no/such/page.")
    assert page.title() == "Page not found · Moorage"
    page.locator("main").get_by_role("link", name="Cluster").click()
    page.wait_for_selector("canvas")
    assert looking.problems == ["Failed to load resource: the server responded with a status of 404 (Not Found)"]
    looking.problems.clear()


def test_thirty_pods_with_one_reason_are_one_row_that_names_all_of_them(serve, look, tmp_path_factory):
    cluster = {"nodes": [clusters.node("only")]}
    cluster["pods"] = [clusters.pod(f"web-{number:02}", "40") for number in range(30)]
    page = look(serve("--snapshot", clusters.write(tmp_path_factory.mktemp("alike"), "alike", cluster))).open("/")
    page.wait_for_selector("text=default/web-00")
    assert page.locator(".m-table tbody tr").count() == 1
    page.get_by_text("and 29 more").click()
    assert page.get_by_role("link", name="default/web-29").is_visible()


def test_a_node_that_is_being_deleted_is_not_called_schedulable(serve, look, tmp_path_factory):
    leaving = clusters.node("leaving")
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["example.com/wait"]}
    leaving["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    running = clusters.pod("web", "1", "leaving")
    running["status"] = {"phase": "Running"}
    running["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    ]
    cluster = {"nodes": [leaving], "pods": [running]}
    page = look(serve("--snapshot", clusters.write(tmp_path_factory.mktemp("node"), "leaving", cluster))).open(
        "/node/leaving"
    )
    page.wait_for_selector("text=Terminating since 2026-01-02 03:04:05 UTC")
    assert page.get_by_text("Schedulable", exact=True).count() == 0
    assert "KubeletReady" in page.locator("section", has_text="Conditions").inner_text()
    row = page.locator("tr", has_text="default/web").inner_text()
    assert [cell for cell in ("ReplicaSet/web", "Running", "1") if cell not in row] == []


def test_a_pod_that_has_a_node_says_how_that_node_compares(served, look):
    page = look(served).open("/pod/default/web-0")
    page.wait_for_selector("text=Scheduled on")
    assert "cpu-1 is the only feasible node." in page.locator("main").inner_text()
    assert page.locator("text=What would help").count() == 0


def test_the_map_of_a_small_cluster_uses_the_width(served, look):
    looking = look(served)
    page = looking.open("/cluster?group=")
    page.wait_for_selector("canvas")
    page.wait_for_timeout(500)
    box = page.locator("canvas").first.bounding_box()
    page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + 55)
    page.wait_for_url("**/node/*")
    page = looking.open("/cluster")
    page.locator(".ag-cell", has_text="cpu-3").click()
    page.wait_for_url("**/node/cpu-3")
