package generate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/kubernetes/api/v1alpha1"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
)

// TestGenerated: types and schemas are those that the agent's table makes.
func TestGenerated(t *testing.T) {
	chart := filepath.Join("..", "..", "packaging", "chart", "unthrottle", "policies")
	feed := filepath.Join("..", "..", "packaging", "chart", "unthrottle", "demand")
	for name, make := range map[string]func() ([]byte, error){
		filepath.Join("..", "api", "v1alpha1", "zz_generated.rule.go"): Types,
		filepath.Join(chart, "throttlepolicies.yaml"):                  func() ([]byte, error) { return CRD(policies.ThrottlePolicy) },
		filepath.Join(chart, "clusterthrottlepolicies.yaml"): func() ([]byte, error) {
			return CRD(policies.ClusterThrottlePolicy)
		},
		filepath.Join(feed, "nodedemands.yaml"): NodeDemand,
	} {
		want, err := make()
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date (%v): UPDATE_GOLDEN=1 go test ./generate", name, err)
		}
	}
}

// TestTypesAreTheTable: what a type writes has the keys of the table, and the schema takes as many.
func TestTypesAreTheTable(t *testing.T) {
	data, err := json.Marshal(v1alpha1.Rule{
		Match: &v1alpha1.RuleMatch{Name: "a", Namespace: "b", Labels: map[string]string{"c": "d"}}, Remedy: "auto", Class: "exclusive",
		CPUs: 1, Via: "auto", Credit: "1s", Burst: "100ms", Period: "1s",
		Factor: 2, To: 3, Lends: true, Strict: true, Stays: true, IRQs: true,
		May: []string{"raise"}, Verify: "probe",
		Trial:       &v1alpha1.RuleTrial{Most: "2m", Per: "24h", Over: "1h", AA: true, Quiet: "08:00-20:00", Zone: "UTC"},
		Startup:     &v1alpha1.RuleStartup{Remedy: "raise", Most: "1m"},
		SLO:         &v1alpha1.RuleSLO{Objective: "p99<20ms"},
		Annotations: &v1alpha1.RuleAnnotations{Allow: []string{"auto"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	text, err := CRD(policies.ClusterThrottlePolicy)
	if err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	at := func(v any, path ...any) any {
		for _, p := range path {
			switch p := p.(type) {
			case string:
				v = v.(map[string]any)[p]
			case int:
				v = v.([]any)[p]
			}
		}
		return v
	}
	schema := at(crd, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "rules",
		"items", "properties")
	check(t, "rule", policy.InPolicies(policy.RuleKeys()), got, schema.(map[string]any))
}

func check(t *testing.T, of string, keys []policy.Key, got, schema map[string]any) {
	if len(got) != len(keys) || len(schema) != len(keys) {
		t.Errorf("%s: %d keys in the table, %d in the type, %d in the schema", of, len(keys), len(got), len(schema))
	}
	for _, k := range keys {
		s, ok := schema[k.Name].(map[string]any)
		if got[k.Name] == nil || !ok {
			t.Errorf("%s.%s is not in type and schema", of, k.Name)
			continue
		}
		if enum, ok := s["enum"].([]any); k.Type == policy.TypeText && ok != (k.Words != nil) || ok &&
			!slices.ContainsFunc(enum, func(w any) bool { return w == k.Words[len(k.Words)-1] }) {
			t.Errorf("%s.%s: words %v, schema %v", of, k.Name, k.Words, enum)
		}
		if k.Type == policy.TypeSettings {
			check(t, of+"."+k.Name, k.Keys, got[k.Name].(map[string]any), s["properties"].(map[string]any))
		}
	}
}
