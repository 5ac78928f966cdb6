-- In how many periods of their own quotas a service's containers were stopped for so long: longer than the length
-- before, and no longer than this.
SELECT service, microseconds, CAST(SUM(periods) AS BIGINT) AS times
FROM fleet_stops
GROUP BY service, microseconds
ORDER BY service, microseconds
