package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// oversubscribing is the scheduler's profile that lets requests exceed a node.
const oversubscribing = "unthrottle-oversubscribe"

// scheduler runs unthrottle-scheduler's image by its example, and has it place pods by what the node tells.
func (s *suite) scheduler(k *cluster, o chartOptions) {
	defer func() {
		_, err := s.kubectl(k, "delete", "pod", "-n", "shop", "small", "large", "large-by-requests", "--ignore-not-found", s.timeout())
		_, failed := s.kubectl(k, "delete", "deploy", "-n", "unthrottle", "unthrottle-scheduler", "--ignore-not-found", s.timeout())
		s.check("scheduler: it and its pods are deleted", errors.Join(err, failed))
	}()
	err := s.importImage(k.containerd, "k8s.io", o.scheduler)
	if err == nil {
		err = s.startScheduler(k, o)
	}
	if s.check("scheduler: its image runs with the rights of its example", err) != nil {
		return
	}
	s.check("scheduler: a small pod is placed by it and runs", errors.Join(s.sleepingPod(k, "small", "unthrottle", 10),
		eventually(func() error {
			got, err := s.kubectl(k, "get", "pod", "-n", "shop", "small", "-o", "jsonpath={.status.phase} {.spec.nodeName}")
			return errors.Join(err, equal("small", got, "Running "+k.node))
		})))
	// By requests a large pod would leave the reserve of a tenth; cart wants more than it requests.
	large, err := s.roomByRequests(k)
	if err == nil {
		err = s.sleepingPod(k, "large", oversubscribing, large)
	}
	if err == nil {
		err = eventually(func() error {
			got, err := s.kubectl(k, "get", "pod", "-n", "shop", "large", "-o",
				`jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}`)
			return errors.Join(err, contains(got, "measured demand needs more CPUs than the node has"))
		})
	}
	s.check(fmt.Sprintf("scheduler: a pod of %d millicores, which fits by requests, is refused for what others want", large), err)
	_, err = s.kubectl(k, "delete", "pod", "-n", "shop", "large", s.timeout())
	err = errors.Join(err, s.sleepingPod(k, "large-by-requests", "default-scheduler", large), eventually(func() error {
		got, err := s.kubectl(k, "get", "pod", "-n", "shop", "large-by-requests", "-o", "jsonpath={.status.phase}")
		return errors.Join(err, equal("large-by-requests", got, "Running"))
	}))
	s.check("scheduler: the cluster's own scheduler places the same pod", err)
}

// startScheduler applies the example with the image, and with the profile of docs/reference/scheduler.md beside its own.
func (s *suite) startScheduler(k *cluster, o chartOptions) error {
	root := filepath.Join(o.chart, "..", "..", "..")
	example, err := os.ReadFile(filepath.Join(root, "examples", "kubernetes", "scheduler.yaml"))
	page, failed := os.ReadFile(filepath.Join(root, "docs", "reference", "scheduler.md"))
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	_, profile, found := strings.Cut(string(page), "```yaml\n- schedulerName:")
	profile, _, ends := strings.Cut(profile, "```")
	if !found || !ends {
		return errors.New("docs/reference/scheduler.md has no profile that lets requests exceed a node")
	}
	const own = "    - schedulerName: unthrottle\n"
	profile = "    - schedulerName: " + strings.ReplaceAll(strings.TrimSpace(profile), "\n", "\n    ") + "\n"
	change := []string{own, profile + own,
		"unthrottle-scheduler:VERSION", "docker.io/library/unthrottle-scheduler:e2e\n        imagePullPolicy: Never"}
	if !k.whole { // its pod has this host's network, and its ports
		port := freePort()
		change = append(change, "replicas: 2", "replicas: 1", "serviceAccountName: unthrottle-scheduler\n",
			"serviceAccountName: unthrottle-scheduler\n      hostNetwork: true\n", "/scheduler.yaml]",
			"/scheduler.yaml, --bind-address, 127.0.0.1, --secure-port, '"+port+"']", "port: 10259", "host: 127.0.0.1, port: "+port)
	}
	objects := string(example)
	for i := 0; i < len(change); i += 2 {
		if !strings.Contains(objects, change[i]) {
			return fmt.Errorf("examples/kubernetes/scheduler.yaml has no %q", change[i])
		}
		objects = strings.ReplaceAll(objects, change[i], change[i+1])
	}
	if err := s.create(k, objects); err != nil {
		return err
	}
	_, err = s.kubectl(k, "rollout", "status", "-n", "unthrottle", "deploy/unthrottle-scheduler", s.timeout())
	if err != nil {
		logs, _ := s.kubectl(k, "logs", "-n", "unthrottle", "deploy/unthrottle-scheduler", "--tail=20")
		pods, _ := s.kubectl(k, "describe", "pods", "-n", "unthrottle", "-l", "app=unthrottle-scheduler")
		err = fmt.Errorf("%w\n%.3000s\n%s", err, pods, logs)
	}
	return err
}

// sleepingPod makes a pod that does nothing and requests so many millicores.
func (s *suite) sleepingPod(k *cluster, name, scheduler string, millicores int) error {
	return s.create(k, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: shop}
spec:
  schedulerName: %s
  hostNetwork: %t
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: %s
    imagePullPolicy: Never
    command: [sleep, infinity]
    resources: {requests: {cpu: %dm, memory: 8Mi}}
`, name, scheduler, !k.whole, imageName, millicores))
}

// roomByRequests is how many millicores a pod can request so that the node's requests stay just below its CPUs without the plugin's
// reserve, a tenth.
func (s *suite) roomByRequests(k *cluster) (int, error) {
	var node struct {
		Status struct{ Allocatable struct{ CPU string } }
	}
	var pods struct {
		Items []struct {
			Spec struct {
				Containers []struct {
					Resources struct{ Requests struct{ CPU string } }
				}
			}
		}
	}
	for what, into := range map[string]any{"node/" + k.node: &node, "pods": &pods} {
		args := []string{"get", what, "-o", "json"}
		if into == any(&pods) {
			args = append(args, "-A")
		}
		text, err := s.kubectl(k, args...)
		if err == nil {
			err = json.Unmarshal([]byte(text), into)
		}
		if err != nil {
			return 0, err
		}
	}
	var left, n int
	if _, err := fmt.Sscanf(node.Status.Allocatable.CPU, "%d", &left); err != nil {
		return 0, fmt.Errorf("allocatable: %q: %w", node.Status.Allocatable.CPU, err)
	}
	left *= 900
	for _, p := range pods.Items {
		for _, c := range p.Spec.Containers {
			if _, err := fmt.Sscanf(c.Resources.Requests.CPU, "%dm", &n); err == nil {
				left -= n
			}
		}
	}
	return left - 10, nil
}
