package roles

import "strings"

// titles are the titles that software gives its processes, by what they begin with. A role of "" is the program's
// ordinary work, which keeps the pool's name.
var titles = []struct{ prefix, role string }{
	{"nginx: master process", "nginx: master"},
	{"nginx: cache manager process", "nginx: cache manager"},
	{"nginx: cache loader process", "nginx: cache loader"},
	{"nginx: worker process", ""},
	{"php-fpm: master process", "php-fpm: master"},
	{"php-fpm: pool ", ""},
	{"redis-rdb-bgsave", "redis-rdb-bgsave"},
	{"redis-aof-rewrite", "redis-aof-rewrite"},
	{"valkey-rdb-bgsave", "valkey-rdb-bgsave"},
	{"valkey-aof-rewrite", "valkey-aof-rewrite"},
	{"gunicorn: master ", "gunicorn: master"},
	{"gunicorn: worker ", ""},
	{"uWSGI master", "uWSGI: master"},
	{"uWSGI worker ", ""},
	{"unicorn master", "unicorn: master"},
	{"unicorn worker", ""},
	{"puma: cluster worker", ""},
	{"puma ", ""}, // a server without workers does the work itself; beside workers it is idle
}

// postgresKinds are the kinds of PostgreSQL's processes, as their titles tell them after `postgres: ` and the
// cluster's name. Every other title is that of a session.
var postgresKinds = []string{"parallel worker", "autovacuum worker", "autovacuum launcher", "checkpointer", "background writer",
	"walwriter", "walsender", "walreceiver", "walsummarizer", "archiver", "logger", "startup", "stats collector", "io worker",
	"slotsync worker", "logical replication apply worker", "logical replication parallel apply worker",
	"logical replication tablesync worker", "logical replication worker", "logical replication launcher"}

// title returns the role that a process's title tells; known: it tells one.
func title(cmdline []string) (role string, known bool) {
	if len(cmdline) == 0 {
		return "", false
	}
	said := cmdline[0]
	if of, ok := strings.CutPrefix(said, "postgres: "); ok {
		return postgres(of), true
	}
	for _, t := range titles {
		if strings.HasPrefix(said, t.prefix) {
			return t.role, true
		}
	}
	return "", false
}

// postgres returns the role of a process of PostgreSQL by its title behind `postgres: `.
func postgres(said string) string {
	_, behind, named := strings.Cut(said, ": ")
	for _, kind := range postgresKinds {
		if strings.HasPrefix(said, kind) || named && strings.HasPrefix(behind, kind) {
			return "postgres: " + kind
		}
	}
	return ""
}
