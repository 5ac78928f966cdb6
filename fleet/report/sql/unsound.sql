-- Rows that say what cannot be, with what that is: they are left out, and told.
WITH histograms AS (
  SELECT DISTINCT file_no, file_row
  FROM (
    SELECT file_no, file_row, kind
    FROM loaded_levels
    GROUP BY file_no, file_row, kind
    HAVING COUNT(microseconds) < COUNT(*) OR COUNT(cpus) < COUNT(*) OR MIN(microseconds) < 0 OR MIN(cpus) < 0 OR MAX(cpus) > 8192
      OR SUM(CAST(microseconds AS DOUBLE)) > 1000000 * (1.1 * MAX(seconds) + 1)
  ) h
),
others AS (
  SELECT file_no, file_row
  FROM (SELECT c.*, CAST(c.step AS DOUBLE) AS s FROM loaded_candidates c) d
  GROUP BY file_no, file_row
  -- Steps follow each other without a gap: the sums of such numbers and of their squares tell it sooner than counting different ones.
  HAVING COUNT(step) < COUNT(*) OR MIN(step) < -16 OR MAX(step) > 36
    OR MAX(s) - MIN(s) + 1 <> COUNT(*) OR 2 * SUM(s) <> COUNT(*) * (MIN(s) + MAX(s))
    OR 6 * SUM(s * s) <> MAX(s) * (MAX(s) + 1) * (2 * MAX(s) + 1) - (MIN(s) - 1) * MIN(s) * (2 * MIN(s) - 1)
    OR COUNT(stopped_us) < COUNT(*) OR MIN(stopped_us) < 0 OR MAX(stopped_us) > 1000000 * (1.2 * MAX(seconds) + 1)
    OR COUNT(burst_stopped_us) < COUNT(*) OR MIN(burst_stopped_us) < 0 OR MAX(burst_stopped_us) > 1000000 * (1.2 * MAX(seconds) + 1)
    OR COUNT(throttled) < COUNT(*) OR MIN(throttled) < 0 OR MAX(throttled) > 1000000
    OR COUNT(delay_us) < COUNT(*) OR MIN(delay_us) < 0 OR MAX(delay_us) > 100000000
    OR COUNT(burst_delay_us) < COUNT(*) OR MIN(burst_delay_us) < 0 OR MAX(burst_delay_us) > 100000000
),
stops AS (
  SELECT file_no, file_row
  FROM loaded_stops
  GROUP BY file_no, file_row
  HAVING COUNT(stop_us) < COUNT(*) OR COUNT(stopped_periods) < COUNT(*) OR MIN(stop_us) <= 0 OR MAX(stop_us) > 1048576 OR MIN(stopped_periods) <= 0
    OR SUM(CAST(stopped_periods AS DOUBLE)) > 1000000
),
recordings AS (
  SELECT file_no, file_row FROM loaded_responses WHERE NOT COALESCE(role IS NOT NULL AND response_us > 0 AND response_us <= 67108864 AND runs > 0 AND runs <= 100000000, FALSE)
  UNION
  SELECT file_no, file_row FROM loaded_requests WHERE NOT COALESCE(request_us > 0 AND request_us <= 67108864 AND answered > 0 AND answered <= 100000000, FALSE)
),
judged AS (
  SELECT l.file_no, l.file_row,
    CASE
      WHEN l.schema_version IS NULL OR l.schema_version <> 1 THEN 'it has another version of the columns'
      WHEN l.start_ms IS NULL OR MOD(l.start_ms, 300000) <> 0 THEN 'its start is no multiple of five minutes'
      WHEN l.began_ms IS NULL OR l.began_ms < l.start_ms OR l.began_ms >= l.start_ms + 300000 THEN 'it began outside its five minutes'
      WHEN l.seconds IS NULL OR NOT (l.seconds > 0 AND l.seconds <= 600) THEN 'it is not of five minutes'
      WHEN NOT (l.own_limit_cpus > 0 AND l.own_limit_cpus <= 65536) OR NOT (l.request_cpus >= 0 AND l.request_cpus <= 65536) OR l.allowed_cpus <= 0
        THEN 'a limit or request is not within zero and 65536 CPUs'
      WHEN NOT (l.used_cpu_seconds >= 0 AND l.used_cpu_seconds <= 8192 * l.seconds)
        OR NOT (l.wanted_cpu_seconds >= 0 AND l.wanted_cpu_seconds <= 1000000 * l.seconds)
        OR NOT (l.throttled_own_seconds >= 0 AND l.throttled_own_seconds <= 8192 * l.seconds)
        OR NOT (l.throttled_pod_seconds >= 0 AND l.throttled_pod_seconds <= 8192 * l.seconds)
        OR NOT (l.throttled_slice_seconds >= 0 AND l.throttled_slice_seconds <= 8192 * l.seconds)
        OR NOT (l.throttled_inside_seconds >= 0 AND l.throttled_inside_seconds <= 8192 * l.seconds)
        THEN 'a CPU time is below zero or more than a host has, as after a reset of counters'
      WHEN NOT (l.stopped_low_seconds >= 0 AND l.stopped_low_seconds <= l.stopped_high_seconds + 0.001
        AND l.stopped_high_seconds <= 1.1 * l.seconds + 1) THEN 'its stopped time is not within the time that was observed'
      WHEN NOT (l.host_cpus > 0 AND l.host_cpus <= 8192) OR NOT (l.host_memory_bytes > 0 AND l.host_memory_bytes <= 1125899906842624)
        OR NOT (l.memory_bytes >= 0 AND l.memory_bytes <= 1125899906842624) THEN 'its host or its memory is not within 8192 CPUs and 1 PiB'
      WHEN NOT (l.waiting_quota_seconds >= 0 AND l.waiting_ancestor_seconds >= 0 AND l.waiting_contention_seconds >= 0 AND l.waiting_unclear_seconds >= 0
        AND l.waiting_unclear_seconds <= l.waiting_quota_seconds + l.waiting_ancestor_seconds + 0.001
        AND l.waiting_quota_seconds + l.waiting_ancestor_seconds + l.waiting_contention_seconds <= 1.1 * l.wanted_cpu_seconds + 1)
        THEN 'its threads waited for more time than they wanted a CPU'
      WHEN s.file_no IS NOT NULL THEN 'a stop is longer than a period may be, or there are more of them than periods'
      WHEN r.file_no IS NOT NULL OR NOT (l.recorded_seconds > 0 AND l.recorded_seconds <= 3600) OR NOT (l.request_count >= 0 AND l.request_count <= 1000000000)
        THEN 'a response or a request is longer than a minute, or there are more of them than a recording has'
      WHEN h.file_no IS NOT NULL THEN 'a histogram is not within the time that was observed'
      WHEN o.file_no IS NOT NULL OR NOT (l.candidate_seconds >= 0 AND l.candidate_seconds <= 1.1 * l.seconds + 1)
        OR NOT (l.period_us >= 1000 AND l.period_us <= 1000000) OR NOT (l.candidate_from >= -16 AND l.candidate_from <= 37)
        OR (l.candidate_seconds IS NOT NULL AND (l.period_us IS NULL OR l.candidate_from IS NULL))
        THEN 'what other limits would have done is not within the time that was observed'
    END AS problem
  FROM loaded l
  LEFT JOIN histograms h ON h.file_no = l.file_no AND h.file_row = l.file_row
  LEFT JOIN others o ON o.file_no = l.file_no AND o.file_row = l.file_row
  LEFT JOIN stops s ON s.file_no = l.file_no AND s.file_row = l.file_row
  LEFT JOIN recordings r ON r.file_no = l.file_no AND r.file_row = l.file_row
)
SELECT file_no, file_row, problem FROM judged WHERE problem IS NOT NULL
