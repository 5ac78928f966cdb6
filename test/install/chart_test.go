package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// chart is the folder of the chart; golden beside it has what helm makes of each tier. make e2e compares them with helm.
const chart = root + "/packaging/chart"

// daemonSet is what the tests look at.
type daemonSet struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				HostPID                      bool  `yaml:"hostPID"`
				AutomountServiceAccountToken *bool `yaml:"automountServiceAccountToken"`
				Containers                   []struct {
					Name            string
					Args            []string
					Lifecycle       *struct{}
					SecurityContext struct {
						Privileged             *bool
						RunAsNonRoot           bool `yaml:"runAsNonRoot"`
						RunAsUser              int  `yaml:"runAsUser"`
						ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
						Capabilities           struct{ Drop, Add []string }
					} `yaml:"securityContext"`
					VolumeMounts []struct {
						Name      string
						ReadOnly  bool   `yaml:"readOnly"`
						Recursive string `yaml:"recursiveReadOnly"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name     string
					HostPath *struct{ Path string } `yaml:"hostPath"`
				}
			}
		}
	}
}

// Each tier has the rights that it needs and no more.
func TestChartRights(t *testing.T) {
	observe := []string{"BPF", "PERFMON", "SYSLOG", "SYS_PTRACE"}
	cure := append(slices.Clone(observe), "SYS_NICE")
	for tier, want := range map[string]struct {
		add, paths []string
		writes     bool
	}{
		"observe": {observe, []string{"/sys/fs/cgroup"}, false},
		"cure":    {cure, []string{"/sys/fs/cgroup", "/var/lib/unthrottle", "/var/run/nri"}, true},
		"narrow":  {append(slices.Clone(cure), "SYS_ADMIN"), []string{"/sys/fs/cgroup", "/var/lib/unthrottle", "/var/run/nri"}, true},
	} {
		t.Run(tier, func(t *testing.T) {
			pod := goldenDaemonSet(t, tier).Spec.Template.Spec
			if !pod.HostPID || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
				t.Errorf("it must see the node's processes, and have no token: %+v", pod)
			}
			if len(pod.Containers) != 1 {
				t.Fatalf("%d containers", len(pod.Containers))
			}
			c := pod.Containers[0]
			s := c.SecurityContext
			if s.Privileged == nil || *s.Privileged || !s.ReadOnlyRootFilesystem {
				t.Errorf("privileged or with a root file system that it can write: %+v", s)
			}
			if !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || !slices.Equal(s.Capabilities.Add, want.add) {
				t.Errorf("drops %q and adds %q, want %q", s.Capabilities.Drop, s.Capabilities.Add, want.add)
			}
			var paths []string
			for _, v := range pod.Volumes {
				if v.HostPath != nil {
					paths = append(paths, v.HostPath.Path)
				}
			}
			if slices.Sort(paths); !slices.Equal(paths, want.paths) {
				t.Errorf("has %q of the node, want %q", paths, want.paths)
			}
			for _, m := range c.VolumeMounts {
				if m.Name == "cgroup" && (m.ReadOnly == want.writes || (m.Recursive == "") != want.writes) {
					t.Errorf("the cgroups are mounted %+v", m)
				}
			}
			if (c.Lifecycle != nil) != want.writes {
				t.Errorf("lifecycle %v: what may have changed something restores it when it stops, nothing else does", c.Lifecycle)
			}
			if off := slices.Contains(c.Args, "off"); off == want.writes {
				t.Errorf("arguments %q", c.Args)
			}
		})
	}
}

// The reader, which users reach, has nothing of the node, and listens where only a port-forward reaches it.
func TestChartReader(t *testing.T) {
	containers := goldenDaemonSet(t, "reader").Spec.Template.Spec.Containers
	if len(containers) != 2 || containers[1].Name != "reader" {
		t.Fatalf("%+v", containers)
	}
	c := containers[1]
	s := c.SecurityContext
	if s.Privileged == nil || *s.Privileged || !s.RunAsNonRoot || !s.ReadOnlyRootFilesystem ||
		len(s.Capabilities.Add) > 0 || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("it has more than it needs: %+v", s)
	}
	for _, m := range c.VolumeMounts {
		if m.Name != "api" && m.Name != "answers" || !m.ReadOnly {
			t.Errorf("its mounts: %+v", c.VolumeMounts)
		}
	}
	// A port-forward into the pod reaches the agent's loopback address: there it must not answer what the reader bounds.
	if at := slices.Index(containers[0].Args, "--answers"); at < 0 || !slices.Contains(c.Args, "unix:"+containers[0].Args[at+1]) {
		t.Errorf("the agent answers beside the reader: %q, %q", containers[0].Args, c.Args)
	}
	if at := slices.Index(containers[0].Args, "--answers-uid"); at < 0 || containers[0].Args[at+1] != strconv.Itoa(s.RunAsUser) {
		t.Errorf("the agent does not answer the reader's user %d: %q", s.RunAsUser, containers[0].Args)
	}
	if at := slices.Index(c.Args, "--listen"); at < 0 || c.Args[at+1] != "127.0.0.1:9470" {
		t.Errorf("its arguments: %q", c.Args)
	}
	for _, m := range containers[0].VolumeMounts {
		if m.Name == "api" {
			t.Error("the agent has a token")
		}
	}
}

// TestChartDemand: the container demand reads the rows and nothing else of the node, and may write NodeDemands alone; the agent has no
// token, and writes no other folder of the node than that of the rows.
func TestChartDemand(t *testing.T) {
	pod := goldenDaemonSet(t, "demand").Spec.Template.Spec
	if len(pod.Containers) != 2 || pod.Containers[1].Name != "demand" {
		t.Fatalf("%+v", pod.Containers)
	}
	agent, c := pod.Containers[0], pod.Containers[1]
	s := c.SecurityContext
	if s.Privileged == nil || *s.Privileged || !s.RunAsNonRoot || !s.ReadOnlyRootFilesystem ||
		len(s.Capabilities.Add) > 0 || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("it has more than it needs: %+v", s)
	}
	for _, m := range c.VolumeMounts {
		if m.Name != "api" && m.Name != "config" && m.Name != "rows" || !m.ReadOnly {
			t.Errorf("its mounts: %+v", c.VolumeMounts)
		}
	}
	for _, m := range agent.VolumeMounts {
		if m.Name == "api" {
			t.Error("the agent has a token")
		}
	}
	var paths []string
	for _, v := range pod.Volumes {
		if v.HostPath != nil {
			paths = append(paths, v.HostPath.Path)
		}
	}
	if slices.Sort(paths); !slices.Equal(paths, []string{"/sys/fs/cgroup", "/var/lib/unthrottle-rows"}) {
		t.Errorf("it has %q of the node", paths)
	}
	if at := slices.Index(agent.Args, "--node"); at < 0 || agent.Args[at+1] != "$(NODE_NAME)" {
		t.Errorf("rows do not have the node's name: %q", agent.Args)
	}
	text := string(fileOf(t, filepath.Join(chart, "golden", "demand.yaml")))
	const rules = "rules:\n- apiGroups: [unthrottle.dev]\n  resources: [nodedemands]\n  verbs: [get, create, patch]\n" +
		"- apiGroups: [\"\"]\n  resources: [nodes] # the owner of the object, with which the cluster deletes it\n  verbs: [get]\n"
	if strings.Count(text, "\nrules:\n") != 1 || !strings.Contains(text, rules) {
		t.Errorf("the rights are not %q:\n%s", rules, text)
	}
}

// TestChartRollout: with policies.rollout the container policies may see pods and what protects them, and the agent nothing more.
func TestChartRollout(t *testing.T) {
	with := goldenDaemonSet(t, "rollout").Spec.Template.Spec.Containers
	without := goldenDaemonSet(t, "policies").Spec.Template.Spec.Containers
	if len(with) != 2 || len(without) != 2 || !slices.Contains(with[1].Args, "--rollouts") || !reflect.DeepEqual(with[0], without[0]) {
		t.Fatalf("%+v, %+v", with, without)
	}
	with[1].Args, without[1].Args = nil, nil
	if !reflect.DeepEqual(with, without) {
		t.Errorf("more than the arguments differs: %+v, %+v", with, without)
	}
	text := string(fileOf(t, filepath.Join(chart, "golden", "rollout.yaml")))
	const rules = "rules:\n- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [list, watch]\n" +
		"- apiGroups: [policy]\n  resources: [poddisruptionbudgets]\n  verbs: [list]\n\n"
	if strings.Count(text, "rules:\n") != 1 || !strings.Contains(text, rules) {
		t.Errorf("the rights are not %q:\n%s", rules, text)
	}
}

// TestChartProbes: with policies.probes the container policies gets one right more, which is to see pods, and the agent none.
func TestChartProbes(t *testing.T) {
	with := goldenDaemonSet(t, "probes").Spec.Template.Spec.Containers
	without := goldenDaemonSet(t, "policies").Spec.Template.Spec.Containers
	if len(with) != 2 || len(without) != 2 {
		t.Fatalf("%d and %d containers", len(with), len(without))
	}
	if at := slices.Index(with[0].Args, "--pods"); at < 0 || !slices.Contains(with[1].Args, with[0].Args[at+1]) {
		t.Errorf("they name two files: %q, %q", with[0].Args, with[1].Args)
	}
	for i := range with {
		with[i].Args, without[i].Args = nil, nil
	}
	if !reflect.DeepEqual(with, without) {
		t.Errorf("more than the arguments differs: %+v, %+v", with, without)
	}
	text := string(fileOf(t, filepath.Join(chart, "golden", "probes.yaml")))
	const rules = "rules:\n- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [list, watch]\n"
	if strings.Count(text, "rules:\n") != 1 || !strings.Contains(text, rules) {
		t.Errorf("the rights are not %q:\n%s", rules, text)
	}
}

// goldenDaemonSet reads the only DaemonSet of a tier.
func goldenDaemonSet(t *testing.T, tier string) daemonSet {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(fileOf(t, filepath.Join(chart, "golden", tier+".yaml"))))
	for {
		var node yaml.Node
		if err := d.Decode(&node); errors.Is(err, io.EOF) {
			t.Fatalf("tier %s has no DaemonSet", tier)
		} else if err != nil {
			t.Fatal(err)
		}
		var kind struct{ Kind string }
		var found daemonSet
		if err := node.Decode(&kind); err != nil {
			t.Fatal(err)
		}
		if kind.Kind == "DaemonSet" {
			if err := node.Decode(&found); err != nil {
				t.Fatal(err)
			}
			return found
		}
	}
}

// The schema knows each value, and each value of the schema is in values.yaml with a default.
func TestChartValuesAreInTheirSchema(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal(fileOf(t, filepath.Join(chart, "unthrottle", "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(fileOf(t, filepath.Join(chart, "unthrottle", "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global")  // helm's own
	delete(schema.Properties, "enabled") // a parent chart's condition: helm hands it down
	has, knows := slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(schema.Properties))
	if !slices.Equal(has, knows) {
		t.Errorf("values.yaml has %s\nits schema %s", strings.Join(has, " "), strings.Join(knows, " "))
	}
}

// What Helm hands down to the chart below a parent, and values of users, against the schema alone.
func TestChartSchema(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal(fileOf(t, filepath.Join(chart, "unthrottle", "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(fileOf(t, filepath.Join(chart, "unthrottle", "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	known, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		key   string
		value any
		good  bool
	}{
		"the defaults":             {"tier", "observe", true},
		"a parent's condition":     {"enabled", true, true},
		"a parent's global values": {"global", map[string]any{"imageRegistry": "x"}, true},
		"no switch":                {"enabled", "yes", false},
		"an image by its digest":   {"image", map[string]any{"repository": "r", "pullPolicy": "Always", "digest": digest}, true},
		"a digest of another form": {"image", map[string]any{"repository": "r", "pullPolicy": "Always", "digest": "0a0a"}, false},
		"a sidecar by its digest": {"policies",
			map[string]any{"enabled": true, "image": map[string]any{"repository": "r", "digest": digest}}, true},
		"a reader by its digest": {"reader",
			map[string]any{"enabled": true, "port": 1, "image": map[string]any{"repository": "r", "digest": digest}}, true},
		"a key that is not a value":  {"enable", true, false},
		"a label that is not a text": {"podLabels", map[string]any{"team": 7}, false},
	} {
		with := maps.Clone(values)
		with[c.key] = c.value
		if err := known.Validate(with); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
