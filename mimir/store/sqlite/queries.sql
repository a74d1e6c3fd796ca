-- Fixed SQL of the SQLite store. A query begins with a line "-- name: what it does". `<word>` is filled in with names of promoted
-- properties or with a piece that `conditions` made; every value is bound.


-- schema: Tables and indexes. Most nodes are events and calls. Each index that holds them is one page more in the log with every
-- commit, so the index of states holds tasks alone. A store with other indexes is read and written as well, only slower.
CREATE TABLE nodes (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, label TEXT NOT NULL,
  <columns>,
  texts INTEGER NOT NULL, props TEXT NOT NULL);
CREATE INDEX nodes_by_status ON nodes (label, "runId", status, seq) WHERE label = 'Task';
CREATE INDEX nodes_by_seq ON nodes (label, "runId", seq);
CREATE INDEX nodes_by_lane ON nodes (label, lane, seq) WHERE lane IS NOT NULL;
CREATE INDEX nodes_by_chain ON nodes (label, chain, seq) WHERE chain IS NOT NULL;
CREATE INDEX nodes_by_claim ON nodes (label, "runId", "claimState", priority DESC, id)
  WHERE "claimState" IS NOT NULL;
CREATE INDEX nodes_by_project ON nodes (label, "projectId", kind, "createdAt") WHERE "projectId" IS NOT NULL;
CREATE TABLE texts (node INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL);
CREATE UNIQUE INDEX texts_by_node ON texts (node, name);
CREATE TABLE edges (source TEXT NOT NULL, type TEXT NOT NULL, target TEXT NOT NULL,
  PRIMARY KEY (source, type, target)) WITHOUT ROWID;
CREATE INDEX edges_by_target ON edges (target, type, source);
CREATE VIRTUAL TABLE found USING fts5 (text, tokenize = 'porter unicode61');
PRAGMA application_id = <application>;
PRAGMA user_version = <version>;

-- table-names: Names of the tables of a file.
SELECT name FROM sqlite_master WHERE type = 'table'

-- select-nodes: Whole nodes without their long texts; a condition follows.
SELECT n.key, n.label, n.id, n.texts, n.props, <columns> FROM nodes n WHERE

-- select-properties: Some properties of nodes; a condition follows. A text that is not a JSON object has no properties; it must not
-- pass for an empty one.
SELECT n.key, n.label, n.id, n.texts, CASE WHEN n.props GLOB '{*' THEN json_extract(n.props, <paths>) END<columns> FROM nodes n WHERE

-- count-nodes: Number of nodes by the value of a property; a condition follows.
SELECT <expressions>, count(*) FROM nodes n WHERE <condition> GROUP BY 1, 2

-- is-met: Whether one node meets conditions, which follow.
SELECT 1 FROM nodes n WHERE n.key = ?

-- select-texts: Long texts of nodes.
SELECT node, name, value FROM texts WHERE node IN (SELECT value FROM json_each(?))

-- select-named-texts: Long texts of nodes, of these names alone.
SELECT node, name, value FROM texts WHERE node IN (SELECT value FROM json_each(?)) AND name IN (SELECT value FROM json_each(?))

-- texts-of-node: Long texts of one node.
SELECT name, value FROM texts WHERE node = ?

-- edges-among: Edges between nodes of a list.
SELECT source, type, target FROM edges
WHERE source IN (SELECT value FROM json_each(?1)) AND target IN (SELECT value FROM json_each(?1))

-- search: Full-text search over one label, best first.
SELECT n.id, -bm25(found) FROM found JOIN nodes n ON n.key = found.rowid
WHERE found MATCH ? AND n.label = ? ORDER BY bm25(found), n.id LIMIT ?

-- all-edges: Every edge.
SELECT source, type, target FROM edges ORDER BY type, source, target


-- insert-node: Add a node; nothing if the id exists.
INSERT INTO nodes(label, id, texts, props, <columns>) VALUES (?, ?, ?, ?<places>) ON CONFLICT (id) DO NOTHING

-- update-node: Write the changed columns of a node alone: indexes of other columns are not touched.
UPDATE nodes SET texts = ?, props = ?<columns> WHERE key = ?

-- link: Add an edge between nodes that exist; nothing if one is missing.
INSERT OR IGNORE INTO edges(source, type, target) SELECT ?1, ?2, ?3
WHERE EXISTS (SELECT 1 FROM nodes WHERE id = ?1) AND EXISTS (SELECT 1 FROM nodes WHERE id = ?3)

-- select-keys: Keys of nodes of a label, by their ids.
SELECT key, id FROM nodes WHERE label = ? AND id IN (SELECT value FROM json_each(?))

-- delete-node: Delete the row of a node.
DELETE FROM nodes WHERE key = ?

-- delete-texts: Delete the long texts of a node.
DELETE FROM texts WHERE node = ?

-- delete-edges: Delete the edges of a node.
DELETE FROM edges WHERE source = ?1 OR target = ?1

-- delete-text: Delete one long text of a node.
DELETE FROM texts WHERE node = ? AND name = ?

-- insert-text: Add a long text.
INSERT INTO texts(node, name, value) VALUES (?, ?, ?)

-- unindex: Remove a node from the full-text index.
DELETE FROM found WHERE rowid = ?

-- index: Add a node to the full-text index.
INSERT INTO found(rowid, text) VALUES (?, ?)
