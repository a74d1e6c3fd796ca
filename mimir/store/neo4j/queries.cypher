// All Cypher of the Neo4j store. A query begins with a line "// name: what it does". `query_library` fills `<word>` with a name
// of a closed set or with another piece of this file; every value is a parameter.
//
// Every node of a store has the label `mimir` in addition to its own, and the store's name in `_store`: a database may hold several
// stores. So (_store, id) names a node of any label.
//
// If keys alone find the nodes, `replan=skip` keeps the first plan: it stays right while the store grows, and planning again takes a
// tenth of a second, during which all other writers wait for the lock.


// open: Take the store's lock first, so that writers are serial, no deadlock occurs, and what a transaction reads stays as it is.
// Setting and removing a property locks the node and leaves nothing to write. The result holds the row of a run and the number of
// processes that have written lately.
CYPHER replan=skip MATCH (s:MimirStore {_store: $store}) SET s._lock = true REMOVE s._lock
WITH s, datetime.realtime() AS now OPTIONAL MATCH (n:Run {_store: $store, id: $run})
RETURN s.schemaVersion AS schema, now, properties(n) AS row,
  COUNT { (d:MimirDoor {_store: $store}) WHERE d.id IS NOT NULL AND d.at > toString(now - duration({seconds: $lately})) } AS writers

// landed: Whether a transaction with an unanswered commit was committed; waits for it, because it holds the store's lock.
MATCH (s:MimirStore {_store: $store}) SET s._lock = true REMOVE s._lock
WITH s OPTIONAL MATCH (d:MimirDoor {_store: $store, id: $door})
RETURN coalesce(d.token = $token, false) AS landed

// leave: Remove this process's node.
MATCH (d:MimirDoor {_store: $store, id: $door}) DELETE d

// view: Time, and number of transactions that have written.
CYPHER replan=skip MATCH (s:MimirStore {_store: $store})
RETURN s.turn AS turn, datetime.realtime() AS now

// stores: List the stores of this database with their schema.
MATCH (s:MimirStore) RETURN s._store AS store, s.schemaVersion AS schema

// begin: Create the store's node and this process's node; always a write, so that a read-only database is found at once.
MERGE (s:MimirStore {_store: $store})
ON CREATE SET s.name = 'mimir', s.schemaVersion = $schema, s.turn = 0, s.createdAt = datetime.realtime()
SET s.openedAt = datetime.realtime(), s.schemaVersion = CASE WHEN s.schemaVersion < $schema THEN $schema ELSE s.schemaVersion END
MERGE (own:MimirDoor {_store: $store, id: $door}) SET own.at = toString(datetime.realtime())
WITH s MATCH (d:MimirDoor {_store: $store}) WHERE d.at < toString(datetime.realtime() - duration('P30D')) DELETE d


// any-key: An id once a store.
CREATE CONSTRAINT mimir_key IF NOT EXISTS FOR (n:mimir) REQUIRE (n._store, n.id) IS UNIQUE

// node-key: An id once a label and store.
CREATE CONSTRAINT mimir_<label>_key IF NOT EXISTS FOR (n:<label>) REQUIRE (n._store, n.id) IS UNIQUE

// store-key: A store once.
CREATE CONSTRAINT mimir_MimirStore_key IF NOT EXISTS FOR (n:MimirStore) REQUIRE n._store IS UNIQUE

// one-index: An index over one property.
CREATE INDEX mimir_<label>_<property> IF NOT EXISTS FOR (n:<label>) ON (n.<property>)

// two-index: An index over two properties.
CREATE INDEX mimir_<label>_<property>_<second> IF NOT EXISTS FOR (n:<label>) ON (n.<property>, n.<second>)

// claim-index: Everything that a claim compares, so that only claimed tasks are read.
CREATE INDEX mimir_Task_claim IF NOT EXISTS FOR (n:Task) ON (n._store, n.runId, n.claimState, n.priority, n.id)

// text-index: Full text, in its stems.
CREATE FULLTEXT INDEX mimirText IF NOT EXISTS FOR (n:<labels>) ON EACH [<properties>]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english'}}

// wait-for-indexes: Wait until every index can be used.
CALL db.awaitIndexes(300)


// get: One node.
CYPHER replan=skip MATCH (n:<label> {_store: $store, id: $id}) RETURN properties(n) AS row

// find: Nodes in any order.
MATCH (n:<label>) WHERE n._store = $store<indexed><others> RETURN properties(n) AS row

// first: The first nodes, in an order of numbers and ids. Without `id IS NOT NULL`, no index that holds ids is used.
MATCH (n:<label>) WHERE n._store = $store<indexed><others> AND n.id IS NOT NULL
RETURN properties(n) AS row ORDER BY <order> LIMIT $limit

// first-to-claim: The first tasks that can be claimed, by the index for claims; never planned again.
CYPHER replan=skip MATCH (n:Task) USING INDEX SEEK n:Task(_store, runId, claimState, priority, id)
WHERE n._store = $store<indexed><others> AND n.id IS NOT NULL
RETURN properties(n) AS row ORDER BY <order> LIMIT $limit

// keys: Ids with some properties: those to sort by, or those of a projection.
MATCH (n:<label>) WHERE n._store = $store<indexed><others>
RETURN n.id AS id, [name IN $names | n[name]] AS keys

// these: Nodes by their ids.
CYPHER replan=skip UNWIND $ids AS id MATCH (n:<label> {_store: $store, id: id}) RETURN properties(n) AS row

// counts: Nodes by the value of a property.
MATCH (n:<label>) WHERE n._store = $store<indexed><others> RETURN n[$by] AS value, count(*) AS number

// labels-of: Labels by id.
UNWIND $ids AS id MATCH (n:mimir {_store: $store, id: id})
RETURN id, [label IN labels(n) WHERE label IN $labels][0] AS label

// step-out: What is one edge away.
UNWIND $ids AS id MATCH (n:mimir {_store: $store, id: id})
MATCH (n)-[<types>]->(m:mimir) WHERE m._store = $store RETURN DISTINCT m.id AS id

// step-in: What is one edge away, against the edges.
UNWIND $ids AS id MATCH (n:mimir {_store: $store, id: id})
MATCH (n)<-[<types>]-(m:mimir) WHERE m._store = $store RETURN DISTINCT m.id AS id

// step-both: What is one edge away, either way.
UNWIND $ids AS id MATCH (n:mimir {_store: $store, id: id})
MATCH (n)-[<types>]-(m:mimir) WHERE m._store = $store RETURN DISTINCT m.id AS id

// edges-among: Edges with both ends among these nodes.
UNWIND $ids AS id MATCH (a:mimir {_store: $store, id: id})
MATCH (a)-[r]->(b:mimir) WHERE b._store = $store AND b.id IN $ids
RETURN DISTINCT a.id AS source, type(r) AS type, b.id AS target

// search: Full text; the question is words in quotes.
CALL db.index.fulltext.queryNodes('mimirText', $question) YIELD node AS n, score
WHERE n._store = $store AND n:<label>
RETURN n.id AS id, score ORDER BY score DESC, id LIMIT $limit

// dump-nodes: All nodes of a label, in the order of their key index: no sorting, and other stores are not read.
MATCH (n:<label>) WHERE n._store = $store AND n.id IS NOT NULL
RETURN properties(n) AS row ORDER BY n._store, n.id

// dump-edges: All edges.
MATCH (a:mimir)-[r]->(b:mimir) WHERE a._store = $store AND a.id IS NOT NULL AND b._store = $store AND type(r) IN $types
RETURN a.id AS source, type(r) AS type, b.id AS target ORDER BY type, source, target


// upsert: Add or change nodes.
UNWIND $<place> AS row
MERGE (n:<label>:mimir {_store: $store, id: row.id}) SET n += row<status>

// link: Add edges between nodes that exist.
UNWIND $<place> AS pair
OPTIONAL MATCH (a:mimir {_store: $store, id: pair[0]})
OPTIONAL MATCH (b:mimir {_store: $store, id: pair[1]})
FOREACH (_ IN CASE WHEN a IS NULL OR b IS NULL THEN [] ELSE [1] END | MERGE (a)-[:<type>]->(b))

// upsert-end: Hand one row on to the next part of a statement.
WITH <carried>count(*) AS <place>

// link-end: Hand one row on, with a pair of which an end is missing.
WITH <carried>collect(
  CASE WHEN a IS NULL THEN [pair[0], pair[1], pair[0]] WHEN b IS NULL THEN [pair[0], pair[1], pair[1]] END)[0] AS <place>

// by-key: The beginning of a statement of parts.
CYPHER replan=skip

// close: Count a writing transaction, and record its token at this process's node; the last part but one.
MATCH (s:MimirStore {_store: $store}) SET s.turn = s.turn + 1
MERGE (d:MimirDoor {_store: $store, id: $door}) SET d.token = $token, d.at = $now

// written: Results of the parts of a statement.
RETURN <carried>true AS written

// carried: Result of a part, handed on by the next one.
<place>,

// patch: Change one node.
CYPHER replan=skip MATCH (n:<label> {_store: $store, id: $id}) SET n += $props<status> RETURN count(n) AS number

// delete: Delete nodes with their edges.
UNWIND $ids AS id MATCH (n:<label> {_store: $store, id: id}) DETACH DELETE n RETURN count(*) AS number


// show-run: A run's tasks with their dependencies; a link for users.
MATCH (:Run {_store: $store, id: $id})-[:HAS_TASK]->(t:Task) OPTIONAL MATCH p = (t)-[:DEPENDS_ON]->(:Task) RETURN t, p

// show-task: A task with its attempts, verdicts and artifacts; a link for users.
MATCH p = (:Task {_store: $store, id: $id})-[:HAS_ATTEMPT]->(a:Attempt)
OPTIONAL MATCH q = (a)-[:HAS_VERDICT|PRODUCED|USED_PREAMBLE]->() RETURN p, q


// status-set: Show the status as a second label, which gives the node its colour.
 REMOVE n:<statuses> SET n:<status>

// status-none: Show no status.
 REMOVE n:<statuses>

// promoted: A property that may have an index.
n.<property>

// others: All conditions without an index, in one text, so that the server plans it once.
 AND all(c IN $others WHERE CASE c.sign
  WHEN '=' THEN coalesce(n[c.name] = c.value, false)
  WHEN '!=' THEN coalesce(n[c.name] <> c.value, true)
  WHEN 'there' THEN n[c.name] IS NOT NULL
  WHEN 'missing' THEN n[c.name] IS NULL
  WHEN 'in' THEN coalesce(n[c.name] IN c.value, false)
  WHEN 'in or missing' THEN n[c.name] IS NULL OR coalesce(n[c.name] IN c.value, false)
  WHEN '<' THEN coalesce(n[c.name] < c.value, false)
  WHEN '<=' THEN coalesce(n[c.name] <= c.value, false)
  WHEN '>' THEN coalesce(n[c.name] > c.value, false)
  ELSE coalesce(n[c.name] >= c.value, false) END)

// is: Equal, by an index.
 AND n.<property> = $is_<property>

// is-among: One of several, by an index.
 AND n.<property> IN $is_<property>

// is-more: More, by an index; numbers alone.
 AND n.<property> > $is_<property>

// is-at-least: At least, by an index; numbers alone.
 AND n.<property> >= $is_<property>

// order-up: Absent values come first.
n.<property> IS NOT NULL, n.<property>

// order-down: Absent values come last.
n.<property> IS NOT NULL DESC, n.<property> DESC
