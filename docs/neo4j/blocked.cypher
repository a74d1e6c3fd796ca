// Who blocked whom: each task that could not start, and the way to the failed one that it waited for.
MATCH (r:Run {kind: 'execute'}) WHERE r.id STARTS WITH ''  // a run's id between the quotes; none: the newest run
WITH r ORDER BY r.createdAt DESC, r.seq DESC LIMIT 1
MATCH (r)-[:HAS_TASK]->(t:Task {status: 'blocked'})
MATCH (r)-[:HAS_TASK]->(b:Task {taskId: t.blockedBy})
MATCH p = shortestPath((t)-[:DEPENDS_ON*..100]->(b))
RETURN p
