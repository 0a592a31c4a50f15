"""How fast chunks of a child reach a WebSocket client through its parent, against two floors.

Raw: a child with nothing but the adapter streams chunks through its parent; the floor sends the
same frames through the same server and stores the same rows, without ramet. Think: a question that
a `Think` answers by asking another, which streams 200 deltas; the other side is a bare pydantic-ai
agent that delegates to another and stores nothing. All sides run in one server, in turn.
"""

import argparse
import itertools
import json
import time

from forward_app import make_app
from measuring import interleaved, medians, report, say, server
from raw_socket import RawSocket

CHUNKS = 5_000
_numbers = itertools.count()


def forwarded(address: tuple[str, int], child: str, burst: int) -> float:
    """Chunks a second through a parent."""
    with RawSocket(*address, f"/agents/parent/p{next(_numbers)}") as socket:
        socket.until(b"cf_agent_mcp_servers")
        call = {"type": "rpc", "id": "1", "method": "forward", "args": [child, CHUNKS, burst]}
        begun = time.perf_counter()
        socket.send(json.dumps(call))
        frames = socket.until(b'"type":"rpc"')
        took = time.perf_counter() - begun
    if frames < CHUNKS:
        raise AssertionError(f"Only {frames} frames of {CHUNKS} chunks")
    return CHUNKS / took


def floor(address: tuple[str, int], burst: int) -> float:
    """Chunks a second without ramet."""
    with RawSocket(*address, "/floor") as socket:
        begun = time.perf_counter()
        socket.send(f"run{next(_numbers)} {CHUNKS} {burst}")
        socket.until(b'"type":"rpc"')
        return CHUNKS / (time.perf_counter() - begun)


def thought(address: tuple[str, int]) -> float:
    """Seconds for one question to a `Think` that asks another."""
    with RawSocket(*address, f"/agents/think-parent/t{next(_numbers)}") as socket:
        socket.until(b"cf_agent_mcp_servers")
        message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
        body = json.dumps({"messages": [message], "trigger": "submit-message"})
        frame = {
            "type": "cf_agent_use_chat_request",
            "id": "r1",
            "init": {"method": "POST", "body": body},
        }
        begun = time.perf_counter()
        socket.send(json.dumps(frame))
        socket.until(b'"outcome":"completed"')
        return time.perf_counter() - begun


def delegated(address: tuple[str, int]) -> float:
    """Seconds for one question to a bare agent that delegates."""
    with RawSocket(*address, "/bare") as socket:
        begun = time.perf_counter()
        socket.send("go")
        socket.until(b'"done"')
        return time.perf_counter() - begun


def _speeds(address: tuple[str, int], burst: int, rounds: int) -> dict[str, float]:
    sides = {
        "floor": lambda: floor(address, burst),
        "raw": lambda: forwarded(address, "raw", burst),
        "chat": lambda: forwarded(address, "chat", burst),
    }
    return medians(interleaved(sides, rounds=rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--think-rounds", type=int, default=31)
    options = parser.parse_args()
    figures: dict[str, float | bool] = {}
    with server(make_app) as address:
        for burst in (1, 16):
            speeds = _speeds(address, burst, options.rounds)
            for name, speed in speeds.items():
                ratio = speed / speeds["floor"]
                say(f"bursts of {burst}, {name}: {speed:,.0f} chunks/s, {ratio:.2f} of the floor")
            figures[f"raw_ratio_burst_{burst}"] = speeds["raw"] / speeds["floor"]
            figures[f"chat_ratio_burst_{burst}"] = speeds["chat"] / speeds["floor"]
        times = medians(
            interleaved(
                {"think": lambda: thought(address), "bare": lambda: delegated(address)},
                rounds=options.think_rounds,
                warm_up=3,
            )
        )
    for name, seconds in times.items():
        say(f"200 deltas, {name}: {seconds * 1000:.1f} ms")
    figures["think_ratio"] = times["think"] / times["bare"]
    figures["raw_ok"] = min(figures["raw_ratio_burst_1"], figures["raw_ratio_burst_16"]) >= 0.5
    figures["think_ok"] = figures["think_ratio"] <= 0.75
    say(f"Think takes {figures['think_ratio']:.2f} of the bare agent's time (at most 0.75)")
    report("forward", figures)


if __name__ == "__main__":
    main()
