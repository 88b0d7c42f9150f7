"""``python -m tests.bench [NAME]``: one JSON line per bench."""

import sys

from tests.bench.changes import changes_feed
from tests.bench.code_tests import code_tests, code_tests_isolated
from tests.bench.collecting import collect
from tests.bench.desktop_runs import desktop_runs
from tests.bench.desktop_start import desktop_start
from tests.bench.evaluation_matrix import matrix
from tests.bench.evaluation_watching import matrix_view
from tests.bench.evidence import evidence, evidence_cached
from tests.bench.executing import exec_
from tests.bench.forecast_auc import forecast_auc
from tests.bench.gateway import gateway
from tests.bench.importing import import_
from tests.bench.judge_queue import judge_queue
from tests.bench.polling import poll
from tests.bench.reporting import elo, report
from tests.bench.resting import idle, overhead
from tests.bench.screen import screen
from tests.bench.start import start, start_cold
from tests.bench.streaming import stream
from tests.bench.viewing import view

BENCHES = {
    "start": start, "start_cold": start_cold, "exec": exec_, "stream": stream, "idle": idle, "overhead": overhead,
    "import": import_, "gateway": gateway, "poll": poll, "collect": collect,
    "code_tests": code_tests, "code_tests_isolated": code_tests_isolated, "desktop_runs": desktop_runs,
    "desktop_start": desktop_start, "screen": screen, "view": view, "judge_queue": judge_queue,
    "evidence": evidence, "evidence_cached": evidence_cached, "forecast_auc": forecast_auc, "matrix": matrix, "matrix_view": matrix_view, "changes": changes_feed,
    "report": report, "elo": elo,
}  # fmt: skip


def main(names: list[str]) -> None:
    for name in names or BENCHES:
        print(BENCHES[name]().line(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
