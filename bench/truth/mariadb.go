package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

func mariadbSort() testCase {
	return testCase{
		name:    "mariadb-sort",
		truth:   "MariaDB answers 250 look-ups a second by primary key, beside two clients that sort a whole table without a pause. The sorting connections spend the quota, the look-ups wait.",
		limit:   0.8,
		causes:  []string{"pool", "shortage"},
		guilty:  []string{"(long runs)"},
		suffers: []string{"mariadbd"},
		needs:   []need{{"mariadbd", "mariadb-server-core"}, {"mariadb-install-db", "mariadb-server-core"}, {"my_print_defaults", "mariadb-client-core"}},
		setting: setting{name: "thread_pool_size", advised: []string{"--thread-handling=pool-of-threads", "--thread-pool-size=1"}},
		start:   startMariaDB,
	}
}

func startMariaDB(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	data := filepath.Join(s.dir, "data")
	install := []string{"mariadb-install-db", "--no-defaults", "--user=root", "--datadir=" + data, "--skip-test-db", "--innodb-log-file-size=16M"}
	if err := s.prepare(ctx, program{args: install}); err != nil {
		return service{}, err
	}
	err = s.start(program{args: append([]string{
		"mariadbd", "--no-defaults", "--user=root", "--datadir=" + data, "--bind-address=127.0.0.1", "--port=" + port,
		"--socket=" + filepath.Join(s.dir, "mysql.sock"), "--skip-grant-tables", "--skip-log-bin",
		"--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0", "--sort-buffer-size=64M",
	}, s.value(mariadbSort().setting)...)})
	if err != nil {
		return service{}, err
	}
	sql := func(text string) request {
		return request{Protocol: protocolMySQL, Addr: addr, Text: text, User: "root"}
	}
	const rows = 100_000
	fill := fmt.Sprintf("create table if not exists shop.account (id int primary key, filler char(60)) select seq as id, md5(seq) as filler from shop.seq_1_to_%d", rows)
	for _, text := range []string{"create database if not exists shop", fill, "select 1"} {
		if err := s.ready(ctx, sql(text)); err != nil {
			return service{}, err
		}
	}
	lookUp := sql("select filler from shop.account where id = #")
	lookUp.Keys = rows
	report := sql("select count(*) from (select filler from shop.account order by md5(filler) limit 99999) as sorted")
	return service{
		streams: []loadgen.Stream{{Name: "look-up", PerSecond: 250}}, requests: []request{lookUp}, connections: 10,
		disturb: twice(report),
	}, nil
}

// twice has two clients that send a request again and again.
func twice(r request) func(ctx context.Context) {
	return func(ctx context.Context) {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { again(ctx, r, time.Millisecond) })
		}
		both.Wait()
	}
}
