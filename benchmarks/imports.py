"""What `import ramet` costs over a bare interpreter: time and memory, medians of many processes."""

import argparse
import subprocess
import sys
import time
from functools import partial

from measuring import interleaved, medians, report, say

LIMIT_MS = 150
HEAVY_ROUNDS = 3
MEMORY = """
import resource
print(int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() // 1024)
"""
HEAVY = "import sys; print(*(n for n in ('pydantic_ai', 'starlette', 'httpx') if n in sys.modules))"
PROGRAMS = {
    "bare": "",
    "ramet": "import ramet\n",
    "ramet.App": "import ramet; ramet.App\n",
    "ramet.Think": "import ramet; ramet.Think\n",
}


def run(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def milliseconds(program: str) -> float:
    begun = time.perf_counter()
    run(program)
    return (time.perf_counter() - begun) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    sides = {name: partial(milliseconds, program) for name, program in PROGRAMS.items()}
    light = {name: sides[name] for name in ("bare", "ramet")}
    times = medians(interleaved(sides, rounds=HEAVY_ROUNDS))
    times |= medians(interleaved(light, rounds=options.rounds))
    memory = {name: int(run(program + MEMORY)) / 1024 for name, program in PROGRAMS.items()}
    for name in PROGRAMS:
        more, size = times[name] - times["bare"], memory[name] - memory["bare"]
        say(f"{name}: {times[name]:.0f} ms ({more:+.0f}), {memory[name]:.1f} MiB ({size:+.1f})")
    loaded = run("import ramet\n" + HEAVY)
    say(f"import ramet loads {loaded or 'none of the heavy libraries'}")
    more = times["ramet"] - times["bare"]
    figures = {
        "ramet_ms": more,
        "ramet_mib": memory["ramet"] - memory["bare"],
        "think_ms": times["ramet.Think"] - times["bare"],
        "ok": more < LIMIT_MS and not loaded,
    }
    report("imports", figures)


if __name__ == "__main__":
    main()
