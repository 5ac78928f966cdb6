package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// chartOptions are the chart, and what it needs.
type chartOptions struct {
	helm, image, chart string
	// prometheus is the folder of a Prometheus; "": a part that needs it fails.
	prometheus string
	// sidecar is the image of unthrottle-kubernetes in the same form, and said the file for what the tutorial's commands printed.
	sidecar, said string
	// scheduler is the image of unthrottle-scheduler in the same form; "": the part demand does without.
	scheduler string
	// update writes the golden files instead of comparing them.
	update bool
	// kills is how often parts of a whole node are killed, at moments that seed draws.
	kills int
	seed  uint64
	// parts are which of the checks of the cluster run; "": all.
	parts string
}

func (o *chartOptions) flags() {
	flag.StringVar(&o.helm, "helm", "", "helm (make e2e builds it)")
	flag.StringVar(&o.image, "image", "", "the agent's image as an OCI layout in a tar file (make e2e makes it)")
	flag.StringVar(&o.sidecar, "sidecar", "", "the image of unthrottle-kubernetes (make e2e-kubernetes makes it)")
	flag.StringVar(&o.scheduler, "scheduler", "", "the image of unthrottle-scheduler (make scheduler-image makes it)")
	flag.StringVar(&o.said, "said", "", "the `FILE` for what the commands of the tutorial printed")
	flag.StringVar(&o.chart, "chart", "packaging/chart/unthrottle", "the chart")
	flag.IntVar(&o.kills, "kills", 5, "how often parts of the node are killed")
	flag.Uint64Var(&o.seed, "seed", 1, "the moments of the kills")
	flag.StringVar(&o.parts, "parts", "", "which checks of the cluster run; all but demand, rollout, harm and nodes by default: "+
		"found,tested,cured,policies,look,burst,demand,rollout,harm,nodes,narrow,users,raise,secured,cpus,probes,kills,reset")
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
	withProbes   = "probes"  // what the probes add to policies
	withRollout  = "rollout" // what rollouts add to policies
	withResize   = "resize"
	withDemand   = "demand"
)

// chartRendered checks what helm makes of the chart.
func (s *suite) chartRendered(o chartOptions) {
	if helm, err := filepath.Abs(o.helm); err != nil || s.has(helm) != nil {
		return
	}
	helm := func(args ...string) (string, error) { return s.helm(o, filepath.Join(s.dir, "none"), args...) }
	lint, err := helm("lint", "--strict", o.chart)
	s.check("chart: helm lint", errors.Join(err, contains(lint, " 0 chart(s) failed")))
	for _, tier := range append([]string{withPolicies, withReader, withProbes, withRollout, withResize, withDemand}, tiers...) {
		values := []string{"--set", "tier=" + tier, "--set", "service.enabled=true", "--set", "podMonitor.enabled=true"}
		switch tier {
		case withPolicies:
			values = []string{"--set", "tier=cure", "--set", "policies.enabled=true"}
		case withReader:
			values = []string{"--set", "reader.enabled=true"}
		case withResize:
			values = []string{"--set", "tier=cure", "--set", "resize.enabled=true"}
		case withDemand:
			values = []string{"--set", "demand.enabled=true"}
		case withProbes:
			values = []string{"--set", "tier=cure", "--set", "policies.enabled=true", "--set", "policies.probes=true",
				"-s", "templates/probes.yaml", "-s", "templates/daemonset.yaml"}
		case withRollout:
			values = []string{"--set", "tier=cure", "--set", "policies.enabled=true", "--set", "policies.rollout=true",
				"-s", "templates/rollout.yaml", "-s", "templates/daemonset.yaml"}
		}
		if tier != tiers[0] { // the test's objects are the same in all
			values = append(values, "--no-hooks")
		}
		got, err := helm(append([]string{"template", "unthrottle", o.chart, "-n", "unthrottle"}, values...)...)
		if o.update && err == nil {
			err = os.WriteFile(o.golden(tier), []byte(got), 0o644)
		}
		want, bad := os.ReadFile(o.golden(tier))
		if bad == nil && got != string(want) {
			bad = fmt.Errorf("%s differs from what helm makes: make e2e E2E='-only chart -update', and look at the "+
				"difference", o.golden(tier))
		}
		s.check("chart: the objects of tier "+tier+" are those of the golden file", errors.Join(err, bad))
	}
	var errs []error
	for values, want := range map[string]string{
		"mode=apply": "'/mode'", "tier=all": "'/tier'", "config.listen=:1": "'listen'",
		"host.state=here": "'/host/state'", "tierr=cure": "'tierr'", "port=0": "'/port'",
		"policies.enabled=2": "'/policies/enabled'", "resize.enabled=2": "'/resize/enabled'", "reader.port=0": "'/reader/port'",
		"demand.enabled=2": "'/demand/enabled'", "host.rows=here": "'/host/rows'",
		"policies.probes=true": "set policies.enabled=true too", "policies.rollout=true": "set policies.enabled=true too",
	} {
		_, err := helm("template", "unthrottle", o.chart, "--set", values)
		if err == nil {
			errs = append(errs, fmt.Errorf("%s is not refused", values))
			continue
		}
		errs = append(errs, contains(err.Error(), want))
	}
	s.check("chart: wrong values are refused, each by its name", errors.Join(errs...))
	s.chartValues(o, helm)
}

// chartValues checks values that the golden files have not: below a parent chart, an image by its digest, and keys that
// are the chart's own.
func (s *suite) chartValues(o chartOptions, helm func(...string) (string, error)) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	got, err := helm("template", "unthrottle", o.chart, "--set", "image.tag=v1", "--set", "image.digest="+digest,
		"--set", "policies.enabled=true",
		"--set", "policies.image.digest="+digest, "--set", "reader.enabled=true", "--set", "reader.image.digest="+digest)
	s.check("chart: images by their digest", errors.Join(err, contains(got, `image: "unthrottle@`+digest+`"`),
		contains(got, `image: "unthrottle-kubernetes@`+digest+`"`)))
	var errs []error
	for values, want := range map[string]string{
		`podLabels.app\.kubernetes\.io/name=x`:            "podLabels: the chart sets app.kubernetes.io/name itself",
		`podLabels.helm\.sh/chart=x`:                      "podLabels: the chart sets helm.sh/chart itself",
		`podMonitor.labels.app\.kubernetes\.io/version=x`: "podMonitor.labels: the chart sets app.kubernetes.io/version itself",
		`podAnnotations.checksum/config=x`:                "podAnnotations: the chart sets checksum/config itself",
	} {
		_, err := helm("template", "unthrottle", o.chart, "--set-string", values)
		if err == nil {
			errs = append(errs, fmt.Errorf("%s is not refused", values))
			continue
		}
		errs = append(errs, contains(err.Error(), want))
	}
	for values, want := range map[string]string{
		"config.export.dir=/rows": "config.export.dir: with demand.enabled",
		"config.export.node=n1":   "config.export.node: with demand.enabled",
	} {
		_, err := helm("template", "unthrottle", o.chart, "--set", "demand.enabled=true", "--set", values)
		if err == nil {
			errs = append(errs, fmt.Errorf("%s is not refused", values))
			continue
		}
		errs = append(errs, contains(err.Error(), want))
	}
	got, err = helm("template", "unthrottle", o.chart, "--set", "demand.enabled=true", "--set", "config.export.keep_for=240h",
		"--set", "config.export.cluster=eu1")
	errs = append(errs, err, contains(got, "keep_for: 240h"), contains(got, "cluster: eu1"), contains(got, "keep_size: 256MiB"))
	got, err = helm("template", "unthrottle", o.chart, "--set", "config.export.dir=/var/lib/unthrottle/fleet")
	errs = append(errs, err, contains(got, "--node, $(NODE_NAME)")) // a pod's name is no node's
	got, err = helm("template", "unthrottle", o.chart, "--set", "podLabels.team=shop")
	errs = append(errs, err, contains(got, "team: shop"))
	s.check("chart: labels of the pods beside its own, which are refused", errors.Join(errs...))
	parent := filepath.Join(s.dir, "parent")
	below, err := filepath.Abs(o.chart)
	errs = []error{err, os.CopyFS(filepath.Join(parent, "charts", "unthrottle"), os.DirFS(below)),
		os.WriteFile(filepath.Join(parent, "Chart.yaml"), []byte("apiVersion: v2\nname: parent\nversion: "+
			"1.0.0\ndependencies:\n- {name: unthrottle, version: \"*\", condition: unthrottle.enabled}\n"), 0o644)}
	for enabled, there := range map[string]bool{"true": true, "false": false} {
		got, err := helm("template", "unthrottle", parent, "--set", "unthrottle.enabled="+enabled, "--set", "global.imageRegistry=x")
		if err == nil && strings.Contains(got, "kind: DaemonSet") != there {
			err = fmt.Errorf("below a parent, enabled %s: %q", enabled, got)
		}
		errs = append(errs, err)
	}
	_, err = helm("template", "unthrottle", o.chart, "--set", "enabled=false")
	if err == nil {
		errs = append(errs, errors.New("enabled=false without a parent is not refused"))
	} else {
		errs = append(errs, contains(err.Error(), "give its dependency a condition"))
	}
	s.check("chart: below a parent chart, by its condition", errors.Join(errs...))
}

// helm runs helm, which reads nothing of this user's. config leads it to a cluster.
func (s *suite) helm(o chartOptions, config string, args ...string) (string, error) {
	dir := filepath.Join(s.dir, "helm")
	got, err := s.run(nil, []string{"HELM_CACHE_HOME=" + dir, "HELM_CONFIG_HOME=" + dir, "HELM_DATA_HOME=" + dir,
		"KUBECONFIG=" + config}, o.helm, args...)
	return got.out, err
}

// upgradeChart upgrades the release on a cluster by flags of helm; values that were set before stay.
func (s *suite) upgradeChart(k *cluster, o chartOptions, flags ...string) (string, error) {
	return s.helm(o, k.config, append([]string{"upgrade", "unthrottle", o.chart, "-n", "unthrottle", "--reuse-values"}, flags...)...)
}
