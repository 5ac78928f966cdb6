package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
)

// cart is the pod that is throttled.
type cart struct {
	address     string
	uid, id     string
	pid         int
	restarts    int // of its container, by us
	pod, kernel settings
	// podBefore and before are what the kernel had at the start.
	podBefore, before string
	// said is what the commands of the tutorial printed, by command.
	said map[string]string
}

// Names of the pod, and its limits in CPUs before and after the resize.
const (
	cartName   = "shop/cart"
	cartFull   = cartName + "/app"
	firstLimit = "200m"
	nextLimit  = "400m"
)

// kubernetes has the chart's agent find, explain, forecast and cure a throttled pod of a real cluster.
func (s *suite) kubernetes(k *cluster, o chartOptions) {
	p := &cart{address: "127.0.0.1:" + freePort(), said: map[string]string{}}
	if k.whole {
		p.address = ":8080" // of the pod's own address
	}
	if s.check("kubernetes: a pod of a service with a limit of "+firstLimit+" runs", s.startCart(k, p)) != nil {
		return
	}
	defer s.deletePods(k, o)
	c, err := s.startClient(p.address)
	if s.check("kubernetes: a client outside the cluster", err) != nil {
		return
	}
	defer c.end()

	if s.check("kubernetes: helm installs the chart, the agent is ready", s.install(k, p, o)) != nil {
		return
	}
	asked := func(name string) bool { return o.parts == "" || slices.Contains(strings.Split(o.parts, ","), name) }
	part := func(name string, run func()) {
		if asked(name) {
			run()
		}
	}
	part("found", func() { s.found(k, p) })
	if s.check("kubernetes: helm upgrades it to the tier cure, the agent has an NRI session", s.upgrade(k, p, o)) != nil {
		return
	}
	part("tested", func() { s.tested(k, o) })
	part("cured", func() { s.cured(k, p, c); s.killedAgent(k, p) })
	s.resized(k, p)
	part("policies", func() { s.policies(k, p, o) })
	if o.said != "" && asked("found") && asked("cured") {
		s.check("kubernetes: what the commands of the tutorial printed is in "+o.said, p.write(o.said))
	}
	part("look", func() { s.looked(k) })
	part("burst", func() { s.resizedUnderBurst(k, p) })
	if o.parts != "" { // the first rows take up to ten minutes
		part("demand", func() { s.demand(k, o) })
	}
	if o.parts != "" && !k.whole { // half an hour, and a workload of this host's programs
		part("rollout", func() { s.rollout(k, o, false) })
		part("harm", func() { s.rollout(k, o, true) })
		// Last: with two nodes it is chance which agent ds/unthrottle means.
		part("nodes", func() { s.rolloutOnTwo(k, p, o) })
	}
	if k.whole {
		part("narrow", func() { s.narrowed(k, p, o) })
		part("users", func() { s.byUsers(k, p, o) })
		part("raise", func() { s.resizedInSpec(k, p, o) })
		part("secured", func() { s.secured(k, o) })
		part("cpus", func() { s.cpuManager(k, p) })
		part("probes", func() { s.probed(k, o) })
		part("kills", func() { s.killed(k, p, o, o.kills, o.seed) })
		part("reset", func() { s.reset(k, p) })
	}
	s.uninstalled(k, p, o)
}

// Commands that docs/tutorial/kubernetes.md shows. Their images are the test's own.
const (
	helmInstall = "helm install unthrottle packaging/chart/unthrottle -n unthrottle --create-namespace"
	helmUpgrade = "helm upgrade unthrottle packaging/chart/unthrottle -n unthrottle --reuse-values --set tier=cure"
	inAgentPod  = "kubectl exec -n unthrottle ds/unthrottle -- unthrottle "
	askClient   = "client --for 20s   # "
)

// write writes what was printed, without progress.
func (p *cart) write(name string) error {
	for command, text := range p.said {
		lines := slices.DeleteFunc(strings.Split(text, "\n"), progress.IsMinutely)
		p.said[command] = strings.TrimRight(strings.Join(lines, "\n"), "\n")
	}
	text, err := json.MarshalIndent(p.said, "", " ")
	return errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, text, 0o644))
}

// show runs unthrottle in the agent's pod as the tutorial does.
func (s *suite) show(k *cluster, p *cart, args ...string) (string, error) {
	got, err := s.run(nil, []string{"KUBECONFIG=" + k.config}, k.program("kubectl"),
		append([]string{"exec", "-n", "unthrottle", "ds/unthrottle", "--", "unthrottle"}, args...)...)
	told := got.errors + got.out // a plan is a message and comes first, what came of it is the result
	p.said[inAgentPod+strings.Join(args, " ")] = told
	return told, err
}

// startCart starts the pod and reads what the kernel has of it.
func (s *suite) startCart(k *cluster, p *cart) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	// A pod sees a folder that has this program alone.
	dir := k.file("service")
	program, err := os.ReadFile(own)
	if err := errors.Join(err, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "service"), program, 0o755)); err != nil {
		return err
	}
	objects := fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: cart}}
spec:
  hostNetwork: %t
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: %s
    imagePullPolicy: Never
    command: [/service/service, -serve, %q]
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: %s, memory: 128Mi}}
    volumeMounts: [{name: service, mountPath: /service, readOnly: true}]
  volumes: [{name: service, hostPath: {path: %q, type: Directory}}]
`, !k.whole, imageName, p.address, firstLimit, dir)
	if _, err := s.kubectl(k, "create", "namespace", "shop"); err != nil {
		return err
	}
	// The controller-manager makes the namespace's service account, which each pod needs.
	if err := eventually(func() error { return s.create(k, objects) }); err != nil {
		return err
	}
	if err := s.podReady(k, "shop", "cart"); err != nil {
		return err
	}
	return errors.Join(s.lookAtCart(k, p), equal("quota", p.kernel.quota(), "20000"), equal("the pod's quota", p.pod.quota(), "20000"))
}

// lookAtCart reads which container the pod has, and what the kernel has of it.
func (s *suite) lookAtCart(k *cluster, p *cart) error {
	got, err := s.kubectl(k, "get", "pod", "-n", "shop", "cart", "-o",
		"jsonpath={.metadata.uid} {.status.podIP} {.status.containerStatuses[0].containerID}")
	var uid, podIP, id string
	if _, bad := fmt.Sscanf(got, "%s %s containerd://%s", &uid, &podIP, &id); err != nil || bad != nil {
		return errors.Join(err, fmt.Errorf("the pod's ids are %q", got))
	}
	p.uid, p.id = uid, id
	if k.whole {
		p.address = podIP + ":8080"
	}
	p.pod = newSettings(k.podCgroup(uid))
	p.kernel = newSettings(k.containerCgroup(p.pod.path, id))
	p.podBefore, p.before = p.pod.read(), p.kernel.read()
	p.pid, err = s.mainProcess(k, id)
	return err
}

// mainProcess is the first process of a container.
func (s *suite) mainProcess(k *cluster, id string) (pid int, err error) {
	got, err := s.cri(k.containerd, "inspect", "-o", "go-template", "--template", "{{.info.pid}}", id)
	if err == nil {
		_, err = fmt.Sscan(got, &pid)
	}
	if err == nil && pid <= 0 { // a signal to 0 is for all of our own process group
		err = fmt.Errorf("container %s has no process", id)
	}
	return pid, err
}

// install installs the chart in its first tier.
func (s *suite) install(k *cluster, p *cart, o chartOptions) error {
	if err := errors.Join(s.importImage(k.containerd, "k8s.io", o.image), s.importImage(k.containerd, "k8s.io", o.sidecar)); err != nil {
		return err
	}
	args := []string{"install", "unthrottle", o.chart, "-n", "unthrottle", "--create-namespace",
		"--set", "image.repository=docker.io/library/unthrottle", "--set", "image.tag=e2e", "--set", "image.pullPolicy=Never"}
	for _, container := range []string{"policies", "reader", "resize", "demand", "test"} {
		args = append(args, "--set", container+".image.repository=docker.io/library/unthrottle-kubernetes", "--set", container+".image.tag=e2e")
	}
	if !k.whole {
		args = append(args, "--set", "hostNetwork=true", "--set", "port="+freePort(), "--set", "host.nri="+k.nri,
			"--set", "host.state="+k.file("state"), "--set", "config.scope="+ownCgroup)
	}
	told, err := s.helm(o, k.config, args...)
	p.said[helmInstall] = told
	return errors.Join(err, s.rolledOut(k))
}

// rolledOut waits until each node has the agent of the chart's last revision.
func (s *suite) rolledOut(k *cluster) error {
	_, err := s.kubectl(k, "rollout", "status", "-n", "unthrottle", "ds/unthrottle", s.timeout())
	return s.withLogs(k, err)
}

// withLogs adds to an error what the cluster and the agent say of the agent's pods.
func (s *suite) withLogs(k *cluster, err error) error {
	if err == nil {
		return nil
	}
	pods, _ := s.kubectl(k, "describe", "pods", "-n", "unthrottle")
	logs, _ := s.kubectl(k, "logs", "-n", "unthrottle", "ds/unthrottle", "--tail=20")
	return fmt.Errorf("%w\n%.3000s\n%s", err, pods, logs)
}

// tested runs the chart's own test.
func (s *suite) tested(k *cluster, o chartOptions) {
	_, err := s.helm(o, k.config, "test", "unthrottle", "-n", "unthrottle", s.timeout())
	if err != nil {
		logs, _ := s.kubectl(k, "logs", "-n", "unthrottle", "unthrottle-test", "-c", "test")
		pods, _ := s.kubectl(k, "get", "pods", "-A", "-o", "wide")
		err = fmt.Errorf("%w\n%s%s", err, logs, pods)
	}
	left, failed := s.kubectl(k, "get", "pods,serviceaccounts,roles,rolebindings", "-n", "unthrottle", "-o", "name")
	if strings.Contains(left, "unthrottle-test") {
		failed = errors.Join(failed, errors.New(left))
	}
	s.check("kubernetes: helm test finds a throttled pod of its own, and removes it", errors.Join(err, failed))
}

// upgrade gives the agent the rights to change something.
func (s *suite) upgrade(k *cluster, p *cart, o chartOptions) error {
	told, err := s.upgradeChart(k, o, "--set", "tier=cure")
	if err != nil {
		return err
	}
	p.said[helmUpgrade] = told
	if err := s.rolledOut(k); err != nil {
		return err
	}
	return s.withLogs(k, eventually(func() error {
		page, err := s.agentPage(k, "/metrics")
		return errors.Join(err, contains(page, "unthrottle_nri_connected 1"))
	}))
}

// agentPod asks for the agent's pod on the cluster's first node.
func (s *suite) agentPod(k *cluster, output string) (string, error) {
	return s.kubectl(k, "get", "pods", "-n", "unthrottle", "-l", "app.kubernetes.io/name=unthrottle",
		"--field-selector", "spec.nodeName="+k.node, "-o", output)
}

// agentPage gets a page of the agent in its pod.
func (s *suite) agentPage(k *cluster, path string) (string, error) {
	address, err := s.agentPod(k, "jsonpath={.items[0].status.podIP}:{.items[0].spec.containers[0].ports[0].containerPort}")
	if err != nil {
		return "", err
	}
	if _, port, _ := strings.Cut(address, ":"); !k.whole { // in the host's network it listens for the host alone
		address = "127.0.0.1:" + port
	}
	return (&agent{address: address}).page(path)
}

// inAgent runs unthrottle in the agent's pod and reads its JSON. Exit code 1 is a verdict on the load.
func (s *suite) inAgent(k *cluster, to any, args ...string) error {
	got, err := s.run(nil, []string{"KUBECONFIG=" + k.config}, k.program("kubectl"),
		append([]string{"exec", "-n", "unthrottle", "ds/unthrottle", "--", "unthrottle"}, append(args, "--json")...)...)
	if got.code == 1 && strings.HasPrefix(strings.TrimSpace(got.out), "{") {
		err = nil
	}
	if err == nil && to != nil {
		err = json.Unmarshal([]byte(got.out), to)
	}
	return err
}

// found checks what the agent's pod says of the throttled one, in the tier that changes nothing.
func (s *suite) found(k *cluster, p *cart) {
	var all struct{ Containers []listed }
	err := s.inAgent(k, &all, "ls", "--for", "5s")
	var app listed
	for _, l := range all.Containers {
		if l.Path == p.kernel.path {
			app = l
		}
	}
	throttled := errors.New("it is not throttled")
	if app.Throttled != nil && *app.Throttled > 0 {
		throttled = nil
	}
	s.check("kubernetes: ls in the agent's pod finds it, by namespace, pod and container, throttled", errors.Join(err, throttled,
		named(map[string]listed{app.Path: app},
			map[string]want{p.kernel.path: {name: cartFull, namespace: "shop", pod: "cart", container: "app",
				image: imageName, runtime: "containerd", scope: "own"}}), equal("QoS", value(app.QoS), "Burstable")))

	_, err = s.show(k, p, "ls")
	_, failed := s.show(k, p, "explain", cartName)
	s.check("kubernetes: ls and explain in words", errors.Join(err, failed))

	var told struct {
		Cause   *string
		Stopped *float64 `json:"stopped_seconds"`
		Lost    *int     `json:"lost_events"`
		Pools   []struct{ Name string }
	}
	err = s.inAgent(k, &told, "explain", cartName, "--for", "5s")
	switch {
	case err != nil:
	case told.Cause == nil || told.Stopped == nil || *told.Stopped <= 0 || len(told.Pools) == 0:
		err = fmt.Errorf("cause %s, stopped %v s, pools %v", value(told.Cause), told.Stopped, told.Pools)
	}
	s.check(fmt.Sprintf("kubernetes: explain names the cause (%s)", value(told.Cause)), err)

	var forecast struct {
		Rows []struct {
			Remedy string
			P99    *float64 `json:"p99_ms"`
			Not    *string  `json:"not_here"`
		}
		Recommended *struct{ Remedy *string }
	}
	err = s.inAgent(k, &forecast, "forecast", cartName, "--for", "5s")
	remedy := "nothing"
	switch {
	case err != nil:
	case len(forecast.Rows) < 2 || forecast.Rows[0].P99 == nil || forecast.Recommended == nil:
		err = fmt.Errorf("rows %v, recommended %v", forecast.Rows, forecast.Recommended)
	default:
		remedy = value(forecast.Recommended.Remedy)
		if remedy == "null" {
			err = errors.New("no remedy is recommended for bursts that the quota cuts")
			for _, r := range forecast.Rows {
				err = fmt.Errorf("%w\n%s: %s", err, r.Remedy, value(r.Not))
			}
		}
	}
	s.check(fmt.Sprintf("kubernetes: forecast compares remedies (%s)", remedy), err)

	err = s.inAgent(k, nil, "apply", cartName, "--remedy", "raise", "--to", "0.9")
	err = wants(err, "read-only")
	s.check("kubernetes: the tier observe refuses a change", errors.Join(err, s.untouched(p)))
}

// untouched compares the kernel's settings with those of the start.
func (s *suite) untouched(p *cart) error {
	return errors.Join(equal("settings", p.kernel.read(), p.before), equal("the pod's settings", p.pod.read(), p.podBefore))
}

// looking is how long a client's p99 is looked at.
const looking = 20 * time.Second

// cured fixes the pod, and asks its client.
func (s *suite) cured(k *cluster, p *cart, c *client) {
	slow, told, err := c.percentile(s.ctx, looking)
	p.said[askClient+"before"] = told
	if s.check(fmt.Sprintf("kubernetes: the client's p99 is %d ms", slow.Milliseconds()), err) != nil {
		return
	}
	fixed, err := s.show(k, p, "fix", cartName, "--yes", "--for", "10s")
	if err == nil && !better.MatchString(fixed) {
		err = fmt.Errorf("it is not better:\n%s", fixed)
	}
	var remedy string
	if at := recommended.FindStringSubmatch(fixed); at != nil {
		remedy = at[1]
	}
	if s.check(fmt.Sprintf("kubernetes: fix in the agent's pod is better by its own measure, and kept (%s)", remedy), err) != nil {
		return
	}
	s.check("kubernetes: the kernel has it", s.inForce(p))
	fast, told, err := c.percentile(s.ctx, looking)
	p.said[askClient+"after"] = told
	if err == nil && fast > slow*3/4 {
		err = errors.New("the p99 is not lower by a quarter")
	}
	s.check(fmt.Sprintf("kubernetes: and better by the client's measure: p99 from %d to %d ms", slow.Milliseconds(),
		fast.Milliseconds()), err)
}

var (
	// better matches the end of a fix that helped, and stays.
	better = regexp.MustCompile(`verdict +better\nin force as \S+`)
	// recommended matches its remedy, in the tables.
	recommended = regexp.MustCompile(`(?m)^> (\S+(?: \S+)*)`)
)

// inForce checks that the kernel has settings other than at the start.
func (s *suite) inForce(p *cart) error {
	if s.untouched(p) == nil {
		return errors.New("the settings are those of the start")
	}
	return nil
}

// agentProcess is the agent in its pod.
func (s *suite) agentProcess(k *cluster) (int, error) { return s.chartProcess(k, "agent") }

// chartProcess is that of a container of the agent's pod.
func (s *suite) chartProcess(k *cluster, container string) (int, error) {
	id, err := s.agentPod(k, chartStatus(container)+"containerID}")
	if err != nil {
		return 0, err
	}
	return s.mainProcess(k, strings.TrimPrefix(id, "containerd://"))
}

// chartStatus begins the JSONPath of a key of a container's status in the agent's pod.
func chartStatus(container string) string {
	return `jsonpath={.items[0].status.containerStatuses[?(@.name=="` + container + `")].`
}

// killedAgent kills the agent: what is in force stays, and the next one has it in its journal.
func (s *suite) killedAgent(k *cluster, p *cart) {
	before := p.kernel.read()
	pid, err := s.agentProcess(k)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err == nil {
		err = eventually(func() error {
			got, err := s.agentPod(k,
				"jsonpath={.items[0].status.containerStatuses[0].restartCount} {.items[0].status.containerStatuses[0].ready}")
			return errors.Join(err, equal("restarts and readiness", got, "1 true"))
		})
	}
	var status struct {
		InForce []struct{ Target string } `json:"in_force"`
	}
	if err == nil {
		err = s.inAgent(k, &status, "status")
	}
	if err == nil && len(status.InForce) != 1 {
		err = fmt.Errorf("status: %+v in force, want 1", status.InForce)
	}
	s.check("kubernetes: SIGKILL of the agent leaves it in force, and the next agent knows it", errors.Join(err,
		equal("settings", p.kernel.read(), before), s.sameContainer(k, p)))
}

// sameContainer checks that the pod's container was restarted by nobody but us.
func (s *suite) sameContainer(k *cluster, p *cart) error {
	got, err := s.kubectl(k, "get", "pod", "-n", "shop", "cart", "-o",
		"jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}")
	return errors.Join(err, equal("container and restarts", got, fmt.Sprintf("containerd://%s %d", p.id, p.restarts)))
}

// resizeCart asks for another limit of the pod, in place.
func (s *suite) resizeCart(k *cluster, limit string) error {
	_, err := s.kubectl(k, "patch", "pod", "-n", "shop", "cart", "--subresource", "resize", "--patch",
		`{"spec":{"containers":[{"name":"app","resources":{"limits":{"cpu":"`+limit+`"}}}]}}`)
	return err
}

// resized resizes the pod in place while the remedy is in force.
func (s *suite) resized(k *cluster, p *cart) {
	err := s.resizeCart(k, nextLimit)
	if err == nil {
		err = eventually(func() error {
			got, err := s.kubectl(k, "get", "pod", "-n", "shop", "cart", "-o",
				"jsonpath={.status.containerStatuses[0].resources.limits.cpu}")
			return errors.Join(err, equal("the limit in the pod's status", got, nextLimit),
				equal("quota", p.kernel.quota(), "40000"), equal("the pod's quota", p.pod.quota(), "40000"))
		})
	}
	if err != nil {
		events, _ := s.kubectl(k, "get", "events", "-n", "shop")
		err = fmt.Errorf("%w\n%s", err, events)
	}
	s.check("kubernetes: a resize in place to "+nextLimit+" reaches the kernel, without a restart", errors.Join(err, s.sameContainer(k, p)))
}

// resizedTo are settings as they are after the resize, with nothing of ours.
func resizedTo(before string) string {
	return strings.Replace(strings.Replace(before, "cpu.cfs_quota_us 20000", "cpu.cfs_quota_us 40000", 1),
		"cpu.max 20000 ", "cpu.max 40000 ", 1)
}

// uninstalled removes the chart's release: the pod has what Kubernetes gave it, and nothing of ours.
func (s *suite) uninstalled(k *cluster, p *cart, o chartOptions) {
	_, err := s.helm(o, k.config, "uninstall", "unthrottle", "-n", "unthrottle")
	s.check("kubernetes: helm uninstalls the chart", err)
	_, err = s.kubectl(k, "wait", "-n", "unthrottle", "--for=delete", "pod", "-l", "app.kubernetes.io/name=unthrottle", s.timeout())
	pods, failed := s.kubectl(k, "get", "pods", "-n", "unthrottle", "-o", "name")
	s.check("kubernetes: the agent's pod ends within its grace period", errors.Join(err, failed, equal("pods", pods, "")))
	left, err := s.kubectl(k, "get", "all,configmaps,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings", "-A", "-l", "app.kubernetes.io/name=unthrottle", "-o", "name")
	s.check("kubernetes: no object of the chart is left", errors.Join(err, equal("objects", left, "")))
	s.check("kubernetes: the pod runs with what Kubernetes gave it, and nothing else", errors.Join(s.sameContainer(k, p),
		equal("settings", p.kernel.read(), resizedTo(p.before)), equal("the pod's settings", p.pod.read(), resizedTo(p.podBefore)),
		syscall.Kill(p.pid, 0)))
}

// deletePods deletes what the checks made, and waits for the kubelet's folders of pods to go.
func (s *suite) deletePods(k *cluster, o chartOptions) {
	_, _ = s.helm(o, k.config, "uninstall", "unthrottle", "-n", "unthrottle", "--ignore-not-found")
	_, err := s.kubectl(k, "delete", "namespace", "shop", "unthrottle", "--ignore-not-found", s.timeout())
	s.check("kubernetes: the pods are deleted, the kubelet keeps nothing of them", errors.Join(err, eventually(func() error {
		left, _ := filepath.Glob(k.file("kubelet/pods/*"))
		return equal("folders", strings.Join(left, " "), "")
	})))
}
