// What each agent was given and what was withheld from it, in tokens.
MATCH (r:Run {kind: 'execute'}) WHERE r.id STARTS WITH ''  // a run's id between the quotes; none: the newest run
WITH r ORDER BY r.createdAt DESC, r.seq DESC LIMIT 1
MATCH (r)-[:HAS_TASK]->(t:Task)-[:HAS_ATTEMPT]->(a:Attempt) WHERE a.contextTokens IS NOT NULL
RETURN t.taskId AS task, a.attemptNumber AS attempt, a.contextTokens AS given, a.contextTokensAvailable AS available,
  a.contextGiven AS pieces, a.contextWithheld AS withheld, a.qcContextTokens AS reviewerGiven
ORDER BY t.seq, attempt
