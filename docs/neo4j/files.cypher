// Which files the run changed, and by whom: a file with two arrows was changed by two tasks, and merged.
MATCH (r:Run {kind: 'execute'}) WHERE r.id STARTS WITH ''  // a run's id between the quotes; none: the newest run
WITH r ORDER BY r.createdAt DESC, r.seq DESC LIMIT 1
MATCH p = (r)-[:HAS_TASK]->(:Task)-[:HAS_ATTEMPT]->(:Attempt)-[:PRODUCED]->(:Artifact {kind: 'file'})
RETURN p
