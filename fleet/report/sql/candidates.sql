-- What other limits would have done to each container, with the limit, the remedy and the CPUs of now: stopped time and
-- throttled periods in all, and the longest of the rows' delays; the last two with a burst.
SELECT c.container_no, v.step, CAST(SUM(v.stopped_microseconds) AS BIGINT) AS stopped_us,
  CAST(SUM(v.throttled_periods) AS BIGINT) AS throttled, MAX(v.delay_microseconds) AS delay_us,
  CAST(SUM(v.burst_stopped_microseconds) AS BIGINT) AS burst_stopped_us,
  MAX(v.burst_delay_microseconds) AS burst_delay_us
FROM containers c
JOIN fleet_candidates v ON v.container_no = c.container_no AND {{asNow "v" "c"}}
WHERE v.candidate_seconds >= 60 AND v.step >= c.candidate_from
GROUP BY c.container_no, v.step
ORDER BY c.container_no, v.step
