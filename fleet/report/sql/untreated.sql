-- The same containers, or those that they are compared with, before each of these remedies: their rows without any until it
-- came into force. Rows after it ended are of another time, and those in which the container ended may not tell the remedy.
-- longer_us is the period that came with the remedy, where it is longer than the limit's before; else 0.
-- does_less: with the remedy it uses less than half of the CPU time that it used before, so that fewer stops tell nothing of the remedy.
SELECT a.container_no, a.remedy, SUM(r.seconds) AS seconds, SUM(r.stopped_high_seconds) AS stopped,
  SUM(r.seconds * r.own_limit_cpus) AS core_seconds,
  CASE WHEN MAX(a.used / a.seconds) < 0.5 * SUM(r.used_cpu_seconds) / SUM(r.seconds)
    THEN 1 ELSE 0 END AS does_less,
  CASE WHEN MAX(a.period_us) > MAX(r.period_microseconds) THEN MAX(a.period_us) ELSE 0 END AS longer_us,
  SUM(CASE WHEN r.candidate_seconds >= 60 THEN r.candidate_seconds END) AS known_seconds,
  MAX(CASE WHEN r.candidate_seconds >= 60 THEN r.candidate_from END) AS candidate_from
FROM remedied a
JOIN fleet_rows r ON r.container_no = a.before_no AND r.remedy = '' AND r.began_ms < a.since_ms
WHERE r.stopped_high_seconds IS NOT NULL
GROUP BY a.container_no, a.remedy
