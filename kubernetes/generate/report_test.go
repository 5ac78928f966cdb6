package generate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	openapi "k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/kubernetes/api/v1alpha1"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
)

// TestPoliciesOfAReport: the policies that a fleet's report writes are ones by the definition, and what they ask for is
// accepted where a ClusterThrottlePolicy allows it.
func TestPoliciesOfAReport(t *testing.T) {
	written, err := os.ReadFile(filepath.Join("..", "..", "internal", "ui", "report", "fleet", "testdata", "throttlepolicies.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd, err := CRD(policies.ThrottlePolicy)
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	var schema openapi.Schema
	if err := yaml.Unmarshal(crd, &definition); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema); err != nil {
		t.Fatal(err)
	}
	valid := validate.NewSchemaValidator(&schema, nil, "", strfmt.Default)
	check := func(file []byte) bool {
		var v any
		if err := yaml.Unmarshal(file, &v); err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		result := valid.Validate(v)
		return result.IsValid() && yaml.UnmarshalStrict(file, &v1alpha1.ThrottlePolicy{}) == nil
	}
	if check([]byte("{spec: {rules: [{cpus: 1.5}]}}")) || check([]byte("{spec: {rules: [{remedy: pray}]}}")) {
		t.Fatal("everything is valid")
	}
	objects := []policies.Object{{Kind: policies.ClusterThrottlePolicy, Name: "all", Created: time.Unix(1, 0), Spec: map[string]any{
		"allow": map[string]any{"mode": "apply", "remedies": []any{"auto"}, "may": []any{"pin"}}}}}
	want := 0 // rules of all objects together
	for file := range bytes.SplitSeq(written, []byte("---\n")) {
		var p v1alpha1.ThrottlePolicy
		var given struct{ Spec map[string]any }
		if !check(file) {
			t.Errorf("not by the definition:\n%s", file)
		}
		if err := yaml.Unmarshal(file, &p); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(file, &given); err != nil {
			t.Fatal(err)
		}
		if p.APIVersion != v1alpha1.Group+"/"+v1alpha1.Version || p.Kind != policies.ThrottlePolicy {
			t.Errorf("%s of %s", p.Kind, p.APIVersion)
		}
		of, _ := given.Spec["rules"].([]any)
		want += len(of)
		objects = append(objects, policies.Object{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name,
			Created: time.Unix(2, 0), Spec: given.Spec})
	}
	out, err := policies.Merge([]byte("version: 1\nmode: apply\n"), objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, status := range out.Statuses {
		if status.Wrong != nil || status.Conflicts != nil {
			t.Errorf("%s: %v, %v", key, status.Wrong, status.Conflicts)
		}
	}
	rules, err := policy.ParseRules(out.File)
	if err != nil || len(rules.Rules) != want || want == 0 {
		t.Errorf("%v, %d rules, want %d\n%s", err, len(rules.Rules), want, out.File)
	}
}
