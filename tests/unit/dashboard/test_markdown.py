"""Briefs are Markdown from outside: what becomes structure, what is only shown, what never loads."""

import re
import time

import pytest

from service.dashboard.markdown import markdown

BRIEF = """# A site
Build a *small* **web site**, see [the docs](https://example.com/a_b?x=1&y=2).
It has `code` and snake_case_names.

- one
- two
  goes on

1. first
2. second

| a | b |
|---|--:|
| 1 | <2> |

> quoted
> twice

```js
let x = "<b>";
```
---
done"""


def test_structure() -> None:
    assert str(markdown(BRIEF)).split("\n") == [
        "<h3>A site</h3>",
        "<p>Build a <em>small</em> <strong>web site</strong>, see "
        '<a href="https://example.com/a_b?x=1&amp;y=2" rel="noopener noreferrer nofollow" target="_blank">the docs</a>.',
        "It has <code>code</code> and snake_case_names.</p>",
        "<ul><li>one</li><li>two",
        "goes on</li></ul>",
        "<ol><li>first</li><li>second</li></ol>",
        '<div class="scroll"><table><thead><tr><th>a</th><th>b</th></tr></thead>'
        "<tbody><tr><td>1</td><td>&lt;2&gt;</td></tr></tbody></table></div>",
        "<blockquote>quoted twice</blockquote>",
        "<pre>let x = &#34;&lt;b&gt;&#34;;</pre>",
        "<hr>",
        "<p>done</p>",
    ]


@pytest.mark.fault(70)
@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert`1`)",
        "[x](java\tscript:alert)",
        "[x]( javascript:alert)",
        "[x](data:text/html;base64,AAAA)",
        "[x](vbscript:x)",
        "[x](//evil.test/x)",
        "[x](/v1/runs)",
        "[x](http:evil)",
        "![x](https://evil.test/pixel.png)",
        "![x](data:image/svg+xml,<svg onload=alert(1)>)",
        "[![x](https://evil.test/p.png)](https://evil.test)",
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        '[x](https://a.test/"onmouseover="alert(1))',
        "**<svg/onload=alert(1)>**",
        "`<iframe src=javascript:alert(1)>`",
        "[x]: javascript:alert(1)\n[x]",
        "<javascript:alert(1)>",
        "# <style>@import 'https://evil.test'</style>",
    ],
)
def test_nothing_of_it_loads_or_runs(text: str) -> None:
    html = str(markdown(text))
    tags = re.findall(r"<[^>]*>", html)
    assert all(
        re.fullmatch(r'</?(p|a|code|strong|em|h[3-6])( href="https?://[^"<>]*" rel="[a-z ]+" target="_blank")?>', t)
        for t in tags
    ), html
    assert not any("javascript:" in tag for tag in tags)


def test_what_hides_or_turns_text_is_spelled_out() -> None:
    assert str(markdown("a\u202eb\x00")) == "<p>a⟨U+202E⟩b␀</p>"


@pytest.mark.parametrize(
    "piece", ["[", "**a", "*", "`", "![", "[a](", "> ", "- ", "| ", " ", "_a", "-", "#", "~~~\n", "|-", "\t|"]
)
def test_its_time_is_bounded(piece: str) -> None:
    started = time.process_time()
    markdown(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 5
