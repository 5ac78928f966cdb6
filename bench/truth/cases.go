package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

// testCase is one real service with a known truth.
type testCase struct {
	name string
	// truth says what runs, who spends the quota and who waits.
	truth string
	limit float64 // CPUs
	// pod: the limit is that of a pod with two containers.
	pod bool
	// healthy: nothing is wrong, and fix must leave it.
	healthy bool
	// causes are the keys that are true of it as explain's first finding, the best
	// first; none: it is healthy.
	causes []string
	// guilty and suffers tell the part that spends the quota and the part that waits: any
	// of these words is in the name of its pool or cgroup. None: any part will do, such as
	// where a setting is guilty.
	guilty, suffers []string
	needs           []need
	// setting is one of the service that explain may advise; the zero value: it has none that start can set.
	setting setting
	start   func(ctx context.Context, s *stage) (service, error)
}

// need is a program or the path of a file, and the Debian package that has it.
type need struct{ program, debian string }

// service is a running one and its load.
type service struct {
	// streams of requests; the first is judged. None: done is.
	streams  []loadgen.Stream
	requests []request
	// connections of the client.
	connections int
	// disturb runs until ctx ends, such as asking for a save again and again.
	disturb func(ctx context.Context)
	// done counts units of work since the start; nil: not counted.
	done func() float64
}

// missing says which programs are not installed and how to install them; "": none.
func (c testCase) missing() string {
	var programs, packages []string
	for _, n := range c.needs {
		_, err := exec.LookPath(n.program)
		if strings.HasPrefix(n.program, "/") { // also files that are no programs
			_, err = os.Stat(n.program)
		}
		if err != nil {
			programs, packages = append(programs, n.program), append(packages, n.debian)
		}
	}
	if len(programs) == 0 {
		return ""
	}
	verb := "is"
	if len(programs) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s %s not installed: apt-get install %s", strings.Join(programs, ", "), verb, strings.Join(packages, " "))
}

// cases in the order of the page.
func cases() []testCase {
	return []testCase{
		redisSave(), memcachedHealthy(), nginxGzip(), nodeLogins(), gunicornHash(), jvmGC(), postgresReport(), podSidecar(),
		makeBuild(), uwsgiHealthy(), pythonReport(), phpShop(),
		lighttpdLogs(), haproxyTLS(), varnishNeighbour(), caddyGzip(), pumaTiny(), nginxHealthy(),
		mariadbSort(), podBackup(), apacheOneCPU(), uwsgiNeighbour(), haproxyOneCPU(), thumbnails(), beanstalkdHealthy(), postgresHealthy(),
		nodeClusterHealthy(), unboundHealthy(), phpTiny(),
		axumLogins(), fastapiReports(), rqExports(), clamdScans(), tomcatBatch(), sshdMake(), nginxFFmpeg(),
		prometheusQueries(), dovecotLogins(), yawsBaskets(), squidHealthy(), natsHealthy(),
		etcdRanges(), spamdMails(), starmanLogins(), namedUDP(), tinyproxyHealthy(),
		jettyReports(), victoriametricsQueries(), swiplThreads(), cgitSnapshots(), podRadicaleBackup(),
	}
}
