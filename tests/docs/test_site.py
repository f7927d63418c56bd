"""The site is whole: every public name is in the reference, every link and every anchor leads somewhere."""

from __future__ import annotations

import inspect
import pkgutil
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from sphinx.util.inventory import InventoryFile

import reactive_runtime
from docs._site import names, reference
from docs._site.examples import WITHOUT
from docs._site.names import ROOT
from reactive_runtime import Flow

pytestmark = pytest.mark.timeout(1000)  # the first of them builds the site


def documented(site: Path) -> set[str]:
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    return {name for domain, of_domain in inventory.data.items() if domain.startswith("py:") for name in of_domain}


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    public = names.public_names()
    assert len(public) > 250
    assert sorted(set(public) - documented(site)) == []


def test_every_public_member_of_a_public_class_is_in_the_reference(site: Path) -> None:
    members = [
        f"{module.name}.{name}.{member}"
        for module in names.modules()
        for name, thing in module.homes.items()
        if inspect.isclass(thing) and thing is not Flow
        for member in names.class_members(thing)
    ]
    assert len(members) > 150
    assert sorted(set(members) - documented(site)) == []


def test_nothing_of_flow_is_left_out() -> None:
    assert {member.name for member in names.members()} == {name for name in dir(Flow) if not name.startswith("_")}


def test_what_has_an_underscore_is_not_public() -> None:
    assert f"{ROOT}.Flow.map" in names.public_names()
    assert f"{ROOT}.executors.VirtualTimeExecutor" in names.public_names()
    assert not [name for name in names.public_names() if "._" in name and not name.endswith("__version__")]


def test_a_module_without_an_underscore_has_a_page() -> None:
    """`interop` exports nothing itself."""
    pages = {module.name for module in names.modules()} | {f"{ROOT}.interop"}
    found = pkgutil.walk_packages(reactive_runtime.__path__, f"{ROOT}.")
    assert {item.name for item in found if "._" not in item.name} <= pages


def test_what_a_module_exports_names_a_public_module() -> None:
    for module in names.modules():
        exported = {name: getattr(module.module, name) for name in getattr(module.module, "__all__", ())}
        homes = {name: getattr(item, "__module__", None) for name, item in exported.items()}
        assert {name for name, home in homes.items() if str(home).startswith(ROOT) and "._" in str(home)} == set()


def test_every_member_of_flow_has_a_page_by_its_theme() -> None:
    pages = reference.pages()
    for member in names.members():
        assert f"flow/{member.name}.rst" in pages
        assert f"flow/{member.name}" in pages[f"{member.theme}.rst"]


def test_the_page_of_each_operator_has_its_picture(site: Path) -> None:
    for member in names.members():
        text = (site / "reference" / "flow" / f"{member.name}.html").read_text()
        assert text.count('class="marble"') == (member.name not in WITHOUT), member.name


def test_the_page_of_each_member_has_a_signature_for_each_of_its_forms(site: Path) -> None:
    for member in names.members():
        text = (site / "reference" / "flow" / f"{member.name}.html").read_text()
        shown = [
            unescape(re.sub("<[^>]+>", "", form)) for form in re.findall(r'<dt class="sig .*?</dt>', text, re.DOTALL)
        ]
        assert len(shown) == len(member.signatures), member.name
        assert all(f"Flow.{member.name}(" in form for form in shown), shown
        assert not any("Flow[Any]" in form or "MISSING" in form for form in shown), shown


def test_a_class_that_is_a_flow_has_its_own_members_on_its_page_and_not_those_of_flow(site: Path) -> None:
    members = {member.name for member in names.members()}
    found = documented(site)
    repeated = []
    for module in names.modules():
        for name, thing in module.homes.items():
            if inspect.isclass(thing) and issubclass(thing, Flow) and thing is not Flow:
                path = f"{module.name}.{name}"
                assert path in found
                repeated += [f"{path}.{member}" for member in members - set(vars(thing)) if f"{path}.{member}" in found]
    assert repeated == []


def test_no_page_of_the_reference_has_what_only_python_prints(site: Path) -> None:
    """Signatures are what the source says, a block of a docstring is a block, and no sentence is taken for a list."""
    found = []
    for path in (site / "reference").rglob("*.html"):
        text = path.read_text()
        for signature in re.findall(r'<dt class="sig .*?</dt>', text, re.DOTALL):
            said = unescape(re.sub("<[^>]+>", "", signature))
            if re.search(r"[~<>]|collections\.abc|typing\.|, _|\(_", said):
                found.append((path.name, said))
        found += [(path.name, tag) for tag in ("<blockquote", '<ol class="arabic', "system-message") if tag in text]
        found += [(path.name, base) for base in re.findall(r"Bases: <code[^>]*><span[^>]*>(_\w+|object)<", text)]
    assert found == []


def test_the_readme_is_short() -> None:
    assert len(Path("README.md").read_text().splitlines()) < 120


class Page(HTMLParser):
    """The links of a page, and what can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.anchors.update(filter(None, (found.get("id"), found.get("name"))))
        self.links += [link for key in ("href", "src") if (link := found.get(key))]


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    dead, seen = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            seen += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert seen > 5_000
    assert dead == []
