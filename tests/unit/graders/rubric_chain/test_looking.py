import pytest

from service.graders.rubric_chain.looking import asks_for_looking
from service.graders.rubric_chain.rubrics_file import Rubric


def looks(text: str, needs: bool | None = None) -> bool:
    return asks_for_looking(Rubric(1, "It is right", 1, ("First", text), needs))


@pytest.mark.parametrize(
    "text",
    [
        "The plots have labelled axes", "Figures are captioned", "All diagrams use one notation", "A bar chart per region",
        "A graph of the trend", "screenshots of each step", "the logo is centred", "Layout follows the template",
        "Brand colours are used", "the color-coded heat map", "visualizations exist", "It is visually consistent",
        "a Q-Q plot", "Scatterplot of x and y", "Figure 3 shows the decline", "The design is clean", "images are sharp",
        "a wireframe of the page", "an infographic", "see Fig. 2", "boxplots", "The histogram has ten bins",
    ],
)  # fmt: skip
def test_words_for_what_is_seen(text: str) -> None:
    assert looks(text)


@pytest.mark.parametrize(
    "text",
    [
        "revenue figure of $4M", "The figure of 4,200 units is stated", "sales figures are right", "a six-figure salary",
        "States a figure of € 12", "figures out the cause", "The key figure is named", "a figure: $ 12",
        "paragraph two names a cause", "The total is 200", "photosynthesis", "configure the server", "imagine a reader",
        "uses a graph database", "the mapping table", "plotters", "The figure is about 40",
    ],
)  # fmt: skip
def test_amounts_and_words_that_only_sound_alike(text: str) -> None:
    assert not looks(text)


def test_what_the_file_declares_wins() -> None:
    assert looks("The total is 200", needs=True)
    assert not looks("A chart", needs=False)
