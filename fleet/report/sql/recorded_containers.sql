-- How many of the containers that run now have a recording that shows thread pools.
SELECT COUNT(*) AS containers
FROM (SELECT DISTINCT p.container_no FROM fleet_pools p JOIN containers c ON c.container_no = p.container_no
  WHERE c.runs_now = 1) d
