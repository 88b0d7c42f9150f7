"""The tool agent's loop: the work of all loops with tools, with those of the sandbox."""

from service.scaffolds.loops import LoopEnd, LoopJob
from service.scaffolds.tool_agent.prompt import system_prompt
from service.scaffolds.tool_loop.calls import Calls, offered
from service.scaffolds.tool_loop.conversation import Conversation
from service.scaffolds.tool_loop.work import Work


class ToolAgentLoop:
    """See :class:`service.scaffolds.loops.Loop`."""

    async def run(self, job: LoopJob) -> LoopEnd:
        calls = Calls(job, offered(job))
        return await Work(job, calls, Conversation(), system_prompt(job, calls.offered)).to_the_end()
