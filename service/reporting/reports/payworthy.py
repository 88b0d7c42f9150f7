"""The report of PayWorthy: whether the work is paid for, why not, and who could tell beforehand."""

from service.domain.reports import ReportHeader, ReportSettings, ReportTable
from service.reporting.frames import Tables
from service.reporting.reports.data import gather
from service.reporting.reports.making import options as read_options
from service.reporting.reports.overview import exclusions
from service.reporting.reports.payworthy_forecasts import ablations, forecasters, protocol, top_shares
from service.reporting.reports.payworthy_jobs import PayWorthyOptions, forecasts_of, jobs_of
from service.reporting.reports.payworthy_labels import baseline_tables, family_table, judge_labels
from service.reporting.reports.payworthy_people import people, readings
from service.reporting.reports.payworthy_work import acceptance, causes, criteria, repeats, tools


def payworthy(tables: Tables, header: ReportHeader, settings: ReportSettings) -> list[ReportTable]:
    """Return the paper's tables and figures; those of forecasts only where there are any.

    Raises Invalid ``invalid_option``, ``unknown_agent``.
    """
    options = read_options(PayWorthyOptions, settings.options)
    data = gather(tables, header, settings)
    jobs = jobs_of(data)
    found = [acceptance(data, jobs, options), criteria(data, jobs), causes(data, jobs)]
    forecasts = [one for one in (forecasts_of(mine, options) for mine in jobs) if not one.rows.is_empty()]
    if forecasts:
        found += [
            forecasters(data, forecasts, options),
            top_shares(data, forecasts, options),
            ablations(data, forecasts),
            judge_labels(data, forecasts, options),
            *baseline_tables(data, forecasts, options),
            *family_table(data, forecasts, options),
            protocol(data, forecasts),
        ]
    beside = [*people(data, jobs, options), *readings(data, jobs), *tools(data, jobs, options), *repeats(data)]
    return [*found, *beside, exclusions(data)]
