-- What came of each remedy by the day since it came into force in each container, the last of all later days: of the
-- containers that have rows before it and with it, and do at least half of the work.
WITH days AS (
  SELECT a.remedy, a.container_no,
    CASE WHEN r.began_ms - a.since_ms >= {{.DaysApplied}} * {{.DayMS}} THEN {{.DaysApplied}}
      ELSE CAST(FLOOR((r.began_ms - a.since_ms) / {{.DayMS}}.0) AS INTEGER) END AS day_no,
    SUM(r.stopped_high_seconds) AS stopped, SUM(r.seconds) AS seconds,
    SUM(r.seconds * CASE WHEN r.remedy = '{{.Pin}}' THEN CAST(r.allowed_cpus AS DOUBLE) ELSE r.own_limit_cpus END)
      AS core_seconds
  FROM remedied a
  JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy AND b.does_less = 0
  JOIN fleet_rows r ON r.container_no = a.container_no AND r.remedy = a.in_force
  WHERE r.stopped_high_seconds IS NOT NULL
  GROUP BY a.remedy, a.container_no,
    CASE WHEN r.began_ms - a.since_ms >= {{.DaysApplied}} * {{.DayMS}} THEN {{.DaysApplied}}
      ELSE CAST(FLOOR((r.began_ms - a.since_ms) / {{.DayMS}}.0) AS INTEGER) END
)
SELECT remedy, day_no, COUNT(*) AS containers, SUM(stopped) / SUM(seconds) AS stopped_share,
  SUM(core_seconds / seconds) AS cores
FROM days
GROUP BY remedy, day_no
ORDER BY remedy, day_no
