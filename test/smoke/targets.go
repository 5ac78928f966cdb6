package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// form is how a target runs in the shortest way.
type form struct {
	target string
	args   []string // for make
	// elsewhere says why the target does not run here, and what covers it.
	elsewhere string
}

// inTest covers what make test and make check-all are made of.
const inTest = "make check-all runs it"

var forms = []form{
	{target: "help"},
	{target: "need-go"},
	{target: "need-cc"},
	{target: "build"},
	{target: "demo", args: []string{"DEMO=--for 1s"}},
	{target: "test-starved", args: []string{"STARVED=./internal/agent/... ./internal/cure/slo ./internal/see/... " +
		"./internal/txn/journal ./internal/ui/top"}},
	{target: "lab"},
	{target: "lab-fetch"},
	{target: "lab-topologies", args: []string{"LAB_TOPOLOGIES=one-socket-8"}},
	{target: "lab-slow", args: []string{"LAB_SLOW=4", "LAB_SLOW_SMP=2", "LAB_SLOW_TESTS=TestGuestHasWhatItPromises"}},
	{target: "lab-kernels", args: []string{"LAB_KERNELS=6.18", "LAB_KERNEL_TESTS=TestGuestHasWhatItPromises"}},
	{target: "install", args: []string{"DESTDIR=.cache/install"}},
	{target: "install-files", elsewhere: "part of install"},
	{target: "install-fleet", args: []string{"DESTDIR=.cache/install"}},
	{target: "uninstall", args: []string{"DESTDIR=.cache/install"}},
	{target: "release", args: []string{"ARCHS=arm64"}},
	{target: "packages", args: []string{"ARCHS=arm64"}},
	{target: "image", args: []string{"ARCHS=arm64"}},
	{target: "plugin", args: []string{"ARCHS=arm64"}},
	{target: "fleet", elsewhere: "make install-fleet runs it"},
	{target: "man"},
	{target: "fuzz", args: []string{"FUZZTIME=1x", "FUZZ_CHECKS=10", "FUZZ_PACKAGES=./internal/kernel/procfs ./internal/kernel/irq"}},
	{target: "accuracy", args: []string{"DRAWS=1", "REPEATS=1", "SECONDS=1"}},
	{target: "confusion", args: []string{"MIXES=1"}},
	{target: "bench", args: []string{"BENCH=--smoke", "PROBE_FORM=width"}},
	{target: "bench-placement", args: []string{"BENCH=-machine rpi4 -arrivals 1 -seeds 1"}},
	{target: "soak-placement", args: []string{"PLACEMENT_STEPS=1000"}},
	{target: "soak-world", args: []string{"WORLD_ROUNDS=2000"}},
	{target: "bench-simulate", args: []string{"BENCHTIME=1x"}},
	{target: "service-jars", elsewhere: "300 MB, for studies alone"},
	{target: "results-rivals", args: []string{"RIVALS=-rounds 0"}},
	{target: "results-sizes", args: []string{"SIZES=-rounds 0"}},
	{target: "results-secondary", args: []string{"SECONDARY=-rounds 0"}},
	{target: "results-many", args: []string{"MANY=-rounds 0"}},
	{target: "results-rollout", args: []string{"ROLLOUT=-for 0"}},
	{target: "results-coarse"},
	{target: "e2e-spans"},
	{target: "results-fleet", args: []string{"FLEET_SERVICES=30", "FLEET_PRICED=3"}},
	{target: "results-threads", args: []string{"THREADS=-rounds 0"}},
	{target: "results-startup", args: []string{"STARTUP=-rounds 1"}},
	{target: "results-published", args: []string{"PUBLISHED=-rounds 0"}},
	{target: "results-wide", args: []string{"WIDE_FOR=0"}},

	{target: "lint", elsewhere: inTest},
	{target: "check", elsewhere: inTest + ", by its parts"},
	{target: "test-modules", elsewhere: inTest},
	{target: "tidy", elsewhere: inTest},
	{target: "size"},
	{target: "test-pure-json", elsewhere: inTest},
	{target: "test-race-json", elsewhere: inTest},
	{target: "test-waiting-json", elsewhere: inTest},
	{target: "test-measuring-json", elsewhere: inTest},
	{target: "test-kernel-json", elsewhere: inTest + ", as test-waiting-json and test-measuring-json"},
	{target: "test-kernel", elsewhere: inTest + ", as test-kernel-json"},
	{target: "test-whole-json", elsewhere: inTest},
	{target: "test-long-waiting-json", elsewhere: inTest},
	{target: "test-long-measuring-json", elsewhere: inTest},
	{target: "test-long-waiting-and-computing", elsewhere: inTest},
	{target: "again-kernel", elsewhere: inTest},
	{target: "again-rest", elsewhere: inTest},
	{target: "lab-test", elsewhere: inTest + ", as lab-test-json"},
	{target: "lab-test-json", elsewhere: inTest},
	{target: "test", elsewhere: "make smoke comes after it"},
	{target: "test-rest", elsewhere: "make smoke comes after it"},
	{target: "check-all", elsewhere: "make smoke comes after it"},
	{target: "test-waiting-and-computing", elsewhere: inTest},
	{target: "test-all", elsewhere: "an hour and a half, before a release; its parts are here and in make check-all"},
	{target: "stage", elsewhere: "make packages runs it"},
	{target: "stage-fleet", elsewhere: "make packages runs it"},
	{target: "smoke", elsewhere: "it is this"},
	{target: "bench-probe", elsewhere: "make bench runs it"},
	{target: "bench-build", elsewhere: "make bench runs it"},
	{target: "wide-build", elsewhere: "make results-wide runs it"},
	{target: "results-cost", elsewhere: "writes README; make bench runs the same measurement"},
	{target: "spark", elsewhere: "fetches 500 MB and takes minutes; which words reach Spark, and what comes back, is " +
		"tested in fleet/spark"},
	{target: "e2e", elsewhere: "needs container runtimes; what it looks at is tested with files of the same form in internal/container"},
	{target: "mixin-test", elsewhere: "builds Prometheus for minutes; what rules and dashboards name is tested in internal/agent"},
	{target: "e2e-prometheus", elsewhere: "builds Prometheus for minutes; what rules and dashboards name is tested in internal/agent"},
	{target: "e2e-kubernetes", elsewhere: "builds Kubernetes for half an hour; what the agent does in its pods is " +
		"tested by make e2e and in internal/agent"},
	{target: "e2e-node", elsewhere: "needs mmdebstrap and builds Kubernetes; the lab's node is tested in test/lab/boot"},
	{target: "e2e-node-hard", elsewhere: "as e2e-node"},
	{target: "e2e-tutorial", elsewhere: "as e2e-node"},
	{target: "e2e-autoscaler", elsewhere: "builds Kubernetes for half an hour, and KEDA"},
	{target: "e2e-vpa", elsewhere: "as e2e-policies; kubernetes/autoscalers is tested with a stand-in"},
	{target: "e2e-descheduler", elsewhere: "builds Kubernetes for half an hour, and the descheduler"},
	{target: "sidecar-image", elsewhere: "make e2e-kubernetes runs it; make image writes the same"},
	{target: "agent-image", elsewhere: "make e2e runs it; make image writes the same"},
	{target: "e2e-policies", elsewhere: "builds Kubernetes for half an hour; kubernetes/controller and " +
		"kubernetes/recommender are tested with a stand-in of the API server"},
	{target: "e2e-rollout", elsewhere: "as e2e-policies; kubernetes/rollouts is tested with stand-ins"},
	{target: "e2e-scheduler", elsewhere: "as e2e-policies; kubernetes/scheduler/pooleddemand is tested with a stand-in"},
	{target: "scheduler-image", elsewhere: "builds kube-scheduler for a quarter of an hour; make image writes images the same way"},
	{target: "e2e-scheduler-image", elsewhere: "as scheduler-image"},
	{target: "e2e-install", elsewhere: "installs packages"},
	{target: "docs", elsewhere: "make check-all compares what it would write (test/docs)"},
	{target: "generate", elsewhere: "needs clang 14; TestObjectsAreFresh of internal/see/probe asks for it after a change"},
	{target: "truth", elsewhere: "needs other people's services, and four minutes for each; what it computes is tested in bench/truth"},
	{target: "truth-page"},
	{target: "truth-again", elsewhere: "needs the recordings that make truth keeps; what it computes is tested in bench/truth"},
	{target: "truth-sampled", elsewhere: "needs other people's services; what it computes is tested in bench/truth"},
	{target: "truth-demand", elsewhere: "needs other people's services; its parts are tested in bench/truth, " +
		"internal/sim/forecast and internal/demand/recorded"},
	{target: "results", elsewhere: "wants a quiet host for minutes; TestRecord and its neighbours in " +
		"internal/experiment/capacity run its parts"},
	{target: "accuracy-lab", elsewhere: "fetches kernels, and runs for minutes on each; make lab-test has the same test in short"},
	{target: "accuracy-forecast", elsewhere: "an hour, and six minutes with one workload; its parts are tested in internal/sim/forecast"},
	{target: "lab-kernel-affected", elsewhere: "builds two kernels for minutes, from sources that apt must know"},
	{target: "lab-java", elsewhere: "starts JVMs in a guest for minutes; on the host their tests are those of test-modules"},
}

// makefiles are the Makefile in dir and the files that it includes, in one text.
func makefiles(dir string) (string, error) {
	var builder strings.Builder
	include := regexp.MustCompile(`(?m)^include +(\S+)`)
	for files := []string{"Makefile"}; len(files) > 0; files = files[1:] {
		text, err := os.ReadFile(filepath.Join(dir, files[0]))
		if err != nil {
			return "", err
		}
		builder.Write(text)
		for _, m := range include.FindAllSubmatch(text, -1) {
			files = append(files, string(m[1]))
		}
	}
	return builder.String(), nil
}

// targets lists the targets of a text of makefiles.
func targets(text string) (found []string) {
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):(?:[^=]|$)`).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}
