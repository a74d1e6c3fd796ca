// How often each preamble was used, and in how many runs: made once, read many times.
MATCH (p:Preamble)<-[:USED_PREAMBLE]-(a:Attempt)
WITH p, count(a) AS attempts, collect(DISTINCT a.runId) AS which
RETURN p.kind AS kind, p.role AS role, attempts, size(which) AS runs, which[..5] AS someRuns, p.hash AS hash
ORDER BY attempts DESC, role LIMIT 100
