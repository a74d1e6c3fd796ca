// The memory around a node: what notes and lessons say of it, and what stands near it.
MATCH (m:Memory {state: 'accepted'})-[:ABOUT]->(n) WHERE n.id STARTS WITH ''  // a node's id; none: that of the newest note
WITH n ORDER BY m.createdAt DESC, n:Task DESC LIMIT 1
MATCH p = (n)-[:ABOUT|HAS_RUN|HAS_TASK|DEPENDS_ON|HAS_ATTEMPT|FOLLOWS*1..2]-()
RETURN p LIMIT 200
