// The critical path: from the task that was done last, back over whichever task it had to wait for longest.
MATCH (r:Run {kind: 'execute'}) WHERE r.id STARTS WITH ''  // a run's id between the quotes; none: the newest run
WITH r ORDER BY r.createdAt DESC, r.seq DESC LIMIT 1
MATCH (r)-[:HAS_TASK]->(t:Task) WHERE t.verifiedAt IS NOT NULL
WITH t AS last ORDER BY last.verifiedAt DESC LIMIT 1
MATCH p = (last) ((a)-[:DEPENDS_ON]->(b) WHERE NOT EXISTS {
  MATCH (a)-[:DEPENDS_ON]->(c) WHERE c.verifiedAt > b.verifiedAt OR c.verifiedAt = b.verifiedAt AND c.seq < b.seq
})* (first) WHERE NOT EXISTS { (first)-[:DEPENDS_ON]->() }
RETURN p
