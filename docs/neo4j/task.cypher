// One task from its first attempt to its end: attempts, verdicts and the sealed evidence of each.
MATCH (r:Run {kind: 'execute'}) WHERE r.id STARTS WITH ''  // a run's id between the quotes; none: the newest run
WITH r ORDER BY r.createdAt DESC, r.seq DESC LIMIT 1
MATCH (r)-[:HAS_TASK]->(t:Task) WHERE t.taskId STARTS WITH ''  // a task's id; none: the one with most attempts
WITH t ORDER BY t.attemptNumber DESC, t.seq LIMIT 1
MATCH p = (t)-[:HAS_ATTEMPT]->(a:Attempt)
OPTIONAL MATCH v = (a)-[:HAS_VERDICT]->(:Verdict)
OPTIONAL MATCH e = (a)-[:BACKED_BY]->(:Evidence)
RETURN p, v, e
