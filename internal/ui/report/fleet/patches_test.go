package fleet

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

// saving is a service of three containers that needs 1.5 of its 4 CPUs, at most 2.04.
func saving(container string, change func(*Service)) Service {
	s := Service{
		Name: "shop/cart/" + container, Containers: 3, CoresNow: new(12.0), CoresAfter: new(4.5),
		CoresAfterLow: new(4.0), CoresAfterHigh: new(6.3),
		Limit: new(1.5), LimitLow: new(1.2), LimitHigh: new(2.04), Remedy: new(Lower),
		Workload: &Workload{Kind: "Deployment", Namespace: "shop", Name: "cart", Container: container,
			LimitCPUs: new(4.0), RequestCPUs: new(4.0)},
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestPatches(t *testing.T) {
	d := Document{Bound: 0.001, FailoverHosts: 3, From: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		Until: time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC), Services: []Service{
			saving("app", func(s *Service) { s.Hosts, s.FailoverHosts = 2, 1 }),
			// a name that YAML reads as true, and a container that came a moment ago
			saving("on", func(s *Service) { s.Workload.RequestCPUs, s.Unknown, s.Young = new(0.5), 1, 1 }),
			saving("x", func(s *Service) { s.Remedy = new(Leave); s.CoresAfter = new(12.0) }),
			saving("x", func(s *Service) { s.Remedy = new(Burst) }),
			saving("x", func(s *Service) { s.Remedy = new(Pools) }),
			saving("x", func(s *Service) { s.Unknown, s.Young = 2, 1 }),
			saving("x", func(s *Service) { s.Workload = nil }),
			saving("x", func(s *Service) { s.LimitHigh = new(3.95) }), // nothing is sure
			saving("x", func(s *Service) { s.Workload.LimitCPUs = nil }),
			saving("../../etc", nil), saving("x", func(s *Service) { s.Workload.Namespace = ".." }),
			saving("x", func(s *Service) { s.Workload.Name = "a\nkind: Secret" }),
		}}
	patches, policies, left, _ := Patches(d)
	if len(patches) != 1 || len(policies) != 0 || patches[0].Name != "shop/deployment-cart.yaml" {
		t.Fatalf("%+v", patches)
	}
	var p struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name, Namespace string }
		Spec       struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Name      string
						Resources struct{ Limits, Requests map[string]string }
					}
				}
			}
		}
	}
	unmarshal(t, patches[0].YAML, &p)
	of := p.Spec.Template.Spec.Containers
	if p.APIVersion != "apps/v1" || p.Kind != "Deployment" || p.Metadata.Name != "cart" || p.Metadata.Namespace != "shop" || len(of) != 2 ||
		of[0].Name != "app" || of[0].Resources.Limits["cpu"] != "2100m" || of[0].Resources.Requests["cpu"] != "2100m" ||
		of[1].Name != "on" || of[1].Resources.Limits["cpu"] != "2100m" || of[1].Resources.Requests != nil {
		t.Errorf("%s", patches[0].YAML)
	}
	if !strings.Contains(string(patches[0].YAML), "limit 4000m now, between 1200m and 2100m asked; 5.7 of 12.0 cores "+
		"saved over 3 containers") {
		t.Errorf("%s", patches[0].YAML)
	}
	for _, says := range []string{"when 1 host fails: it is on 2", "not enough when a host fails: it is on 0"} {
		if !strings.Contains(string(patches[0].YAML), says) {
			t.Errorf("%q is not in\n%s", says, patches[0].YAML)
		}
	}
	want := []string{
		"1 service: it is no Deployment, StatefulSet or DaemonSet, or that is not known",
		"1 service: it saves by a burst, a narrow or a pin, and no recordings tell of all its containers whether that keeps their p99",
		"1 service: it saves by more than another limit, which its owners have to change",
		"1 service: its containers have different limits now",
		"1 service: the estimate may be off by all that it saves", "1 service: what some of its containers need is not known",
		"3 services: its names are none that Kubernetes allows",
	}
	if !slices.Equal(left, want) {
		t.Errorf("left %q", left)
	}
}

func unmarshal(t *testing.T, file []byte, to any) {
	t.Helper()
	if err := yaml.Unmarshal(file, to); err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
}

// pricedBy is a service of three containers that keeps its p99 with a remedy and so many of its 12 cores at most.
func pricedBy(container, remedy string, high float64, change func(*Service)) Service {
	return saving(container, func(s *Service) {
		s.Remedy, s.Priced, s.LimitHigh = &remedy, 3, new(3.9)
		s.JudgedOf, s.JudgedQuantile, s.JudgedMS = new("http\u2028x: {"), new(0.99), new(12.0)
		s.Prices = []Price{{Remedy: Lower, Containers: 3, CoresAfterLow: 9, CoresAfterHigh: 11.7},
			{Remedy: remedy, Containers: 3, CoresAfterLow: 3, CoresAfterHigh: high}}
		if change != nil {
			change(s)
		}
	})
}

// What recordings tell of a burst, a narrow or a pin is a lower limit, and a policy that asks for the remedy and says what
// judges it.
func TestPolicies(t *testing.T) {
	d := Document{From: noon, Until: noon.Add(7 * 24 * time.Hour), Services: []Service{
		pricedBy("app", Narrow, 6.3, func(s *Service) { s.Objective = &Objective{Quantile: 0.99, MS: 20} }),
		pricedBy("side", Pin, 6, nil),
		pricedBy("far", Burst, 6, func(s *Service) { s.BurstPeriodMS, s.Prices[1].PeriodMS = new(1000.0), new(1000.0) }),
		saving("plain", nil),
		pricedBy("priced", Lower, 6.6, nil), // its own price is the first: 3.9 CPUs
		pricedBy("y", Burst, 12, nil),       // nothing is sure
		pricedBy("y", Burst, 6, func(s *Service) { s.Prices[1].Containers = 2 }),
		pricedBy("y", Burst, 6, func(s *Service) { s.Workload.Name = strings.Repeat("a", 47) }),
		pricedBy("y", Burst, 6, func(s *Service) { s.Workload.Name = "a*\n" }),
		pricedBy("late", Burst, 6, func(s *Service) {
			*s.Workload = Workload{Kind: "StatefulSet", Namespace: "shop", Name: "db", Container: "late", LimitCPUs: new(4.0)}
			s.Containers, s.Unknown, s.Young, s.Objective = 4, 1, 1, &Objective{Quantile: 0.42, MS: 3}
		}),
	}}
	patches, policies, left, crowded := Patches(d)
	if len(patches) != 2 || len(policies) != 2 || len(left) != 4 || crowded != nil {
		t.Fatalf("%d patches, %d policies, left %q, crowded %q", len(patches), len(policies), left, crowded)
	}
	for _, want := range []string{`"app" # limit 4000m now, between 1000m and 2100m asked with narrow by throttlepolicy-deployment-cart.yaml`,
		"cpu: 2100m", `"side" # limit 4000m now, between 1000m and 2000m asked with pin by`, "cpu: 2000m", `"plain"`, `"priced"`, "cpu: 3900m"} {
		if !strings.Contains(string(patches[0].YAML), want) {
			t.Errorf("no %q in\n%s", want, patches[0].YAML)
		}
	}
	type rule struct {
		Match          struct{ Name string }
		Remedy, Verify string
		May            []string
		CPUs           int `yaml:"cpus"`
		SLO            struct{ Objective string }
	}
	var cart, db struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name, Namespace string }
		Spec       struct {
			Mode  string
			Rules []rule
		}
	}
	const golden = "testdata/throttlepolicies.yaml" // kubernetes/generate compares it with the definition
	both := append(append(slices.Clone(policies[0].YAML), "---\n"...), policies[1].YAML...)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, both, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(both, want) {
		t.Errorf("%s is out of date (%v): UPDATE_GOLDEN=1 go test ./internal/ui/report/fleet\n%s", golden, err, both)
	}
	unmarshal(t, policies[0].YAML, &cart)
	unmarshal(t, policies[1].YAML, &db)
	if policies[0].Name != "shop/throttlepolicy-deployment-cart.yaml" ||
		cart.Metadata.Name != "deployment-cart" || cart.Metadata.Namespace != "shop" ||
		cart.Spec.Mode != "apply" || len(cart.Spec.Rules) != 3 || len(db.Spec.Rules) != 1 {
		t.Fatalf("%s\n%s", policies[0].YAML, policies[1].YAML)
	}
	app, side := cart.Spec.Rules[0], cart.Spec.Rules[1]
	if app.Match.Name != "cart-*-?????/app" || app.Remedy != "auto" || app.Verify != "probe" ||
		app.SLO.Objective != "p99<20ms" || app.May != nil ||
		side.CPUs != 2 || !slices.Equal(side.May, []string{Pin}) || side.SLO.Objective != "" {
		t.Errorf("%s", policies[0].YAML)
	}
	if !strings.Contains(string(policies[0].YAML), "# burst, period 1 s (--remedy burst --period 1s), 2000m instead of 4000m") ||
		!strings.Contains(string(patches[0].YAML), "asked with burst, period 1 s by throttlepolicy-deployment-cart.yaml") {
		t.Errorf("%s\n%s", policies[0].YAML, patches[0].YAML)
	}
	if db := db.Spec.Rules[0]; db.Match.Name != "db-[0-9]*/late" || db.SLO.Objective != "" { // 42 in 100 is none that can be judged
		t.Errorf("%s", policies[1].YAML)
	}
	if !strings.Contains(string(policies[0].YAML), `narrow, 2100m instead of 4000m, keeps p99 of http\u2028x: {, 12 ms`+"\n") {
		t.Errorf("%s", policies[0].YAML)
	}
}

// A namespace counts so many rules together: the policies beyond, of those that save least, are named.
func TestPoliciesBeyondANamespace(t *testing.T) {
	d := Document{From: noon, Until: noon.Add(time.Hour)}
	add := func(namespace string, services, containers int) {
		for no := range services * containers {
			d.Services = append(d.Services, pricedBy(fmt.Sprint("c", no%containers), Burst, 6, func(s *Service) {
				s.Workload.Namespace, s.Workload.Name = namespace, fmt.Sprintf("w%02d", no/containers)
				s.CoresAfter = new(4.5 - 0.01*float64(no)) // later ones save more
			}))
		}
	}
	add("full", policy.MaxNamespaceRules/2, 2)
	if _, _, _, crowded := Patches(d); crowded != nil {
		t.Errorf("%q", crowded)
	}
	add("shop", policy.MaxNamespaceRules/2+5, 2)
	_, policies, _, crowded := Patches(d)
	want := []string{"namespace shop: its ThrottlePolicies have 74 rules, and 64 count together: those that save most have room, but " +
		"not throttlepolicy-deployment-w04.yaml, throttlepolicy-deployment-w03.yaml, throttlepolicy-deployment-w02.yaml and 2 more. " +
		"Leave these and their patches out, or give their containers one rule with a wider pattern"}
	if !slices.Equal(crowded, want) || len(policies) != policy.MaxNamespaceRules+5 {
		t.Errorf("%d policies, %q", len(policies), crowded)
	}
}
