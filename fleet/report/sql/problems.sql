-- What was left out because it cannot be: how many rows, and the first one.
WITH ranked AS (
  SELECT problem, file_no, file_row, COUNT(*) OVER (PARTITION BY problem) AS row_count,
    ROW_NUMBER() OVER (PARTITION BY problem ORDER BY file_no, file_row) AS place
  FROM unsound
)
SELECT problem, row_count, file_no, file_row FROM ranked WHERE place = 1 ORDER BY problem
