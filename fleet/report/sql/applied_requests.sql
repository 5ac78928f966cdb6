-- How long requests took in agents' recordings before each remedy (day -1) and by the day since it came into force, the
-- last of all later days.
WITH days AS (
  SELECT a.remedy, v.microseconds, v.answered,
    CASE WHEN v.began_ms - a.since_ms >= {{.DaysApplied}} * {{.DayMS}} THEN {{.DaysApplied}}
      ELSE CAST(FLOOR((v.began_ms - a.since_ms) / {{.DayMS}}.0) AS INTEGER) END AS day_no
  FROM remedied a
  JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy AND b.does_less = 0
  JOIN fleet_requests v ON v.container_no = a.container_no AND v.remedy = a.in_force
  WHERE v.stopped_high_seconds IS NOT NULL AND v.began_ms >= a.since_ms
  UNION ALL
  SELECT a.remedy, v.microseconds, v.answered, -1 AS day_no
  FROM remedied a
  JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy AND b.does_less = 0
  JOIN fleet_requests v ON v.container_no = a.before_no AND v.remedy = '' AND v.began_ms < a.since_ms
  WHERE v.stopped_high_seconds IS NOT NULL
)
SELECT remedy, day_no, microseconds, CAST(SUM(answered) AS BIGINT) AS times
FROM days
GROUP BY remedy, day_no, microseconds
ORDER BY remedy, day_no, microseconds
