-- In how many periods of their own quotas a service's containers were stopped for so long: longer than the length before, and no longer than this.
SELECT service, stop_us, CAST(SUM(stopped_periods) AS BIGINT) AS stopped_periods
FROM fleet_stops
GROUP BY service, stop_us
ORDER BY service, stop_us
