"""The brief as its author wrote it, and where to put the result."""

OUTPUT_RULE = """

---

How this job is handed in (this part was added, the brief ends above the line):

- You are in the folder /workspace. {material}
- Save every finished deliverable, under the name and in the format that the brief asks for, in /workspace/output. Only what \
lies there is handed in: keep notes, scripts and drafts elsewhere.
- A deliverable of several files (a web page with its pictures, say) keeps its files together, with relative paths.
"""
GIVEN = "The material that the brief calls `inputs/…` is in /workspace/inputs."
NOTHING = "This job comes without any material."


def instruction_of(brief: str, inputs: int) -> str:
    """Return the brief, character by character, and the rule for the output."""
    return brief + OUTPUT_RULE.format(material=GIVEN if inputs else NOTHING)
