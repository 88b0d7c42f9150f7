# pyright: basic, reportMissingImports=false
"""Runs under an interpreter that finds SWE-ReX; prints a JSON list of seconds as its last line."""

import asyncio
import json
import logging
import sys
import time

from swerex.deployment.docker import DockerDeployment
from swerex.runtime.abstract import Command


async def start(times: int, image: str) -> list[float]:
    took = []
    for _ in range(times):
        deployment = DockerDeployment(image=image, pull="never")
        started = time.perf_counter()
        await deployment.start()
        await deployment.runtime.execute(Command(command=["/bin/true"]))
        took.append(time.perf_counter() - started)
        await deployment.stop()
    return took


async def execute(times: int, image: str) -> list[float]:
    deployment = DockerDeployment(image=image, pull="never")
    await deployment.start()
    took = []
    for _ in range(times):
        started = time.perf_counter()
        await deployment.runtime.execute(Command(command=["/bin/true"]))
        took.append(time.perf_counter() - started)
    await deployment.stop()
    return took


logging.disable(logging.CRITICAL)
kind, count, name = sys.argv[1:]
print(json.dumps(asyncio.run((start if kind == "start" else execute)(int(count), name))))
