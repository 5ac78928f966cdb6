package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// chartOptions are the chart, and what it needs.
type chartOptions struct {
	helm, image, chart string
	// sidecar is the image of unthrottle-kubernetes in the same form, and said the file for what the tutorial's commands printed.
	sidecar, said string
	// update writes the golden files instead of comparing them.
	update bool
}

func (o *chartOptions) flags() {
	flag.StringVar(&o.helm, "helm", "", "helm (make e2e builds it)")
	flag.StringVar(&o.image, "image", "", "the agent's image as an OCI layout in a tar file (make e2e makes it)")
	flag.StringVar(&o.sidecar, "sidecar", "", "the image of unthrottle-kubernetes (make e2e-kubernetes makes it)")
	flag.StringVar(&o.said, "said", "", "the `FILE` for what the commands of the tutorial printed")
	flag.StringVar(&o.chart, "chart", "packaging/chart/unthrottle", "the chart")
	flag.BoolVar(&o.update, "update", false, "write the chart's golden files")
}

// golden is the file that has a tier's objects.
func (o chartOptions) golden(tier string) string {
	return filepath.Join(o.chart, "..", "golden", tier+".yaml")
}

// tiers are the values of tier, from the fewest rights to the most.
var tiers = []string{"observe", "cure", "narrow"}

// The golden files of the tier cure with policies, and of the tier observe with the reader.
const (
	withPolicies = "policies"
	withReader   = "reader"
)

// chartRendered checks what helm makes of the chart.
func (s *suite) chartRendered(o chartOptions) {
	if helm, err := filepath.Abs(o.helm); err != nil || s.has(helm) != nil {
		return
	}
	helm := func(args ...string) (string, error) { return s.helm(o, filepath.Join(s.dir, "none"), args...) }
	lint, err := helm("lint", "--strict", o.chart)
	s.check("chart: helm lint", errors.Join(err, contains(lint, " 0 chart(s) failed")))
	for _, tier := range append([]string{withPolicies, withReader}, tiers...) {
		values := []string{"--set", "tier=" + tier, "--set", "service.enabled=true", "--set", "podMonitor.enabled=true"}
		switch tier {
		case withPolicies:
			values = []string{"--set", "tier=cure", "--set", "policies.enabled=true"}
		case withReader:
			values = []string{"--set", "reader.enabled=true"}
		}
		got, err := helm(append([]string{"template", "unthrottle", o.chart, "-n", "unthrottle"}, values...)...)
		if o.update && err == nil {
			err = os.WriteFile(o.golden(tier), []byte(got), 0o644)
		}
		want, bad := os.ReadFile(o.golden(tier))
		if bad == nil && got != string(want) {
			bad = fmt.Errorf("%s differs from what helm makes: make e2e E2E='-only chart -update', and look at the difference", o.golden(tier))
		}
		s.check("chart: the objects of tier "+tier+" are those of the golden file", errors.Join(err, bad))
	}
	var errs []error
	for values, want := range map[string]string{
		"mode=apply": "'/mode'", "tier=all": "'/tier'", "config.listen=:1": "'listen'", "host.state=here": "'/host/state'", "tierr=cure": "'tierr'", "port=0": "'/port'", "policies.enabled=2": "'/policies/enabled'", "reader.port=0": "'/reader/port'",
	} {
		_, err := helm("template", "unthrottle", o.chart, "--set", values)
		if err == nil {
			errs = append(errs, fmt.Errorf("%s is not refused", values))
			continue
		}
		errs = append(errs, contains(err.Error(), want))
	}
	s.check("chart: wrong values are refused, each by its name", errors.Join(errs...))
}

// helm runs helm, which reads nothing of this user's. config leads it to a cluster.
func (s *suite) helm(o chartOptions, config string, args ...string) (string, error) {
	dir := filepath.Join(s.dir, "helm")
	got, err := s.run(nil, []string{"HELM_CACHE_HOME=" + dir, "HELM_CONFIG_HOME=" + dir, "HELM_DATA_HOME=" + dir, "KUBECONFIG=" + config}, o.helm, args...)
	return got.out, err
}
