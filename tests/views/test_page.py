"""Pages that work offline."""

from __future__ import annotations

import base64
import hashlib
import re

from recurra.views.page import page
from recurra.views.several import Several
from recurra.views.tree import BeamTree, End, Node, Step

TREE = BeamTree([Step(1, 1, [Node(0, None, "a", 0.5, -1.0, True, True, 1, "a")])], [End(0, 0)])


def test_the_policy_of_a_page_allows_its_own_script_alone() -> None:
    for view in (TREE, Several([TREE, TREE])):
        html = view.page()
        [script] = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'" in html
    assert "script" not in page("none", ["<p>text</p>"])
