-- How long threads of a role took from wake-up to sleep, in the recordings that agents made of a service while it was stopped: longer than the
-- length before, and no longer than this.
SELECT service, role, response_us, CAST(SUM(runs) AS BIGINT) AS runs
FROM fleet_responses
GROUP BY service, role, response_us
ORDER BY service, role, response_us
