package gather

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestKubeletClaims(t *testing.T) {
	for state, want := range map[string]string{
		`{"policyName":"static","entries":{"uid":{"web":"1-2","db":"3"}}}`: `1-3 the kubelet's "static" policy`,
		`{"policyName":"static","entries":{}}`:                             "",
		`{"policyName":`:                                                   " the kubelet's cpu_manager_state has an unexpected format",
	} {
		got := ""
		for _, c := range claims(fstest.MapFS{"var/lib/kubelet/cpu_manager_state": {Data: []byte(state)}}) {
			got += c.CPUs.String() + " " + c.By
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
