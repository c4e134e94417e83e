"""How long pods take through an extender on loopback: `python -m perf.extender`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
import uvloop
from rich.table import Table

from moorage.api.errors import MoorageError
from moorage.cli.bench import Seed, progress_bar
from moorage.cli.printing import Form, OutputForm, console, fail, print_data
from perf.extender import measuring
from perf.extender.measuring import EXCHANGES, ExchangeResult, ExtenderExchange

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


@app.command()
def extender(
    nodes: Annotated[int, typer.Option(min=10, help="Number of nodes.")] = 1000,
    pods: Annotated[int, typer.Option(min=0, help="Number of running pods.")] = 4000,
    measure: Annotated[int, typer.Option(min=1, help="Number of pods to schedule per exchange.")] = 300,
    seed: Seed = 0,
    output: OutputForm = Form.TABLE,
) -> None:
    """Schedule pods with an extender that filters and prioritizes, in a separate process on loopback.

    The extender receives first node names only (nodeCacheCapable), then whole nodes as kubelets write them.
    The time of a pod runs from its pop until it is assumed on its node: all plugins and two requests. Finally
    Moorage itself is the extender, and the time of its two responses for all nodes is measured.
    """
    results = [_through(exchange, nodes, pods, measure, seed) for exchange in EXCHANGES]
    if output is not Form.TABLE:
        print_data([result.to_dict() for result in results], output)
        return
    console().print(_exchange_table(results))


def _through(exchange: ExtenderExchange, nodes: int, pods: int, measure: int, seed: int) -> ExchangeResult:
    with progress_bar(exchange.name, measure) as advance:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(measuring.measure(exchange, nodes, pods, measure, seed, advance))
        except MoorageError as error:
            fail(f"{exchange.name}: {error}")


def _exchange_table(results: list[ExchangeResult]) -> Table:
    table = Table(title=f"{results[0].nodes} nodes, filter and prioritize for each pod")
    for heading in ("exchange", "description"):
        table.add_column(heading)
    for heading in ("bytes per node", "ms median", "ms p99", "pods/s"):
        table.add_column(heading, justify="right")
    for result, exchange in zip(results, EXCHANGES, strict=True):
        table.add_row(
            result.exchange,
            exchange.description,
            str(result.node_bytes),
            f"{result.median_ms:.2f}",
            f"{result.p99_ms:.2f}",
            f"{result.pods_per_second:.0f}",
        )
    return table


if __name__ == "__main__":
    app()
