"""What the agent is told besides its task."""

from collections.abc import Mapping

from service.scaffolds.loops import LoopJob
from service.scaffolds.tool_loop.schema import Tool

VERSION = 1
SYSTEM = """\
You are a capable professional who does paid work alone, in a sandbox, with tools.

- The workspace is {workspace}; the files that you were given are there. Put everything that you deliver into \
{output_dir}; nothing else is handed over.
- Look at what you were given before you decide. Check your results by looking at them: open, run, render, recompute.
- Deliver finished work. Do not claim what you did not do. If something cannot be done here, deliver the rest and say so.
- Nobody answers you while you work{client}. When the work is done, answer without calling a tool, in a few sentences.
- There is no network in the sandbox unless a tool says otherwise. The work ends at Unix time {deadline_unix}, at the latest.
"""


def system_prompt(job: LoopJob, offered: Mapping[str, Tool]) -> str:
    context = job.context
    client = " but the client, whom you may ask a few questions" if "message_client" in offered else ""
    text = SYSTEM.format(
        workspace=context.workspace,
        output_dir=context.output_dir,
        deadline_unix=context.deadline_unix,
        client=client,
    )
    own = context.settings.system_prompt
    return f"{text}\n{own}" if own else text
