package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// agent is unthrottle's agent beside the pinned containerd, with an NRI session.
type agent struct {
	server  *exec.Cmd
	log     string
	address string // of /metrics
}

// slow and fast are the app's quotas in microseconds below and at which its latency is told to be good.
const (
	slow = 10000
	fast = 20000
)

// nri has the agent name, fix and look after the app through NRI.
func (s *suite) nri(c *containerd) {
	kernel := newSettings(c.appCgroup())
	err := s.limitPod(c)
	before := kernel.read()
	if err == nil {
		err = s.writeRules(c)
	}
	var a agent
	s.stops = append(s.stops, func() { end(a.server) })
	if err == nil {
		err = s.startAgent(c, &a)
	}
	if s.check("nri: the agent has a session, /readyz says so", err) != nil {
		return
	}

	// Only NRI knows the pod's labels, which the rule asks for.
	if s.check("nri: a throttled container is found by its pod's label, fixed and kept", a.explain(eventually(func() error {
		return errors.Join(equal("the quota", kernel.quota(), fmt.Sprint(fast)), s.judged(c, "better"))
	}))) != nil {
		return
	}
	s.check("nri: the pod's annotations: another objective, which the rule allows, and not a remedy that it does not",
		a.explain(eventually(func() error { return s.annotated(c, &a) })))
	s.check("nri: a pod opts out by its annotation, and stays throttled", s.optsOut(c, &a))
	page, err := a.page("/metrics")
	s.check("nri: the update went through the runtime: it counts it, and its own copy has the quota", errors.Join(err,
		contains(page, "unthrottle_nri_connected 1"), positive(page, `unthrottle_nri_updates_total{result="applied"}`),
		contains(page, `unthrottle_nri_updates_total{result="ignored"} 0`), s.copyHas(c, fast)))
	s.check("nri: metrics name namespace, pod and container",
		contains(page, fmt.Sprintf(`container="app",id="%s",namespace="%s",pod="%s"`, c.appCgroup(), c.namespace, c.pod)))

	err = s.resize(c, 15000)
	s.check("nri: a resize by the runtime is noticed as drift", errors.Join(err, eventually(func() error {
		page, err := a.page("/metrics")
		return errors.Join(err, positive(page, "unthrottle_nri_resizes_total"), contains(page, "unthrottle_drifted_settings 1"))
	})))
	err = s.resize(c, fast)
	s.check("nri: and is none when the runtime sets the same as the agent", errors.Join(err, eventually(func() error {
		page, err := a.page("/metrics")
		return errors.Join(err, contains(page, "unthrottle_drifted_settings 0"))
	})))

	s.check("nri: a killed containerd: /readyz fails and /healthz does not; a new one: a new session", s.restartRuntime(c, &a))
	err = a.server.Process.Signal(syscall.SIGKILL)
	_ = a.server.Wait()
	s.check("nri: SIGKILL of the agent leaves the container running with what is in force", errors.Join(err, s.runs(c),
		equal("the quota", kernel.quota(), fmt.Sprint(fast)), s.judged(c, "better")))
	s.check("nri: the next agent has a session and the same in force", errors.Join(s.startAgent(c, &a), s.judged(c, "better")))
	end(a.server)
	_, err = s.run(nil, nil, s.exe, "restore", "--state-dir", s.agentState())
	s.check("nri: restore puts it back byte for byte", errors.Join(err, s.runs(c), equal("settings", kernel.read(), before)))
}

// limitPod limits the app and not the pod. The names' checks leave the opposite.
func (s *suite) limitPod(c *containerd) error {
	return errors.Join(newSettings(c.podCgroup()).setQuota(-1), s.resize(c, slow))
}

func (s *suite) agentState() string { return filepath.Join(s.dir, "agent") }

// writeRules writes the agent's rules, and a latency command that goes by the quota: what is judged here is the agent.
func (s *suite) writeRules(c *containerd) error {
	latency := filepath.Join(s.dir, "latency")
	quota := newSettings(c.appCgroup())
	script := fmt.Sprintf("#!/bin/sh\nq=$(cat %s)\nl=200\n[ \"${q%%%% *}\" -ge %d ] && l=5\nexec awk -v l=$l 'BEGIN "+
		"{ srand(); for (i = 0; i < 2000; i++) print l + rand() }'\n", quota.quotaFile(), fast)
	rules := fmt.Sprintf(`version: 1
mode: apply
interval: 200ms
startup: 0s
listen: 127.0.0.1:0
scope: %s
state_dir: %s
flight: {probe: false}
rules:
- match: {namespace: %s, labels: {app: crates}}
  remedy: raise
  to: %g
  annotations: {objective: true}
  slo: {objective: p99<20ms, command: "%s {since}", interval: 1s}
`, ownCgroup, s.agentState(), c.namespace, float64(fast)/100000, latency)
	return errors.Join(os.WriteFile(latency, []byte(script), 0o700), os.WriteFile(filepath.Join(s.dir, "rules.yaml"), []byte(rules), 0o600),
		os.MkdirAll(s.agentState(), 0o700))
}

// startAgent starts it and waits until it is ready.
func (s *suite) startAgent(c *containerd, a *agent) (err error) {
	a.log = filepath.Join(s.dir, "agent.log")
	a.server, err = s.server("agent", nil, func() error {
		text, err := os.ReadFile(a.log)
		found := regexp.MustCompile(`watching; http://(\S+)/metrics`).FindSubmatch(text)
		if err != nil || found == nil {
			return errors.Join(err, errors.New("no address yet"))
		}
		a.address = string(found[1])
		_, err = a.page("/readyz")
		return err
	}, s.exe, "agent", "--config", filepath.Join(s.dir, "rules.yaml"), "--nri", filepath.Join(c.nri, "nri.sock"), "--verbose")
	return err
}

// explain adds the end of the agent's log to an error.
func (a *agent) explain(err error) error {
	if err == nil {
		return nil
	}
	text, _ := os.ReadFile(a.log)
	return fmt.Errorf("%w\n%s", err, text[max(0, len(text)-3000):])
}

// page gets a page of the agent; any other status than 200 is an error.
func (a *agent) page(path string) (string, error) {
	client := http.Client{Timeout: 30 * time.Second}
	response, err := client.Get("http://" + a.address + path)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<24))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, text)
	}
	return string(text), err
}

// restartRuntime kills containerd and starts it again.
func (s *suite) restartRuntime(c *containerd, a *agent) error {
	if err := c.server.Process.Kill(); err != nil {
		return err
	}
	_ = c.server.Wait()
	err := eventually(func() error {
		_, err := a.page("/readyz")
		if err == nil {
			return errors.New("/readyz is still ok")
		}
		if !strings.Contains(err.Error(), "no NRI session") {
			return err
		}
		return nil
	})
	_, alive := a.page("/healthz")
	if err = errors.Join(err, alive, s.serveContainerd(c)); err != nil {
		return err
	}
	return eventually(func() error {
		_, ready := a.page("/readyz")
		page, err := a.page("/metrics")
		return errors.Join(ready, err, contains(page, "unthrottle_nri_sessions_total 2"), s.runs(c))
	})
}

// runs checks that the app's container runs.
func (s *suite) runs(c *containerd) error {
	got, err := s.run(nil, nil, s.crictl, c.criFlags("inspect", "-o", "go-template", "--template", "{{.status.state}}", c.app)...)
	return errors.Join(err, contains(got.out, "CONTAINER_RUNNING"))
}

// copyHas checks the runtime's own copy of the quota.
func (s *suite) copyHas(c *containerd, quotaUS int) error {
	got, err := s.run(nil, nil, s.crictl, c.criFlags("inspect", c.app)...)
	if !regexp.MustCompile(fmt.Sprintf(`"(cpuQuota|quota|cpu_quota)": "?%d"?\b`, quotaUS)).MatchString(got.out) {
		err = errors.Join(err, fmt.Errorf("the runtime's copy has not the quota %d: %v", quotaUS,
			regexp.MustCompile(`(?i)".*quota": .*`).FindAllString(got.out, -1)))
	}
	return err
}

// judged checks that a change of the app is in force with this verdict.
func (s *suite) judged(c *containerd, verdict string) error {
	got, err := s.run(nil, nil, s.exe, "status", "--json", "--state-dir", s.agentState())
	if err == nil && !(strings.Contains(got.out, c.appCgroup()) && strings.Contains(got.out, `"`+verdict+`"`)) {
		err = fmt.Errorf("status says:\n%s", got.out)
	}
	return err
}

// eventually tries for some minutes.
func eventually(try func() error) (err error) {
	until := time.Now().Add(5 * time.Minute)
	for range 240 {
		if err = try(); err == nil || time.Now().After(until) {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	return err
}

func contains(text, part string) error {
	if !strings.Contains(text, part) {
		return fmt.Errorf("%q is not in %.3000q", part, text)
	}
	return nil
}

// positive checks a sample of a metrics page.
func positive(page, series string) error {
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(page)
	if found == nil || found[1] == "0" {
		return fmt.Errorf("%s is %v", series, found)
	}
	return nil
}
