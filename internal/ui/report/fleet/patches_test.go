package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
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
	d := Document{Bound: 0.001, From: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		Until: time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC), Services: []Service{
			saving("app", nil),
			// a name that YAML reads as true, and a container that came a moment ago
			saving("on", func(s *Service) { s.Workload.RequestCPUs, s.Unknown, s.Young = new(0.5), 1, 1 }),
			saving("x", func(s *Service) { s.Remedy = new(Leave); s.CoresAfter = new(12.0) }),
			saving("x", func(s *Service) { s.Remedy = new(Burst) }),
			saving("x", func(s *Service) { s.Unknown, s.Young = 2, 1 }),
			saving("x", func(s *Service) { s.Workload = nil }),
			saving("x", func(s *Service) { s.LimitHigh = new(3.95) }), // nothing is sure
			saving("x", func(s *Service) { s.Workload.LimitCPUs = nil }),
			saving("../../etc", nil), saving("x", func(s *Service) { s.Workload.Namespace = ".." }),
			saving("x", func(s *Service) { s.Workload.Name = "a\nkind: Secret" }),
		}}
	patches, left := Patches(d)
	if len(patches) != 1 || patches[0].Name != "shop/deployment-cart.yaml" {
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
	if err := yaml.Unmarshal(patches[0].YAML, &p); err != nil {
		t.Fatalf("%v\n%s", err, patches[0].YAML)
	}
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
	want := []string{
		"1 service: it is no Deployment, StatefulSet or DaemonSet, or that is not known",
		"1 service: it saves by a burst, a narrow or a pin, which no field of a pod sets: a ThrottlePolicy does",
		"1 service: its containers have different limits now",
		"1 service: the estimate may be off by all that it saves", "1 service: what some of its containers need is not known",
		"3 services: its names are none that Kubernetes allows",
	}
	if !slices.Equal(left, want) {
		t.Errorf("left %q", left)
	}
}
