-- Rows that say what cannot be, with what that is: they are left out, and told. What a column or a field of a list may
-- hold are the bounds in the tags of demand.Row; here is what several columns have to keep together. NOT (NULL >= 0) is
-- unknown, and WHEN takes that for no: a column that was not measured is not wrong.
WITH levels AS (
  SELECT DISTINCT file_no, file_row
  FROM (
    SELECT file_no, file_row, kind
    FROM loaded_levels
    GROUP BY file_no, file_row, kind
    HAVING MAX(CASE WHEN {{outsideElements "levels"}} THEN 1 ELSE 0 END) = 1
      OR SUM(CAST(microseconds AS DOUBLE)) > 1000000 * (1.1 * MAX(seconds) + 1)
  ) h
),
candidates AS (
  SELECT file_no, file_row
  FROM (SELECT c.*, CAST(c.step AS DOUBLE) AS s FROM loaded_candidates c) d
  GROUP BY file_no, file_row
  -- Steps follow each other without a gap: the sums of such numbers and of their squares tell it sooner than counting
  -- different ones.
  HAVING MAX(CASE WHEN {{outsideElements "candidates"}} THEN 1 ELSE 0 END) = 1
    OR MAX(s) - MIN(s) + 1 <> COUNT(*) OR 2 * SUM(s) <> COUNT(*) * (MIN(s) + MAX(s))
    OR 6 * SUM(s * s) <> MAX(s) * (MAX(s) + 1) * (2 * MAX(s) + 1) - (MIN(s) - 1) * MIN(s) * (2 * MIN(s) - 1)
),
longbursts AS (
  SELECT DISTINCT file_no, file_row
  FROM (
    SELECT file_no, file_row, burst_period_microseconds
    FROM loaded_longbursts
    GROUP BY file_no, file_row, burst_period_microseconds
    HAVING MAX(CASE WHEN {{outsideElements "longbursts"}} OR candidate_seconds IS NULL THEN 1 ELSE 0 END) = 1
      OR MAX(step) - MIN(step) + 1 <> COUNT(*) OR COUNT(*) > COUNT(DISTINCT step)
  ) b
),
stops AS (
  SELECT file_no, file_row
  FROM loaded_stops
  GROUP BY file_no, file_row
  HAVING MAX(CASE WHEN {{outsideElements "stops"}} THEN 1 ELSE 0 END) = 1 OR SUM(CAST(periods AS DOUBLE)) > 1000000
),
recordings AS (
  SELECT file_no, file_row FROM loaded_responses WHERE {{outsideElements "responses"}}
  UNION
  SELECT file_no, file_row FROM loaded_requests WHERE {{outsideElements "requests"}}
),
prices AS (
  SELECT file_no, file_row
  FROM loaded_prices
  GROUP BY file_no, file_row
  -- What may do is no more than what does, and that no more than what surely does. Nothing does where nothing is judged.
  HAVING MAX(CASE WHEN {{outsideElements "prices"}} OR priced_remedy NOT IN ({{.Priceable}}) OR low_millicpus > millicpus
      OR millicpus > high_millicpus OR priced_at_ms IS NULL
      OR (millicpus IS NULL AND high_millicpus IS NOT NULL)
      OR (millicpus IS NOT NULL AND (priced_quantile IS NULL OR priced_microseconds IS NULL)) THEN 1 ELSE 0 END) = 1
    OR COUNT(*) > COUNT(DISTINCT priced_remedy)
),
longprices AS (
  SELECT file_no, file_row
  FROM loaded_longprices
  GROUP BY file_no, file_row
  HAVING MAX(CASE WHEN {{outsideElements "longprices"}} OR low_millicpus > millicpus OR millicpus > high_millicpus
      OR priced_at_ms IS NULL OR priced_quantile IS NULL OR priced_microseconds IS NULL THEN 1 ELSE 0 END) = 1
    OR COUNT(*) > COUNT(DISTINCT burst_period_microseconds)
),
pools AS (
  SELECT file_no, file_row
  FROM loaded_pools
  GROUP BY file_no, file_row
  HAVING MAX(CASE WHEN {{outsideElements "pools"}} THEN 1 ELSE 0 END) = 1 OR COUNT(*) > {{.MostPools}}
),
judged AS (
  SELECT r.file_no, r.file_row,
    CASE
      WHEN {{outside "schema"}} THEN 'it has another version of the columns'
      WHEN start_ms IS NULL OR MOD(start_ms, {{.SlotMS}}) <> 0 THEN 'its start is no multiple of five minutes'
      WHEN {{outside "began"}} THEN 'it began outside its five minutes'
      WHEN {{outside "seconds"}} THEN 'it is not of five minutes'
      WHEN {{outside "limit"}} THEN 'a limit or request is not within zero and 65536 CPUs'
      WHEN {{outside "cpu"}} THEN 'a CPU time is below zero or more than a host has, as after a reset of counters'
      WHEN {{outside "stopped"}} THEN 'its stopped time is not within the time that was observed'
      WHEN {{outside "host"}} THEN 'its host or its memory is not within 8192 CPUs and 1 PiB'
      WHEN {{outside "waiting"}}
        OR waiting_unclear_seconds > waiting_quota_seconds + waiting_ancestor_seconds + 0.001
        OR waiting_quota_seconds + waiting_ancestor_seconds + waiting_contention_seconds > 1.1 * wanted_cpu_seconds + 1
        THEN 'its threads waited for more time than they wanted a CPU'
      WHEN s.file_no IS NOT NULL THEN 'a stop is longer than a period may be, or there are more of them than periods'
      WHEN t.file_no IS NOT NULL OR {{outside "recorded"}}
        THEN 'a response or a request is longer than a minute, or there are more of them than a recording has'
      WHEN p.file_no IS NOT NULL OR q.file_no IS NOT NULL OR {{outside "priced"}}
        THEN 'what remedies need contradicts itself, is of no recording or of no remedy, or is no number of CPUs'
      WHEN {{outside "objective"}} OR (objective_quantile IS NULL AND objective_microseconds IS NOT NULL)
        OR (objective_quantile IS NOT NULL AND objective_microseconds IS NULL)
        THEN 'its objective is no quantile of at most an hour'
      WHEN o.file_no IS NOT NULL THEN 'more threads of a pool ran than it has, or it has more pools than are kept'
      WHEN l.file_no IS NOT NULL THEN 'a histogram is not within the time that was observed'
      WHEN c.file_no IS NOT NULL OR b.file_no IS NOT NULL OR {{outside "candidates"}}
        OR (candidate_seconds IS NOT NULL AND (period_microseconds IS NULL OR candidate_from IS NULL))
        THEN 'what other limits would have done is not within the time that was observed'
    END AS problem
  FROM loaded r
  LEFT JOIN levels l ON l.file_no = r.file_no AND l.file_row = r.file_row
  LEFT JOIN candidates c ON c.file_no = r.file_no AND c.file_row = r.file_row
  LEFT JOIN longbursts b ON b.file_no = r.file_no AND b.file_row = r.file_row
  LEFT JOIN stops s ON s.file_no = r.file_no AND s.file_row = r.file_row
  LEFT JOIN recordings t ON t.file_no = r.file_no AND t.file_row = r.file_row
  LEFT JOIN prices p ON p.file_no = r.file_no AND p.file_row = r.file_row
  LEFT JOIN longprices q ON q.file_no = r.file_no AND q.file_row = r.file_row
  LEFT JOIN pools o ON o.file_no = r.file_no AND o.file_row = r.file_row
  WHERE start_ms IS NULL OR start_ms <= {{.LastStartMS}}
)
SELECT file_no, file_row, problem FROM judged WHERE problem IS NOT NULL
