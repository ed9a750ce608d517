"""
A program for the environment of the official Python client, which this one has not.

Takes an endpoint and how to begin (`auto` or `legacy`), or `stdio` and a command; tells what
happened as one line of JSON. The token comes from the environment.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult


async def agree(context, params):
    return ElicitResult(action="accept", content={"confirm": True})


async def converse(target, mode):
    async with Client(target, mode=mode, elicitation_callback=agree) as client:
        told = {"version": client.protocol_version, "tools": []}
        for tool in (await client.list_tools()).tools:
            told["tools"].append(tool.name)
        made = await client.call_tool("set_memory", {"key": "note", "value": {"a": [1, "é"]}})
        told["made"] = made.structured_content
        again = await client.call_tool("set_memory", {"key": "note", "value": 2})
        told["again"] = [again.is_error, again.structured_content["code"]]
        told["read"] = (await client.call_tool("get_memory", {"key": "note"})).structured_content
        told["listed"] = (await client.call_tool("list_memories", {})).structured_content
        forgotten = await client.call_tool("forget_memories", {"keys": ["note"]})
        told["forgotten"] = [forgotten.is_error, forgotten.structured_content]
        if forgotten.is_error:
            await client.call_tool("delete_memory", {"key": "note"})
        gone = await client.call_tool("get_memory", {"key": "note"})
        told["gone"] = gone.structured_content["code"]
        return told


async def main():
    token = os.environ["CONSENTFUL_TOKEN"]
    if sys.argv[1] == "stdio":
        command, *arguments = sys.argv[3:]
        target = StdioServerParameters(
            command=command, args=arguments, env=dict(os.environ), cwd=os.getcwd()
        )
        return await converse(target, sys.argv[2])
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers) as carrier:
        return await converse(streamable_http_client(sys.argv[1], http_client=carrier), sys.argv[2])


sys.stdout.write(json.dumps(asyncio.run(main())) + "\n")
