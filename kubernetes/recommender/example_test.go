package recommender

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/unthrottle/unthrottle/kubernetes/autoscalers"
)

// The example's objects are ones that Kubernetes knows, and its rights are those that Update needs.
func TestExample(t *testing.T) {
	file, err := os.ReadFile("../../examples/kubernetes/recommender.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbac.ClusterRole
	var job batch.CronJob
	for _, doc := range bytes.Split(file, []byte("\n---\n")) {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			t.Fatal(err)
		}
		into, ok := map[string]any{"ServiceAccount": &core.ServiceAccount{}, "ClusterRole": &role,
			"ClusterRoleBinding": &rbac.ClusterRoleBinding{}, "CronJob": &job}[kind.Kind]
		if !ok {
			t.Fatalf("a %q", kind.Kind)
		}
		if err := yaml.UnmarshalStrict(doc, into); err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
		}
	}
	may := func(group, resource, verb string) bool {
		return slices.ContainsFunc(role.Rules, func(r rbac.PolicyRule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
		})
	}
	for _, plural := range workloads {
		if !may("apps", plural, "get") {
			t.Errorf("it may not get %s", plural)
		}
	}
	of := autoscalers.Resource
	if !may(of.Group, of.Resource, "list") || !may(of.Group, of.Resource+"/status", "patch") || len(role.Rules) != 3 {
		t.Errorf("%+v", role.Rules)
	}
	pod := job.Spec.JobTemplate.Spec.Template.Spec
	if args := strings.Join(pod.InitContainers[0].Args, " "); !strings.Contains(args,
		"--json-file /report/report.json") || strings.Join(pod.Containers[0].Args, " ") != "recommend --report /report/report.json" {
		t.Errorf("%+v", pod)
	}
}
