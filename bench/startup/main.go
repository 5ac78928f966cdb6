// Startup measures how long services take until they are ready under a limit, as they are, with a burst, and with a
// limit that is raised to the next whole number of CPUs meanwhile. It needs root and writable cgroups.
package main

import (
	"bufio"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed page.md
var page string

//go:embed service.py
var python string

// jar is the service of Netty, which make results-threads measures too.
const jar = "libs/java/bench/target/unthrottle-bench.jar"

// patience bounds one start.
const patience = 2 * time.Minute

// service prints its address when it listens, and answers GET /ping.
type service struct {
	Name    string
	command []string
	needs   string // a file; "": nothing
	wayOut  string
}

// variant is what a service gets while it starts.
type variant struct {
	Name  string
	burst bool
	raise bool
	after time.Duration
}

var (
	limits   = []float64{0.2, 0.5, 1.5}
	variants = []variant{{Name: "left as it is"}, {Name: "burst", burst: true}, {Name: "raise", raise: true},
		{Name: "raise, a second late", raise: true, after: time.Second}}
)

// start is one start.
type start struct {
	seconds, cpuSeconds float64
	throttled           int64
}

// Row is a service under a limit with a variant.
type Row struct {
	Service, Variant string
	Limit, To        float64
	Seconds          study.Spread
	Ratio            string
	Throttled, CPU   float64
}

func main() {
	rounds := flag.Int("rounds", 9, "starts of each variant")
	out := flag.String("out", "docs/results/startup.md", "the page")
	flag.Parse()
	if err := run(*rounds, *out); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

func run(rounds int, out string) (err error) {
	file, err := os.CreateTemp("", "unthrottle-startup-*.py")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = io.WriteString(file, python)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	services := []service{
		{Name: "Python, the standard library's web server", command: []string{"python3", file.Name()}},
		{Name: "JVM, Netty", command: []string{"java", "-cp", jar, "io.github.unthrottle.bench.NettyService", "inline"},
			needs: jar, wayOut: "mvn -f libs/java/pom.xml package"},
	}
	host, err := cgroup.Open("/proc")
	if err != nil {
		return err
	}
	box, err := sandbox.Open(sandbox.Options{Host: host, Prefix: "unthrottle-startup-"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Remove()) }()
	began := time.Now()
	var rows []Row
	for _, s := range services {
		if _, err := os.Stat(s.needs); s.needs != "" && err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %s is not there: %s\n", s.Name, s.needs, s.wayOut)
			continue
		}
		for _, limit := range limits {
			more, err := measure(box, s, limit, rounds)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			for _, r := range more {
				fmt.Println(cells(r))
			}
			rows = append(rows, more...)
		}
	}
	return study.WritePage(out, study.Fill(page, nil, struct {
		Made, Machine, Python, Java string
		Rows                        []string
	}{began.UTC().Format(time.DateOnly), study.Machine(), version("python3", "--version"), version("java", "-version"),
		all(rows)}))
}

// version is the first line that a program says of itself.
func version(program, flag string) string {
	said, err := exec.Command(program, flag).CombinedOutput()
	if err != nil {
		return program + " is not there"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	return first
}

func all(rows []Row) (lines []string) {
	for _, r := range rows {
		lines = append(lines, cells(r))
	}
	return lines
}

func cells(r Row) string {
	return study.Row(r.Service, fmt.Sprintf("%g", r.Limit), r.Variant, fmt.Sprintf("%.2f", r.Seconds.Median),
		fmt.Sprintf("%.2f to %.2f", r.Seconds.Low, r.Seconds.High), r.Ratio, fmt.Sprintf("%.0f", r.Throttled),
		fmt.Sprintf("%.2f", r.CPU))
}

// measure starts a service with each variant in turns.
func measure(box *sandbox.Sandbox, s service, limit float64, rounds int) ([]Row, error) {
	got := make([][]start, len(variants))
	for round, v := range study.Turns(rounds, len(variants)) {
		one, err := once(box, s, limit, variants[v], fmt.Sprintf("s%g-%d-%d-%d", limit*10, round, v,
			time.Now().UnixNano()))
		if err != nil {
			return nil, err
		}
		got[v] = append(got[v], one)
	}
	figures := func(v int, of func(start) float64) (all []float64) {
		for _, s := range got[v] {
			all = append(all, of(s))
		}
		return all
	}
	seconds := func(s start) float64 { return s.seconds }
	var rows []Row
	for v := range variants {
		ratio := "-"
		if r, ok := stats.Ratios(figures(v, seconds), figures(0, seconds), 0); ok && v > 0 {
			ratio = fmt.Sprintf("%.2f (%.2f to %.2f)", r.Mean, r.Low, r.High)
		}
		rows = append(rows, Row{Service: s.Name, Variant: variants[v].Name, Limit: limit, Ratio: ratio,
			Seconds:   study.SpreadOf(figures(v, seconds)),
			Throttled: stats.Median(figures(v, func(s start) float64 { return float64(s.throttled) })),
			CPU:       stats.Median(figures(v, func(s start) float64 { return s.cpuSeconds }))})
	}
	return rows, nil
}

// once is one start, from exec to the first answer.
func once(box *sandbox.Sandbox, s service, cpus float64, v variant, name string) (got start, err error) {
	g, err := box.Group(name)
	if err != nil {
		return got, err
	}
	limit := cgroup.Limit{Quota: bandwidth.QuotaOf(cpus, cgroup.DefaultPeriod), Period: cgroup.DefaultPeriod}
	if v.burst {
		limit.Burst = limit.Quota
	}
	if err := g.SetLimit(limit); err != nil {
		return got, err
	}
	// The shell is in the cgroup before the service is: it reads the limit when it begins.
	cmd := exec.Command("sh", append([]string{"-c", `read go && exec "$@"`, "sh"}, s.command...)...)
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return got, err
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return got, err
	}
	if err := cmd.Start(); err != nil {
		return got, err
	}
	defer func() {
		in.Close()
		_ = cmd.Process.Kill() // it may end by itself
		_ = cmd.Wait()
	}()
	if err := g.Attach(cmd.Process.Pid); err != nil {
		return got, err
	}
	began := time.Now()
	if _, err := io.WriteString(in, "go\nstart\n"); err != nil {
		return got, err
	}
	raised := make(chan error, 1)
	timer := time.AfterFunc(v.after, func() {
		larger := cgroup.Limit{Quota: bandwidth.QuotaOf(float64(int(cpus)+1), cgroup.DefaultPeriod),
			Period: cgroup.DefaultPeriod}
		if v.raise {
			raised <- g.SetLimit(larger)
		}
	})
	defer timer.Stop()
	dead := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer dead.Stop()
	address, err := bufio.NewReader(pipe).ReadString('\n')
	if err != nil {
		return got, fmt.Errorf("it did not listen within %v: %w: %s", patience, err, said.String())
	}
	if err := ping("http://" + strings.TrimSpace(address) + "/ping"); err != nil {
		return got, err
	}
	got.seconds = time.Since(began).Seconds()
	select {
	case err := <-raised:
		if err != nil {
			return got, err
		}
	default: // it was ready before
	}
	stat, err := g.Stat()
	if err != nil {
		return got, err
	}
	if got.throttled = int64(stat.ThrottledPeriods); stat.Usage != nil {
		got.cpuSeconds = stat.Usage.Seconds()
	}
	return got, nil
}

// ping asks until it is answered.
func ping(url string) error {
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get(url)
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); answer, err = client.Get(url) {
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}
