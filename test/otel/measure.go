package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
)

// recordFor is how long is recorded; the client sends requests a little longer on both sides.
const recordFor = 8 * time.Second

// measured are the files of a measurement, and what explain said.
type measured struct {
	recording, spans string
	// from and until bound the recording.
	from, until time.Time
	// waited is the share of the time in which the container's threads waited for CPUs that others had.
	waited float64
	// idled is the share in which they waited although a CPU idled: one of a virtual machine that sleeps is slow to wake.
	idled float64
}

// measure runs the service in a cgroup with a limit, loads it and records it.
func (s *suite) measure(ctx context.Context, dir string) (m measured, err error) {
	m = measured{recording: filepath.Join(dir, "cart.rec"), spans: filepath.Join(dir, "traces.json")}
	file, err := os.Create(m.spans)
	if err != nil {
		return m, err
	}
	defer file.Close()
	in := &receiver{file: file}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return m, err
	}
	server := &http.Server{Handler: in}
	go func() { _ = server.Serve(l) }() // ends with Close
	defer server.Close()

	host, err := cgroup.Open("/proc")
	if err != nil {
		return m, err
	}
	box, err := sandbox.Open(sandbox.Options{Host: host, Prefix: "unthrottle-otel-", Fair: true})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, box.Remove()) }()
	group, err := box.Group("cart")
	if err != nil {
		return m, err
	}
	if err := group.SetLimit(cgroup.Limit{Quota: 40 * time.Millisecond, Period: 100 * time.Millisecond}); err != nil {
		return m, err
	}
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	cmd := exec.CommandContext(ctx, self, "-serve")
	cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+l.Addr().String()+"/v1/traces")
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return m, err
	}
	if err := cmd.Start(); err != nil {
		return m, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }() // killed: it has no other end
	if err := group.Attach(cmd.Process.Pid); err != nil {
		return m, err
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return m, fmt.Errorf("the service's address: %w", err)
	}
	load, stop := context.WithCancel(ctx)
	loaded := make(chan error, 1)
	go func() { loaded <- requests(load, "http://"+strings.TrimSpace(addr)) }()
	time.Sleep(500 * time.Millisecond)
	err = s.explain(ctx, group.At().Path, &m)
	time.Sleep(500 * time.Millisecond)
	stop()
	if err := errors.Join(err, <-loaded); err != nil {
		return m, err
	}
	if in.spans == 0 {
		return m, errors.New("no span came")
	}
	return m, nil
}

// requests sends requests one after the other until ctx ends, and then has the last spans sent.
func requests(ctx context.Context, base string) error {
	for i := 0; ctx.Err() == nil; i++ {
		// From 5 to 60 ms of CPU time, then a pause: most fit in a period's quota of 40 ms, some do not.
		if err := ask(fmt.Sprintf("%s/burn?for=%dms", base, 5+(i*17)%56)); err != nil {
			return err
		}
		time.Sleep(time.Duration(i%5) * 20 * time.Millisecond)
	}
	return ask(base + "/flush")
}

func ask(address string) error {
	answer, err := http.Get(address)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, answer.Status)
	}
	return nil
}

// explain records the container.
func (s *suite) explain(ctx context.Context, target string, m *measured) error {
	cmd := exec.CommandContext(ctx, s.exe, "explain", target, "--for", recordFor.String(), "--record", m.recording, "-o", "json")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("explain: %w: %s", err, complaints.Bytes())
	}
	var e struct {
		Start   time.Time
		Window  float64 `json:"window_seconds"`
		Waiting map[string]*float64
	}
	if err := json.Unmarshal(out, &e); err != nil {
		return err
	}
	m.from, m.until = e.Start, e.Start.Add(time.Duration(e.Window*float64(time.Second)))
	for _, reason := range []string{"neighbours", "host_system", "own_threads", "steal"} {
		if of := e.Waiting[reason]; of != nil {
			m.waited += *of / e.Window
		}
	}
	if of := e.Waiting["idle_unused"]; of != nil {
		m.idled = *of / e.Window
	}
	return nil
}
