package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/test/study"
)

// period of the quotas.
const period = 100 * time.Millisecond

// piece is one measurement: a line of records.jsonl.gz.
type piece struct {
	study.Made
	Part    string  `json:"part"` // partBursts, partNetty, partOverload or partSpiral
	Limit   float64 `json:"limit_cpus"`
	Variant variant `json:"variant"`
	Round   int     `json:"round"`
	// Share is the load of a point of Finagle, of what the limit can carry.
	Share float64 `json:"share,omitempty"`
	// Of bursts, overload and Finagle.
	Periods     uint64  `json:"periods"`
	Throttled   uint64  `json:"throttled_periods"`
	ThrottledMS float64 `json:"throttled_ms"` // the kernel's sum over CPUs
	UsedCPUs    float64 `json:"used_cpus"`
	PingP50MS   float64 `json:"ping_p50_ms,omitempty"`
	PingP99MS   float64 `json:"ping_p99_ms,omitempty"`
	WorkP50MS   float64 `json:"work_p50_ms,omitempty"`
	WorkP99MS   float64 `json:"work_p99_ms,omitempty"`
	Works       int     `json:"works"`
	WorksDone   int     `json:"works_done"`
	// RecoveredS is of the spiral, in seconds after the spike; null: not until the end.
	RecoveredS *float64 `json:"recovered_s"`
	Failed     float64  `json:"failed_share"` // of requests after the spike
}

const (
	partBursts   = "bursts"
	partNetty    = "netty"    // the same bursts at a service of the JVM
	partOverload = "overload" // bursts of more work than the limit carries
	partSpiral   = "spiral"
)

// bench is where pieces are measured.
type bench struct {
	box    *sandbox.Sandbox
	exe    string
	jar    string                  // of libs/java/bench
	rounds func(time.Duration) int // of CPU time
	groups int
}

// child starts a program in a new cgroup, with these variables beside its own.
func (b *bench) child(limit cgroup.Limit, environment []string, program string, args ...string) (*sandbox.Group, *process, error) {
	b.groups++
	g, err := b.box.Group(fmt.Sprintf("g%d", b.groups))
	if err != nil {
		return nil, nil, err
	}
	if limit.Limited() {
		if err := g.SetLimit(limit); err != nil {
			return nil, nil, err
		}
	}
	p := &process{cmd: exec.Command(program, args...)}
	p.cmd.Env = append(os.Environ(), environment...)
	p.cmd.Stderr = &p.said
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, nil, err
	}
	if err := g.Attach(p.cmd.Process.Pid); err != nil {
		return nil, nil, errors.Join(err, p.end())
	}
	return g, p, nil
}

// process is a child.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said bytes.Buffer
}

// end closes the child's standard input, upon which it ends.
func (p *process) end() error {
	err := p.in.Close()
	rest, _ := io.ReadAll(p.out)
	if wait := p.cmd.Wait(); wait != nil {
		return fmt.Errorf("%s: %w: %s%s", strings.Join(p.cmd.Args[1:], " "), wait, rest, p.said.String())
	}
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// bursts measures a variant under a limit for a time.
func (b *bench) bursts(v variant, limitCPUs float64, works int, d time.Duration) (piece, error) {
	return b.answered(v, limitCPUs, bursts(v.settle()+d, works, b.work(v, 20*time.Millisecond)), d)
}

// answered measures how pings and works are answered in the last d of a load.
func (b *bench) answered(v variant, limitCPUs float64, requests []request, d time.Duration) (p piece, err error) {
	p = piece{Part: partBursts, Limit: limitCPUs, Variant: v}
	settle := v.settle()
	before, after, answers, err := b.run(v, limitCPUs, loadSpec{Requests: requests, Timeout: 30 * time.Second}, d, "-service")
	if err != nil {
		return p, err
	}
	p.Periods, p.Throttled = after.Periods-before.Periods, after.ThrottledPeriods-before.ThrottledPeriods
	p.ThrottledMS = float64((after.Throttled - before.Throttled).Microseconds()) / 1000
	if after.Usage != nil && before.Usage != nil {
		p.UsedCPUs = (*after.Usage - *before.Usage).Seconds() / d.Seconds()
	}
	p.PingP50MS, p.PingP99MS = quantile(requests, answers, "/ping", settle, 0.5), quantile(requests, answers, "/ping", settle, 0.99)
	p.WorkP50MS, p.WorkP99MS = quantile(requests, answers, "/work", settle, 0.5), quantile(requests, answers, "/work", settle, 0.99)
	end := settle + d + time.Second
	for i, a := range answers {
		if requests[i].Path != "/ping" && a.At >= settle {
			p.Works++
			if a.OK && a.At+time.Duration(a.MS*float64(time.Millisecond)) < end {
				p.WorksDone++
			}
		}
	}
	return p, nil
}

// run starts service and client, and reads the counters of the service's cgroup at the beginning and the end of the last d.
func (b *bench) run(v variant, limitCPUs float64, spec loadSpec, d time.Duration, part string) (before,
	after cgroup.Stat, answers []answer, err error) {
	command := b.command(v, part)
	g, service, err := b.child(cgroup.Limit{Quota: bandwidth.QuotaOf(limitCPUs, period), Period: period}, v.environment(limitCPUs),
		command[0], command[1:]...)
	if err != nil {
		return
	}
	defer func() { err = errors.Join(err, service.end()) }()
	if _, err = io.WriteString(service.in, "start\n"); err != nil {
		return
	}
	if spec.Address, err = service.out.ReadString('\n'); err != nil {
		return
	}
	spec.Address = strings.TrimSpace(spec.Address)
	_, client, err := b.child(cgroup.Unlimited(), nil, b.exe, "-client")
	if err != nil {
		return
	}
	defer func() { err = errors.Join(err, client.end()) }()
	if err = json.NewEncoder(client.in).Encode(spec); err != nil {
		return
	}
	time.Sleep(v.settle())
	if before, err = g.Stat(); err != nil {
		return
	}
	time.Sleep(d)
	if after, err = g.Stat(); err != nil {
		return
	}
	err = json.NewDecoder(client.out).Decode(&answers)
	if err == nil && len(answers) != len(spec.Requests) {
		err = fmt.Errorf("the client has %d answers to %d requests", len(answers), len(spec.Requests))
	}
	return
}

// spiralTimeout is the clients' of the scenario, spiralFor its length.
const spiralTimeout, spiralFor = 250 * time.Millisecond, 15 * time.Second

// spiral measures how a variant comes out of the scenario death-spiral-small under half a CPU.
func (b *bench) spiral(v variant, seed uint64) (p piece, err error) {
	p = piece{Part: partSpiral, Limit: 0.5, Variant: v}
	requests := spike(spiralFor, seed, func(cpu time.Duration) string {
		return fmt.Sprintf("/work?inflate=1&rounds=%d", b.rounds(cpu))
	})
	_, _, answers, err := b.run(v, p.Limit, loadSpec{Requests: requests, Timeout: spiralTimeout, Retries: 1},
		spiralFor-v.settle(), "-spiral")
	if err != nil {
		return p, err
	}
	p.RecoveredS = recovered(answers, spiralFor, spiralTimeout)
	n, failed := 0, 0
	for _, a := range answers {
		if a.At >= spikeTo {
			if n++; !a.OK {
				failed++
			}
		}
	}
	p.Failed = float64(failed) / float64(max(1, n))
	return p, nil
}
