package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Pods of the rollout: each is a Caddy that compresses a page of its own, with a limit that cuts bursts of requests.
const (
	pageNamespace = "pages"
	pagePods      = 6
	pageLimit     = "200m"
	// pageBurst requests at once, each of some 15 ms, 0.6 s apart on average: a burst needs three times the 20 ms of a period, and all
	// together about half of the limit. So it is stopped in nearly every second, which is when an agent acts.
	pageBurst = 4
	pagePause = 600 * time.Millisecond
	pageWatch = 10 * time.Minute // the agent takes one or two for each pod, and the query looks back for four
)

// pages are the pods of a workload with a policy that has a rollout.
type pages struct {
	k     *cluster
	api   string // of the Prometheus
	first int    // port of the first pod
	began time.Time

	// second is where some of the pods run; nil: all are on the cluster's first node.
	second *second

	mu     sync.Mutex
	asked  []pageRequest
	failed map[string]error // the last one by pod
}

// pageRequest is one that was answered: by which pod, when it was due, and how long after that it was answered.
type pageRequest struct {
	pod  string
	due  time.Time
	took time.Duration
}

// rollout has a policy's remedy rolled out over the pods of a workload: by the chart's agent, judged by a real Prometheus that scrapes
// the pods' own servers. A guard reverts another one; harm alone does only that.
func (s *suite) rollout(k *cluster, o chartOptions, harmAlone bool) {
	s.overPages(&pages{k: k}, o, func(p *pages, stop func()) {
		if !harmAlone {
			s.watchPages(p, func() {
				s.check("rollout: the agent and its container policies are killed", s.killPolicies(p.k))
			})
		}
		s.harmPages(p)
		stop()
		s.check(fmt.Sprintf("rollout: all %d requests were answered", len(p.asked)), p.failures(pageNames()))
		_, err := s.upgradeChart(k, o, "--set", "mode=observe", "--set", "policies.rollout=false")
		s.check("rollout: the chart only observes again", errors.Join(err, s.rolledOut(k)))
	})
}

// overPages starts a workload with its clients, and a policy with a rollout over it, and has the rest done by follow, whose stop ends the
// clients.
func (s *suite) overPages(p *pages, o chartOptions, follow func(p *pages, stop func())) {
	if s.has("caddy", filepath.Join(o.prometheus, "prometheus")) != nil {
		return
	}
	k := p.k
	p.api, p.began, p.failed = "http://127.0.0.1:"+freePort(), time.Now(), map[string]error{}
	err := s.startPages(p)
	if s.check(fmt.Sprintf("rollout: a StatefulSet of %d pods, each a Caddy with a limit of %s", pagePods, pageLimit), err) != nil {
		return
	}
	defer s.deletePages(p)
	if s.check("rollout: a Prometheus scrapes them", s.scrapePages(p, o.prometheus)) != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	var clients sync.WaitGroup
	stop := func() { cancel(); clients.Wait() }
	defer stop()
	for i := range pagePods {
		clients.Go(func() { p.ask(ctx, i) })
	}
	_, err = s.upgradeChart(k, o, "--set", "mode=apply", "--set", "policies.enabled=true", "--set", "policies.rollout=true")
	if s.check("rollout: helm upgrades the chart to mode: apply, with rollouts", errors.Join(err, s.rolledOut(k))) != nil {
		return
	}
	err = eventually(func() error { return s.create(k, p.policies("page-*", "vector(0)")) })
	if s.check("rollout: the API server takes a policy with a rollout", err) != nil {
		return
	}
	logs, err := s.kubectl(k, "logs", "-n", "unthrottle", "-l", "app.kubernetes.io/name=unthrottle", "-c", "agent", "--tail=-1")
	if strings.Contains(logs, "level=WARN") {
		err = errors.Join(err, errors.New(logs))
	}
	s.check("rollout: the agent that applies warns of nothing", err)
	follow(p, stop)
}

// watchPages follows the rollout until it is kept. While half of the pods are treated, disturb is called.
func (s *suite) watchPages(p *pages, disturb func()) {
	alone := p.began
	if s.check("rollout: nothing is in force for one watch", errors.Join(s.phase(p, "Waits", 2*time.Minute),
		equal("pods with a remedy", s.treatedPages(p), ""))) != nil {
		return
	}
	if s.check("rollout: then half of the pods are drawn", s.phase(p, "Watches", pageWatch+3*time.Minute)) != nil {
		return
	}
	drawn := time.Now()
	var err error
	for s.treatedPages(p) == "" && err == nil { // errors of the cluster end it too: they are no pods' names
		if time.Sleep(5 * time.Second); time.Since(drawn) > pageWatch {
			err = errors.New("the agent treats none of the drawn pods")
		}
	}
	s.check("rollout: the agent treats the first of them", err)
	disturb()
	err = s.phase(p, "Finishes", pageWatch+10*time.Minute)
	half := strings.Fields(s.treatedPages(p))
	if n := len(half); n == 0 || n > pagePods/2 {
		err = errors.Join(err, fmt.Errorf("%d of %d pods were treated: %v", n, pagePods, half))
	}
	if s.check("rollout: the remedy is better beyond chance, with at most half of the pods treated", err) != nil {
		return
	}
	finishing := time.Now()
	rest := slices.DeleteFunc(pageNames(), func(name string) bool { return slices.Contains(half, name) })
	err = s.phase(p, "Kept", pageWatch+10*time.Minute)
	all := strings.Fields(s.treatedPages(p))
	s.check(fmt.Sprintf("rollout: kept, with a remedy in force in %d of %d pods", len(all), pagePods), err)
	fmt.Fprintf(s.out, "      p99 of the client outside in ms: nothing in force: drawn %.0f, others %.0f; watched: drawn %.0f, others %.0f; "+
		"at the end: all %.0f\n",
		p.p99(half, alone, drawn), p.p99(rest, alone, drawn), p.p99(half, drawn, finishing), p.p99(rest, drawn, finishing),
		p.p99(pageNames(), finishing.Add(2*time.Minute), time.Now()))
}

// harmPages asks for another rollout, by other rules, whose guard is above its bound once pods are treated: all is put back.
func (s *suite) harmPages(p *pages) {
	rises := time.Now().Add(pageWatch + 7*time.Minute) // nothing is in force for one watch; then the agent needs a while for a pod
	err := s.create(p.k, p.policies("page-?", fmt.Sprintf("vector(time()) > bool %d", rises.Unix())))
	if err == nil {
		err = s.phase(p, "Watches", pageWatch+4*time.Minute)
	}
	var treated string
	for err == nil && time.Now().Before(rises) && s.ctx.Err() == nil {
		if treated = s.treatedPages(p); time.Now().Before(rises) {
			time.Sleep(5 * time.Second)
		}
	}
	if n := len(strings.Fields(treated)); err == nil && (n == 0 || n > pagePods/2) {
		err = fmt.Errorf("%d of %d pods were treated when the guard rose: %s", n, pagePods, treated)
	}
	if err == nil {
		err = s.phase(p, "Reverted", 5*time.Minute)
	}
	if err == nil {
		err = eventually(func() error { return equal("pods with a remedy", s.treatedPages(p), "") })
	}
	s.check(fmt.Sprintf("rollout: a guard that rises reverts the remedy on %q, each pod has its own limit again", treated), err)
}

func pageNames() (names []string) {
	for i := range pagePods {
		names = append(names, fmt.Sprint("page-", i))
	}
	return names
}

// startPages starts the workload. Pods have the host's network, so that each listens on a port of its own, by its number.
func (s *suite) startPages(p *pages) error {
	if _, err := fmt.Sscan(freePort(), &p.first); err != nil {
		return err
	}
	p.first = min(p.first, 65000) // the others follow it
	dir := p.k.file("pages")
	words := rand.New(rand.NewPCG(1, 2))
	var page strings.Builder
	for page.Len() < 300_000 {
		fmt.Fprintf(&page, "<li>item %d of order %x</li>\n", words.IntN(1000), words.Uint32())
	}
	const caddyfile = `{
	admin off
	auto_https off
	servers {
		metrics
	}
}
http://127.0.0.1:{$PORT} {
	metrics /metrics
	handle /page.html {
		root * /pages
		encode {
			gzip 6
		}
		file_server
	}
}
`
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "page.html"), []byte(page.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "Caddyfile"), []byte(caddyfile), 0o644)); err != nil {
		return err
	}
	objects := fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: page, namespace: %[1]s}
spec:
  replicas: %[2]d
  podManagementPolicy: Parallel
  serviceName: page
  selector: {matchLabels: {app: page}}
  template:
    metadata: {labels: {app: page}}
    spec:
      hostNetwork: true
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: page}}}
      containers:
      - name: app
        image: %[3]s
        imagePullPolicy: Never
        command: [sh, -c, 'export PORT=$(( %[4]d + ${POD##*-} )) HOME=/tmp; exec /usr/bin/caddy run --adapter caddyfile --config /pages/Caddyfile']
        env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {cpu: %[5]s, memory: 256Mi}}
        volumeMounts:
        - {name: usr, mountPath: /usr, readOnly: true}
        - {name: usr, mountPath: /lib, subPath: lib, readOnly: true}
        - {name: usr, mountPath: /lib64, subPath: lib64, readOnly: true}
        - {name: pages, mountPath: /pages, readOnly: true}
      volumes:
      - {name: usr, hostPath: {path: /usr, type: Directory}}
      - {name: pages, hostPath: {path: %[6]q, type: Directory}}
`, pageNamespace, pagePods, imageName, p.first, pageLimit, dir)
	if _, err := s.kubectl(p.k, "create", "namespace", pageNamespace); err != nil {
		return err
	}
	if err := eventually(func() error { return s.create(p.k, objects) }); err != nil {
		return err
	}
	_, err := s.kubectl(p.k, "rollout", "status", "-n", pageNamespace, "statefulset/page", s.timeout())
	if err == nil && p.second != nil {
		err = s.reachSecond(p)
	}
	for i := range pagePods {
		err = errors.Join(err, eventually(func() error { return get(p.url(i), nil) }))
	}
	if err != nil {
		pods, _ := s.kubectl(p.k, "describe", "pods", "-n", pageNamespace)
		err = fmt.Errorf("%w\n%.3000s", err, pods)
	}
	return err
}

func (p *pages) url(pod int) string { return fmt.Sprintf("http://127.0.0.1:%d/page.html", p.first+pod) }

// scrapePages starts a Prometheus that scrapes each pod, with the labels that discovery would give it.
func (s *suite) scrapePages(p *pages, bin string) error {
	var targets strings.Builder
	for i, name := range pageNames() {
		fmt.Fprintf(&targets, "  - {targets: ['127.0.0.1:%d'], labels: {namespace: %s, pod: %s}}\n", p.first+i, pageNamespace, name)
	}
	return s.runPrometheus(bin, p.api,
		"global: {scrape_interval: 10s}\nscrape_configs:\n- job_name: pages\n  static_configs:\n"+targets.String())
}

// policies are a policy with a rollout over the pods of a name whose guard asks that query, and the one that allows it.
func (p *pages) policies(name, guard string) string {
	return fmt.Sprintf(`
apiVersion: unthrottle.dev/v1alpha1
kind: ClusterThrottlePolicy
metadata: {name: all}
spec:
  namespaces: [%[1]s]
  allow: {mode: apply, remedies: [auto], prometheus: [%[2]q]}
---
apiVersion: unthrottle.dev/v1alpha1
kind: ThrottlePolicy
metadata: {name: pages, namespace: %[1]s}
spec:
  mode: apply
  rules:
  - {match: {name: %[5]q}, remedy: auto, verify: probe}
  rollout:
    share: 50%%
    watch: %[3]s
    latency: histogram_quantile(0.99, sum by (pod, le) (rate(caddy_http_request_duration_seconds_bucket{code="200"}[4m])))
    guard: {prometheus: %[2]q, query: %[4]q, bound: 0.5}
`, pageNamespace, p.api, pageWatch, guard, name)
}

// phase waits for one of the policy's rollout, and shows why it has it.
func (s *suite) phase(p *pages, want string, within time.Duration) error {
	var status struct {
		Status struct {
			Rollout struct {
				Phase, Why    string
				Pods, Treated int
			}
		}
	}
	var err error
	for end := time.Now().Add(within); time.Now().Before(end) && s.ctx.Err() == nil; time.Sleep(5 * time.Second) {
		var text string
		if text, err = s.kubectl(p.k, "get", "throttlepolicy", "-n", pageNamespace, "pages", "-o", "json"); err == nil {
			err = json.Unmarshal([]byte(text), &status)
		}
		if r := status.Status.Rollout; err == nil && r.Phase == want {
			fmt.Fprintf(s.out, "      after %s: %s: %s\n", time.Since(p.began).Round(time.Second), want, r.Why)
			return nil
		}
	}
	logs, _ := s.kubectl(p.k, "logs", "-n", "unthrottle", "-l", "app.kubernetes.io/name=unthrottle", "--all-containers", "--tail=30")
	return errors.Join(err, s.ctx.Err(), fmt.Errorf("the rollout is %+v and not %s within %s\n%s", status.Status.Rollout, want, within, logs))
}

// treatedPages are the pods with another setting than their limit, by the kernel.
func (s *suite) treatedPages(p *pages) string {
	text, err := s.kubectl(p.k, "get", "pods", "-n", pageNamespace, "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].containerID} {.spec.nodeName}{"\n"}{end}`)
	if err != nil {
		return err.Error()
	}
	var treated []string
	for line := range strings.Lines(text) {
		var name, uid, id, node string
		if _, err := fmt.Sscanf(line, "%s %s containerd://%s %s", &name, &uid, &id, &node); err != nil {
			return err.Error()
		}
		kernel := newSettings(hostCgroup(node, p.k.containerCgroup(p.k.podCgroup(uid), id)))
		if kernel.quota() != "20000" || !slices.Contains([]string{"", "0"}, kernel.burst()) {
			treated = append(treated, name)
		}
	}
	return strings.Join(treated, " ")
}

// killPolicies kills the agent and the container policies beside it, and waits until both run again.
func (s *suite) killPolicies(k *cluster) error {
	for _, container := range []string{"agent", "policies"} {
		count := chartStatus(container) + "restartCount}"
		restarts, err := s.agentPod(k, count)
		if err != nil {
			return err
		}
		pid, err := s.chartProcess(k, container)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			return fmt.Errorf("kill %s: %w", container, err)
		}
		if err := eventually(func() error {
			again, err := s.agentPod(k, count)
			if err == nil && again == restarts {
				err = fmt.Errorf("%s is not started again", container)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return s.rolledOut(k)
}

// ask sends bursts of requests to a pod, each from the moment at which it was due.
func (p *pages) ask(ctx context.Context, pod int) {
	random := rand.New(rand.NewPCG(uint64(pod), 3))
	client := &http.Client{Timeout: 30 * time.Second,
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4 * pageBurst}}
	defer client.CloseIdleConnections()
	var sent sync.WaitGroup
	defer sent.Wait()
	for at := time.Now(); ; at = at.Add(time.Duration(random.ExpFloat64() * float64(pagePause))) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(at)):
		}
		for range pageBurst {
			sent.Go(func() {
				p.keep(ctx, pageNames()[pod], at, p.get(ctx, client, pod))
			})
		}
	}
}

func (p *pages) get(ctx context.Context, client *http.Client, pod int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url(pod), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept-Encoding", "gzip")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Encoding") != "gzip" {
		return fmt.Errorf("%s, encoding %q", answer.Status, answer.Header.Get("Content-Encoding"))
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// keep keeps what a request took, unless the client ends.
func (p *pages) keep(ctx context.Context, pod string, due time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.asked = append(p.asked, pageRequest{pod, due, time.Since(due)})
	case ctx.Err() == nil:
		p.failed[pod] = err
	}
}

// failures are the last ones of requests to some of the pods.
func (p *pages) failures(pods []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, pod := range pods {
		if err := p.failed[pod]; err != nil {
			errs = append(errs, fmt.Errorf("a request to %s: %w", pod, err))
		}
	}
	return errors.Join(errs...)
}

// p99 is that of requests to pods that were due in a time, in ms; NaN: there were too few.
func (p *pages) p99(pods []string, from, to time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var took []time.Duration
	for _, r := range p.asked {
		if r.due.After(from) && r.due.Before(to) && slices.Contains(pods, r.pod) {
			took = append(took, r.took)
		}
	}
	if len(took) < 100 {
		return math.NaN()
	}
	slices.Sort(took)
	return milliseconds(took[len(took)*99/100])
}

// deletePages deletes the workload and its policies.
func (s *suite) deletePages(p *pages) {
	_, err := s.kubectl(p.k, "delete", "clusterthrottlepolicy", "all", "--ignore-not-found")
	_, failed := s.kubectl(p.k, "delete", "namespace", pageNamespace, s.timeout())
	s.check("rollout: the workload is deleted", errors.Join(err, failed))
}
