// Leases whose time is over and that nobody took: a worker, or a coordinator, that died and left its work.
MATCH (t:Task {claimState: 'held'}) WHERE datetime(t.expiresAt) < datetime.realtime()
RETURN t.runId AS run, t.taskId AS what, t.status AS phase, t.lockedBy AS holder, t.expiresAt AS until
UNION ALL
MATCH (r:Run {status: 'running'}) WHERE datetime(r.coordinatorUntil) < datetime.realtime()
RETURN r.id AS run, 'the run itself' AS what, r.status AS phase, r.coordinator AS holder, r.coordinatorUntil AS until
