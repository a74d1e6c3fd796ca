// What fails again and again: rejected attempts by task and cause, over all runs.
MATCH (r:Run {kind: 'execute'})-[:HAS_TASK]->(t:Task)-[:HAS_ATTEMPT]->(a:Attempt)
WHERE a.endCause IS NOT NULL
RETURN t.title AS task, a.endCause AS cause, count(a) AS attempts, count(DISTINCT r) AS runs,
  sum(CASE WHEN t.status = 'failed' THEN 1 ELSE 0 END) AS inFailedTasks, collect(DISTINCT r.id)[..5] AS someRuns
ORDER BY attempts DESC, task LIMIT 100
