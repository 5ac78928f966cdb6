package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

// postgresBin is where Debian keeps the server's programs.
const postgresBin = "/usr/lib/postgresql/15/bin/"

func postgresReport() testCase {
	return testCase{
		name:    "postgres-report",
		truth:   "PostgreSQL answers 250 look-ups a second by primary key, beside a report that scans a table with parallel workers without a pause. The report spends the quota, the look-ups wait.",
		limit:   1,
		causes:  []string{"pool", "shortage"},
		guilty:  []string{"parallel worker", "(long runs)"},
		suffers: []string{"postgres"},
		needs:   []need{{postgresBin + "postgres", "postgresql-15"}},
		start:   startReport,
	}
}

func postgresHealthy() testCase {
	return testCase{
		name:    "postgres-healthy",
		truth:   "PostgreSQL answers 250 look-ups a second by primary key within a limit of which it uses a tenth. Nothing is wrong.",
		limit:   1,
		healthy: true,
		needs:   []need{{postgresBin + "postgres", "postgresql-15"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			of, _, err := startPostgres(ctx, s)
			return of, err
		},
	}
}

// startReport has the look-ups, beside a report again and again.
func startReport(ctx context.Context, s *stage) (service, error) {
	of, sql, err := startPostgres(ctx, s)
	report := sql("select branch, count(*), sum(length(md5(filler || id))) from account group by branch")
	of.disturb = func(ctx context.Context) { again(ctx, report, time.Millisecond) }
	return of, err
}

// startPostgres has the look-ups. sql makes more requests.
func startPostgres(ctx context.Context, s *stage) (of service, sql func(text string) request, err error) {
	addr, port, err := freeAddr()
	if err != nil {
		return of, sql, err
	}
	const user = "postgres" // it refuses to run as root
	if err := s.own(user); err != nil {
		return of, sql, err
	}
	data := filepath.Join(s.dir, "data")
	if err := s.prepare(ctx, program{args: []string{postgresBin + "initdb", "-D", data, "-A", "trust", "-U", user, "--no-sync"}, as: user}); err != nil {
		return of, sql, err
	}
	args := []string{postgresBin + "postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", s.dir}
	for _, setting := range []string{
		"shared_buffers=256MB", "max_parallel_workers_per_gather=4", "max_parallel_workers=4", "fsync=off", "parallel_setup_cost=0", "jit=off",
	} {
		args = append(args, "-c", setting)
	}
	if err := s.start(program{args: args, as: user}); err != nil {
		return of, sql, err
	}
	sql = func(text string) request {
		return request{Protocol: protocolPostgres, Addr: addr, Text: text, User: user}
	}
	const rows = 400_000
	fill := fmt.Sprintf("create table if not exists account as select g as id, g %% 100 as branch, repeat('x', 60) as filler from generate_series(1, %d) g", rows)
	for _, text := range []string{"select 1", fill, "create index if not exists account_id on account (id)", "analyze account"} {
		if err := s.ready(ctx, sql(text)); err != nil {
			return of, sql, err
		}
	}
	lookUp := sql("select filler from account where id = #")
	lookUp.Keys = rows
	return service{streams: []loadgen.Stream{{Name: "look-up", PerSecond: 250}}, requests: []request{lookUp}, connections: 10}, sql, nil
}
