"""Whether a rubric asks for looking at pictures. Wider than JobBench's rule, which misses plurals, charts and screenshots."""

import re

from service.graders.rubric_chain.rubrics_file import Rubric

_LOOKS = re.compile(
    r"""\b(?:
    (?:bar|pie|line|gantt|org|flow)?[ -]?charts? | charted | graphs? | graphics? | infographics? | (?:bi|box|scatter)?[ -]?plots? |
    plotted | figures? | figs?\. | diagrams? | visuali[sz]\w* | visuals? | visually | heat[ -]?maps? | maps? | histograms? |
    scatter | q[- ]?q | screen[ -]?shots? | images? | photo(?:graph)?s? | pictures? | drawings? | drawn | sketch(?:es)? |
    illustrations? | renderings? | renders? | logos? | icons? | banners? | posters? | thumbnails? | lay[ -]?outs? |
    colou?r(?:s|ed|ing|-coded)? | palettes? | fonts? | typograph\w* | designs? | designed | mock[ -]?ups? | wire[ -]?frames? |
    floor[ -]?plans? | blueprints? | aesthetics? | legible | legibility | watermarks? | signatures?
    )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
_MONEY = re.compile(
    r"""\b(?:
    (?:revenue|sales|costs?|budget\w*|financial|prices?|pricing|profit|loss|income|expenses?|spend\w*|dollar|salary|wages?|tax|cash|
    growth|totals?|headline|key|exact|final|correct|stated|reported|quoted|same|single|double|four|five|six|seven|eight|
    \w+ed|\w+al|annual|monthly|quarterly)[ -]figures?
    | figures?\s+(?:(?:of|at|is|was|are|were|equals?|around|about|approximately|near|to)\s+)+(?:[^\W\d]{1,3}\s?)?[$€£¥]?\s?\d
    | figures?\s*[:=(]?\s*[$€£¥]\s?\d
    | figur(?:e|es|ed|ing)\s+(?:out|that)
    | by\s+design | graph\s+databases?
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Figures that are amounts, and what else only sounds like something to look at."""


def asks_for_looking(rubric: Rubric) -> bool:
    if rubric.needs_images is not None:
        return rubric.needs_images
    return any(_LOOKS.search(_MONEY.sub(" ", text)) for text in (rubric.text, *rubric.criteria))
