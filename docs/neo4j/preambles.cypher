// How often each preamble was used, and in how many runs: made once, read many times.
MATCH (p:Preamble)<-[:USED_PREAMBLE]-(a:Attempt)
RETURN p.kind AS kind, p.role AS role, count(a) AS attempts, count(DISTINCT a.runId) AS runs, p.hash AS hash
ORDER BY attempts DESC, role LIMIT 100
