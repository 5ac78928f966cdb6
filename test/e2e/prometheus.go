package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/packaging/mixin"
)

// metricsGroup is the cgroup whose metrics are asked for.
const metricsGroup = "/unthrottle-e2e-metrics"

// emptyHere reports whether a query has no result on this host: no container is narrow by sched_ext.
func emptyHere(query string) bool { return strings.Contains(query, "unthrottle_narrow_") }

// prometheus runs a Prometheus with our rules beside an agent and a throttled container, and asks everything that rules
// and dashboards ask.
func (s *suite) prometheus(bin string) {
	defer s.stopMetricsGroup()
	if s.check("prometheus: a throttled container", s.startMetricsGroup()) != nil {
		return
	}
	agent, api := "127.0.0.1:"+freePort(), "http://127.0.0.1:"+freePort()
	if s.check("prometheus: an agent", s.startObserver(agent)) != nil {
		return
	}
	if s.check("prometheus: a Prometheus that scrapes it", s.startPrometheus(bin, agent, api)) != nil {
		return
	}
	_, err := s.run(nil, nil, s.exe, "apply", metricsGroup, "--remedy", "raise", "--to", "0.04", "--scope",
		metricsGroup, "--state-dir", filepath.Join(s.dir, "state"))
	s.check("prometheus: a remedy beside the agent", err)
	s.check("prometheus: each rule is evaluated", s.rulesWork(api))
	rules, err := mixin.Rules()
	boards, failed := mixin.Dashboards()
	if s.check("prometheus: rules and dashboards are read", errors.Join(err, failed)) != nil {
		return
	}
	var records []string
	for _, r := range rules {
		if r.Record != "" && !strings.HasPrefix(r.Record, "namespace_pod:") { // of Kubernetes alone
			records = append(records, r.Record)
		}
	}
	s.answered(api, "recorded series", records)
	for _, d := range boards {
		if d.File == mixin.FleetDashboard { // its figures come from a report over many hosts
			continue
		}
		var queries []string
		for _, p := range d.Panels {
			for _, t := range p.Targets {
				queries = append(queries, d.Query(t))
			}
		}
		s.answered(api, "queries of "+d.File, queries)
	}
	own := `{id="` + metricsGroup + `"}`
	s.answered(api, "truths about the container", []string{
		"container:unthrottle_stopped_low:rate5m" + own + " > 0.05",
		"container:unthrottle_wanted_cpus:rate5m" + own + " > 1.2 * container:unthrottle_used_cpus:rate5m",
		`unthrottle_container_waiting_seconds_total{cause="quota", id="` + metricsGroup + `"} > 0`,
		`ALERTS{alertname="ContainerStoppedByQuota", id="` + metricsGroup + `"}`,
		`ALERTS{alertname="ContainerWantsMoreThanItsLimit", id="` + metricsGroup + `"}`,
		`unthrottle_remedies_in_force{remedy="raise"} == 1`,
	})
	_, err = s.run(nil, nil, s.exe, "restore", "--state-dir", filepath.Join(s.dir, "state"))
	s.check("prometheus: restore", err)
}

// freePort is a port that no one listens on now.
func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "0"
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// metricsFolders are the folders of the cgroup: one on v2, one for each of two controllers on v1.
func metricsFolders() []string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return []string{"/sys/fs/cgroup" + metricsGroup}
	}
	cpu, _ := filepath.EvalSymlinks("/sys/fs/cgroup/cpu")
	usage, _ := filepath.EvalSymlinks("/sys/fs/cgroup/cpuacct")
	if cpu == usage {
		return []string{cpu + metricsGroup}
	}
	return []string{cpu + metricsGroup, usage + metricsGroup}
}

// startMetricsGroup runs two processes that always compute under a limit so small that they are stopped on a busy host too.
func (s *suite) startMetricsGroup() error {
	for _, dir := range metricsFolders() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := newSettings(metricsGroup).setQuota(2000); err != nil {
		return err
	}
	for range 2 {
		cmd := exec.Command("sh", "-c", loop, s.dir+"/work")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		s.stops = append(s.stops, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		for _, dir := range metricsFolders() {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *suite) stopMetricsGroup() {
	s.stopAll()
	s.stops = nil
	var err error
	for _, dir := range metricsFolders() {
		for range 50 { // a cgroup that a process just left needs a moment
			if err = os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
				err = nil
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	s.check("prometheus: its cgroup is removed", err)
}

func (s *suite) startObserver(listen string) error {
	config := filepath.Join(s.dir, "agent.yaml")
	text := fmt.Sprintf("version: 1\nmode: observe\nlisten: %s\nscope: %s\nstate_dir: %s\n", listen, metricsGroup,
		filepath.Join(s.dir, "state"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	cmd, err := s.server("agent", nil, func() error { return get("http://"+listen+"/healthz", nil) }, s.exe, "agent",
		"--config", config, "--nri", "off")
	s.stops = append(s.stops, func() { end(cmd) })
	return err
}

func (s *suite) startPrometheus(bin, agent, api string) error {
	files, err := filepath.Abs("packaging/mixin")
	if err != nil {
		return err
	}
	return s.runPrometheus(bin, api, fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%[1]s/rules.yaml, %[1]s/alerts.yaml]
scrape_configs: [{job_name: unthrottle, static_configs: [{targets: ["%[2]s"]}]}]
`, files, agent))
}

// runPrometheus starts one with this configuration. It answers at api.
func (s *suite) runPrometheus(bin, api, text string) error {
	config := filepath.Join(s.dir, "prometheus.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	cmd, err := s.server("prometheus", nil, func() error { return get(api+"/-/ready", nil) }, filepath.Join(bin, "prometheus"),
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(s.dir, "tsdb"), "--web.listen-address="+
			strings.TrimPrefix(api, "http://"))
	s.stops = append(s.stops, func() { end(cmd) })
	return err
}

// get asks an address, and reads its JSON unless to is nil.
func get(address string, to any) error {
	answer, err := http.Get(address)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var why struct{ Error string }
		_ = json.NewDecoder(answer.Body).Decode(&why)
		return fmt.Errorf("%s: %s", answer.Status, why.Error)
	}
	if to == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(to)
}

// eventually asks until there is no error, for two minutes at most.
func (s *suite) eventually(ask func() error) error {
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		if err := ask(); err == nil || s.ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// rulesWork waits until each rule was evaluated without an error.
func (s *suite) rulesWork(api string) error {
	return s.eventually(func() error {
		var told struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Name, Health, LastError string }
				}
			}
		}
		if err := get(api+"/api/v1/rules", &told); err != nil {
			return err
		}
		var errs []error
		n := 0
		for _, g := range told.Data.Groups {
			for _, r := range g.Rules {
				if n++; r.Health != "ok" {
					errs = append(errs, fmt.Errorf("%s: health %s %s", r.Name, r.Health, r.LastError))
				}
			}
		}
		if n == 0 {
			return errors.New("no rule is loaded")
		}
		return errors.Join(errs...)
	})
}

// answered checks that each query has a result.
func (s *suite) answered(api, what string, queries []string) {
	err := s.eventually(func() error {
		var errs []error
		for _, query := range queries {
			var told struct {
				Data struct{ Result []any }
			}
			err := get(api+"/api/v1/query?query="+url.QueryEscape(query), &told)
			if err == nil && len(told.Data.Result) == 0 && !emptyHere(query) {
				err = errors.New("no result")
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", query, err))
			}
		}
		return errors.Join(errs...)
	})
	s.check(fmt.Sprintf("prometheus: %d %s", len(queries), what), err)
}
