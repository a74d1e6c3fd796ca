// The run as a graph: each task with the tasks that it waits for, coloured by status.
MATCH (r:Run {kind: 'execute'}) WHERE r.id STARTS WITH ''  // a run's id between the quotes; none: the newest run
WITH r ORDER BY r.createdAt DESC, r.seq DESC LIMIT 1
MATCH (r)-[:HAS_TASK]->(t:Task)
OPTIONAL MATCH p = (t)-[:DEPENDS_ON]->(:Task)
RETURN t, p
