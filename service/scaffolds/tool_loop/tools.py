"""The tools as the model is told of them."""

from service.scaffolds.tool_loop import media
from service.scaffolds.tool_loop.schema import NUMBER, TEXT, schema, tool, words

DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S = 120, 1800
_TIMEOUT = words(NUMBER, f"Seconds until it is killed; default {DEFAULT_TIMEOUT_S}, at most {MAX_TIMEOUT_S}.")
_PATH = words(TEXT, "Absolute, or relative to /workspace.")

SANDBOX = {
    one.spec.name: one
    for one in (
        tool(
            "bash",
            "Run a command in a shell of the sandbox. Working directory and exported variables are kept from call to "
            "call. Programs left in the background (with &) go on running. Of long output the beginning and the end are "
            "shown.",
            schema(["command"], command=TEXT, timeout_s=_TIMEOUT),
            alone=True,
        ),
        tool(
            "python",
            "Run a Python program in the sandbox, in a new interpreter, in the shell's working directory. Print what you "
            "want to see.",
            schema(["code"], code=TEXT, timeout_s=_TIMEOUT),
            alone=True,
        ),
        tool(
            "read_file",
            "Read a text file, with line numbers.",
            schema(
                ["path"],
                path=_PATH,
                offset=words(NUMBER, "First line, from 1."),
                limit=words(NUMBER, "Most lines; default 2000."),
            ),
        ),
        tool(
            "write_file",
            "Write a text file whole; folders are made where missing.",
            schema(["path", "content"], path=_PATH, content=TEXT),
            alone=True,
        ),
        tool(
            "edit_file",
            "Replace a piece of text in a file. old_text must occur exactly once unless replace_all is true.",
            schema(
                ["path", "old_text", "new_text"],
                path=_PATH,
                old_text=TEXT,
                new_text=TEXT,
                replace_all={"type": "boolean"},
            ),
            alone=True,
        ),
        tool(
            "list_files",
            "List a folder with sizes.",
            schema([], path=_PATH, depth=words(NUMBER, "Levels of folders; default 2.")),
        ),
        tool("view_image", "Look at an image file (png, jpeg, gif or webp).", schema(["path"], path=_PATH)),
    )
}
WEB_SEARCH = tool("web_search", "Search the web.", schema(["query"], query=TEXT, count=NUMBER))
WEB_FETCH = tool("web_fetch", "Fetch a page of the web as text.", schema(["url"], url=TEXT))
MESSAGE_CLIENT = tool(
    "message_client",
    "Ask the client of this job a question. You may attach text files by their content.",
    schema(
        ["text"],
        text=TEXT,
        attachments={
            "type": "array",
            "items": schema(["name", "content"], name=TEXT, content=TEXT),
            "description": "Text files.",
        },
    ),
    alone=True,
)
SERVICES = {"search": WEB_SEARCH, "fetch": WEB_FETCH, **media.TOOLS}
"""Gateway service that the agent's settings name → tool that it makes possible."""
NAMES = frozenset({*SANDBOX, *(one.spec.name for one in SERVICES.values()), "message_client"})
