package gather

import (
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/utils/cpuset"
)

func TestKubeletClaims(t *testing.T) {
	for state, want := range map[string]string{
		`{"policyName":"static","entries":{"uid":{"web":"1-2","db":"3"}}}`: `1-3 the kubelet's "static" policy`,
		`{"policyName":"static","entries":{}}`:                             ` the kubelet's "static" policy`,
		`{"policyName":"none"}`:                                            "",
		`{"policyName":`:                                                   "0-7 the kubelet, whose /var/lib/kubelet/cpu_manager_state is not known (it has an unexpected format",
	} {
		got := ""
		for _, c := range claims(fstest.MapFS{"var/lib/kubelet/cpu_manager_state": {Data: []byte(state)}},
			cpuset.New(0, 1, 2, 3, 4, 5, 6, 7)) {
			got += c.CPUs.String() + " " + c.By
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
